package main

import (
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/api"
	"example.org/auditd/schema"
)

// TestHardRulesBeforeQuestions: nobody is asked about a call that no answer could
// allow.
func TestHardRulesBeforeQuestions(t *testing.T) {
	for _, mode := range []string{"isolate", "both"} {
		d, root := inProcess(t, mode)
		send := func(e schema.Event) schema.Outcome {
			e.Host, e.Agent, e.Session, e.Workspace = "openclaw", "main", "s", root
			return d.event(t.Context(), &e, schema.CredentialHook)
		}
		symbol := func(call, text string) string {
			out := send(schema.Event{Phase: schema.PhaseAfterTool, Tool: "web_fetch", CallID: call, Params: []byte(`{"url":"https://a.test/"}`), Result: []byte(`{"details":{"url":"https://a.test/","text":"` + text + `"}}`)})
			s := string(out.Result)
			return s[strings.Index(s, "symu"):][:37]
		}
		// A value as code that breaks a hard rule: its text decides, not its symbol.
		wipe := symbol("f1", "rm -rf / --no-preserve-root")
		out := send(schema.Event{Phase: schema.PhaseBeforeTool, Tool: "exec", CallID: "e1", Params: []byte(`{"command":"bash -c \"` + wipe + `\""}`)})
		if out.Action != schema.Block || out.Params != nil {
			t.Errorf("%s: %+v", mode, out)
		}
		if list, err := d.queue.Pending(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%s: %d questions about what is forbidden, %v", mode, len(list), err)
		}
		// The same use of a harmless one is asked about.
		out = send(schema.Event{Phase: schema.PhaseBeforeTool, Tool: "exec", CallID: "e2", Params: []byte(`{"command":"bash -c \"` + symbol("f2", "date") + `\""}`)})
		if out.Action != schema.DeferToHuman || out.Params != nil {
			t.Errorf("%s: %+v", mode, out)
		}
		if list, err := d.queue.Pending(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("%s: %d questions, %v", mode, len(list), err)
		}
	}
}

// TestEditedRules: an edit by hand is noticed, holds once the owner says so, and
// not at all when it cannot be read.
func TestEditedRules(t *testing.T) {
	d, _ := inProcess(t, "isolate")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(d.cfg.isolationFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules := func(f func() (*api.IsolationRules, error)) *api.IsolationRules {
		t.Helper()
		r, err := f()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	look := func() (*api.IsolationRules, error) { return d.isolated.IsolationRules(t.Context()) }
	reload := func() (*api.IsolationRules, error) { return d.isolated.Reload(t.Context()) }
	first := rules(look)
	if first.Edited || first.Problem != "" {
		t.Fatalf("%+v", first)
	}
	write("version: 1\norigins: [{agent: main, trust: untrusted}]\n")
	if r := rules(look); !r.Edited || r.Digest != first.Digest || d.isolated.policy.Load().AgentBarred("openclaw", "main") {
		t.Errorf("an edit holds by itself: %+v", r)
	}
	// A yes to an agent's rule must not let in the edit with it.
	change := &api.RuleChange{Host: "openclaw", Agent: "main", Session: "s", Op: "add", Kind: "trust", Rule: jsontext.Value(`{"file":"*.csv","trust":"untrusted"}`)}
	if out := d.isolated.ChangeRules(t.Context(), change); out.Action != schema.Block || !strings.Contains(out.Message, "policy reload") {
		t.Errorf("a change of an edited file: %+v", out)
	}
	second := rules(reload)
	if second.Edited || second.Digest == first.Digest || !d.isolated.policy.Load().AgentBarred("openclaw", "main") {
		t.Errorf("reloaded: %+v", second)
	}
	for _, bad := range []string{"version: 2\n", "version: 1\norigins: [{agent: main}]\n", "\x00", ""} {
		write(bad)
		if r := rules(reload); !r.Edited || r.Problem == "" || r.Digest != second.Digest || !d.isolated.policy.Load().AgentBarred("openclaw", "main") {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}
