package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"example.org/auditd/api"
	"example.org/auditd/schema"
)

// isolation is a scripted isolating half that knows one symbol and one view.
type isolation struct{}

func (isolation) Inspect(_ context.Context, r *api.Inspection) schema.Outcome {
	if r.Question == "panic" {
		panic(r.Question)
	}
	return schema.Outcome{Action: schema.Block, Reason: "no_inspector", Message: "Stopped."}
}

func (isolation) ChangeRules(context.Context, *api.RuleChange) schema.Outcome {
	return schema.Outcome{Action: schema.DeferToHuman, Reason: "policy_change", Message: "Wait.", Ticket: "t"}
}

func (isolation) IsolationRules(context.Context) (*api.IsolationRules, error) {
	return &api.IsolationRules{Digest: "sha256:d", Edited: true}, nil
}

func (isolation) Reload(context.Context) (*api.IsolationRules, error) {
	return &api.IsolationRules{Digest: "sha256:e"}, nil
}

func (isolation) Symbol(_ context.Context, token string, original bool) (*api.Symbol, error) {
	if token != "symu" {
		return nil, api.ErrNoSuch
	}
	s := &api.Symbol{Symbol: token, Size: 5, Kind: schema.SourceWeb, Trust: schema.Untrusted}
	if value := "value"; original {
		s.Value = &value
	}
	return s, nil
}

func (isolation) Views(context.Context) (*api.ViewList, error) {
	return &api.ViewList{Views: []api.View{{ID: "1", Root: "/p"}}}, nil
}

func (isolation) ViewLog(context.Context, string, int) (*api.ViewLog, error) {
	return &api.ViewLog{States: []api.ViewState{{ID: "c", Message: "m"}}}, nil
}

func (isolation) ViewShow(context.Context, string, string, string) (*api.ViewText, error) {
	return &api.ViewText{Text: "t"}, nil
}

func (isolation) ViewDiff(context.Context, string, string) (*api.ViewText, error) {
	return &api.ViewText{Text: "t"}, nil
}

func (isolation) ViewConflicts(context.Context, string) (*api.ViewConflicts, error) {
	return &api.ViewConflicts{Conflicts: []api.ViewConflict{{Path: "p", Reason: "r"}}}, nil
}

func (isolation) ViewRevert(context.Context, string, string) (*api.ViewReverted, error) {
	return &api.ViewReverted{ToHuman: 1, Conflicts: []api.ViewConflict{}}, nil
}

func TestIsolationRoutes(t *testing.T) {
	w := newWorld(t, nil)
	owner := w.owner(t)
	if _, body := w.request(t, http.MethodGet, "/v1/dualview/symbols/symu", w.hook, ""); strings.Contains(body, `"value"`) {
		t.Errorf("the hook credential reads %s", body)
	}
	if _, body := w.request(t, http.MethodGet, "/v1/dualview/symbols/symu", owner, ""); !strings.Contains(body, `"value":"value"`) {
		t.Errorf("the owner reads %s", body)
	}
	if rec, _ := w.request(t, http.MethodGet, "/v1/dualview/symbols/other", owner, ""); rec.Code != 404 {
		t.Errorf("an unknown symbol: %d", rec.Code)
	}
	for _, path := range []string{"/v1/dualview/views/1/show?state=c&path=p", "/v1/dualview/views/1/diff?state=c", "/v1/dualview/views/1/conflicts"} {
		if rec, _ := w.request(t, http.MethodGet, path, w.hook, ""); rec.Code != 403 {
			t.Errorf("%s with the hook credential: %d", path, rec.Code)
		}
	}
	if rec, _ := w.request(t, http.MethodPost, "/v1/dualview/views/1/revert", w.hook, `{"state":"c"}`); rec.Code != 403 {
		t.Errorf("revert with the hook credential: %d", rec.Code)
	}
	const question = `{"host":"h","agent":"a","session":"s","symbols":["symu"],"question":"panic"}`
	if _, body := w.request(t, http.MethodPost, "/v1/dualview/inspect", w.hook, question); !strings.Contains(body, `"action":"block"`) {
		t.Errorf("a panic: %s", body)
	}
	without := newWorld(t, func(c *Config) { c.Isolation = nil })
	if _, body := without.request(t, http.MethodPost, "/v1/dualview/inspect", without.hook, question); !strings.Contains(body, `"isolation_unavailable"`) || !strings.Contains(body, `"action":"block"`) {
		t.Errorf("without isolation: %s", body)
	}
	if rec, _ := without.request(t, http.MethodGet, "/v1/dualview/views", without.hook, ""); rec.Code != 404 {
		t.Errorf("views without isolation: %d", rec.Code)
	}
}
