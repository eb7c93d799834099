package modelproxy

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.org/auditd/schema"
)

// TestRefusedRequests: what cannot be looked at is not passed on, and the
// refusal names it.
func TestRefusedRequests(t *testing.T) {
	for _, x := range []struct{ api, path, body, want string }{
		{"anthropic", "/v1/messages", `{"messages":[],"messages":[]}`, "doubled names"},
		{"anthropic", "/v1/messages", `{"messages":[]}{}`, "doubled names"},
		{"anthropic", "/v1/messages", `{"messages":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`, "too deep"},
		{"anthropic", "/v1/messages", `[]`, "not an object"},
		{"anthropic", "/v1/messages", `{}`, "messages: is missing"},
		{"anthropic", "/v1/messages", `{"messages":[],"aside":"some words"}`, "aside is not known"},
		{"anthropic", "/v1/messages", `{"messages":[],"mcp_servers":[{"url":"https://x"}]}`, "mcp_servers"},
		{"anthropic", "/v1/messages", `{"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, "web_search_20250305 runs at the provider"},
		{"anthropic", "/v1/messages", `{"messages":[{"role":"user","content":[{"type":"document","source":{}}]}]}`, "type document is not known"},
		{"anthropic", "/v1/messages", `{"messages":[{"role":"user","content":[{"type":"text","text":"a","aside":"some words"}]}]}`, "aside: is not known"},
		{"anthropic", "/v1/messages", `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}`, "only images in the request"},
		{"anthropic", "/v1/messages", `{"messages":[{"role":"user","content":[{"type":"tool_use","id":"a","name":"b","input":{}}]}]}`, "no tool call of the model's"},
		{"anthropic", "/v1/messages", `{"messages":[{"role":"owner","content":"a"}]}`, "role: is not known"},
		{"anthropic", "/v1/messages", `{"messages":[{"role":"user","content":"a"}],"system":"EVIL"}`, "the system prompt was stopped"},
		{"anthropic", "/v1/complete", `{}`, "not passed on"},
		{"openai", "/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"file","file":{}}]}]}`, "type file is not known"},
		{"openai", "/v1/chat/completions", `{"messages":[],"tools":[{"type":"web_search"}]}`, "runs at the provider"},
		{"openai", "/v1/responses", `{"input":[{"type":"item_reference","id":"x"}]}`, "item_reference is not known"},
		{"openai", "/v1/responses", `{"input":"a","previous_response_id":"resp_9"}`, "did not come through this proxy"},
		{"openai", "/v1/responses", `{"input":"a","background":true}`, "background"},
		{"openai", "/v1/embeddings", `{}`, "not passed on"},
		{"ollama", "/api/chat", `{"messages":[{"role":"tool","content":[]}]}`, "is no text"},
		{"ollama", "/api/generate", `{}`, "not passed on"},
	} {
		r := newRig(t, x.api)
		r.say("application/json", "{}")
		status, got := r.ask(x.path, x.body)
		if status < 400 || !strings.Contains(got, x.want) || r.calls() != 0 {
			t.Errorf("%s %s: %d %s, want %q", x.path, x.body, status, got, x.want)
		}
	}
}

