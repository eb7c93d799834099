package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/auditd/api"
	"example.org/auditd/approval"
	"example.org/auditd/auditlog"
	"example.org/auditd/credential"
	"example.org/auditd/heartbeat"
	"example.org/auditd/marks"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
	"example.org/auditd/standing"
)

const passphrase = "correct horse battery"

// world is a server with a scripted firewall behind it.
type world struct {
	*Server
	keeper    *credential.Keeper
	hook      string
	question  string // id of the one that waits
	log       *auditlog.Log
	ownerPath string
	logs      *strings.Builder
	mu        sync.Mutex
	seen      []*schema.Flow
}

// script decides by what the payload says, so that a test reads plainly.
func script(f *schema.Flow) schema.Decision {
	d := schema.Decision{ID: "d-1", Time: time.Unix(1, 0).UTC(), Stage: schema.StageAuditor, Reason: "scripted", Message: "scripted",
		Report: &schema.Report{Risk: .9, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualPromptControl}, Evidence: []string{}}}
	switch {
	case strings.Contains(f.Payload, "panic"):
		panic("the payload was " + f.Payload)
	case strings.Contains(f.Payload, "benign"):
		d.Action, d.Report.Decision, d.Report.Risk = schema.Allow, schema.Allow, 0.05
		d.Report.ResidualRiskTypes = []schema.ResidualRisk{schema.ResidualNone}
	case strings.Contains(f.Payload, "rewrite"):
		out := "cleaned"
		d.Action, d.Mediation, d.Payload = schema.RewriteAndContinue, schema.MediationText, &out
		d.Report.Decision, d.Report.Rewrite = schema.RewriteAndContinue, &out
	case strings.Contains(f.Payload, "defer"):
		d.Action, d.Report.Decision, d.Ticket = schema.DeferToHuman, schema.DeferToHuman, "t-1"
	}
	return d
}

func newWorld(t *testing.T, change func(*Config)) *world {
	t.Helper()
	dir := t.TempDir()
	hook, err := credential.HookToken(filepath.Join(dir, "hook.token"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{hook: hook, ownerPath: filepath.Join(dir, "owner.json"), logs: new(strings.Builder)}
	w.keeper, err = credential.NewKeeper(credential.Config{HookToken: hook, PassphrasePath: w.ownerPath})
	if err != nil {
		t.Fatal(err)
	}
	queue, log := w.stores(t, dir)
	w.log = log
	orders, err := standing.Open(filepath.Join(dir, "standing.json"), time.Now, func(text string) string { return string(log.Keyed("payload", text)) })
	if err != nil {
		t.Fatal(err)
	}
	book, err := marks.Open(filepath.Join(dir, "marks", "cases.jsonl"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	policies, err := policy.OpenKeeper(policy.KeeperConfig{Path: filepath.Join(dir, "policy.yaml"), History: filepath.Join(dir, "policies"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Audit: func(_ context.Context, f *schema.Flow, _ schema.Credential) schema.Decision {
			w.mu.Lock()
			w.seen = append(w.seen, f)
			w.mu.Unlock()
			return script(f)
		},
		Event: func(_ context.Context, e *schema.Event, _ schema.Credential) schema.Outcome {
			d := script(&schema.Flow{Payload: e.Text})
			return schema.Outcome{Action: d.Action, Reason: d.Reason, Message: d.Message, Decisions: []schema.Decision{d}}
		},
		Isolation: isolation{},
		Review: func(_ context.Context, f *schema.Flow, text string) schema.Decision {
			return script(f.WithPayload(text))
		},
		Approvals:  queue,
		Log:        w.log,
		Standing:   orders,
		Marks:      book,
		Heartbeats: heartbeat.New(time.Now),
		Ready:      func() []string { return nil },
		Models: func(context.Context) []api.ModelInfo {
			return []api.ModelInfo{{Name: "m", Backend: "onnx", Role: "auditor", Ready: true}}
		},
		Policy: func() api.PolicyInfo {
			text, source := policies.Text()
			return api.PolicyInfo{Digest: policies.Policy().Digest(), Source: source, Text: text}
		},
		Policies: policies,
		Keeper:   w.keeper,
		Logger:   slog.New(slog.NewTextHandler(&lockedWriter{w: w.logs}, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Version:  "test",
		Deadline: 5 * time.Second,
	}
	if change != nil {
		change(&c)
	}
	if w.Server, err = New(c); err != nil {
		t.Fatal(err)
	}
	return w
}

// withOwner sets the passphrase and returns an owner's session token.
func (w *world) owner(t *testing.T) string {
	t.Helper()
	if err := credential.SetPassphrase(w.ownerPath, passphrase, "test", time.Now(), false); err != nil {
		t.Fatal(err)
	}
	token, _, err := w.keeper.Login(passphrase)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func completed(t *testing.T, payload string) *schema.Flow {
	t.Helper()
	f := &schema.Flow{Payload: payload, Source: schema.Source{Kind: schema.SourceWeb, Trust: schema.Untrusted}, Sink: schema.Sink{Kind: schema.SinkFile}}
	if err := f.Complete(0); err != nil {
		t.Fatal(err)
	}
	return f
}

// stores opens a real queue with one question and a real log with one decision.
func (w *world) stores(t *testing.T, dir string) (*approval.Queue, *auditlog.Log) {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(dir, "auditd.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	queue, err := approval.New(approval.Config{DB: db, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	f := completed(t, "what the agent wants to write")
	q, err := queue.Ask(t.Context(), &schema.Question{Binding: f.Binding(), Decision: "d-1", Summary: "write a file", Flow: f})
	if err != nil {
		t.Fatal(err)
	}
	w.question = q.ID
	log, err := auditlog.Open(auditlog.Config{Dir: dir, Now: time.Now, Log: slog.New(slog.DiscardHandler), Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	d := script(&schema.Flow{Payload: "benign"})
	if _, err := log.Append(t.Context(), auditlog.Entry{Decision: &d, Flow: f, RedactedPayload: "redacted text"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		log.Close()
		db.Close()
	})
	return queue, log
}

// request sends body (JSON) with token and returns status and body.
func (w *world) request(t *testing.T, method, path, token, body string, change ...func(*http.Request)) (*httptest.ResponseRecorder, string) {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:7841"+path, r)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, c := range change {
		c(req)
	}
	rec := httptest.NewRecorder()
	w.Handler().ServeHTTP(rec, req)
	return rec, rec.Body.String()
}
