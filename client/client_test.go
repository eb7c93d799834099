package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/auditd/schema"
)

const decided = `{"decision_id":"d-1","time":"1970-01-01T00:00:01Z","action":"allow","mediation":"none","stage":"auditor","reason":"r","message":"m","residual":0,"cached":false,"log_index":0,"latency_ms":0}`

func flow() *schema.Flow {
	return &schema.Flow{Payload: "x", Source: schema.Source{Kind: schema.SourceWeb, Trust: schema.Untrusted}, Sink: schema.Sink{Kind: schema.SinkReasoning}}
}

func event() *schema.Event {
	return &schema.Event{Host: "h", Session: "s", Phase: schema.PhasePrompt, Text: "x"}
}

// TestEveryFailureBlocks is the table of what can come back from, or instead
// of, the daemon.
func TestEveryFailureBlocks(t *testing.T) {
	body := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			w.Write([]byte(text))
		}
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, h := range map[string]http.HandlerFunc{
		"refused":             nil,
		"time-out":            func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); <-r.Context().Done() },
		"hung up":             func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"400":                 body(400, `{"error":{"code":"invalid","message":"m"},"action":"block"}`),
		"401":                 body(401, `{"error":{"code":"credential","message":"m"},"action":"block"}`),
		"403 of another":      body(403, decided),
		"404":                 body(404, ``),
		"500 that allows":     body(500, decided),
		"503":                 body(503, `{"error":{"code":"busy","message":"m"},"action":"block"}`),
		"204":                 body(204, ``),
		"redirect":            func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"empty":               body(200, ``),
		"garbage":             body(200, "\x00\xff<html>"),
		"null":                body(200, `null`),
		"empty object":        body(200, `{}`),
		"only an action":      body(200, `{"action":"allow"}`),
		"cut":                 body(200, decided[:60]),
		"two documents":       body(200, decided+decided),
		"unknown verdict":     body(200, strings.Replace(decided, "allow", "permit", 1)),
		"verdict of a number": body(200, strings.Replace(decided, `"allow"`, `3`, 1)),
		"unknown field":       body(200, strings.Replace(decided, `{`, `{"ok":true,`, 1)),
		"twice":               body(200, strings.Replace(decided, `{`, `{"action":"block",`, 1)),
		"rewrite of nothing":  body(200, strings.Replace(decided, "allow", "rewrite_and_continue", 1)),
		"too long":            body(200, `"`+strings.Repeat("x", maxAnswer+1)+`"`),
	} {
		t.Run(name, func(t *testing.T) {
			c := &Client{URL: closed.URL, Token: "t", Timeout: 300 * time.Millisecond}
			if h != nil {
				s := httptest.NewServer(h)
				defer s.Close()
				c.URL = s.URL
			}
			d, err := c.Audit(t.Context(), flow())
			if err == nil || d.Action != schema.Block || d.Reason == "" || d.Message == "" {
				t.Errorf("audit: %v %v %q", err, d.Action, d.Reason)
			}
			o, err := c.Event(t.Context(), event())
			if err == nil || o.Action != schema.Block || o.Reason == "" {
				t.Errorf("event: %v %v %q", err, o.Action, o.Reason)
			}
		})
	}
}

func TestCancelledAndUnsendable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &Client{Token: "t"}
	if d, err := c.Audit(ctx, flow()); err == nil || d.Action != schema.Block {
		t.Errorf("cancelled: %v %v", d.Action, err)
	}
	if d, err := c.Audit(t.Context(), &schema.Flow{Payload: "\xff"}); err == nil || d.Action != schema.Block {
		t.Errorf("not UTF-8: %v %v", d.Action, err)
	}
	if o, err := c.Event(t.Context(), &schema.Event{}); err == nil || o.Action != schema.Block {
		t.Errorf("event without a phase: %v %v", o.Action, err)
	}
}

func TestZeroValueFindsTheSocket(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	dir := StateDir()
	if dir != filepath.Join(state, "auditd") {
		t.Fatal(dir)
	}
	var c Client
	if d, err := c.Audit(t.Context(), flow()); !errors.Is(err, ErrNoDaemon) || d.Action != schema.Block {
		t.Logf("something listens on the default port: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(SocketPath(dir)), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", SocketPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "auditd" || r.Header.Get("Authorization") != "" {
			t.Errorf("host %q, authorization %q", r.Host, r.Header.Get("Authorization"))
		}
		w.Write([]byte(decided))
	})}
	go s.Serve(l)
	defer s.Close()
	var again Client
	if d, err := again.Audit(t.Context(), flow()); err != nil || d.Action != schema.Allow {
		t.Errorf("%v %v", d.Action, err)
	}
}
