package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.org/auditd/inference"
	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

// Probe is what was found out about one server version with one model. None of
// it is needed for safety: an answer that is not exactly right blocks whatever
// the probe said. It tells the owner why flows would be blocked.
type Probe struct {
	Version string    `json:"version"` // of the server
	Model   string    `json:"model"`
	Digest  string    `json:"digest"`
	Prompt  string    `json:"prompt"` // version of the templates
	Context int       `json:"context"`
	Time    time.Time `json:"time"`

	Schema      bool `json:"schema"`       // an answer has the schema's form even when asked for another
	Thinks      bool `json:"thinks"`       // the model can think before it answers
	ThinkOff    bool `json:"think_off"`    // it does not when told not to
	RefusesLong bool `json:"refuses_long"` // a prompt that does not fit is refused, not cut
	Answers     bool `json:"answers"`      // a plain record gets a complete, correct answer
	// Problem says in a few words what Answers failed at.
	Problem      string  `json:"problem,omitempty"`
	FirstMS      float64 `json:"first_ms"` // the plain record's call
	RepeatMS     float64 `json:"repeat_ms"`
	PromptTokens int     `json:"prompt_tokens"`
	OutputTokens int     `json:"output_tokens"`
}

// Findings are sentences for the owner about what would fail; none when all is
// well.
func (p *Probe) Findings() []string {
	var out []string
	if !p.Schema {
		out = append(out, "the server does not hold the model to the answer's schema; expect malformed answers, which block")
	}
	if p.Thinks && !p.ThinkOff {
		out = append(out, "the model thinks although it is told not to; expect answers that are cut, which block; use the instruct variant")
	}
	if !p.RefusesLong {
		out = append(out, "the server cuts prompts that do not fit; they are found out by their count and block")
	}
	if !p.Answers {
		out = append(out, "the model does not answer a plain record correctly ("+p.Problem+"); every flow that needs it would be blocked")
	}
	return out
}

// Status is the backend's state for a doctor's report.
type Status struct {
	URL     string `json:"url"`
	Model   string `json:"model"`
	Digest  string `json:"digest,omitempty"`
	Version string `json:"version,omitempty"`
	Problem string `json:"problem,omitempty"` // why it is not ready
	Probe   *Probe `json:"probe,omitempty"`   // nil until it is done
}

// Status returns the backend's state.
func (b *Backend) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Status{URL: b.cfg.URL, Model: b.cfg.Model, Digest: b.digest, Version: b.version}
	if err := b.readyLocked(); err != nil {
		s.Problem = err.Error()
	}
	if b.probe != nil {
		p := *b.probe
		s.Probe = &p
	}
	return s
}

// probeOnce runs the probe unless its result for this server and model is kept.
func (b *Backend) probeOnce() {
	b.mu.Lock()
	key := Probe{Version: b.version, Model: b.cfg.Model, Digest: b.digest, Prompt: b.render.Version(), Context: b.cfg.Context}
	done := b.testOnlyNoProbe || b.probe != nil || b.probed == key.Digest // once, also when it failed: it is no small work
	b.probed = key.Digest
	b.mu.Unlock()
	if done {
		return
	}
	p, err := b.readProbe(key)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			b.cfg.Log.WarnContext(b.run, "the kept probe is unreadable", "error", err)
		}
		ctx, cancel := context.WithTimeout(b.run, b.cfg.LoadTimeout)
		defer cancel()
		if p, err = b.Probe(ctx); err != nil {
			b.cfg.Log.WarnContext(b.run, "the probe of the auditor's model failed", "model", b.cfg.Model, "error", err)
			return
		}
		if err := b.writeProbe(p); err != nil {
			b.cfg.Log.WarnContext(b.run, "the probe could not be kept", "error", err)
		}
	}
	for _, f := range p.Findings() {
		b.cfg.Log.WarnContext(b.run, "the probe of the auditor's model", "model", b.cfg.Model, "finding", f)
	}
	b.mu.Lock()
	b.probe = p
	b.mu.Unlock()
}

