package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.org/auditd/inference"
	"example.org/auditd/inference/inferencetest"
)

func dialect() inferencetest.Dialect {
	return inferencetest.Dialect{
		Path: "/v1/chat/completions", ContentType: "application/json",
		Prompt: func(body []byte) (string, error) {
			var req struct {
				Messages []struct{ Content string }
			}
			if err := json.Unmarshal(body, &req); err != nil {
				return "", err
			}
			return req.Messages[len(req.Messages)-1].Content, nil
		},
		Reply: func(content string, cut bool) []byte {
			reason := "stop"
			if cut {
				reason = "length"
			}
			text, err := json.Marshal(content)
			if err != nil {
				panic(err)
			}
			return []byte(`{"id":"x","object":"chat.completion","created":1,"model":"tiny","choices":[{"index":0,"finish_reason":"` + reason +
				`","message":{"role":"assistant","content":` + string(text) + `}}],"usage":{"prompt_tokens":1500,"completion_tokens":60,"total_tokens":1560}}`)
		},
		Other: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"object":"list","data":[{"id":"tiny","object":"model","created":1,"owned_by":"x"}]}`)
		},
	}
}

func backend(t *testing.T, url string) *Backend {
	t.Helper()
	b, err := New(Config{URL: url + "/v1", Model: "tiny", Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestConformance(t *testing.T) {
	inferencetest.Run(t, func(t *testing.T) inference.Auditor {
		return backend(t, inferencetest.NewServer(t, dialect()).URL)
	})
}

func TestFailClosed(t *testing.T) {
	inferencetest.FailClosed(t, dialect(), func(t *testing.T, url string) func(context.Context) error {
		b := backend(t, url)
		return func(ctx context.Context) error {
			_, _, err := b.Audit(ctx, inferencetest.Record("hello"))
			return err
		}
	})
}

func TestFailClosedArbiter(t *testing.T) {
	d := dialect()
	d.Arbiter = true
	inferencetest.FailClosedArbiter(t, d, func(t *testing.T, url string) inference.Arbiter { return backend(t, url) })
}

func TestCheck(t *testing.T) {
	srv := inferencetest.NewServer(t, dialect())
	b := backend(t, srv.URL)
	if inference.CauseOf(b.Ready()) != inference.CauseUnavailable {
		t.Errorf("before the first contact: %v", b.Ready())
	}
	if err := b.Check(t.Context()); err != nil || b.Ready() != nil {
		t.Errorf("%v, %v", err, b.Ready())
	}
	missing, err := New(Config{URL: srv.URL + "/v1/", Model: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if err := missing.Check(t.Context()); inference.CauseOf(err) != inference.CauseUnavailable || missing.Ready() == nil {
		t.Errorf("a model that is not there: %v", err)
	}
}

func TestConfig(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sk-PLANTED\n")
	for name, cfg := range map[string]Config{
		"no model":     {URL: "http://127.0.0.1:1/v1"},
		"no URL":       {Model: "m"},
		"other scheme": {Model: "m", URL: "file:///etc/passwd"},
		"password":     {Model: "m", URL: "https://a:b@h.example/v1"},
		"key in clear": {Model: "m", URL: "http://h.example/v1", KeyFile: key},
		"no such file": {Model: "m", URL: "http://127.0.0.1:1/v1", KeyFile: key + "x"},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s was accepted", name)
		} else if strings.Contains(err.Error(), "PLANTED") {
			t.Errorf("%s: the error quotes the key", name)
		}
	}
	for _, text := range []string{"", "\n", "one\ntwo", "sp ace"} {
		write(text)
		if _, err := New(Config{Model: "m", URL: "http://127.0.0.1:1/v1", KeyFile: key}); err == nil {
			t.Errorf("the key file %q was accepted", text)
		}
	}
}

// TestRequest: the key goes out, the environment's does not, and the schema
// arrives in the order in which the model must write.
func TestRequest(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("sk-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := dialect()
	prompt := d.Prompt
	var body string
	d.Prompt = func(b []byte) (string, error) { body = string(b); return prompt(b) }
	srv := inferencetest.NewServer(t, d)
	var auth []string
	inner := srv.Config.Handler
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth = r.Header.Values("Authorization")
		inner.ServeHTTP(w, r)
	})
	b, err := New(Config{URL: srv.URL + "/v1", Model: "tiny", KeyFile: key})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Audit(t.Context(), inferencetest.Record("hello")); err != nil {
		t.Fatal(err)
	}
	if len(auth) != 1 || auth[0] != "Bearer sk-file" {
		t.Errorf("Authorization is %q", auth)
	}
	at := -1
	for _, want := range []string{`"strict":true`, `"properties":{"c":`, `"e":`, `"t":`, `"r":`, `"d":`, `"n":`} {
		i := strings.Index(body, want)
		if i < 0 || strings.HasPrefix(want, `"properties`) && i < at {
			t.Errorf("%s is missing or out of order in %s", want, body)
		}
	}
	if !strings.Contains(body, `"enable_thinking":false`) {
		t.Error("thinking is not switched off")
	}
}

// TestRetries: a server that is busy once is asked again.
func TestRetries(t *testing.T) {
	srv := inferencetest.NewServer(t, dialect())
	inner := srv.Config.Handler
	calls := 0
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(429)
			return
		}
		inner.ServeHTTP(w, r)
	})
	b, err := New(Config{URL: srv.URL + "/v1", Model: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Audit(t.Context(), inferencetest.Record("hello")); err != nil || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
