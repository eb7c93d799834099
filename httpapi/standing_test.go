package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"example.org/auditd/auditlog"
	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

// TestStandingIsTheOwners: the hook token neither sees nor gives orders or
// marks: a list of suppressions is a map of the holes.
func TestStandingIsTheOwners(t *testing.T) {
	w := newWorld(t, nil)
	w.owner(t)
	for _, x := range [][3]string{
		{http.MethodGet, "/v1/standing", ""}, {http.MethodGet, "/v1/marks", ""}, {http.MethodGet, "/v1/decisions/d-1/suppression", ""},
		{http.MethodPost, "/v1/standing", `{"effect":"deny","scope":{"sink_kind":"exec","agent":"a"},"reason":"x"}`},
		{http.MethodPost, "/v1/standing/s-1/revoke", `{}`}, {http.MethodPost, "/v1/marks", `{"decision_id":"d-1","what":"miss"}`},
	} {
		if rec, body := w.request(t, x[0], x[1], w.hook, x[2]); rec.Code != 403 {
			t.Errorf("%s %s: %d %s", x[0], x[1], rec.Code, body)
		}
	}
	if len(w.cfg.Standing.List(true)) != 0 || len(w.cfg.Marks.List()) != 0 {
		t.Error("an order or a mark was kept")
	}
}

// TestDenyAndRemember: the no lasts, for the agent, tool and target of the
// question; an answer that came too late leaves nothing behind.
func TestDenyAndRemember(t *testing.T) {
	w := newWorld(t, nil)
	owner := w.owner(t)
	path := "/v1/approvals/" + w.question
	if rec, body := w.request(t, http.MethodPost, path, owner, `{"answer":"approve","remember":{"exact":true}}`); rec.Code != 400 || !strings.Contains(body, "goes with deny only") {
		t.Errorf("remember with approve: %d %s", rec.Code, body)
	}
	if rec, body := w.request(t, http.MethodPost, path, owner, `{"answer":"deny","remember":{"exact":true,"reason":"not my style"}}`); rec.Code != 200 {
		t.Fatalf("%d %s", rec.Code, body)
	}
	list := w.cfg.Standing.List(false)
	if len(list) != 1 || list[0].Effect != standing.Deny || list[0].Reason != "not my style" || list[0].Scope.Payload == "" {
		t.Fatalf("%+v", list)
	}
	if got := w.cfg.Standing.Covering(completed(t, "what the agent wants to write"), list[0].Created); len(got) != 1 {
		t.Error("the same again is not refused")
	}
	if got := w.cfg.Standing.Covering(completed(t, "something else"), list[0].Created); len(got) != 0 {
		t.Error("something else is refused")
	}
	if rec, _ := w.request(t, http.MethodPost, path, owner, `{"answer":"deny","remember":{"exact":true}}`); rec.Code != 409 || len(w.cfg.Standing.List(false)) != 1 {
		t.Errorf("a late answer: %d, %d orders", rec.Code, len(w.cfg.Standing.List(false)))
	}
}

// TestSuggest: the narrowest suppression, or why there is none.
func TestSuggest(t *testing.T) {
	soft := []auditlog.Signal{{Code: schema.PromptControl, Rule: "control-override"}}
	report := &auditlog.Report{Decision: schema.Block, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualPromptControl}}
	for name, c := range map[string]struct {
		d       auditlog.Decision
		sink    schema.SinkKind
		problem string
		payload bool
	}{
		"a hard rule":        {auditlog.Decision{Action: schema.Block, Precheck: &auditlog.Precheck{HardBlock: true}}, schema.SinkExec, "A hard rule", false},
		"a hard code":        {auditlog.Decision{Action: schema.Block, Report: report, Precheck: &auditlog.Precheck{Signals: []auditlog.Signal{{Code: schema.DangerousSideEffect, Rule: "r"}}}}, schema.SinkExec, "can block by itself", false},
		"an owner's rule":    {auditlog.Decision{Action: schema.Block, Reason: "owner_rule"}, schema.SinkExec, "your policy", false},
		"a refusal":          {auditlog.Decision{Action: schema.Block, Reason: "refused"}, schema.SinkExec, "refusal of yours", false},
		"allowed":            {auditlog.Decision{Action: schema.Allow, Report: report}, schema.SinkExec, "Nothing stopped it", false},
		"a failure":          {auditlog.Decision{Action: schema.Block, Reason: "auditor_timeout"}, schema.SinkExec, "could not be judged", false},
		"a page":             {auditlog.Decision{Action: schema.Block, Report: report, Precheck: &auditlog.Precheck{Signals: soft}}, schema.SinkReasoning, "", false},
		"a command":          {auditlog.Decision{Action: schema.Block, Report: report, Precheck: &auditlog.Precheck{Signals: soft}}, schema.SinkExec, "", true},
		"a secret by a rule": {auditlog.Decision{Action: schema.DeferToHuman, Reason: "owner_rule", Report: report, Precheck: &auditlog.Precheck{Signals: soft}}, schema.SinkMessage, "", false},
	} {
		r := &auditlog.Record{ID: "d-1", Decision: &c.d, Flow: &auditlog.Flow{SinkKind: c.sink, SourceKind: schema.SourceWeb, Payload: auditlog.Text{Digest: "hmac:1"}}}
		got := suggest(r, &auditlog.Value{Source: "https://docs.example/1"})
		if c.problem != "" {
			if got.Order != nil || !strings.Contains(got.Problem, c.problem) {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if got.Order == nil || (got.Order.Scope.Payload != "") != c.payload || got.Order.Rules[0] != "control-override" || got.Order.Judgement != (c.d.Reason != "owner_rule") {
			t.Errorf("%s: %+v %s", name, got.Order, got.Problem)
		}
	}
	if got := suggest(&auditlog.Record{}, nil); got.Order != nil || got.Problem == "" {
		t.Errorf("no decision: %+v", got)
	}
}