// Probe finds out what the server and the model do. The model must be loaded.
func (b *Backend) Probe(ctx context.Context) (*Probe, error) {
	if err := b.await(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	p := &Probe{
		Version: b.version, Model: b.cfg.Model, Digest: b.digest, Prompt: b.render.Version(), Context: b.cfg.Context,
		Time: b.cfg.Now().UTC().Truncate(time.Second), Thinks: b.thinks,
	}
	b.mu.Unlock()

	// Schema and think switch: ask for a poem under a schema that is not one.
	const format = `{"type":"object","additionalProperties":false,"properties":{"k":{"type":"string","enum":["v7"]}},"required":["k"]}`
	resp, err := b.chat(ctx, b.request("You are a poet.", "Write two lines about the sea.", []byte(format), 48))
	if err != nil {
		return nil, fmt.Errorf("probe the schema: %w", err)
	}
	var got map[string]string
	p.Schema = schema.Decode([]byte(strings.TrimSpace(resp.Message.Content)), &got) == nil && len(got) == 1 && got["k"] == "v7"
	p.ThinkOff = resp.Message.Thinking == "" && !strings.Contains(resp.Message.Content, "<think>")

	// A prompt that does not fit. Each " a" is one token in the tokenizers of
	// today; a server that cuts it would work on a whole context.
	short, cancel := context.WithTimeout(ctx, refusalTime)
	_, err = b.chat(short, b.request("", strings.Repeat(" a", b.cfg.Context+64), nil, 1))
	cancel()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("probe the context length: %w", ctx.Err())
	}
	p.RefusesLong = inference.CauseOf(err) == inference.CauseTruncated

	for i, ms := range []*float64{&p.FirstMS, &p.RepeatMS} {
		rec := probeRecord(i)
		_, usage, err := b.Audit(ctx, rec)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("probe an answer: %w", err)
		}
		*ms = usage.DurationMS
		p.PromptTokens, p.OutputTokens = usage.PromptTokens, usage.OutputTokens
		if p.Answers = err == nil; err != nil {
			var e *inference.Error
			if errors.As(err, &e) && e.Err != nil {
				p.Problem = e.Err.Error()
			} else {
				p.Problem = inference.CauseOf(err).String()
			}
		}
	}
	return p, nil
}

// refusalTime is for counting tokens, which takes milliseconds.
const refusalTime = 30 * time.Second

func probeRecord(i int) *schema.Record {
	f := &schema.Flow{
		Payload: []string{"The bakery on the corner opens at nine. It sells bread.", "The library is closed on Mondays. It lends books."}[i],
		Source:  schema.Source{Kind: schema.SourceWeb, Trust: schema.Untrusted}, Sink: schema.Sink{Kind: schema.SinkReasoning},
		Surface: schema.Context, Boundary: schema.BoundaryReasoning, Intent: "Find out when it is open.",
	}
	return &schema.Record{Flow: f, Precheck: &schema.Precheck{}}
}

func (b *Backend) probeFile(key Probe) string {
	name := schema.DigestOf("probe", key.Version, key.Model, key.Digest, key.Prompt, fmt.Sprint(key.Context))
	return filepath.Join(b.cfg.StateDir, "probe-"+strings.TrimPrefix(string(name), "sha256:")[:24]+".json")
}

func (b *Backend) readProbe(key Probe) (*Probe, error) {
	if b.cfg.StateDir == "" {
		return nil, fs.ErrNotExist
	}
	data, err := os.ReadFile(b.probeFile(key))
	if err != nil {
		return nil, fmt.Errorf("read the probe: %w", err)
	}
	p := new(Probe)
	if err := schema.Decode(data, p); err != nil {
		return nil, fmt.Errorf("read the probe: %w", err)
	}
	if p.Version != key.Version || p.Digest != key.Digest || p.Model != key.Model || p.Prompt != key.Prompt || p.Context != key.Context {
		return nil, fs.ErrNotExist
	}
	return p, nil
}

func (b *Backend) writeProbe(p *Probe) error {
	if b.cfg.StateDir == "" {
		return nil
	}
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(b.cfg.StateDir); err != nil {
		return err
	}
	return durable.WriteFile(b.probeFile(*p), append(data, '\n'), 0o600)
}
