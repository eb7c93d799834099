package standing

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.org/auditd/schema"
)

var day = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func digest(text string) string { return string(schema.DigestOf(text)) }

func page() *schema.Flow {
	return &schema.Flow{Payload: "how injections work", Source: schema.Source{Kind: schema.SourceWeb, ID: "https://docs.example/guide/1", Trust: schema.Untrusted},
		Sink: schema.Sink{Kind: schema.SinkReasoning, Tool: "web_fetch"}, Session: schema.Session{Agent: "openclaw:main", Workspace: "/w"}}
}

func wrong() Order {
	return Order{Effect: Suppress, Reason: "a text about injections", Rules: []string{"control-override"}, Judgement: true, Residuals: []schema.ResidualRisk{schema.ResidualPromptControl},
		Scope: Scope{Agent: "openclaw:main", SinkKind: schema.SinkReasoning, SourceKind: schema.SourceWeb, Source: "https://docs.example/guide/**"}, Expires: day.Add(48 * time.Hour)}
}

func open(t *testing.T, path string, now *time.Time) *Store {
	t.Helper()
	s, err := Open(path, func() time.Time { return *now }, digest)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLife(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "standing.json"), day
	s := open(t, path, &now)
	o, err := s.Add(wrong())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v %v", info, err)
	}
	s = open(t, path, &now) // it is durable
	if got := s.Covering(page(), now); len(got) != 1 || got[0].ID != o.ID {
		t.Fatalf("covering: %+v", got)
	}
	now = day.Add(49 * time.Hour)
	if got := s.Covering(page(), now); len(got) != 0 {
		t.Errorf("after its end: %+v", got)
	}
	if s.List(false) == nil || len(s.List(false)) != 0 || len(s.List(true)) != 1 {
		t.Errorf("listed: %+v", s.List(true))
	}
	now = day
	if _, err := s.Revoke(o.ID); err != nil {
		t.Fatal(err)
	}
	if got := s.Covering(page(), now); len(got) != 0 {
		t.Errorf("after it was revoked: %+v", got)
	}
	if _, err := s.Revoke(o.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	if got := open(t, path, &now).List(true); len(got) != 1 || got[0].Revoked == nil {
		t.Errorf("the revocation is not durable: %+v", got)
	}
	now = day.Add(60 * 24 * time.Hour)
	o2 := wrong()
	o2.Expires = now.Add(time.Hour)
	if _, err := s.Add(o2); err != nil || len(s.List(true)) != 1 {
		t.Errorf("what ended long ago is kept: %v %+v", err, s.List(true))
	}
}

