package modelproxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/auditd/firewall"
	"example.org/auditd/policy"
	"example.org/auditd/precheck"
	"example.org/auditd/schema"
)

const token = "ah_0123456789abcdef0123456789abcdef"

// scripted decides by what the payload says.
type scripted struct{}

func (scripted) Identity() string { return "scripted" }
func (scripted) Ready() error     { return nil }
func (scripted) Audit(_ context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	p := rec.Flow.Payload
	r := schema.Report{Decision: schema.Allow, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}, RewriteCompleteness: 1, Evidence: []string{}}
	switch {
	case strings.Contains(p, "EVIL"):
		r.Decision, r.Risk, r.ResidualRiskTypes = schema.Block, .9, []schema.ResidualRisk{schema.ResidualPromptControl}
	case strings.Contains(p, "ASKOWNER"):
		r.Decision, r.Risk, r.ResidualRiskTypes = schema.DeferToHuman, .6, []schema.ResidualRisk{schema.ResidualPromptControl}
	case strings.Contains(p, "MASKED-WORD"):
		text := strings.ReplaceAll(p, "MASKED-WORD", "")
		r.Decision, r.Rewrite, r.Risk, r.Evidence = schema.RewriteAndContinue, &text, .4, []string{"MASKED-WORD"}
	}
	return r, schema.Usage{Backend: "scripted"}, nil
}

// rig is a proxy with the real firewall and precheck, a scripted auditor, and a
// provider that answers what a test wrote down.
type rig struct {
	t        testing.TB
	proxy    *Proxy
	front    *httptest.Server
	upstream *httptest.Server
	memory   *Memory
	log      strings.Builder

	mu       sync.Mutex
	approved map[string]bool // questions
	events   []schema.Event
	seen     []string // bodies at the provider
	headers  []http.Header
	paths    []string
	answer   http.HandlerFunc
	hook     Report // in front of the firewall; nil for none
}

func (r *rig) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(b)
}

func newRig(t testing.TB, api string, change ...func(*Config)) *rig {
	t.Helper()
	p, err := policy.Default()
	if err != nil {
		t.Fatal(err)
	}
	c, err := precheck.New(precheck.Config{Home: "/home/me"})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, approved: map[string]bool{}}
	questions := 0
	fw, err := firewall.New(firewall.Config{
		Check: c.Check, Redact: c.Redact, Auditor: scripted{}, Policy: func() *policy.Policy { return p },
		Append: func(context.Context, firewall.Entry) (int64, error) { return 0, nil },
		Ask: func(_ context.Context, q *schema.Question) (*schema.Question, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			questions++
			out := *q
			out.ID, out.Ticket, out.Expires = fmt.Sprintf("q-%d", questions), fmt.Sprintf("t-%d", questions), time.Now().Add(time.Hour)
			return &out, nil
		},
		Redeem: func(_ context.Context, ticket string, _ schema.Digest) (bool, *string, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if q := strings.Replace(ticket, "t-", "q-", 1); r.approved[q] {
				delete(r.approved, q)
				return true, nil, nil
			}
			return false, nil, nil
		},
		Now: time.Now, Deadline: 5 * time.Second, Margin: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.upstream = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.seen, r.headers, r.paths = append(r.seen, string(body)), append(r.headers, req.Header.Clone()), append(r.paths, req.URL.String())
		answer := r.answer
		r.mu.Unlock()
		answer(w, req)
	}))
	t.Cleanup(r.upstream.Close)
	r.memory = NewMemory(time.Now)
	base := r.upstream.URL
	if api == "openai" {
		base += "/v1"
	}
	cfg := Config{Token: token, Memory: r.memory, Logger: slog.New(slog.NewTextHandler(r, nil)),
		Providers: []Provider{{Name: "real", API: api, URL: base, Host: "test"}},
		Report: func(ctx context.Context, e *schema.Event) schema.Outcome {
			r.mu.Lock()
			r.events = append(r.events, *e)
			hook := r.hook
			r.mu.Unlock()
			if hook != nil {
				if o := hook(ctx, e); o.Reason != "" {
					return o
				}
			}
			return fw.Event(ctx, e, schema.CredentialHook)
		},
		Answered: func(_ context.Context, id string) string {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.approved[id] {
				return "approved"
			}
			return ""
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	if r.proxy, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	r.front = httptest.NewServer(r.proxy)
	t.Cleanup(r.front.Close)
	return r
}

// say lets the provider answer body.
func (r *rig) say(media, body string) {
	r.serve(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		io.WriteString(w, body)
	})
}

func (r *rig) serve(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = h
}

// ask sends a request and returns the answer.
func (r *rig) ask(path, body string) (int, string) {
	r.t.Helper()
	res, err := http.Post(r.front.URL+"/"+token+"/real"+path, "application/json", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// last is the last body that the provider was sent; calls how many it was.
func (r *rig) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 {
		return ""
	}
	return r.seen[len(r.seen)-1]
}

func (r *rig) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// reported counts the events of a phase.
func (r *rig) reported(phase schema.Phase) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		if e.Phase == phase {
			n++
		}
	}
	return n
}
