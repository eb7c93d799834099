package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

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

func (isolation) Symbols(context.Context, time.Time) (*api.SymbolList, error) {
	return &api.SymbolList{Symbols: []api.Symbol{{Symbol: "symu"}}}, nil
}

func (isolation) SymbolGraph(_ context.Context, token string) (*api.SymbolGraph, error) {
	return &api.SymbolGraph{Symbols: []api.Symbol{{Symbol: token}}}, nil
}

func (isolation) ViewFiles(context.Context, string, string, bool) (*api.ViewFiles, error) {
	return &api.ViewFiles{Files: []api.ViewListed{{Path: "p"}}}, nil
}

func (isolation) ViewFile(_ context.Context, _, path string) (*api.ViewSides, error) {
	return &api.ViewSides{Path: path, Pieces: []api.ViewPiece{{Text: "t", Bytes: 1}}, Symbols: []api.Symbol{}}, nil
}

func (isolation) ViewOriginal(_ context.Context, _, path, _ string, _ int) (*api.ViewText, error) {
	if path == "secret" {
		return nil, api.ErrSecret
	}
	return &api.ViewText{Text: "the original"}, nil
}

func (isolation) ViewConflict(context.Context, string, string) (*api.ViewBoth, error) {
	return &api.ViewBoth{ViewConflict: api.ViewConflict{ID: "1", Path: "p"}}, nil
}

func (isolation) ViewSettle(_ context.Context, _, _ string, s *api.ViewSettle) (*api.ViewReverted, error) {
	switch s.Take {
	case "mine":
		return &api.ViewReverted{Conflicts: []api.ViewConflict{}}, nil
	case "text":
		return nil, api.ErrMoved
	}
	return nil, api.ErrBadTake
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
	for _, path := range []string{"/v1/dualview/views/1/show?state=c&path=p", "/v1/dualview/views/1/diff?state=c", "/v1/dualview/views/1/conflicts",
		"/v1/dualview/symbols", "/v1/dualview/symbols/symu/graph", "/v1/dualview/views/1/files", "/v1/dualview/views/1/file?path=p", "/v1/dualview/views/1/original?path=p&piece=0", "/v1/dualview/views/1/conflicts/1"} {
		if rec, body := w.request(t, http.MethodGet, path, w.hook, ""); rec.Code != 403 || strings.Contains(body, "the original") {
			t.Errorf("%s with the hook credential: %d", path, rec.Code)
		}
		if rec, _ := w.request(t, http.MethodGet, path, owner, ""); rec.Code != 200 {
			t.Errorf("%s for the owner: %d", path, rec.Code)
		}
	}
	if rec, _ := w.request(t, http.MethodPost, "/v1/dualview/views/1/revert", w.hook, `{"state":"c"}`); rec.Code != 403 {
		t.Errorf("revert with the hook credential: %d", rec.Code)
	}
	for _, refused := range []struct {
		method, path, body string
		code               int
	}{
		{http.MethodGet, "/v1/dualview/symbols?before=yesterday", "", 400},
		{http.MethodGet, "/v1/dualview/views/1/original?path=p&piece=-1", "", 400},
		{http.MethodGet, "/v1/dualview/views/1/original?path=p&piece=x", "", 400},
		{http.MethodGet, "/v1/dualview/views/1/original?path=secret&piece=0", "", 403},
		{http.MethodPost, "/v1/dualview/views/1/conflicts/1", `{"take":"all"}`, 400},
		{http.MethodPost, "/v1/dualview/views/1/conflicts/1", `{"take":"text","text":"x"}`, 409},
		{http.MethodPost, "/v1/dualview/views/1/conflicts/1", `{"take":"mine","more":1}`, 400},
	} {
		if rec, _ := w.request(t, refused.method, refused.path, owner, refused.body); rec.Code != refused.code {
			t.Errorf("%s: %d, want %d", refused.path, rec.Code, refused.code)
		}
	}
	if rec, _ := w.request(t, http.MethodPost, "/v1/dualview/views/1/conflicts/1", w.hook, `{"take":"mine"}`); rec.Code != 403 {
		t.Errorf("settle with the hook credential: %d", rec.Code)
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
