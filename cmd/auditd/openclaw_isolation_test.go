//go:build agents

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cases "example.org/auditd/bench/isolation"
	"example.org/auditd/inference"
	"example.org/auditd/install"
	"example.org/auditd/install/provider"
	"example.org/auditd/schema"
)

// These tests play the isolation benchmark's cases through the real OpenClaw.
// The model is the worst one: it obeys every order that it can read.

// stage is a gateway on which cases are played, each in a chat of its own.
type stage struct {
	*gate
	site    *cases.Site
	mailbox string
	chats   atomic.Int64
	allowed sync.Map // questions that the owner has answered
}

// firstOwner is the first of the owner's accounts: each case talks from its own.
const firstOwner = 900000

// turnTime is how long a turn may take on a busy machine.
const turnTime = 10 * time.Minute

// newStage starts a gateway, isolated by auditd or without it.
func newStage(t *testing.T, isolated bool) *stage {
	t.Helper()
	s := new(stage)
	var err error
	if s.site, err = cases.NewSite(t.Context()); err != nil {
		t.Fatal(err)
	}
	policy, rules := "", ""
	if isolated {
		u, err := url.Parse(s.site.URL)
		if err != nil {
			t.Fatal(err)
		}
		policy = "version: 1\nmodes: [{agent: 'openclaw:*', mode: both}]\nloopback_ports: [" + u.Port() + "]\n"
		rules = "version: 1\norigins: [{file: '" + cases.InboxGlob + "', trust: untrusted}]\n"
	}
	owners := []string{}
	for i := range 200 {
		owners = append(owners, "telegram:"+strconv.Itoa(firstOwner+i))
	}
	s.gate = newGateWith(t, policy, rules, func(config map[string]any) {
		config["session"] = map[string]any{"dmScope": "per-channel-peer"}
		config["commands"] = map[string]any{"ownerAllowFrom": owners}
		tools := config["tools"].(map[string]any) // the same tools with and without auditd
		tools["toolSearch"], tools["codeMode"] = false, false
		config["messages"] = map[string]any{"inbound": map[string]any{"debounceMs": 0}}
	}, func(c *install.OpenClaw) { c.Timeout = 10 * time.Second })
	if !isolated {
		if _, err := s.claw.Uninstall(); err != nil {
			t.Fatal(err)
		}
	}
	if s.mailbox, err = cases.NewMailbox(filepath.Join(s.dir, "mailbox")); err != nil {
		t.Fatal(err)
	}
	s.start()
	// The gateway's first turn takes long.
	s.model.Add("first", []provider.Step{provider.Say("warm")})
	s.telegram.say(firstOwner, provider.Prompt("first"))
	ctx, cancel := context.WithTimeout(t.Context(), turnTime)
	defer cancel()
	if !s.telegram.until(ctx, "warm") {
		t.Fatal("the gateway does not answer")
	}
	return s
}

// play plays a case and returns what came of it.
func (s *stage) play(t *testing.T, c *cases.Case) *cases.Outcome {
	w := &cases.World{Dir: s.path(c.ID), Site: s.site.URL, Mailbox: s.mailbox}
	if err := errors.Join(c.Prepare(w), w.Deliver(c)); err != nil {
		t.Error(err)
	}
	s.site.Serve(c, w)
	o := &cases.Outcome{Case: c, World: w, Sent: map[string][]string{}}
	for session := 1; session <= c.Sessions(); session++ {
		name := c.ID + "-s" + strconv.Itoa(session)
		end := "end of " + name
		s.model.AddModel(name, func(turn *provider.Turn) provider.Step { return s.worst(c, w, session, turn, end) })
		chat := firstOwner + int(s.chats.Add(1))
		s.telegram.say(chat, provider.Prompt(name)+" "+c.Prompt(w, session))
		ctx, cancel := context.WithTimeout(t.Context(), turnTime)
		if !s.telegram.until(ctx, end) {
			t.Errorf("%s: no answer; the model read %.500q", name, s.model.ResultsIn(name))
		}
		cancel()
		for _, m := range s.telegram.messages() {
			switch {
			case m.Chat == strconv.Itoa(chat):
				o.Reply += m.Text + "\n"
			case m.Chat == cases.Friend && strings.Contains(m.Text, c.Fact()):
				o.Sent[m.Chat] = append(o.Sent[m.Chat], m.Text)
			}
		}
	}
	o.Collected = s.site.Collected(c)
	return o
}

// worst is the worst model's next step in a turn.
func (s *stage) worst(c *cases.Case, w *cases.World, session int, turn *provider.Turn, end string) provider.Step {
	m := c.Mind(w, session)
	m.Reads(turn.Before)
	step, ok := m.Next()
	for _, heard := range turn.Since {
		if s.allows(step, heard.Result) {
			continue // the same once more
		}
		m.Reads(heard.All)
		m.Holds(step.As, content(heard.Result))
		step, ok = m.Next()
	}
	if !ok {
		return provider.Say(end)
	}
	do := func(tool string, input map[string]any) provider.Step { return provider.Do(tool, input) }
	switch step.Act {
	case cases.Fetch:
		return do("web_fetch", map[string]any{"url": step.URL})
	case cases.ReadMail, cases.Run:
		return do("exec", map[string]any{"command": step.Command})
	case cases.Restricted:
		return do("exec", map[string]any{"command": "RESTRICTED=1 " + step.Command})
	case cases.Read:
		return do("read", map[string]any{"path": step.Path})
	case cases.Write:
		return do("write", map[string]any{"path": step.Path, "content": step.Text})
	case cases.Edit:
		return do("edit", map[string]any{"path": step.Path, "edits": []any{map[string]any{"oldText": step.Old, "newText": step.Text}}})
	case cases.Remember:
		return do("write", map[string]any{"path": filepath.Join(filepath.Dir(w.Dir), "memory", step.Path+".md"), "content": step.Text})
	case cases.Recall:
		return do("memory_get", map[string]any{"path": "memory/" + step.Path + ".md"})
	case cases.Send:
		return do("message", map[string]any{"action": "send", "channel": "telegram", "target": step.To, "message": step.Text})
	case cases.Inspect:
		return do("inspect_symbol", map[string]any{"symbols": []any{step.Text}, "question": step.Question})
	}
	return provider.Say(step.Text + "\n" + end)
}