// TestForms: what would name nothing, or too much, is refused.
func TestForms(t *testing.T) {
	for name, change := range map[string]func(*Order){
		"no effect":              func(o *Order) { o.Effect = "" },
		"unknown effect":         func(o *Order) { o.Effect = "allow" },
		"no reason":              func(o *Order) { o.Reason = " " },
		"no end":                 func(o *Order) { o.Expires = time.Time{} },
		"past end":               func(o *Order) { o.Expires = day.Add(-time.Hour) },
		"far end":                func(o *Order) { o.Expires = day.Add(MaxSuppression + time.Hour) },
		"no place":               func(o *Order) { o.Scope.Source = "" },
		"every place":            func(o *Order) { o.Scope.Source = "**" },
		"every place by scheme":  func(o *Order) { o.Scope.Source = "*://**" },
		"nothing to suppress":    func(o *Order) { o.Rules, o.Judgement, o.Residuals = nil, false, nil },
		"residuals alone":        func(o *Order) { o.Judgement = false },
		"too many rules":         func(o *Order) { o.Rules = make([]string, maxRules+1) },
		"long glob":              func(o *Order) { o.Scope.Source = string(make([]byte, 2000)) },
		"judgement on a command": func(o *Order) { o.Scope.SinkKind = schema.SinkExec },
		"judgement on a payment": func(o *Order) { o.Scope.SinkKind = schema.SinkPayment },
		"refusal of all": func(o *Order) {
			*o = Order{Effect: Deny, Reason: "x", Scope: Scope{SinkKind: schema.SinkExec}}
		},
		"refusal with rules": func(o *Order) {
			*o = Order{Effect: Deny, Reason: "x", Rules: []string{"r"}, Scope: Scope{SinkKind: schema.SinkExec, Agent: "a"}}
		},
	} {
		now := day
		o := wrong()
		change(&o)
		if _, err := open(t, filepath.Join(t.TempDir(), "f"), &now).Add(o); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestScope(t *testing.T) {
	now := day
	s := open(t, filepath.Join(t.TempDir(), "f"), &now)
	if _, err := s.Add(wrong()); err != nil {
		t.Fatal(err)
	}
	query := wrong()
	query.Scope.Source = "https://docs.example/search?q=1"
	if _, err := s.Add(query); err != nil {
		t.Fatal(err)
	}
	exact := Order{Effect: Deny, Reason: "no", Scope: Scope{SinkKind: schema.SinkExec, Agent: "openclaw:main", Payload: digest("npm publish")}}
	if _, err := s.Add(exact); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*schema.Flow)
		want   int
	}{
		"the place":            {func(*schema.Flow) {}, 1},
		"another page there":   {func(f *schema.Flow) { f.Source.ID = "https://docs.example/guide/2" }, 1},
		"climbing out":         {func(f *schema.Flow) { f.Source.ID = "https://docs.example/guide/../evil" }, 0},
		"encoded climbing":     {func(f *schema.Flow) { f.Source.ID = "https://docs.example/guide/%2e%2e/evil" }, 0},
		"another host":         {func(f *schema.Flow) { f.Source.ID = "https://docs.example.evil/guide/1" }, 0},
		"no source":            {func(f *schema.Flow) { f.Source.ID = "" }, 0},
		"another agent":        {func(f *schema.Flow) { f.Session.Agent = "x" }, 0},
		"another kind":         {func(f *schema.Flow) { f.Source.Kind = schema.SourceEmail }, 0},
		"another sink":         {func(f *schema.Flow) { f.Sink.Kind = schema.SinkMemory }, 0},
		"a query":              {func(f *schema.Flow) { f.Source.ID = "https://docs.example/search?q=1" }, 1},
		"what a ? could match": {func(f *schema.Flow) { f.Source.ID = "https://docs.example/searchXq=1" }, 0},
		"the refused command":  {func(f *schema.Flow) { f.Sink.Kind, f.Payload = schema.SinkExec, "npm publish" }, 1},
		"another command":      {func(f *schema.Flow) { f.Sink.Kind, f.Payload = schema.SinkExec, "npm publish " }, 0},
	} {
		f := page()
		c.change(f)
		if got := s.Covering(f, now); len(got) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestEffects(t *testing.T) {
	o, no := wrong(), Order{Effect: Deny, Rules: []string{"control-override"}, Judgement: true}
	soft := schema.Signal{Code: schema.PromptControl, Rule: "control-override"}
	hard := soft
	hard.Severity = schema.Hard
	able := soft
	able.Code = schema.DangerousSideEffect
	other := soft
	other.Rule = "another"
	if !o.Dropped(soft) || o.Dropped(hard) || o.Dropped(able) || o.Dropped(other) || no.Dropped(soft) {
		t.Error("a suppression takes away soft findings of its rules and nothing else")
	}
	seen := &schema.Report{ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualPromptControl}}
	more := &schema.Report{ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualPromptControl, schema.ResidualSensitiveSpan}}
	none := &schema.Report{ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}}
	if !o.Lifts(seen) || o.Lifts(more) || !o.Lifts(none) || no.Lifts(seen) {
		t.Error("a suppression lifts a judgement while it finds nothing new")
	}
}

func TestDamagedFile(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "cut": `{"version":1,"orders":[{"id":"s-1"`, "unknown field": `{"version":1,"orders":[],"x":1}`, "version": `{"version":2,"orders":[]}`,
		"invalid order": `{"version":1,"orders":[{"id":"n-1","effect":"deny","scope":{"sink_kind":"exec"},"reason":"x","created":"2026-11-30T12:00:00Z"}]}`,
		"twice":         `{"version":1,"orders":[{"id":"n-1","effect":"deny","scope":{"sink_kind":"exec","agent":"a"},"reason":"x","created":"2026-11-30T12:00:00Z"},{"id":"n-1","effect":"deny","scope":{"sink_kind":"exec","agent":"a"},"reason":"x","created":"2026-11-30T12:00:00Z"}]}`,
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, time.Now, digest); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"orders":[{"id":"n-1","effect":"deny","scope":{"sink_kind":"exec","agent":"a"},"reason":"x","created":"2026-11-30T12:00:00Z"}]}`))
	f.Add([]byte(`{"version":1,"orders":[{"id":"s-1","effect":"suppress","scope":{"sink_kind":"reasoning","source":"https://a.example/**"},"reason":"x","rules":["r"],"created":"2026-11-30T12:00:00Z","expires":"2026-12-30T12:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parse(data)
		if err != nil {
			return
		}
		for i := range all {
			if all[i].Effect == Suppress && all[i].Judgement && all[i].Scope.SinkKind == schema.SinkExec && all[i].Scope.Payload == "" {
				t.Error("a suppression of every command was taken")
			}
			all[i].covers(page(), func() string { return "" })
		}
	})
}
