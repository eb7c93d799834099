package anthropic

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.org/auditd/inference"
	"example.org/auditd/inference/inferencetest"
	"example.org/auditd/schema"
)

func dialect() inferencetest.Dialect {
	return inferencetest.Dialect{
		Path: "/v1/messages", ContentType: "application/json", Arbiter: true,
		Prompt: func(body []byte) (string, error) {
			var req struct {
				Messages []struct {
					Content []struct{ Text string }
				}
			}
			if err := json.Unmarshal(body, &req); err != nil {
				return "", err
			}
			return req.Messages[0].Content[0].Text, nil
		},
		Reply: func(content string, cut bool) []byte {
			reason := "end_turn"
			if cut {
				reason = "max_tokens"
			}
			text, err := json.Marshal(content)
			if err != nil {
				panic(err)
			}
			return []byte(`{"id":"x","type":"message","role":"assistant","model":"big","stop_reason":"` + reason +
				`","content":[{"type":"text","text":` + string(text) + `}],"usage":{"input_tokens":900,"cache_read_input_tokens":600,"output_tokens":60}}`)
		},
	}
}

func TestFailClosed(t *testing.T) {
	inferencetest.FailClosedArbiter(t, dialect(), func(t *testing.T, url string) inference.Arbiter {
		b, err := New(Config{URL: url, Model: "big", Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

func TestRequest(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("sk-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := dialect()
	var body string
	prompt := d.Prompt
	d.Prompt = func(b []byte) (string, error) { body = string(b); return prompt(b) }
	srv := inferencetest.NewServer(t, d)
	inner := srv.Config.Handler
	var keys []string
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = r.Header.Values("X-Api-Key")
		inner.ServeHTTP(w, r)
	})
	b, err := New(Config{URL: srv.URL, Model: "big", KeyFile: key})
	if err != nil {
		t.Fatal(err)
	}
	rec := inferencetest.Record("hello")
	rep, usage, err := b.Arbitrate(t.Context(), &schema.ArbiterRecord{Original: rec.Flow, Current: rec.Flow})
	if err != nil || rep.Decision != schema.Allow || usage.PromptTokens != 1500 {
		t.Fatalf("%+v %+v %v", rep, usage, err)
	}
	if len(keys) != 1 || keys[0] != "sk-file" {
		t.Errorf("the key is %q", keys)
	}
	if !strings.Contains(body, `"additionalProperties":false`) || strings.Contains(body, "maxItems") || strings.Contains(body, "pattern") {
		t.Errorf("the schema is not one for this API: %s", body)
	}
	if b.Ready() != nil {
		t.Error(b.Ready())
	}
}

func TestConfig(t *testing.T) {
	for name, cfg := range map[string]Config{"no model": {}, "no such file": {Model: "m", KeyFile: "/nonexistent/key"}, "scheme": {Model: "m", URL: "ws://h"}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