// TestWhoMayAsk: nobody without the token, and no web page.
func TestWhoMayAsk(t *testing.T) {
	r := newRig(t, "anthropic")
	s := anthropicSpeaker()
	r.say("application/json", s.answer("Hello.", nil))
	body := js(s.request([]turn{{user: "Hello."}}, false))
	for _, x := range []struct {
		path   string
		header map[string]string
		want   int
	}{
		{"/" + token + "/real/v1/messages", nil, 200},
		{"/real/v1/messages", map[string]string{TokenHeader: token}, 200},
		{"/real/v1/messages", map[string]string{"X-Api-Key": token}, 200},
		{"/real/v1/messages", map[string]string{"Authorization": "Bearer " + token}, 200},
		{"/real/v1/messages", nil, 401},
		{"/ah_wrong/real/v1/messages", nil, 401},
		{"/real/v1/messages", map[string]string{TokenHeader: "wrong"}, 401},
		{"/" + token + "/other/v1/messages", nil, 404},
		{"/" + token + "/real/../real/v1/messages", nil, 404},
		{"/" + token + "/real/v1/messages?x=http://127.0.0.1", nil, 400},
		{"/" + token + "/real/v1/messages", map[string]string{"Origin": "https://evil.example"}, 403},
		{"/" + token + "/real/v1/messages", map[string]string{"Host": "evil.example"}, 403},
	} {
		before := r.calls()
		req, err := http.NewRequest(http.MethodPost, r.front.URL+x.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for k, v := range x.header {
			if req.Header.Set(k, v); k == "Host" {
				req.Host = v
			}
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != x.want || (r.calls() > before) != (x.want == 200) {
			t.Errorf("%s %v: %d, want %d", x.path, x.header, res.StatusCode, x.want)
		}
	}
	for i, h := range r.headers {
		if strings.Contains(strings.Join(r.paths, " "), token) || h.Get("X-Api-Key") != "" || h.Get("Authorization") != "" || h.Get(TokenHeader) != "" {
			t.Errorf("the token left with %d: %v", i, h)
		}
	}
	if strings.Contains(r.log.String(), token) {
		t.Error("the token is in the log")
	}
}

// TestKeys: the agent's key passes through, or the daemon's takes its place.
func TestKeys(t *testing.T) {
	each(t, func(t *testing.T, s speaker, stream bool) {
		for _, held := range []bool{false, true} {
			r := newRig(t, s.api, func(c *Config) {
				if held {
					c.Providers[0].Key = func() (string, error) { return "sk-held", nil }
				}
			})
			s.play(r, stream, "Hello.")
			req, err := http.NewRequest(http.MethodPost, r.front.URL+"/"+token+"/real"+s.path, strings.NewReader(js(s.request([]turn{{user: "Hello."}}, stream))))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer sk-agent")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			all := r.headers[0].Get("X-Api-Key") + r.headers[0].Get("Authorization")
			if strings.Contains(all, "sk-held") != held || strings.Contains(all, "sk-agent") == held || strings.Contains(r.log.String(), "sk-") {
				t.Errorf("held %v: %s", held, all)
			}
		}
	})
}

// TestHooksMustHaveReported: a session that no hook has reported is refused,
// and what a hook has let pass is not looked at again.
func TestHooksMustHaveReported(t *testing.T) {
	now := time.Now()
	s := anthropicSpeaker()
	r := newRig(t, s.api, func(c *Config) {
		c.Providers[0].Hooks, c.Providers[0].TrustInstructions = true, true
		c.Memory = NewMemory(func() time.Time { return now })
	})
	s.play(r, false, "Done.", look)
	req := s.request([]turn{{user: "Read it."}, {calls: []toolCall{fetch}, results: []string{"A page."}}}, false)
	req["metadata"] = m{"user_id": `{"session_id":"s-1"}`}
	if status, got := r.ask(s.path, js(req)); status != 400 || r.calls() != 0 || !strings.Contains(got, "hooks") {
		t.Fatalf("%d %s", status, got)
	}
	hook := &schema.Event{Host: "test", Session: "s-1", Phase: schema.PhaseAfterTool, Tool: "web_fetch", Result: []byte(`{"content":"A page."}`)}
	r.proxy.cfg.Memory.Heard(hook, schema.Outcome{Action: schema.Allow})
	if status, got := r.ask(s.path, js(req)); status != 200 || r.reported(schema.PhaseAfterTool) != 0 {
		t.Errorf("%d %s, looked at %d times", status, got, r.reported(schema.PhaseAfterTool))
	}
	now = now.Add(hooksFor + time.Second)
	if status, _ := r.ask(s.path, js(req)); status != 400 {
		t.Errorf("long after: %d", status)
	}
}

// TestSymbolsForThePerson: where no hook shows the message, symbols in it are
// resolved here, and go back to being symbols on the way to the model.
func TestSymbolsForThePerson(t *testing.T) {
	const symbol = "symu0123456789abcdefghjkmnpqrstvwxyzu"
	each(t, func(t *testing.T, s speaker, stream bool) {
		r := newRig(t, s.api, func(c *Config) { c.Providers[0].ResolveSymbols = true })
		r.hook = func(_ context.Context, e *schema.Event) schema.Outcome {
			if e.Phase == schema.PhaseMessageOut && e.Text == symbol {
				text := "the value"
				return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "resolved", Text: &text}
			}
			return schema.Outcome{}
		}
		s.play(r, stream, "It is "+symbol+", symu.")
		_, got := r.ask(s.path, js(s.request([]turn{{user: "What is it?"}}, stream)))
		if text, _, _, problem := s.read(got, stream); text != "It is the value, symu." || problem != "" {
			t.Fatalf("%q %q in %s", text, problem, got)
		}
		again := []turn{{user: "What is it?"}, {said: "It is the value, symu."}, {user: "Go on."}}
		if status, got := r.ask(s.path, js(s.request(again, stream))); status != 200 || !strings.Contains(r.last(), symbol) || strings.Contains(r.last(), "the value") {
			t.Errorf("%d %s: the model read %s", status, got, r.last())
		}
		n := r.calls()
		again[1].said = "It was the value."
		if status, _ := r.ask(s.path, js(s.request(again, stream))); status != 400 || r.calls() != n {
			t.Errorf("another text than the one that was shown: %d", status)
		}
	})
}

// TestMarkedSessions: where the host names no session, the word that the plugin
// put into the system prompt says whose a request is. A word that nobody gave
// out, another host's, or a session that ended counts as none.
func TestMarkedSessions(t *testing.T) {
	s := chatSpeaker()
	r := newRig(t, s.api, func(c *Config) { c.Providers[0].Hooks, c.Providers[0].TrustInstructions = true, true })
	s.play(r, false, "Done.", look)
	memory := r.proxy.cfg.Memory
	ask := func(system string) (int, string) {
		req := s.request([]turn{{user: "Read it."}, {calls: []toolCall{fetch}, results: []string{"A page."}}}, false)
		data := strings.Replace(js(req), `"messages":[`, `"messages":[{"role":"system","content":`+js(system)+`},`, 1)
		return r.ask(s.path, data)
	}
	refused := func(what, system string) {
		t.Helper()
		if status, got := ask(system); status != 400 || r.calls() != 0 || !strings.Contains(got, "hooks") {
			t.Errorf("%s: %d %s", what, status, got)
		}
	}
	word := memory.Marker("test", "s-1")
	refused("not heard of", "You help.\n"+word)
	memory.Heard(&schema.Event{Host: "test", Session: "s-1", Phase: schema.PhaseAfterTool, Tool: "web_fetch", Result: []byte(`{"content":"A page."}`)}, schema.Outcome{Action: schema.Allow})
	refused("no word", "You help.")
	refused("made up", "You help. auditd-session-00000000000000000000000000000000")
	refused("another host's", "You help. "+memory.Marker("other", "s-1"))
	if status, got := ask("You help.\n" + word); status != 200 || r.reported(schema.PhaseAfterTool) != 0 {
		t.Errorf("%d %s, looked at %d times", status, got, r.reported(schema.PhaseAfterTool))
	}
	before := r.calls()
	memory.Heard(&schema.Event{Host: "test", Session: "s-1", Phase: schema.PhaseSessionEnd}, schema.Outcome{Action: schema.Allow})
	if status, _ := ask("You help.\n" + word); status != 400 || r.calls() != before {
		t.Errorf("after the end: %d", status)
	}
}
