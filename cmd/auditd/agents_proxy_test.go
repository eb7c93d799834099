//go:build agents

package main

import (
	"os"
	"strings"
	"testing"

	"example.org/auditd/credential"
	"example.org/auditd/install/provider"
)

// behindProxy puts the model proxy between the agent and its model. The
// daemon's own is used, as auditd serve opens it.
func (x *desk) behindProxy(change func(*ProviderConfig)) {
	x.base = func(model string) string {
		p := ProviderConfig{Name: "claude-code", API: "anthropic", URL: model, Host: "claude-code"}
		if change != nil {
			change(&p)
		}
		x.cfg.Proxy = ProxyConfig{Listen: "127.0.0.1:0", Providers: []ProviderConfig{p}}
		s, err := x.openProxy(x.t.Context())
		if err != nil {
			x.t.Fatal(err)
		}
		s.Serve(x.logger)
		x.t.Cleanup(s.Close)
		token, err := credential.ReadHookToken(proxyTokenPath(x.cfg))
		if err != nil {
			x.t.Fatal(err)
		}
		return proxyURL(s.listener.Addr().String(), token, p)
	}
}

// TestClaudeCodeBehindTheModelProxy has no hooks: what is stopped, the model
// proxy stopped.
func TestClaudeCodeBehindTheModelProxy(t *testing.T) {
	x := newDesk(t, nil)
	if _, err := x.claude.Uninstall(); err != nil {
		t.Fatal(err)
	}
	x.behindProxy(nil)
	model, out := x.run([]provider.Step{
		bashStep("echo plain-$((1+1))"),
		bashStep("printf 'secret EV%s here' IL"),
		bashStep("printf 'EV%s-ERROR' IL; exit 3"),
		bashStep("printf 'good\\nMASKED%s\\nend\\n' -WORD"),
		provider.Do("Write", map[string]any{"file_path": x.path("a.txt"), "content": "kept MASKED-WORD\n"}),
		provider.Say("The end."),
	})
	results := model.Results()
	for i, want := range []string{"plain-2", "[withheld by auditd]", "[withheld by auditd]", "good", "created"} {
		if i >= len(results) || !strings.Contains(results[i], want) {
			t.Fatalf("the model read %q, want %q in the one at %d", results, want, i)
		}
	}
	if model.Saw("secret EVIL") || model.Saw("EVIL-ERROR") || strings.Contains(results[3], "MASKED") {
		t.Errorf("the model read %q", results)
	}
	if a, err := os.ReadFile(x.path("a.txt")); err != nil || !strings.Contains(string(a), "kept") || strings.Contains(string(a), "MASKED") {
		t.Errorf("not rewritten: %q %v", a, err)
	}
	if !strings.Contains(out, "The end.") {
		t.Errorf("the turn did not come to its end: %s", out)
	}
	// A call that is stopped becomes words of the model's, which end the turn.
	model, out = x.run([]provider.Step{bashStep("echo EVIL > evil.txt"), provider.Say("after")})
	if x.exists("evil.txt") || model.Calls() != 1 || !strings.Contains(out, "[auditd] the call to Bash was stopped") {
		t.Errorf("%d calls, ran: %v, %s", model.Calls(), x.exists("evil.txt"), out)
	}
}

// TestClaudeCodeWithHooksAndModelProxy: both layers together let a turn pass,
// and a session whose hooks are gone is refused before the model hears of it.
func TestClaudeCodeWithHooksAndModelProxy(t *testing.T) {
	x := newDesk(t, nil)
	x.behindProxy(func(p *ProviderConfig) { p.Hooks, p.TrustInstructions = true, true })
	steps := []provider.Step{
		bashStep("echo plain-$((1+1))"),
		bashStep("printf 'secret EV%s here' IL"),
		provider.Do("Write", map[string]any{"file_path": x.path("a.txt"), "content": "one\n"}),
		provider.Do("Read", map[string]any{"file_path": x.path("a.txt")}),
		provider.Say("The end."),
	}
	model, out := x.run(steps)
	r := model.Results()
	if len(r) != 4 || r[0] != "plain-2" || !strings.Contains(r[1], "[withheld by auditd]") || !strings.Contains(r[3], "one") || !strings.Contains(out, "The end.") || model.Saw("secret EVIL") {
		t.Errorf("%q %s", r, out)
	}
	if _, err := x.claude.Uninstall(); err != nil {
		t.Fatal(err)
	}
	if model, out = x.run(steps); model.Calls() != 0 || !strings.Contains(out, "hooks of this session have reported nothing") {
		t.Errorf("without hooks: %d calls, %s", model.Calls(), out)
	}
}
