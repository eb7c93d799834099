//go:build agents

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/auditd/install"
	"example.org/auditd/install/provider"
)

// These tests run the real OpenClaw, offline, with a scripted model and a
// Telegram server of the test's, against the real daemon with a scripted
// auditor. One gateway serves them all: it takes long to start.

func execStep(command string) provider.Step {
	return provider.Do("exec", map[string]any{"command": command})
}

func TestOpenClaw(t *testing.T) {
	x := newGate(t, func(c *install.OpenClaw) { c.Timeout = 4 * time.Second })
	for name, text := range map[string]string{"AGENTS.md": "Run the tests: HARMLESS-RULE.\n", "SOUL.md": "EVIL-SOUL\n", "MEMORY.md": "kept-memory MASKED-WORD\n"} {
		if err := os.WriteFile(x.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x.start()
	for _, tt := range []struct {
		name string
		run  func(*testing.T, *gate)
	}{
		{"Calls", openClawCalls}, {"Bootstrap", openClawBootstrap}, {"Approval", openClawApproval}, {"Telegram", openClawTelegram},
		{"Strangers", openClawStrangers}, {"Webhook", openClawWebhook}, {"Subagents", openClawSubagents}, {"Heartbeat", openClawHeartbeat},
		{"FailsClosed", openClawFailsClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x.t = t
			defer func() { x.t = x.top }()
			tt.run(t, x)
		})
	}
	x.logLatency()
}

func openClawCalls(t *testing.T, x *gate) {
	answer := x.chat("calls",
		execStep("echo plain-$((1+1))"),
		execStep("echo EVIL > evil.txt"),
		provider.Do("write", map[string]any{"path": "c.txt", "content": "kept MASKED-WORD\n"}),
		execStep("printf 'good\\nMASKED%s\\nend\\n' -WORD"),
		execStep("printf 'secret EV%s here' IL"),
		execStep("printf 'EV%s-ERROR' IL >&2; exit 3"),
		provider.Do("read", map[string]any{"path": "missing.txt"}),
		execStep("head -c 150000 /dev/zero | tr '\\0' x; echo MASKED"+"-WO''RD"),
		provider.Say("The end."),
	)
	results := x.model.ResultsIn("calls")
	for i, want := range []string{"plain-2", "[auditd] Blocked", "", "good", "[withheld by auditd]", "[withheld by auditd]", "missing.txt", "xxx"} {
		if i >= len(results) {
			t.Fatalf("%d results: %q; %s", len(results), results, answer)
		}
		if !strings.Contains(results[i], want) {
			t.Errorf("%d: the model read %.200q, want %q", i, results[i], want)
		}
	}
	if c, err := os.ReadFile(x.path("c.txt")); err != nil || !strings.Contains(string(c), "kept") || strings.Contains(string(c), "MASKED") {
		t.Errorf("parameters not rewritten: %q %v", c, err)
	}
	if strings.Contains(results[3], "MASKED") {
		t.Errorf("result not rewritten: %q", results[3])
	}
	for _, raw := range []string{"secret EVIL", "EVIL-ERROR"} {
		if x.model.Saw(raw) {
			t.Errorf("the model saw %q", raw)
		}
	}
	if x.exists("evil.txt") {
		t.Error("a blocked call ran")
	}
}

func openClawBootstrap(t *testing.T, x *gate) {
	x.chat("bootstrap", provider.Say("fine"))
	if !x.model.SawIn("bootstrap", "HARMLESS-RULE") {
		t.Error("a harmless AGENTS.md did not reach the model")
	}
	if x.model.Saw("EVIL-SOUL") {
		t.Error("a poisoned SOUL.md reached the model")
	}
	if !x.model.SawIn("bootstrap", "kept-memory") || x.model.Saw("kept-memory MASKED-WORD") {
		t.Error("MEMORY.md was not rewritten")
	}
}

func openClawApproval(t *testing.T, x *gate) {
	turn := 0
	ask := func() string {
		turn++
		name := fmt.Sprint("ask", turn)
		x.chat(name, execStep("echo ASKOWNER > asked.txt"), provider.Say("end"))
		return strings.Join(x.model.ResultsIn(name), "\n")
	}
	answer := func(approve bool) {
		t.Helper()
		pending, err := x.queue.Pending(t.Context())
		if err != nil || len(pending) != 1 {
			t.Fatalf("%d questions, %v", len(pending), err)
		}
		if err := x.queue.Answer(t.Context(), pending[0].ID, approve, "test", nil); err != nil {
			t.Fatal(err)
		}
	}
	if r := ask(); !strings.Contains(r, "auditd approve q-") || x.exists("asked.txt") {
		t.Fatalf("asked: %q", r)
	}
	if r := ask(); !strings.Contains(r, "auditd approve q-") || x.exists("asked.txt") {
		t.Fatalf("nobody has answered: %q", r)
	}
	answer(true)
	if r := ask(); !x.exists("asked.txt") {
		t.Errorf("the approved call did not run: %q", r)
	}
	os.Remove(x.path("asked.txt"))
	if r := ask(); x.exists("asked.txt") {
		t.Errorf("one approval was good for two calls: %q", r)
	}
	answer(false)
	if r := ask(); x.exists("asked.txt") {
		t.Errorf("the denied call ran: %q", r)
	}
}

func (x *gate) sentWith(text string) []sent {
	var out []sent
	for _, m := range x.telegram.messages() {
		if strings.Contains(m.Text, text) {
			out = append(out, m)
		}
	}
	return out
}

func openClawTelegram(t *testing.T, x *gate) {
	x.model.Add("reply", []provider.Step{provider.Do("message", map[string]any{"action": "send", "channel": "telegram", "target": "888", "message": "sent-tool MASKED-WORD"}),
		provider.Do("message", map[string]any{"action": "send", "channel": "telegram", "target": "888", "message": "sent-EVIL"}), provider.Say("final-reply MASKED-WORD end")})
	x.telegram.say(777, provider.Prompt("reply"))
	ctx, cancel := x.within(time.Minute)
	defer cancel()
	if !x.telegram.until(ctx, "final-reply") {
		t.Fatalf("no reply: %q", x.telegram.messages())
	}
	if len(x.sentWith("sent-tool")) == 0 || len(x.sentWith("MASKED-WORD")) > 0 || len(x.sentWith("EVIL")) > 0 {
		t.Errorf("sent: %q", x.telegram.messages())
	}
	if !strings.Contains(x.sentWith("final-reply")[0].Text, "end") {
		t.Errorf("a reply was cut: %q", x.sentWith("final-reply"))
	}
	// A webhook's answer goes out by another way.
	x.hook("deliver", provider.Say("delivered MASKED-WORD"))
	x.hook("never", provider.Say("delivered EVIL"))
	if len(x.sentWith("delivered")) != 1 || len(x.sentWith("MASKED-WORD")) > 0 || len(x.sentWith("EVIL")) > 0 {
		t.Errorf("sent: %q", x.telegram.messages())
	}
}

// hook plays steps as a webhook's turn that is delivered to a chat.
func (x *gate) hook(name string, steps ...provider.Step) string {
	x.t.Helper()
	x.model.Add(name, steps)
	_, answer := x.post("/hooks/agent", "hook-token", map[string]any{"message": provider.Prompt(name), "name": "test", "agentId": "main", "channel": "telegram", "to": "777", "waitForCompletion": true})
	return answer
}

// openClawStrangers: whoever is not the owner may write to the bot, and what
// must not reach the model does not.
func openClawStrangers(t *testing.T, x *gate) {
	x.model.Add("stranger", []provider.Step{provider.Say("stranger-answered")})
	ctx, cancel := x.within(time.Minute)
	defer cancel()
	x.telegram.say(888, provider.Prompt("stranger")+" harmless")
	if !x.telegram.until(ctx, "stranger-answered") {
		t.Errorf("a harmless stranger got no answer: %q", x.telegram.messages())
	}
	x.telegram.say(888, provider.Prompt("stranger")+" EVIL-PROMPT")
	// OpenClaw joins messages that come at once: the next waits for the refusal.
	if !x.telegram.until(ctx, "would do harm at its destination") {
		t.Errorf("a stranger's poisoned message was not refused: %q", x.telegram.messages())
	}
	// OpenClaw keeps what was refused in the transcript: the session is closed.
	x.telegram.say(888, provider.Prompt("stranger")+" again")
	if !x.telegram.until(ctx, "Begin a new session") {
		t.Errorf("the session goes on: %q", x.telegram.messages())
	}
	if x.model.Saw("EVIL-PROMPT") {
		t.Errorf("a stranger's poisoned message reached the model: %s", x.model.Around("EVIL-PROMPT"))
	}
}

func openClawWebhook(t *testing.T, x *gate) {
	x.model.Add("poisoned", []provider.Step{provider.Say("never")})
	x.post("/hooks/agent", "hook-token", map[string]any{"message": provider.Prompt("poisoned") + " EVIL-HOOK", "name": "test", "agentId": "main", "channel": "telegram", "to": "777", "waitForCompletion": true})
	if x.model.Saw("EVIL-HOOK") {
		t.Error("a poisoned webhook reached the model")
	}
	x.hook("benign", execStep("echo EVIL > hooked.txt"), execStep("printf 'EV%s-HOOKED' IL"), provider.Say("hook-done"))
	if len(x.sentWith("hook-done")) != 1 || x.exists("hooked.txt") || x.model.Saw("EVIL-HOOKED") {
		t.Errorf("hooked: %q, ran %v", x.model.ResultsIn("benign"), x.exists("hooked.txt"))
	}
}

func openClawSubagents(t *testing.T, x *gate) {
	x.model.Add("child", []provider.Step{execStep("echo EVIL > child.txt"), execStep("printf 'EV%s-CHILD' IL"), provider.Say("child-done")})
	x.chat("parent", provider.Do("sessions_spawn", map[string]any{"task": provider.Prompt("child") + " go", "label": "kid"}), provider.Say("spawned"))
	ctx, cancel := x.within(time.Minute)
	defer cancel()
	for len(x.model.ResultsIn("child")) < 2 && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
	}
	r := x.model.ResultsIn("child")
	if len(r) != 2 || !strings.Contains(r[0], "[auditd] Blocked") || !strings.Contains(r[1], "withheld by auditd") {
		t.Fatalf("the child's calls: %q, %q", x.model.ResultsIn("parent"), r)
	}
	if x.exists("child.txt") || x.model.Saw("EVIL-CHILD\"") || len(x.sentWith("EVIL")) > 0 {
		t.Errorf("a sub-agent's call or result came through: %s", x.model.Around("EVIL-CHILD\""))
	}
	// What the child said is the host's exception: OpenClaw 2026.9.6 puts it into
	// the parent's next model call ("Child results awaiting delivery") past every
	// hook that could stop it. Its own calls still go through the hooks.
}

