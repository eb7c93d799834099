package replay

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.org/auditd/auditlog"
	"example.org/auditd/schema"
)

func recorded(id string, action schema.Action, reason, payload string, change func(*Recorded)) Recorded {
	r := Recorded{&auditlog.Record{ID: id, Time: time.Unix(1000, 0).UTC(), Decision: &auditlog.Decision{Action: action, Reason: reason, Stage: schema.StageAuditor, LatencyMS: 10, Report: &auditlog.Report{}},
		Flow: &auditlog.Flow{SourceKind: schema.SourceWeb, SourceTrust: schema.Untrusted, SinkKind: schema.SinkReasoning, Payload: auditlog.Text{Bytes: len(payload)}}}, &auditlog.Value{Payload: payload, Agent: "a", Source: "https://x.example/<script>"}}
	if change != nil {
		change(&r)
	}
	return r
}

func TestRun(t *testing.T) {
	var seen []*schema.Flow
	report, err := Run(t.Context(), []Recorded{
		recorded("old", schema.Allow, "auditor_allow", "beyond the limit", nil),
		recorded("same", schema.Allow, "auditor_allow", "fine", nil),
		recorded("added", schema.Allow, "auditor_allow", "bad", nil),
		recorded("lost", schema.DeferToHuman, "auditor_defer", "fine", nil),
		recorded("other", schema.DeferToHuman, "no_arbiter", "bad", nil),
		recorded("secret", schema.Block, "auditor_block", "the key is ⟦SECRET_1⟧", nil),
		recorded("erased", schema.Block, "auditor_block", "x", func(r *Recorded) { r.Value = nil }),
		recorded("cut", schema.Block, "auditor_block", "x", func(r *Recorded) { r.Value.Cut = []string{"payload"} }),
		recorded("mine", schema.Allow, "approved", "x", nil),
		recorded("failed", schema.Block, "auditor_timeout", "x", func(r *Recorded) { r.Record.Decision.Report = nil }),
		recorded("", schema.Block, "", "", func(r *Recorded) { r.Record.Decision = nil }),
	}, Config{Limit: 5, Audit: func(_ context.Context, f *schema.Flow) schema.Decision {
		seen = append(seen, f)
		d := schema.Decision{Action: schema.Allow, Reason: "auditor_allow", LatencyMS: 20}
		if f.Payload == "bad" {
			d.Action, d.Reason = schema.Block, "auditor_block"
		}
		return d
	}})
	if err != nil {
		t.Fatal(err)
	}
	if report.Flows != 5 || report.Same != 1 || report.Added != 1 || report.Lost != 2 || report.Other != 1 || report.Redacted != 1 || len(report.Skipped) != 4 {
		t.Errorf("%+v", report)
	}
	if report.Before.P50 != 10 || report.After.P95 != 20 || len(report.Changes) != 4 || !report.Changes[0].Redacted || report.Changes[0].Kind != "lost_stop" {
		t.Errorf("%+v", report)
	}
	if seen[0].Source.Trust != schema.Untrusted || seen[0].Ticket != "" || seen[0].OwnerAuthorized {
		t.Errorf("%+v", seen[0])
	}
	var page strings.Builder
	if err := report.HTML(&page); err != nil {
		t.Fatal(err)
	}
	if s := page.String(); strings.Contains(s, "<script>") || !strings.Contains(s, "&lt;script&gt;") || !strings.Contains(s, "placeholders in place") || !strings.Contains(s, skipErased) {
		t.Errorf("the page: %s", s)
	}
}
