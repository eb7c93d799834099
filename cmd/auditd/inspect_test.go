package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/api"
	dvpolicy "example.org/auditd/dualview/policy"
	"example.org/auditd/inference"
	"example.org/auditd/schema"
)

// reader is a model that says yes, and counts how often it was asked.
type reader struct{ asked atomic.Int32 }

func (r *reader) Identity() string { return "reader" }
func (r *reader) Ready() error     { return nil }
func (r *reader) Window() int      { return 8192 }

func (r *reader) Complete(_ context.Context, c *inference.Completion) (string, schema.Usage, error) {
	r.asked.Add(1)
	if !strings.Contains(c.User, "kanarienvogel") {
		return "", schema.Usage{}, &inference.Error{Cause: inference.CauseEmpty, Backend: "reader"}
	}
	return `{"result":{"yes":true,"said":"a kanarienvogel"}}`, schema.Usage{}, nil
}

// TestInspectionsOfADaemon: an inspection is answered by the model, its texts are
// symbols, the same call is answered once, and of what comes back as the tool's
// result the model reads the daemon's own answer and nothing else.
func TestInspectionsOfADaemon(t *testing.T) {
	model := new(reader)
	d, root := inProcessWith(t, "isolate", "version: 1\norigins: [{agent: barred, trust: untrusted}]\ninspect: {clear: true, session_bits: 5}\n",
		&judges{auditor: harmless{}, inspector: model})
	send := func(e schema.Event) schema.Outcome {
		e.Host, e.Agent, e.Session, e.Workspace = "openclaw", "main", "s", root
		return d.event(t.Context(), &e, schema.CredentialHook)
	}
	out := send(schema.Event{Phase: schema.PhaseAfterTool, Tool: "web_fetch", CallID: "f", Params: []byte(`{"url":"https://a.test/"}`), Result: []byte(`{"details":{"url":"https://a.test/","text":"a kanarienvogel of a page"}}`)})
	s := string(out.Result)
	s = s[strings.Index(s, "symu"):][:37]
	ask := func(agent, call, question string) schema.Outcome {
		return d.isolated.Inspect(t.Context(), &api.Inspection{Host: "openclaw", Agent: agent, Session: "s", CallID: call, Symbols: []string{s}, Question: question,
			Schema: jsontext.Value(`{"type":"object","properties":{"yes":{"type":"boolean"},"said":{"type":"string"}}}`)})
	}
	params, err := json.Marshal(object{"symbols": []string{s}, "question": "is it a bird?"})
	if err != nil {
		t.Fatal(err)
	}
	if out := send(schema.Event{Phase: schema.PhaseBeforeTool, Tool: "inspect_symbol", CallID: "i1", Params: params}); out.Action != schema.Allow {
		t.Fatalf("before: %+v", out)
	}
	first := ask("main", "i1", "is it a bird?")
	if first.Action != schema.RewriteAndContinue || !strings.Contains(string(first.Result), `"yes":true`) || !strings.Contains(string(first.Result), `"said":"symu`) || strings.Contains(string(first.Result), "kanarienvogel") {
		t.Fatalf("%+v %s", first, first.Result)
	}
	// Three of five bits are spent, and nothing for the same call again.
	for range 3 {
		if again := ask("main", "i1", "is it a bird?"); string(again.Result) != string(first.Result) {
			t.Errorf("the same call: %+v %s", again, again.Result)
		}
	}
	if n := model.asked.Load(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	result := func(text string) schema.Outcome {
		enc, err := json.Marshal(object{"content": textBlocks(text), "details": object{"status": "completed"}})
		if err != nil {
			t.Fatal(err)
		}
		return send(schema.Event{Phase: schema.PhaseAfterTool, Tool: "inspect_symbol", CallID: "i1", Params: params, Result: enc})
	}
	if out := result(string(first.Result)); !strings.Contains(string(out.Result), `\"yes\":true`) || out.Reason != schema.ReasonNothingHidden {
		t.Errorf("its own answer: %+v %s", out, out.Result)
	}
	// The budget's rest is for one answer without anything in clear.
	if out := ask("main", "i2", "is it a bird?"); !strings.Contains(string(out.Result), `"yes":"symu`) || out.Action.Stops() {
		t.Errorf("the last answer: %+v %s", out, out.Result)
	}
	if out := ask("main", "i3", "is it a bird?"); out.Reason != "inspect_budget" || out.Result != nil {
		t.Errorf("over the budget: %+v", out)
	}
	if out := ask("barred", "i4", "is it a bird?"); out.Reason != "inspect_refused" {
		t.Errorf("an agent that is not trusted: %+v", out)
	}

	// Whoever changes a word of the answer on its way gets all of it hidden.
	for name, text := range map[string]string{"another answer": `{"result":{"yes":false,"said":"nothing"}}`, "more text": string(first.Result) + " obey", "an answer of none": "obey"} {
		if out := send(schema.Event{Phase: schema.PhaseBeforeTool, Tool: "inspect_symbol", CallID: "i1", Params: params}); out.Action != schema.Allow {
			t.Fatalf("before: %+v", out)
		}
		if name != "an answer of none" {
			ask("main", "i1", "is it a bird?")
		}
		if out := result(text); out.Action != schema.RewriteAndContinue || strings.Contains(string(out.Result), "yes") || strings.Contains(string(out.Result), "obey") {
			t.Errorf("%s: %+v %s", name, out, out.Result)
		}
	}
}

// TestIsolationPage: the example of the page is one that is taken.
func TestIsolationPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/isolation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if p, err := dvpolicy.New([]byte(example)); !ok || err != nil || !p.Inspect().Clear {
		t.Errorf("%v", err)
	}
}
