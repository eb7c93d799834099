package peer

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"example.org/auditd/bench/cases"
	"example.org/auditd/schema"
)

func ask(t *testing.T, adapter, payload string) (schema.Action, error) {
	t.Helper()
	p, err := Parse([]byte(adapter))
	if err != nil {
		t.Fatal(err)
	}
	return p.Decide(t.Context(), &cases.Case{Flow: schema.Flow{Payload: payload, Sink: schema.Sink{Kind: schema.SinkExec, Tool: "bash"}}})
}

func TestHTTP(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input, Tool string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Tool != "bash" || r.Header.Get("X-Key") != "k" {
			w.WriteHeader(400)
			return
		}
		switch {
		case strings.Contains(in.Input, "odd"):
			w.Write([]byte(`{"results":[{"flagged":"?"}]}`))
		case strings.Contains(in.Input, "broken"):
			w.Write([]byte(`{`))
		default:
			json.NewEncoder(w).Encode(map[string]any{"results": []any{map[string]any{"flagged": strings.Contains(in.Input, "evil")}}})
		}
	}))
	defer s.Close()
	adapter := "name: x\non_error: allow\nhttp:\n  url: " + s.URL + "\n  headers: {X-Key: k}\n  body: '{\"input\":{{json .Payload}},\"tool\":{{json .Tool}}}'\nverdict: {path: results.0.flagged, block: [\"true\"], allow: [\"false\"]}\n"
	for payload, want := range map[string]schema.Action{"an \"evil\"\nline": schema.Block, "good": schema.Allow} {
		if a, err := ask(t, adapter, payload); err != nil || a != want {
			t.Errorf("%q: %v %v", payload, a, err)
		}
	}
	for _, payload := range []string{"odd", "broken"} {
		if a, err := ask(t, adapter, payload); err == nil || a != schema.Allow {
			t.Errorf("%q: %v %v", payload, a, err)
		}
		if a, err := ask(t, strings.Replace(adapter, "on_error: allow", "on_error: block", 1), payload); err == nil || a != schema.Block {
			t.Errorf("%q: %v %v", payload, a, err)
		}
	}
}

func TestCommand(t *testing.T) {
	adapter := `
name: hook
on_error: allow
command:
  argv: [sh, -c, 'read l; case $l in *evil*) echo no >&2; exit 2;; *ask*) echo "{\"d\":\"ask\"}";; *crash*) exit 3;; esac']
  stdin: '{"tool_input":{"command":{{json .Payload}}}}
'
verdict: {path: d, defer: [ask], allow: [""], exit: {0: output, 2: block}}
`
	for payload, want := range map[string]schema.Action{"evil": schema.Block, "ask": schema.DeferToHuman, "ls": schema.Allow} {
		if a, err := ask(t, adapter, payload); err != nil || a != want {
			t.Errorf("%s: %v %v", payload, a, err)
		}
	}
	if a, err := ask(t, adapter, "crash"); err == nil || a != schema.Allow {
		t.Errorf("crash: %v %v", a, err)
	}
	if _, err := ask(t, strings.Replace(adapter, "[sh,", "[/nonexistent,", 1), "ls"); err == nil {
		t.Error("an absent program is no error")
	}
}

func TestRegex(t *testing.T) {
	const adapter = "name: r\non_error: block\nregex: ['(?i)ignore .* instructions', 'rm -rf']\n"
	if a, err := ask(t, adapter, "Ignore all instructions"); err != nil || a != schema.Block {
		t.Error(a, err)
	}
	if a, err := ask(t, adapter, "hello"); err != nil || a != schema.Allow {
		t.Error(a, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, bad := range []string{"", "name: x", "name: x\non_error: allow", "name: x\non_error: maybe\nregex: [a]", "on_error: allow\nregex: [a]",
		"name: x\non_error: allow\nregex: ['(']", "name: x\non_error: allow\nregex: [a]\nhttp: {url: x}", "name: x\non_error: allow\ncommand: {argv: []}",
		"name: x\non_error: allow\nhttp: {url: x, body: '{{'}", "name: x\ncolour: red", "name: x\non_error: allow\nregex: [a]\nverdict: {exit: {1: maybe}}"} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestShippedAdapters: the examples can be read.
func TestShippedAdapters(t *testing.T) {
	files, err := os.ReadDir("adapters")
	if err != nil || len(files) < 3 {
		t.Fatal(err, len(files))
	}
	for _, f := range files {
		data, err := os.ReadFile("adapters/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(data); err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("name: r\non_error: block\nregex: [a]\n"))
	f.Add([]byte("name: r\non_error: allow\nhttp: {url: 'http://x', body: '{{json .Payload}}'}\n"))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = Parse(data) })
}
