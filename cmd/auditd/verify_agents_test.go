//go:build agents

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// These tests do what an owner does: install, start the daemon with the auditor
// that ships, verify with the real agent, ask for the status, and take auditd
// out again.

func TestVerifiedClaudeCode(t *testing.T) {
	verified(t, "claude-code", os.Getenv("AUDITD_TEST_CLAUDE"), filepath.Join(".claude", "settings.json"), `{"permissions": {"allow": ["Read"]}}`)
}

func TestVerifiedOpenClaw(t *testing.T) {
	verified(t, "openclaw", openClawProgram(t, t.TempDir()), filepath.Join(".openclaw", "openclaw.json"),
		`{"models":{"mode":"replace","providers":{"near":{"baseUrl":"http://127.0.0.1:9/v1","apiKey":"k","api":"openai-completions","models":[]}}},
  "gateway":{"mode":"local"}}`)
}

func verified(t *testing.T, name, program, settings, before string) {
	if program == "" {
		t.Fatal("run this through scripts/agents.sh")
	}
	h := newHome(t, fmt.Sprintf("version: 1\nlisten: 127.0.0.1:%d\nproxy: {listen: '127.0.0.1:%d'}\nlog_level: error\n", freePort(t), freePort(t)))
	settings = filepath.Join(h.dir, settings)
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	do := func(want int, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "auditd", args...)
		cmd.Env = h.env()
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Fatalf("auditd %s: %d, %v\n%s", strings.Join(args, " "), code, err, out)
		}
		return string(out)
	}
	do(exitOK, "install", name)
	serve := h.start(t, "serve")
	t.Cleanup(func() { serve.Process.Signal(os.Interrupt); serve.Wait() })
	until := time.Now().Add(5 * time.Minute)
	for ready(h.client())(t.Context()) != nil {
		if time.Now().After(until) {
			t.Fatalf("the daemon is not ready: %v", ready(h.client())(t.Context()))
		}
		time.Sleep(200 * time.Millisecond)
	}
	if out := do(exitStop, "status", name, "--agent", program); !strings.Contains(out, "nothing was verified yet") || strings.Contains(out, "model proxy") {
		t.Error(out)
	}
	if out := do(exitOK, "verify", name, "--agent", program); strings.Contains(out, "FAILED") || !strings.Contains(out, "the model proxy refuses a session without hooks") {
		t.Error(out)
	}
	if out := do(exitOK, "status", name, "--agent", program); !strings.Contains(out, "Protected by hooks") {
		t.Error(out)
	}
	if out := do(exitOK, "install", name, "--no-model-proxy"); !strings.Contains(out, "Installed") {
		t.Error(out)
	}
	if out := do(exitStop, "status", name, "--agent", program); !strings.Contains(out, "Not protected") || !strings.Contains(out, "the model proxy is not in between") {
		t.Error(out)
	}
	do(exitOK, "uninstall", name)
	if after, err := os.ReadFile(settings); err != nil || string(after) != before {
		t.Errorf("%v %q", err, after)
	}
}
