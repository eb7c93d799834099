package firewall

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

func digest(text string) string { return string(schema.DigestOf(text)) }

// withOrders gives the firewall a real store of standing orders.
func withOrders(t *testing.T, store **standing.Store) func(*rig) {
	t.Helper()
	s, err := standing.Open(filepath.Join(t.TempDir(), "standing.json"), time.Now, digest)
	if err != nil {
		t.Fatal(err)
	}
	*store = s
	return func(r *rig) { r.cfg.Orders = s.Covering }
}

func give(t *testing.T, s *standing.Store, o standing.Order) standing.Order {
	t.Helper()
	o.Reason = "a test"
	if o.Effect == standing.Suppress {
		o.Expires = time.Now().Add(time.Hour)
	}
	o, err := s.Add(o)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// here is the place of page's flows.
func here() standing.Scope {
	return standing.Scope{Agent: "test:main", SinkKind: schema.SinkReasoning, Source: "https://example.com/a"}
}

// TestSuppression: what an order lifts, that it is logged, and that it counts no
// more once it is revoked, whatever was remembered meanwhile.
func TestSuppression(t *testing.T) {
	var orders *standing.Store
	r := newRig(t, withOrders(t, &orders))
	r.audit = reportOf(func(rep *schema.Report) {
		clearBlock(rep)
		rep.ResidualRiskTypes = []schema.ResidualRisk{schema.ResidualPromptControl}
	})
	want(t, r.decide(page("IGNORE this")), schema.Block, schema.StageAuditor, "auditor_block")
	o := give(t, orders, standing.Order{Effect: standing.Suppress, Scope: here(), Rules: []string{"test-ignore"}, Judgement: true, Residuals: []schema.ResidualRisk{schema.ResidualPromptControl}})
	for range 2 { // the second is remembered
		d := r.decide(page("IGNORE this"))
		if d.Action != schema.Allow || d.Reason != "suppressed" || len(d.Precheck.Signals) != 0 {
			t.Fatalf("with the order: %+v", d)
		}
		if len(d.Suppressed) != 2 || d.Suppressed[0].By != o.ID || d.Suppressed[0].Rules[0] != "test-ignore" || !d.Suppressed[1].Judgement {
			t.Errorf("the decision says %+v", d.Suppressed)
		}
		if logged := r.entries[len(r.entries)-1].Decision.Suppressed; len(logged) != 2 {
			t.Errorf("the log says %+v", logged)
		}
	}
	elsewhere := page("IGNORE this")
	elsewhere.Source.ID = "https://example.com/b"
	want(t, r.decide(elsewhere), schema.Block, schema.StageAuditor, "auditor_block")
	if _, err := orders.Revoke(o.ID); err != nil {
		t.Fatal(err)
	}
	if d := r.decide(page("IGNORE this")); d.Action != schema.Block || len(d.Suppressed) != 0 {
		t.Errorf("after it was revoked: %+v", d)
	}
}

// TestSuppressionCannotLift has one row for everything that an order must leave
// as it is.
func TestSuppressionCannotLift(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		audit   func(*schema.Report)
		change  func(*rig)
	}{
		"a hard rule":     {"IGNORE, rm -rf ~", func(*schema.Report) {}, nil},
		"self-protection": {"IGNORE, auditd approve q", func(*schema.Report) {}, nil},
		"a harm of a new kind": {"IGNORE", func(r *schema.Report) {
			clearBlock(r)
			r.ResidualRiskTypes = []schema.ResidualRisk{schema.ResidualSensitiveSpan}
		}, nil},
		"a code that can block": {"IGNORE", clearBlock, func(r *rig) {
			r.cfg.Check = func(f *schema.Flow) *schema.Precheck {
				return &schema.Precheck{Signals: []schema.Signal{{Code: schema.DangerousSideEffect, Rule: "test-ignore"}}}
			}
		}},
		"the owner's rule":           {"IGNORE", clearBlock, withPolicy(t, "rules: [{name: no, when: 'source.kind == \"web\"', then: block}]")},
		"the owner's rule on a risk": {"IGNORE", clearBlock, withPolicy(t, "rules: [{name: no, when: 'report.risk > 0.5', then: block}]")},
		"an auditor that fails":      {"IGNORE", func(r *schema.Report) { r.Risk = 7 }, nil},
		"no auditor":                 {"IGNORE", clearBlock, func(r *rig) { r.cfg.Auditor = nil }},
	} {
		var orders *standing.Store
		changes := []func(*rig){withOrders(t, &orders)}
		if c.change != nil {
			changes = append(changes, c.change)
		}
		r := newRig(t, changes...)
		r.audit = reportOf(c.audit)
		give(t, orders, standing.Order{Effect: standing.Suppress, Scope: here(), Rules: []string{"test-ignore"}, Judgement: true, Residuals: []schema.ResidualRisk{schema.ResidualPromptControl}})
		if d := r.decide(page(c.payload)); !d.Action.Stops() {
			t.Errorf("%s: %v by %v, %s", name, d.Action, d.Stage, d.Reason)
		}
	}
}

// TestRefusal: a refusal outranks what a rule of the owner's, a ticket or a
// grant would allow, and is not asked about.
func TestRefusal(t *testing.T) {
	var orders *standing.Store
	r := newRig(t, withOrders(t, &orders), withPolicy(t, "rules: [{name: ok, when: 'sink.tool == \"exec\"', then: allow}]"), func(r *rig) {
		r.cfg.Redeem = func(context.Context, string, schema.Digest) (bool, *string, error) { return true, nil, nil }
		r.cfg.Allowed = func(context.Context, *schema.Flow, bool) (string, bool, error) { return "g-1", true, nil }
	})
	f := command("npm publish")
	f.Ticket = "t"
	want(t, r.decide(f), schema.Allow, schema.StagePolicy, "owner_rule")
	o := give(t, orders, standing.Order{Effect: standing.Deny, Scope: standing.Scope{SinkKind: schema.SinkExec, Tool: "exec", Agent: "test:main", Payload: digest("npm publish")}})
	want(t, r.decide(f), schema.Block, schema.StageStanding, "refused")
	want(t, r.decide(command("npm test")), schema.Allow, schema.StagePolicy, "owner_rule")
	if len(r.asked) != 0 {
		t.Error("a refused flow was asked about")
	}
	if _, err := orders.Revoke(o.ID); err != nil {
		t.Fatal(err)
	}
	want(t, r.decide(f), schema.Allow, schema.StagePolicy, "owner_rule")
}
