package firewall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/auditd/inference"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
)

// script is an auditor and an arbiter that answers what a test wrote down.
type script struct {
	mu       sync.Mutex
	audit    func(context.Context, *schema.Record) (schema.Report, error)
	arbitrat func(context.Context, *schema.ArbiterRecord) (schema.ArbiterReport, error)
	notReady error
	audited  []string // payloads, in order
	arbited  []*schema.ArbiterRecord
}

func (s *script) Identity() string { return "script/1" }
func (s *script) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notReady
}

func (s *script) Audit(ctx context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	s.mu.Lock()
	s.audited = append(s.audited, rec.Flow.Payload)
	f := s.audit
	s.mu.Unlock()
	r, err := f(ctx, rec)
	return r, schema.Usage{Backend: "script", Model: "one"}, err
}

func (s *script) Arbitrate(ctx context.Context, rec *schema.ArbiterRecord) (schema.ArbiterReport, schema.Usage, error) {
	s.mu.Lock()
	s.arbited = append(s.arbited, rec)
	f := s.arbitrat
	s.mu.Unlock()
	r, err := f(ctx, rec)
	return r, schema.Usage{Backend: "script", Model: "large"}, err
}

var _ inference.Auditor = (*script)(nil)
var _ inference.Arbiter = (*script)(nil)

// rig is a firewall with everything scripted and everything recorded.
type rig struct {
	*script
	cfg     Config
	fw      *Firewall
	mu      sync.Mutex
	entries []Entry
	asked   []*schema.Question
}

// quiet is the report on content that is plainly harmless.
func quiet() schema.Report {
	return schema.Report{Decision: schema.Allow, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}, Evidence: []string{}}
}

func reportOf(change func(*schema.Report)) func(context.Context, *schema.Record) (schema.Report, error) {
	return func(context.Context, *schema.Record) (schema.Report, error) {
		r := quiet()
		change(&r)
		return r, nil
	}
}

func clearBlock(r *schema.Report) { r.Decision, r.Risk, r.Uncertainty = schema.Block, .9, .1 }
func clearDefer(r *schema.Report) { r.Decision, r.Risk, r.Uncertainty = schema.DeferToHuman, .6, .1 }
func unsure(r *schema.Report)     { r.Risk, r.Uncertainty = .5, .5 }

// checkWords is a precheck that finds what the tests plant.
func checkWords(f *schema.Flow) *schema.Precheck {
	p := &schema.Precheck{Coverage: schema.Coverage{Bytes: len(f.Payload), Total: len(f.Payload)}}
	find := func(word string, code schema.Code, category schema.SpanCategory) {
		for at := 0; ; {
			i := strings.Index(f.Payload[at:], word)
			if i < 0 {
				return
			}
			s := schema.Span{Start: at + i, End: at + i + len(word), Category: category}
			p.Signals = append(p.Signals, schema.Signal{Code: code, Rule: "test-" + strings.ToLower(word), Spans: []schema.Span{s}})
			at = s.End
		}
	}
	find("sk-SECRET", schema.CredSecret, schema.SpanSecret)
	find("IGNORE", schema.PromptControl, schema.SpanInstruction)
	if strings.Contains(f.Payload, "rm -rf ~") {
		p.HardBlock, p.HardReason = true, "shell-rm-home"
		p.Signals = append(p.Signals, schema.Signal{Code: schema.DangerousSideEffect, Severity: schema.Hard, Rule: "shell-rm-home"})
	}
	if strings.Contains(f.Payload, "auditd approve") {
		p.HardBlock, p.HardReason = true, "self-protection"
	}
	return p
}

func redactWords(text string) (string, map[string]string) {
	m := map[string]string{}
	if strings.Contains(text, "sk-SECRET") {
		m["⟦SECRET_1⟧"] = "sk-SECRET"
		text = strings.ReplaceAll(text, "sk-SECRET", "⟦SECRET_1⟧")
	}
	return text, m
}

type logWriter struct{ t testing.TB }

func (w logWriter) Write(b []byte) (int, error) { w.t.Logf("%s", b); return len(b), nil }

func newRig(t testing.TB, changes ...func(*rig)) *rig {
	t.Helper()
	p, err := policy.Default()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{script: &script{
		audit: reportOf(func(*schema.Report) {}),
		arbitrat: func(context.Context, *schema.ArbiterRecord) (schema.ArbiterReport, error) {
			return schema.ArbiterReport{}, errors.New("not scripted")
		},
	}}
	r.cfg = Config{
		Check: checkWords, Redact: redactWords, Auditor: r.script,
		Policy: func() *policy.Policy { return p },
		Append: func(_ context.Context, e Entry) (int64, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.entries = append(r.entries, e)
			return int64(len(r.entries) - 1), nil
		},
		Ask: func(_ context.Context, q *schema.Question) (*schema.Question, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			out := *q
			out.ID, out.Ticket, out.Expires = "q1", fmt.Sprintf("ticket-%d", len(r.asked)+1), time.Now().Add(time.Hour)
			r.asked = append(r.asked, &out)
			return &out, nil
		},
		Now: time.Now, Deadline: 5 * time.Second, Margin: 100 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(logWriter{t}, &slog.HandlerOptions{Level: slog.LevelError + 1})),
	}
	for _, c := range changes {
		c(r)
	}
	if r.fw, err = New(r.cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

func withPolicy(t testing.TB, text string) func(*rig) {
	t.Helper()
	p, err := policy.Parse([]byte("version: 1\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return func(r *rig) { r.cfg.Policy = func() *policy.Policy { return p } }
}

func page(payload string) *schema.Flow {
	return &schema.Flow{
		Payload: payload,
		Source:  schema.Source{Kind: schema.SourceWeb, ID: "https://example.com/a", Trust: schema.Untrusted},
		Sink:    schema.Sink{Kind: schema.SinkReasoning},
		Session: schema.Session{Agent: "test:main", ID: "s1"},
	}
}

func command(line string) *schema.Flow {
	f := page(line)
	f.Source = schema.Source{Kind: schema.SourceAgent, Trust: schema.Untrusted}
	f.Sink = schema.Sink{Kind: schema.SinkExec, Tool: "exec"}
	return f
}

func (r *rig) decide(f *schema.Flow) schema.Decision {
	return r.fw.Audit(context.Background(), f, schema.CredentialHook)
}

func want(t *testing.T, d schema.Decision, action schema.Action, stage schema.Stage, reason string) {
	t.Helper()
	if d.Action != action || d.Stage != stage || d.Reason != reason {
		t.Errorf("got %v by %v, %q (%s); want %v by %v, %q", d.Action, d.Stage, d.Reason, d.Message, action, stage, reason)
	}
	if (d.Action == schema.RewriteAndContinue) != (d.Payload != nil) {
		t.Errorf("action %v with payload %v", d.Action, d.Payload != nil)
	}
	if d.Message == "" || d.ID == "" || d.Time.IsZero() {
		t.Errorf("decision without message, id or time: %+v", d)
	}
}
