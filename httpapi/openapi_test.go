package httpapi

import (
	"bytes"
	"encoding"
	stdjson "encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"example.org/auditd/api"
	"example.org/auditd/heartbeat"
	"example.org/auditd/marks"
	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

var update = flag.Bool("update", false, "rewrite components.json")

// shapes are this package's own documents and the Go types behind them.
var shapes = map[string]any{
	"error": api.ErrorBody{}, "batch": api.Batch{}, "batch_answer": api.BatchAnswer{}, "questions": api.Questions{}, "approval": api.Approval{},
	"record": api.Record{}, "records": api.RecordList{}, "policy": api.PolicyInfo{}, "models": api.ModelList{}, "login": api.Login{}, "heartbeat": heartbeat.Report{}, "heartbeat_answer": heartbeat.Answer{}, "heartbeats": heartbeat.List{}, "session": api.Session{},
	"empty": struct{}{}, "litellm_request": LiteLLMRequest{}, "litellm_answer": LiteLLMAnswer{}, "moderation_request": ModerationRequest{},
	"moderation_answer": ModerationAnswer{}, "schemas": api.SchemaList{}, "health": api.Health{}, "readiness": api.Readiness{},
	"foreign": HookDocument{}, "inspection": api.Inspection{}, "rule_change": api.RuleChange{}, "symbol": api.Symbol{}, "views": api.ViewList{},
	"isolation_rules": api.IsolationRules{}, "view_log": api.ViewLog{}, "view_text": api.ViewText{}, "view_conflicts": api.ViewConflicts{}, "view_revert": api.ViewRevert{}, "view_reverted": api.ViewReverted{},
	"symbols": api.SymbolList{}, "symbol_graph": api.SymbolGraph{}, "view_files": api.ViewFiles{}, "view_sides": api.ViewSides{}, "view_both": api.ViewBoth{}, "view_settle": api.ViewSettle{},
	"suggestion": api.Suggestion{}, "orders": api.Orders{}, "new_order": api.NewOrder{}, "order": standing.Order{},
	"new_policy": api.NewPolicy{}, "policy_check": api.PolicyCheck{}, "policy_history": api.PolicyHistory{}, "marks": api.Marks{}, "review": api.Review{}, "reviewed": api.Reviewed{}, "mark": api.Mark{}, "marked": marks.Mark{},
}

// TestComponentsAreCurrent makes the document's components from the Go types,
// so that neither can change alone.
func TestComponentsAreCurrent(t *testing.T) {
	out := map[string]any{}
	for name, v := range shapes {
		r := &jsonschema.Reflector{ExpandedStruct: true, Anonymous: true, DoNotReference: true,
			Namer: func(t reflect.Type) string { return strings.ReplaceAll(t.PkgPath(), "/", "_") + "_" + t.Name() }}
		if err := errors.Join(r.AddGoComments("example.org/auditd/httpapi", "."), r.AddGoComments("example.org/auditd/httpapi", "../api")); err != nil {
			t.Fatal(err)
		}
		for k, c := range r.CommentMap {
			r.CommentMap[k] = strings.Join(strings.Fields(c), " ")
		}
		r.Mapper = func(typ reflect.Type) *jsonschema.Schema {
			switch typ {
			case reflect.TypeFor[schema.Decision]():
				return &jsonschema.Schema{Ref: "#/components/schemas/decision"}
			case reflect.TypeFor[schema.Question]():
				return &jsonschema.Schema{Ref: "#/components/schemas/question"}
			case reflect.TypeFor[schema.Action]():
				s := &jsonschema.Schema{Type: "string"}
				for a := schema.Block; a <= schema.Allow; a++ {
					s.Enum = append(s.Enum, a.String())
				}
				return s
			case reflect.TypeFor[jsontext.Value]():
				return &jsonschema.Schema{Description: "any JSON value"}
			}
			if _, word := reflect.New(typ).Interface().(encoding.TextUnmarshaler); word && typ.Kind() != reflect.Struct {
				return &jsonschema.Schema{Type: "string"} // words and hashes
			}
			return nil
		}
		s := r.Reflect(v)
		s.Version = ""
		if strings.HasSuffix(name, "_request") { // somebody else's shape may grow
			s.AdditionalProperties = nil
			s.Properties.Delete("Rest")
			s.Required = []string{"input"}
			if name == "litellm_request" {
				s.Required = []string{"texts", "input_type"}
			}
		}
		if name == "foreign" {
			s.AdditionalProperties = nil
			s.Properties.Delete("Rest")
			s.Required = nil
		}
		out[name] = s
	}
	want, err := stdjson.MarshalIndent(out, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("components.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("components.json"); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("components.json is stale (%v): run go test ./httpapi -update", err)
	}
}

// openapi compiles the served document.
func openapi(t *testing.T, w *world) (*validator.Compiler, map[string]any) {
	t.Helper()
	_, body := w.request(t, http.MethodGet, "/openapi.json", "", "")
	doc, err := validator.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	return c, doc.(map[string]any)
}

func TestEveryComponentCompiles(t *testing.T) {
	w := newWorld(t, nil)
	c, doc := openapi(t, w)
	names := doc["components"].(map[string]any)["schemas"].(map[string]any)
	if len(names) < len(shapes) {
		t.Fatalf("%d components", len(names))
	}
	for name := range names {
		if _, err := c.Compile("openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, r := range w.routes() {
		for _, name := range []string{r.request, r.answer} {
			if _, ok := names[name]; name != "" && !strings.Contains(name, "/") && !ok {
				t.Errorf("%s %s: no component %q", r.method, r.path, name)
			}
		}
		if r.method == http.MethodPost && r.request == "" || r.answer == "" || r.summary == "" {
			t.Errorf("%s %s: describe request, answer and summary", r.method, r.path)
		}
	}
}

// examples has one good request for every route; each answer, and each error
// that the route gives without a credential, must fit the document.
var examples = map[string]struct{ path, body string }{
	"POST /audit":                {"/audit", `{"payload":"ignore this, it is hostile","source":{"kind":"web"},"sink":{"kind":"reasoning"}}`},
	"POST /v1/audit":             {"/v1/audit", `{"payload":"a benign page","source":{"kind":"web"},"sink":{"kind":"reasoning"}}`},
	"POST /v1/audit/batch":       {"/v1/audit/batch", `{"flows":[{"payload":"benign","source":{"kind":"web"},"sink":{"kind":"reasoning"}},{"payload":1}]}`},
	"POST /v1/events":            {"/v1/events", `{"host":"h","agent":"a","session":"s","phase":"prompt","text":"rewrite me"}`},
	"POST /v1/hooks/claude-code": {"/v1/hooks/claude-code?event=Stop", `{"session_id":"s","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"benign"}`},
	"GET /v1/approvals":          {"/v1/approvals", ""}, "GET /v1/approvals/:id": {"/v1/approvals/QUESTION", ""},
	"POST /v1/approvals/:id":        {"/v1/approvals/QUESTION", `{"answer":"approve","grant":{"uses":3}}`},
	"POST /v1/approvals/:id/review": {"/v1/approvals/QUESTION/review", `{"text":"a benign text"}`},
	"GET /v1/decisions/:id":         {"/v1/decisions/d-1", ""}, "GET /v1/log": {"/v1/log?limit=10", ""},
	"GET /v1/decisions/:id/suppression": {"/v1/decisions/d-1/suppression", ""},
	"GET /v1/standing":                  {"/v1/standing?ended=1", ""},
	"POST /v1/standing":                 {"/v1/standing", `{"effect":"deny","scope":{"sink_kind":"exec","agent":"a"},"reason":"never"}`},
	"POST /v1/standing/:id/revoke":      {"/v1/standing/ORDER/revoke", `{}`},
	"GET /v1/marks":                     {"/v1/marks", ""},
	"POST /v1/marks":                    {"/v1/marks", `{"decision_id":"d-1","what":"miss","note":"it was not harmless","payload":true,"part":"text"}`},
	"GET /v1/policy":                    {"/v1/policy", ""},
	"POST /v1/policy":                   {"/v1/policy", `{"text":"version: 1\n","base":"BASE"}`},
	"POST /v1/policy/check":             {"/v1/policy/check", `{"text":"version: 2\n"}`},
	"GET /v1/policy/history":            {"/v1/policy/history", ""},
	"GET /v1/policy/history/:digest":    {"/v1/policy/history/BASE", ""},
	"GET /v1/models":                    {"/v1/models", ""},
	"POST /v1/owner/session":            {"/v1/owner/session", `{"passphrase":"` + passphrase + `"}`},
	"POST /v1/owner/link":               {"/v1/owner/link", `{}`}, "POST /v1/owner/logout": {"/v1/owner/logout", `{}`},
	"POST /v1/heartbeats": {"/v1/heartbeats", `{"host":"openclaw","instance":"1","plugin":"0.1.0","protocol":1,"problems":["x"]}`}, "GET /v1/heartbeats": {"/v1/heartbeats", ""},
	"POST /beta/litellm_basic_guardrail_api": {"/beta/litellm_basic_guardrail_api", `{"texts":["benign","rewrite"],"request_data":{"user_api_key_hash":"x"},"input_type":"request","additional_provider_specific_params":{}}`},
	"POST /v1/moderations":                   {"/v1/moderations", `{"input":["benign",{"type":"text","text":"hostile"}],"model":"omni-moderation-latest"}`},
	"POST /v1/dualview/inspect":              {"/v1/dualview/inspect", `{"host":"h","agent":"a","session":"s","symbols":["symu"],"question":"what?"}`},
	"POST /v1/dualview/policy":               {"/v1/dualview/policy", `{"host":"h","agent":"a","session":"s","op":"list","kind":"trust"}`},
	"GET /v1/dualview/rules":                 {"/v1/dualview/rules", ""}, "POST /v1/dualview/rules": {"/v1/dualview/rules", `{}`},
	"GET /v1/dualview/symbols/:token": {"/v1/dualview/symbols/symu", ""}, "GET /v1/dualview/views": {"/v1/dualview/views", ""},
	"GET /v1/dualview/views/:id/log": {"/v1/dualview/views/1/log?limit=5", ""}, "GET /v1/dualview/views/:id/conflicts": {"/v1/dualview/views/1/conflicts", ""},
	"GET /v1/dualview/views/:id/show": {"/v1/dualview/views/1/show?state=c&path=p", ""}, "GET /v1/dualview/views/:id/diff": {"/v1/dualview/views/1/diff?state=c", ""},
	"GET /v1/dualview/symbols": {"/v1/dualview/symbols?before=2027-01-02T15:04:05Z", ""}, "GET /v1/dualview/symbols/:token/graph": {"/v1/dualview/symbols/symu/graph", ""},
	"GET /v1/dualview/views/:id/files": {"/v1/dualview/views/1/files?path=p&symbols=1", ""}, "GET /v1/dualview/views/:id/file": {"/v1/dualview/views/1/file?path=p", ""},
	"GET /v1/dualview/views/:id/original":             {"/v1/dualview/views/1/original?path=p&human=h&piece=0", ""},
	"GET /v1/dualview/views/:id/conflicts/:conflict":  {"/v1/dualview/views/1/conflicts/1", ""},
	"POST /v1/dualview/views/:id/conflicts/:conflict": {"/v1/dualview/views/1/conflicts/1", `{"take":"mine"}`},
	"POST /v1/dualview/views/:id/revert":              {"/v1/dualview/views/1/revert", `{"state":"c"}`},
	"GET /v1/schema":                                  {"/v1/schema", ""}, "GET /v1/schema/:name": {"/v1/schema/flow", ""}, "GET /openapi.json": {"/openapi.json", ""},
	"GET /healthz": {"/healthz", ""}, "GET /readyz": {"/readyz", ""}, "GET /metrics": {"/metrics", ""},
}

func TestEveryRouteKeepsToTheDocument(t *testing.T) {
	w := newWorld(t, nil)
	c, doc := openapi(t, w)
	errorShape, err := c.Compile("openapi.json#/components/schemas/error")
	if err != nil {
		t.Fatal(err)
	}
	owner := w.owner(t)
	order, err := w.cfg.Standing.Add(standing.Order{Effect: standing.Deny, Reason: "a test", Scope: standing.Scope{Agent: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	base := string(w.cfg.Policies.Policy().Digest())
	paths := doc["paths"].(map[string]any)
	for _, r := range w.routes() {
		t.Run(r.method+r.path, func(t *testing.T) {
			path, _ := openapiPath(r)
			if item, _ := paths[path].(map[string]any); item[strings.ToLower(r.method)] == nil {
				t.Fatalf("the document lacks %s %s", r.method, path)
			}
			ex, ok := examples[r.method+" "+r.path]
			if !ok {
				t.Fatal("no example")
			}
			ex.path = strings.NewReplacer("QUESTION", w.question, "ORDER", order.ID, "BASE", base).Replace(ex.path)
			ex.body = strings.Replace(ex.body, "BASE", base, 1)
			if r.request != "" {
				validate(t, c, r.request, ex.body)
			}
			token := owner
			if strings.HasSuffix(r.path, "logout") {
				token, _, _ = w.keeper.Login(passphrase)
			}
			rec, body := w.request(t, r.method, ex.path, token, ex.body)
			if rec.Code != 200 {
				t.Fatalf("status %d: %s", rec.Code, body)
			}
			if strings.Contains(r.answer, "/") {
				if got := rec.Header().Get("Content-Type"); !strings.HasPrefix(got, r.answer) {
					t.Errorf("content type %q, want %q", got, r.answer)
				}
			} else {
				validate(t, c, r.answer, body)
			}
			if r.needs == needNobody {
				return
			}
			rec, body = w.request(t, r.method, ex.path, "", ex.body)
			if r.path == claudeHookPath { // its host goes on after a 401
				if rec.Code != 200 || !strings.Contains(body, `"decision":"block"`) {
					t.Errorf("without a credential: status %d: %s", rec.Code, body)
				}
				return
			}
			v, err := validator.UnmarshalJSON(strings.NewReader(body))
			if err == nil {
				err = errorShape.Validate(v)
			}
			if rec.Code != 401 || err != nil {
				t.Errorf("without a credential: status %d, %v: %s", rec.Code, err, body)
			}
		})
	}
	if len(examples) != len(w.routes()) {
		t.Errorf("%d examples for %d routes", len(examples), len(w.routes()))
	}
}

func validate(t *testing.T, c *validator.Compiler, name, body string) {
	t.Helper()
	s, err := c.Compile("openapi.json#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := validator.UnmarshalJSON(strings.NewReader(body))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s does not fit: %v\n%s", name, err, body)
	}
}