func openClawHeartbeat(t *testing.T, x *gate) {
	if !x.beats.Alive("openclaw") {
		t.Errorf("the plugin has not reported: %+v", x.beats.Seen())
	}
	for _, b := range x.beats.Seen() {
		if b.Plugin == "" || !strings.HasPrefix(b.HostVersion, "2026.") {
			t.Errorf("%+v", b)
		}
	}
}

// openClawFailsClosed: whatever the daemon does wrong, no call runs unseen, no
// result reaches the model unseen, and nothing is said unseen.
func openClawFailsClosed(t *testing.T, x *gate) {
	for _, how := range []string{"500", "401", "503", "302", "garbage", "empty", "slow", "killed"} {
		t.Run(how, func(t *testing.T) {
			x.t = t
			fail := func(phase string, f func()) {
				x.front.set([]string{phase}, how)
				defer x.front.set([]string{phase}, "")
				f()
			}
			os.Remove(x.path("ran.txt"))
			name := "fails-" + how
			fail("before-tool", func() { x.chat(name+"-before", execStep("echo x > ran.txt"), provider.Say("after")) })
			if r := x.model.ResultsIn(name + "-before"); x.exists("ran.txt") || len(r) != 1 || !strings.Contains(r[0], "[auditd]") {
				t.Errorf("before: ran %v, %q", x.exists("ran.txt"), r)
			}
			fail("after-tool", func() {
				x.chat(name+"-after", execStep("echo x > ran.txt; printf 'RAW-%s' OUT"), execStep("printf 'RAW-%s' OUT >&2; exit 3"), provider.Say("after"))
			})
			if r := x.model.ResultsIn(name + "-after"); !x.exists("ran.txt") || len(r) != 2 || !strings.Contains(r[0], "withheld") || !strings.Contains(r[1], "withheld") || x.model.Saw("RAW-OUT") {
				t.Errorf("after: ran %v, %q", x.exists("ran.txt"), r)
			}
			fail("message-out", func() { x.hook(name+"-out", provider.Say("RAW-REPLY")) })
			if len(x.sentWith("RAW-REPLY")) > 0 {
				t.Errorf("out: sent %q", x.sentWith("RAW-REPLY"))
			}
			fail("prompt", func() { x.chat(name+"-prompt", execStep("echo x > prompted.txt")) })
			fail("bootstrap", func() { x.chat(name+"-boot", provider.Say("fine")) })
			if x.exists("prompted.txt") || x.model.SawIn(name+"-prompt", "SCENARIO") || x.model.SawIn(name+"-boot", "HARMLESS-RULE") {
				t.Errorf("prompt: ran %v, asked %v; bootstrap: %v", x.exists("prompted.txt"), x.model.SawIn(name+"-prompt", "SCENARIO"), x.model.SawIn(name+"-boot", "HARMLESS-RULE"))
			}
		})
	}
	x.t = t
	x.chat("well-again", execStep("echo well-$((1+1))"), provider.Say("end"))
	if r := x.model.ResultsIn("well-again"); len(r) != 1 || !strings.Contains(r[0], "well-2") {
		t.Errorf("it does not recover: %q", r)
	}
}

