package ollama

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"example.org/auditd/inference"
	"example.org/auditd/inference/inferencetest"
	"example.org/auditd/schema"
)

// dialect is what a real server of version 0.17.4 says, as the integration
// tests see it.
func dialect() inferencetest.Dialect {
	return inferencetest.Dialect{
		Path: "/api/chat", ContentType: "application/json; charset=utf-8",
		Prompt: func(body []byte) (string, error) {
			var req api.ChatRequest
			if err := json.Unmarshal(body, &req); err != nil {
				return "", err
			}
			return req.Messages[len(req.Messages)-1].Content, nil
		},
		Reply: func(content string, cut bool) []byte {
			resp := api.ChatResponse{Model: "tiny:latest", Message: api.Message{Role: "assistant", Content: content}, Done: true, DoneReason: "stop"}
			resp.PromptEvalCount, resp.EvalCount = 1500, 60
			if cut {
				resp.DoneReason = "length"
			}
			data, err := json.Marshal(resp)
			if err != nil {
				panic(err)
			}
			return data
		},
		Probe: func(body []byte) string {
			if strings.Contains(string(body), "poet") {
				return `{"k":"v7"}`
			}
			return "ok"
		},
		Other: other("sha-one"),
	}
}

func other(digest string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/version":
			io.WriteString(w, `{"version":"0.17.4"}`)
		case "/api/tags":
			io.WriteString(w, `{"models":[{"name":"tiny:latest","digest":"`+digest+`"}]}`)
		case "/api/show":
			io.WriteString(w, `{"capabilities":["completion","thinking"]}`)
		default:
			http.NotFound(w, r)
		}
	}
}

func start(t *testing.T, cfg Config) *Backend {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.Start(t.Context())
	t.Cleanup(b.Close)
	return b
}

// ready starts a backend and waits for its probe too, so that nothing but the
// test's own calls reaches the server.
func ready(t *testing.T, cfg Config) *Backend {
	t.Helper()
	b := start(t, cfg)
	for b.Ready() != nil || b.Status().Probe == nil {
		select {
		case <-t.Context().Done():
			t.Fatal(b.Status())
		case <-time.After(time.Millisecond):
		}
	}
	return b
}

func TestConformance(t *testing.T) {
	inferencetest.Run(t, func(t *testing.T) inference.Auditor {
		return ready(t, Config{URL: inferencetest.NewServer(t, dialect()).URL, Model: "tiny"})
	})
}

func TestFailClosed(t *testing.T) {
	inferencetest.FailClosed(t, dialect(), func(t *testing.T, url string) func(context.Context) error {
		b := ready(t, Config{URL: url, Model: "tiny"})
		return func(ctx context.Context) error {
			rep, _, err := b.Audit(ctx, inferencetest.Record("hello"))
			if err != nil && rep.Decision != schema.Block {
				t.Errorf("the report beside the error says %v", rep.Decision)
			}
			return err
		}
	})
}

func TestFailClosedArbiter(t *testing.T) {
	d := dialect()
	d.Arbiter = true
	inferencetest.FailClosedArbiter(t, d, func(t *testing.T, url string) inference.Arbiter {
		return ready(t, Config{URL: url, Model: "tiny"})
	})
}

// TestCounts: what the server says about the prompt's length.
func TestCounts(t *testing.T) {
	for name, row := range map[string]struct {
		count int
		ok    bool
	}{"fits": {1500, true}, "front cut": {8192, false}, "no room": {8192 - 383, false}, "stable part lost": {900, false}, "not counted": {0, false}} {
		t.Run(name, func(t *testing.T) {
			d := dialect()
			var count atomic.Int64
			count.Store(1500)
			d.Reply = func(content string, cut bool) []byte {
				resp := api.ChatResponse{Message: api.Message{Content: content}, Done: true, DoneReason: "stop"}
				resp.PromptEvalCount = int(count.Load())
				data, _ := json.Marshal(resp)
				return data
			}
			b := ready(t, Config{URL: inferencetest.NewServer(t, d).URL, Model: "tiny"})
			count.Store(int64(row.count))
			_, _, err := b.Audit(t.Context(), inferencetest.Record("hello"))
			if row.ok && err != nil || !row.ok && inference.CauseOf(err) != inference.CauseTruncated {
				t.Errorf("count %d: %v", row.count, err)
			}
		})
	}
}

// TestRequest: what the server must be told on every call.
func TestRequest(t *testing.T) {
	d := dialect()
	var last atomic.Pointer[api.ChatRequest]
	prompt := d.Prompt
	d.Prompt = func(body []byte) (string, error) {
		var req api.ChatRequest
		if err := json.Unmarshal(body, &req); err != nil {
			return "", err
		}
		last.Store(&req)
		return prompt(body)
	}
	b := ready(t, Config{URL: inferencetest.NewServer(t, d).URL, Model: "tiny", Context: 4096, Threads: 1})
	if _, _, err := b.Audit(t.Context(), inferencetest.Record("hello")); err != nil {
		t.Fatal(err)
	}
	req := last.Load()
	if req.Think == nil || req.Think.Bool() {
		t.Error("a model that can think is not told not to")
	}
	if req.Truncate == nil || *req.Truncate || req.Shift == nil || *req.Shift {
		t.Error("the server may cut")
	}
	if !json.Valid(req.Format) || !strings.Contains(string(req.Format), `"additionalProperties":false`) {
		t.Errorf("format is %s", req.Format)
	}
	for k, want := range map[string]float64{"num_ctx": 4096, "num_predict": 384, "temperature": 0, "seed": 1, "repeat_penalty": 1, "num_thread": 1} {
		if got, ok := req.Options[k].(float64); !ok || got != want {
			t.Errorf("%s is %v, want %v", k, req.Options[k], want)
		}
	}
	if req.KeepAlive == nil || req.KeepAlive.Duration != 30*time.Minute {
		t.Error("keep_alive is not set")
	}
}

