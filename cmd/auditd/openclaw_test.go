//go:build agents

package main

import (
	"os"
	"strings"
	"testing"

	"example.org/auditd/install/provider"
)

// These tests run the real OpenClaw, offline, with a scripted model and a
// Telegram server of the test's, against the real daemon with a scripted
// auditor.

func execStep(command string) provider.Step {
	return provider.Do("exec", map[string]any{"command": command})
}

func TestOpenClawPaths(t *testing.T) {
	x := newGate(t, nil)
	x.start()
	answer := x.chat("paths",
		execStep("echo plain-$((1+1))"),
		execStep("echo EVIL > evil.txt"),
		provider.Do("write", map[string]any{"path": "c.txt", "content": "kept MASKED-WORD\n"}),
		execStep("printf 'good\\nMASKED%s\\nend\\n' -WORD"),
		execStep("printf 'secret EV%s here' IL"),
		execStep("printf 'EV%s-ERROR' IL >&2; exit 3"),
		provider.Do("read", map[string]any{"path": "missing.txt"}),
		provider.Say("The end."),
	)
	results := x.model.ResultsIn("paths")
	for i, want := range []string{"plain-2", "[auditd] Blocked", "", "good", "[withheld by auditd]", "[withheld by auditd]", "missing.txt"} {
		if i >= len(results) {
			t.Fatalf("%d results: %q; %s", len(results), results, answer)
		}
		if !strings.Contains(results[i], want) {
			t.Errorf("%d: the model read %q, want %q", i, results[i], want)
		}
	}
	if c, err := os.ReadFile(x.path("c.txt")); err != nil || !strings.Contains(string(c), "kept") || strings.Contains(string(c), "MASKED") || strings.Contains(results[3], "MASKED") {
		t.Errorf("not rewritten: %q %v %q", c, err, results[3])
	}
	for _, raw := range []string{"secret EVIL", "EVIL-ERROR"} {
		if x.model.Saw(raw) {
			t.Errorf("the model saw %q", raw)
		}
	}
	if x.exists("evil.txt") {
		t.Error("a blocked call ran")
	}
	x.logLatency()
}
