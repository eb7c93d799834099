package firewall

import (
	"context"
	"testing"

	"example.org/auditd/schema"
)

func TestReview(t *testing.T) {
	r := newRig(t)
	d := r.fw.Review(t.Context(), page("original"), "a kinder text")
	if d.Action != schema.Allow || d.Reason != "edit_fine" || len(r.asked) != 0 || len(r.entries) != 1 || d.Report == nil {
		t.Errorf("%+v", d)
	}
	if d := r.fw.Review(t.Context(), page("original"), "rm -rf ~"); d.Action != schema.Block || !d.Precheck.HardBlock {
		t.Errorf("a hard rule: %+v", d)
	}
	r.audit = reportOf(clearDefer)
	if d := r.fw.Review(t.Context(), page("original"), "another"); d.Action != schema.Block || d.Reason != "edit_doubtful" || len(r.asked) != 0 {
		t.Errorf("doubtful: %+v", d)
	}
	if d := r.fw.Review(t.Context(), page("original"), string([]byte{0xff})); d.Action != schema.Block || d.Report != nil {
		t.Errorf("not UTF-8: %+v", d)
	}
	// None of it is remembered as the answer to a flow.
	r.audit = reportOf(clearBlock)
	if d := r.decide(page("a kinder text")); d.Action != schema.Block || d.Cached {
		t.Errorf("%+v", d)
	}
}

// TestApprovedEdit: the owner's own text goes on in place of the flow's, but
// never one that a hard rule stops.
func TestApprovedEdit(t *testing.T) {
	for name, c := range map[string]struct {
		instead string
		action  schema.Action
		reason  string
	}{
		"another text":   {"git push origin wörk", schema.RewriteAndContinue, "approved_edit"},
		"nothing":        {"", schema.RewriteAndContinue, "approved_edit"},
		"the same":       {"git push origin wärk", schema.Allow, "approved"},
		"a hard rule":    {"rm -rf ~", schema.Block, "rewrite_hard_rule"},
		"a longer text":  {"git push origin wärk wärk", schema.RewriteAndContinue, "approved_edit"},
		"its other half": {"git push", schema.RewriteAndContinue, "approved_edit"},
	} {
		r := newRig(t, func(r *rig) {
			r.cfg.Redeem = func(context.Context, string, schema.Digest) (bool, *string, error) { return true, &c.instead, nil }
		})
		f := command("git push origin wärk")
		f.Ticket = "t"
		d := r.decide(f)
		want(t, d, c.action, schema.StageTicket, c.reason)
		if d.Action == schema.RewriteAndContinue && (*d.Payload != c.instead || schema.ApplyEdits(f.Payload, d.Diff) != c.instead) {
			t.Errorf("%s: %q by %+v", name, *d.Payload, d.Diff)
		}
	}
}
