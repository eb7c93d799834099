//go:build integration

package httpapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

// alarm records a decision that stopped something harmless.
func (s *site) alarm(t *testing.T, id, source, payload string) {
	t.Helper()
	f := &schema.Flow{Payload: payload, Source: schema.Source{Kind: schema.SourceWeb, ID: source, Trust: schema.Untrusted},
		Sink: schema.Sink{Kind: schema.SinkReasoning, Tool: "web_fetch"}, Session: schema.Session{Agent: "openclaw:main", ID: "s-1"}}
	if err := f.Complete(0); err != nil {
		t.Fatal(err)
	}
	s.append(t, f, &schema.Decision{ID: id, Time: time.Now().UTC(), Action: schema.Block, Stage: schema.StageAuditor, Reason: "auditor_block",
		Message: "Blocked: the content would do harm at its destination.", LatencyMS: 14,
		Precheck: &schema.Precheck{Risk: .4, Coverage: schema.Coverage{Bytes: len(payload), Total: len(payload)}, Signals: []schema.Signal{
			{Code: schema.PromptControl, Rule: "control-override", Spans: []schema.Span{{Start: 0, End: 10, Category: schema.SpanInstruction}}}}},
		Report: &schema.Report{Decision: schema.Block, Risk: .71, Uncertainty: .2, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualPromptControl}, Evidence: []string{}},
		Trace:  []schema.Trace{{Stage: schema.StagePrecheck, Outcome: "next", DurationMS: .1}, {Stage: schema.StageAuditor, Outcome: "block", DurationMS: 13}}})
}

func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(selector), text))
}

// TestBrowserWrong: an owner calls a decision wrong, suppresses it in its place,
// finds that suppression and takes it back; and makes a no last.
func TestBrowserWrong(t *testing.T) {
	s := newSite(t, func(c *Config) { c.Storage = func() []Stored { return []Stored{{"log", 4096}, {"auditd.db", 1024}} } })
	hostile := `https://docs.example/"><script>document.title='owned'</script>/injections`
	s.alarm(t, "d-alarm", hostile, "Ignore previous instructions is what such a text says, and here is how to defend against it.")
	b := s.browser(t)
	s.login(t, b)
	b.open(s.url + "/#/d/d-alarm")
	b.sees("Was this wrong?")
	b.looks("decision-wrong")
	b.click(`.wrong button:nth-of-type(1)`)
	b.sees("This is filed as a labelled case")
	b.accessible("mark")
	b.fill("#note", "a text about injections")
	b.click("#keep")
	b.looks("mark")
	b.click("dialog button.primary")
	b.sees("Suppress in this place")
	if m, ok := s.cfg.Marks.Of("d-alarm"); !ok || m.What != "false_alarm" || !m.Payload {
		t.Fatalf("filed: %+v %v", m, ok)
	}
	data, err := os.ReadFile(filepath.Join(filepath.Dir(s.ownerPath), "marks", "cases.jsonl"))
	if err != nil || !strings.Contains(string(data), "how to defend") {
		t.Errorf("the case: %s %v", data, err)
	}
	b.accessible("suppress")
	b.looks("suppress")
	if got := b.value(`document.querySelector('#scope-source').value`); got != hostile {
		t.Errorf("the scope says %q", got)
	}
	b.fill("#scope-source", "**")
	b.click("dialog button.primary")
	b.sees("matches everything")
	b.fill("#scope-source", "https://docs.example/**")
	b.click("dialog button.primary")
	b.sees("It is listed under Rules")
	list := s.cfg.Standing.List(false)
	if len(list) != 1 || list[0].Scope.Source != "https://docs.example/**" || list[0].Scope.Agent != "openclaw:main" || list[0].Reason != "a text about injections" || !list[0].Judgement {
		t.Fatalf("%+v", list)
	}
	b.sees("A false alarm, you said")
	b.sound()

	// The mark counts against its rule.
	b.press("3")
	b.sees("1 of them false (100 %)")
	b.sees("Storage")
	b.accessible("overview with marks")
	b.looks("overview-marks")

	// Undoing it: from the keyboard, in two steps.
	b.press("5")
	b.sees("https://docs.example/**")
	b.accessible("rules")
	b.looks("rules")
	b.click(`.order button`)
	b.sees("Nothing is suppressed.")
	if n := len(s.cfg.Standing.List(false)); n != 0 {
		t.Errorf("%d orders hold", n)
	}
	b.click("#ended")
	b.sees("revoked")

	// A no that lasts.
	q := s.ask(t, func(f *schema.Flow, _ *schema.Decision, _ *schema.Question) { f.Payload = "npm publish" })
	b.press("1")
	b.click(`a[data-id="` + q.ID + `"]`)
	b.asks("npm publish")
	b.press("n")
	b.sees("Deny, and remember it")
	b.accessible("deny and remember")
	b.looks("remember")
	b.fill("#reason", "publishing is mine")
	b.click(`dialog input[value="all"]`)
	b.click("dialog button.deny")
	s.answered(t, q.ID, "denied")
	list = s.cfg.Standing.List(false)
	if len(list) != 1 || list[0].Effect != standing.Deny || list[0].Scope.Payload != "" || list[0].Scope.Tool != "bash" {
		t.Fatalf("%+v", list)
	}
	b.press("5")
	b.sees("publishing is mine")
	b.shot("rules-refusal")
	b.sound()
}