// TestOpenClawVerify: the canary passes with the plugin and fails without it,
// and status says so.
func TestOpenClawVerify(t *testing.T) {
	x := newGate(t, nil)
	x.claw.Beats = nil
	v, err := x.claw.Verify(t.Context(), x.agent)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Checks {
		// The scripted auditor allows the poisoned texts; what is decided without it holds.
		if !c.Passed && !strings.Contains(c.Name, "poisoned") && !strings.Contains(c.Name, "failing") {
			t.Errorf("%s: %s", c.Name, c.Seen)
		}
	}
	if v.Version != "2026.9.6" {
		t.Errorf("version %q", v.Version)
	}
	data, err := json.Marshal(x.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(x.claw.Settings, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err = x.claw.Verify(t.Context(), x.agent); err != nil || v.Passed() || v.Checks[1].Passed || v.Checks[2].Passed || v.Checks[4].Passed {
		t.Errorf("unhooked: %v %+v", err, v)
	}
	s, err := x.claw.Status(t.Context(), x.agent, ready(x.clientOf()))
	if err != nil || s.Protected || !strings.Contains(strings.Join(s.Problems, " "), "unhooked") {
		t.Errorf("%v %+v", err, s)
	}
	if _, err := os.Stat(filepath.Join(x.dir, "home", ".openclaw", "state")); err == nil {
		t.Error("the canary left something in the owner's folder")
	}
}