// TestColdLoad: a call waits for the model within its deadline, and its going
// away does not stop the loading.
func TestColdLoad(t *testing.T) {
	d := dialect()
	release := make(chan struct{})
	var loads, aborted atomic.Int32
	answering := inferencetest.NewServer(t, d)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/show" {
			loads.Add(1)
			select {
			case <-release:
			case <-r.Context().Done():
				aborted.Add(1)
				return
			}
		}
		resp, err := http.Post(answering.URL+r.URL.Path, "application/json", r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		io.Copy(w, resp.Body)
	}))
	t.Cleanup(srv.Close)
	b := start(t, Config{URL: srv.URL, Model: "tiny"})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, _, err := b.Audit(ctx, inferencetest.Record("hello"))
		gone <- err
	}()
	for loads.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gone; inference.CauseOf(err) != inference.CauseCancelled {
		t.Errorf("the call that went away: %v", err)
	}
	if err := b.Ready(); inference.CauseOf(err) != inference.CauseUnavailable {
		t.Errorf("while loading: %v", err)
	}
	close(release)
	if _, _, err := b.Audit(t.Context(), inferencetest.Record("hello")); err != nil {
		t.Errorf("the call that waited: %v", err)
	}
	if aborted.Load() != 0 {
		t.Error("the loading was aborted")
	}
}

func TestNotThere(t *testing.T) {
	b, err := New(Config{URL: "http://127.0.0.1:1", Model: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Audit(t.Context(), inferencetest.Record("x")); inference.CauseOf(err) != inference.CauseUnavailable {
		t.Errorf("before Start: %v", err)
	}
	b.Start(t.Context())
	t.Cleanup(b.Close)
	if _, _, err := b.Audit(t.Context(), inferencetest.Record("x")); inference.CauseOf(err) != inference.CauseUnavailable {
		t.Errorf("no server: %v", err)
	}
	missing := start(t, Config{URL: inferencetest.NewServer(t, dialect()).URL, Model: "other"})
	_, _, err = missing.Audit(t.Context(), inferencetest.Record("x"))
	if inference.CauseOf(err) != inference.CauseUnavailable || !strings.Contains(err.Error(), "auditd pull other") {
		t.Errorf("no model: %v", err)
	}
	for _, cfg := range []Config{{}, {Model: "x", URL: "ftp://h"}, {Model: "x", URL: "127.0.0.1:11434"}, {Model: "x", URL: ":"}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

// TestModelChanges: a new model behind the name is a new identity.
func TestModelChanges(t *testing.T) {
	d := dialect()
	var digest atomic.Value
	digest.Store("sha-one")
	d.Other = func(w http.ResponseWriter, r *http.Request) { other(digest.Load().(string))(w, r) }
	now := time.Unix(1000, 0)
	var skip atomic.Int64
	b := ready(t, Config{URL: inferencetest.NewServer(t, d).URL, Model: "tiny", Now: func() time.Time { return now.Add(time.Duration(skip.Load())) }})
	before := b.Identity()
	digest.Store("sha-two")
	skip.Store(int64(time.Hour)) // the server has dropped the model
	if _, usage, err := b.Audit(t.Context(), inferencetest.Record("x")); err != nil || usage.Digest != "sha-two" {
		t.Errorf("digest %q, %v", usage.Digest, err)
	}
	if b.Identity() == before {
		t.Error("the identity has not changed")
	}
}

func TestProbe(t *testing.T) {
	dir := t.TempDir()
	d := dialect()
	url := inferencetest.NewServer(t, d).URL
	p := ready(t, Config{URL: url, Model: "tiny", StateDir: dir}).Status().Probe
	if !p.Schema || !p.Thinks || !p.ThinkOff || !p.Answers || p.RefusesLong {
		t.Errorf("probe is %+v", p)
	}
	var asked atomic.Bool
	d.Probe = func(body []byte) string {
		if strings.Contains(string(body), "poet") {
			asked.Store(true)
		}
		return "Oh sea <think>"
	}
	url = inferencetest.NewServer(t, d).URL
	if again := ready(t, Config{URL: url, Model: "tiny", StateDir: dir}).Status().Probe; *again != *p || asked.Load() {
		t.Errorf("the kept probe was not used: %+v", again)
	}
	bad := ready(t, Config{URL: url, Model: "tiny", Context: 4096, StateDir: dir}).Status().Probe
	if bad.Schema || bad.ThinkOff || len(bad.Findings()) != 3 {
		t.Errorf("probe of a bad server is %+v", bad)
	}
}