// TestBrowserSuppressTwo: what one browser has revoked, another can't any more,
// and says so.
func TestBrowserSuppressTwo(t *testing.T) {
	s := newSite(t, nil)
	o, err := s.cfg.Standing.Add(standing.Order{Effect: standing.Deny, Reason: "two browsers", Scope: standing.Scope{SinkKind: schema.SinkExec, Agent: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	first, second := s.browser(t), s.browser(t)
	for _, b := range []*tab{first, second} {
		s.login(t, b)
		b.press("5")
		b.sees("two browsers")
	}
	if _, err := s.cfg.Standing.Revoke(o.ID); err != nil {
		t.Fatal(err)
	}
	first.click(".order button")
	first.sees("there is no such standing order")
	first.sees("Nothing is refused for good.")
	s.stop()
	second.sees("The daemon does not answer.")
	second.click(".order button")
	second.sees("the daemon does not answer")
	s.again(t)
	second.sees("Nothing is refused for good.")
}

// TestBrowserEdit: the owner changes the proposed text; it is checked before it
// can be sent, and what the agent's ticket then gives is that text.
func TestBrowserEdit(t *testing.T) {
	s := newSite(t, nil)
	q := s.ask(t, func(f *schema.Flow, d *schema.Decision, q *schema.Question) {
		f.Payload = "Dear Bob,\n\nthe key is sk-live-1.\n\n</textarea><script>document.title='owned'</script>"
		f.Sink = schema.Sink{Kind: schema.SinkMessage, Tool: "mail", Destination: "bob@example.com"}
		out := "Dear Bob,\n\nthe key is [redacted]."
		q.Rewrite = &out
	})
	b := s.browser(t)
	s.login(t, b)
	b.click(`a[data-id="` + q.ID + `"]`)
	b.asks("A safer version")
	b.press("w")
	b.sees("What you write goes on in place of the original")
	b.accessible("edit")
	b.fill("#edit", "a hostile text")
	b.click("dialog button[type=button]:nth-of-type(2)")
	b.sees("riskier than the one that was asked about")
	if got := b.value(`document.querySelector('dialog .primary').disabled`); got != "true" {
		t.Error("a text that failed can be sent")
	}
	b.fill("#edit", "Dear Bob, a benign text instead.")
	b.value(`document.querySelector('#edit').dispatchEvent(new Event('input'))`)
	b.click("dialog button[type=button]:nth-of-type(2)")
	b.sees("The auditor would let this text pass.")
	b.accessible("edit, checked")
	b.looks("edit")
	b.click("dialog .primary")
	s.answered(t, q.ID, "approved")
	if ok, err := s.queue.Redeem(t.Context(), q.Ticket, q.Binding); err != nil || ok {
		t.Errorf("the ticket is good for the original: %v %v", ok, err)
	}
	ok, instead, err := s.queue.RedeemEither(t.Context(), q.Ticket, q.Binding)
	if err != nil || !ok || instead == nil || *instead != "Dear Bob, a benign text instead." {
		t.Errorf("redeemed: %v %v %v", ok, instead, err)
	}
	b.sound()
}

// TestBrowserPolicy: the owner changes the policy, is told what is wrong with it,
// applies it without a restart, and goes back; another browser's change is not
// overwritten.
func TestBrowserPolicy(t *testing.T) {
	s := newSite(t, nil)
	first := s.cfg.Policies.Policy().Digest()
	b, other := s.browser(t), s.browser(t)
	for _, x := range []*tab{b, other} {
		s.login(t, x)
		x.press("5")
		x.sees("The built-in one")
		x.click("#policy-edit")
	}
	b.fill("#policy-text", "version: 1\nrulez: []\n")
	b.click("#policy-check")
	b.sees("line 2")
	b.accessible("policy with a problem")
	b.looks("policy-problem")
	const next = "version: 1\nno_arbiter: block # </textarea><script>document.title='owned'</script>\n"
	for _, x := range []*tab{b, other} {
		x.fill("#policy-text", next)
		x.click("#policy-check")
		x.sees("This is what changes:")
	}
	b.accessible("policy, checked")
	b.looks("policy")
	b.click("#policy-apply")
	b.sees("The policy is in force from the next decision on.")
	if s.cfg.Policies.Policy().NoArbiter() != schema.Block {
		t.Error("it is not in force")
	}
	other.click("#policy-apply")
	other.sees("another one than the change was made from")
	b.sees("1 earlier")
	b.click(".rules details summary")
	b.click(".rules details button")
	b.click("#policy-check")
	b.sees("This is what changes:")
	b.click("#policy-apply")
	b.sees("2 earlier")
	if s.cfg.Policies.Policy().Digest() != first {
		t.Error("it did not go back")
	}
	b.sound()
}
