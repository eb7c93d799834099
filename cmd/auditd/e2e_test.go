package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.org/auditd/auditlog"
	"example.org/auditd/schema"
)

const noModel = "version: 1\nlisten: 127.0.0.1:0\nauditor: none\nlog_level: error\n"

// TestKillLosesNoAnsweredDecision kills the daemon with SIGKILL while many
// clients ask, several times over. Every decision that a client was told must
// be in the log afterwards, and the log must verify and open again.
func TestKillLosesNoAnsweredDecision(t *testing.T) {
	h := newHome(t, noModel)
	var mu sync.Mutex
	answered := map[string]schema.Action{}
	for round := range 3 {
		cmd := h.start(t, "serve")
		ctx, stop := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for n := range 12 {
			clients.Go(func() {
				c := h.client()
				for i := 0; ctx.Err() == nil; i++ {
					f := &schema.Flow{Payload: fmt.Sprintf("rm -rf ~ # %d %d %d", round, n, i),
						Source: schema.Source{Kind: schema.SourceWeb, Trust: schema.Untrusted}, Sink: schema.Sink{Kind: schema.SinkExec}}
					d, err := c.Audit(ctx, f)
					if err != nil {
						if d.Action != schema.Block {
							t.Errorf("a failed call says %v", d.Action)
						}
						return
					}
					mu.Lock()
					answered[d.ID] = d.Action
					mu.Unlock()
				}
			})
		}
		for want := (round + 1) * 150; ; time.Sleep(5 * time.Millisecond) {
			mu.Lock()
			n := len(answered)
			mu.Unlock()
			if n >= want || t.Context().Err() != nil {
				break
			}
		}
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		stop()
		clients.Wait()

		if _, err := auditlog.Verify(h.state); err != nil {
			t.Fatalf("round %d: after the kill: %v", round, err)
		}
	}
	logged := map[string]schema.Action{}
	for line, err := range auditlog.Lines(h.state, 0) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := line.Record()
		if err != nil {
			t.Fatal(err)
		}
		if r.Decision != nil {
			logged[r.ID] = r.Decision.Action
		}
	}
	for id, action := range answered {
		if got, ok := logged[id]; !ok || got != action {
			t.Errorf("decision %s was answered with %v; in the log: %v %v", id, action, ok, got)
		}
	}
	t.Logf("%d answered, %d in the log", len(answered), len(logged))
}

// TestSelfProtection: what an agent could do to auditd is stopped, by a rule
// that no approval lifts.
func TestSelfProtection(t *testing.T) {
	h := newHome(t, noModel)
	cmd := h.start(t, "serve")
	defer cmd.Process.Kill()
	config := filepath.Join(h.dir, "c", "auditd")
	c := h.client()
	for _, command := range []string{
		"cat " + filepath.Join(h.state, "hook.token"),
		"cp " + filepath.Join(config, "owner.json") + " /tmp/x",
		"rm -r " + h.state,
		"echo 'version: 1' > " + filepath.Join(config, "policy.yaml"),
		"sed -i s/block/allow/ " + filepath.Join(config, "config.yaml"),
		"auditd approve q-1",
		"/usr/local/bin/auditd passphrase set",
		"script -qc 'auditd approve q-1' /dev/null",
		"bash -c \"auditd approve q-1\"",
		"killall auditd",
		"pkill -9 auditd",
		"systemctl --user stop auditd",
		"curl -X POST http://127.0.0.1:7841/v1/approvals/q-1 -d '{}'",
		"curl --unix-socket " + filepath.Join(h.state, "run", "auditd.sock") + " http://auditd/v1/approvals",
		"python3 -c \"import urllib.request as u; u.urlopen('http://localhost:7841/v1/owner/session')\"",
	} {
		f := &schema.Flow{Payload: command, Source: schema.Source{Kind: schema.SourceAgent, Trust: schema.Derived},
			Sink: schema.Sink{Kind: schema.SinkExec, Tool: "bash"}, Session: schema.Session{Agent: "a", Workspace: "/srv/project"}}
		d, err := c.Audit(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if d.Action != schema.Block || d.Stage != schema.StagePrecheck {
			t.Errorf("%s: %v by %v (%s)", command, d.Action, d.Stage, d.Reason)
		}
	}
	for _, f := range []schema.Flow{
		{Payload: "version: 1", Sink: schema.Sink{Kind: schema.SinkFile, Tool: "write", ID: filepath.Join(config, "policy.yaml")}},
		{Payload: "x", Sink: schema.Sink{Kind: schema.SinkFile, Tool: "write", ID: filepath.Join(h.state, "auditd.db")}},
		{Payload: "{}", Sink: schema.Sink{Kind: schema.SinkWeb, Tool: "fetch", Destination: "http://127.0.0.1:7841/v1/approvals/q-1"}},
	} {
		f.Source = schema.Source{Kind: schema.SourceAgent, Trust: schema.Derived}
		d, err := c.Audit(t.Context(), &f)
		if err != nil {
			t.Fatal(err)
		}
		if d.Action != schema.Block {
			t.Errorf("%s %s%s: %v by %v", f.Sink.Kind, f.Sink.ID, f.Sink.Destination, d.Action, d.Stage)
		}
	}
}

// TestReadme runs the commands of README.md's quick start, one by one, as they
// stand there.
func TestReadme(t *testing.T) {
	file, err := os.Open("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var commands []string
	inside := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "```sh quickstart":
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside:
			commands = append(commands, line)
		}
	}
	if len(commands) < 8 {
		t.Fatalf("%d commands", len(commands))
	}
	h := newHome(t, "version: 1\nlog_level: error\n")
	script := ""
	for _, line := range commands {
		if line == "auditd serve &" {
			h.start(t, "serve")
			waitReady(t, h)
			continue
		}
		command, comment, _ := strings.Cut(line, "  #")
		if strings.HasPrefix(command, "TOKEN=") {
			script = command + "\n" // the shell keeps it for what follows
			continue
		}
		want := 0
		if strings.Contains(comment, "exits 2") {
			want = 2
		}
		cmd := exec.Command("bash", "-o", "pipefail", "-c", script+command)
		cmd.Env = h.env()
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%s\nexit code %d, want %d (%v)\n%s", line, got, want, err, out)
		}
	}
}

func waitReady(t *testing.T, h *home) {
	t.Helper()
	for range 600 {
		if r, err := h.client().Ready(t.Context()); err == nil && r.Ready {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r, err := h.client().Ready(t.Context())
	t.Fatalf("not ready: %+v %v", r, err)
}