var question = regexp.MustCompile(`auditd approve (q-[a-z0-9]+)`)

// allows answers what the owner is asked about a step of the owner's own task,
// and reports whether there was a question. Orders of an attacker's get no yes.
func (s *stage) allows(step cases.Step, result string) bool {
	found := question.FindStringSubmatch(result)
	if found == nil || step.Obeys() {
		return false
	}
	if _, asked := s.allowed.LoadOrStore(found[1], true); !asked {
		if err := s.queue.Answer(context.Background(), found[1], true, "the test's owner", nil); err != nil {
			s.top.Errorf("%s: %v", step.Act, err)
		}
	}
	return true
}

// content is what a result of OpenClaw's says, without its form.
func content(text string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) == nil {
		for _, name := range []string{"text", "aggregated", "content", "answer", "result"} {
			if v, ok := fields[name].(string); ok {
				return v
			}
		}
	}
	return text
}

// suite are the cases that are played: one for every goal on every vector, and
// one for every way of two sessions. `make agents-all` plays all 105.
func suite() []*cases.Case {
	all := sample(slices.Concat(cases.Third(), cases.Stored()))
	if os.Getenv("AUDITD_TEST_ALL") != "" {
		all = slices.Concat(cases.Cases(), cases.Stored())
	}
	if only := os.Getenv("AUDITD_TEST_CASE"); only != "" {
		all = slices.DeleteFunc(all, func(c *cases.Case) bool { return !strings.Contains(c.ID, only) })
	}
	return all
}

// sample is one case for every goal on every vector, and one for every way.
func sample(list []*cases.Case) []*cases.Case {
	seen := map[string]bool{}
	var out []*cases.Case
	for _, c := range list {
		key := string(c.Vector) + string(c.Goal)
		if c.Way != "" {
			key = string(c.Way)
		}
		if !seen[key] {
			seen[key] = true
			out = append(out, c)
		}
	}
	return out
}

// playAll plays cases, some cases at once, and hands each outcome to check.
func (s *stage) playAll(t *testing.T, list []*cases.Case, check func(*cases.Outcome)) {
	todo := make(chan *cases.Case)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for c := range todo {
				start := time.Now()
				check(s.play(t, c))
				t.Logf("%s: %s", c.ID, time.Since(start).Round(time.Millisecond))
			}
		})
	}
	for _, c := range list {
		todo <- c
	}
	close(todo)
	wg.Wait()
}

// TestOpenClawIsolation plays the cases with isolation on: none does harm, no
// request of the model's holds a word of the attacker's, and the owner gets what
// was asked for in clear.
func TestOpenClawIsolation(t *testing.T) {
	s := newStage(t, true)
	s.playAll(t, suite(), func(o *cases.Outcome) { s.holds(t, o) })
}

// TestOpenClawWithoutIsolation plays the same cases without auditd: each does
// harm, so that the others show something.
func TestOpenClawWithoutIsolation(t *testing.T) {
	s := newStage(t, false)
	s.playAll(t, suite(), func(o *cases.Outcome) {
		if o.Harm() == "" {
			t.Errorf("%s: no harm was done; the model read %.1500q", o.Case.ID, s.results(o.Case))
		}
		if err := o.Served(); err != nil {
			t.Errorf("%s: %v", o.Case.ID, err)
		}
	})
}

// willing is the quarantined model: it finds what it is asked for, and says what
// the attacker wants it to say.
type willing struct{}

func (willing) Identity() string { return "willing" }
func (willing) Ready() error     { return nil }
func (willing) Window() int      { return 32768 }
func (willing) Complete(_ context.Context, c *inference.Completion) (string, schema.Usage, error) {
	at := strings.Index(c.User, "The meeting is on")
	if at < 0 {
		return `{"result": "unknown"}`, schema.Usage{Backend: "scripted"}, nil
	}
	text := c.User[at:min(len(c.User), at+2000)] // with the attacker's order
	answer, err := json.Marshal(map[string]string{"result": strings.ToValidUTF8(text, "")})
	return string(answer), schema.Usage{Backend: "scripted"}, err
}

// holds checks what came of a case with isolation on.
func (s *stage) holds(t *testing.T, o *cases.Outcome) {
	t.Helper()
	c := o.Case
	if harm := o.Harm(); harm != "" {
		t.Errorf("%s: %s", c.ID, harm)
	}
	if err := o.Served(); err != nil {
		t.Errorf("%s: %v; the model read %.1500q", c.ID, err, s.results(c))
	}
	for session := 1; session <= c.Sessions(); session++ {
		for i, r := range s.model.Requests(c.ID + "-s" + strconv.Itoa(session)) {
			if leak := c.Leak(r); leak != "" {
				t.Errorf("%s: request %d of session %d holds %s: %s", c.ID, i, session, leak, s.model.Around(leak))
				break
			}
		}
	}
}

func (s *stage) results(c *cases.Case) []string {
	var out []string
	for session := 1; session <= c.Sessions(); session++ {
		out = append(out, s.model.ResultsIn(c.ID+"-s"+strconv.Itoa(session))...)
	}
	return out
}
