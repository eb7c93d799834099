// Package quality measures what a firewall lets through and what it stands in
// the way of: it sends every case through the entry points that agents use,
// lets the case's oracle judge what would reach the sink, and makes the
// token-flow paper's figures out of it. It asks for decisions and makes none.
package quality

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"example.org/auditd/bench/cases"
	"example.org/auditd/schema"
)

// Config says what to run.
type Config struct {
	Cases []cases.Case
	// Audit decides a ready flow. It must be set.
	Audit func(context.Context, *schema.Flow) (schema.Decision, error)
	// Event decides what a host reports. Traces need it; nil leaves it out for the
	// others.
	Event func(context.Context, *schema.Event) (schema.Outcome, error)
	// Ways are further entry points.
	Ways []Way
	// Judge also says whether an attack is actionable in what goes on; nil: the
	// oracle alone does.
	Judge func(ctx context.Context, k *cases.Case, reaches string) (bool, error)
	// Extra also asks about the payload without metadata and, where a case
	// names its span, about the carrier without the span.
	Extra bool
	// Done holds results of an earlier run, which are taken over.
	Done map[string]Result
	// Save is called with each new result, one call at a time.
	Save func(*Result) error
	// Progress is called after each case; it may be nil.
	Progress func()
	// Workers is how many cases run at once; 0 means one, so that latencies
	// are those of a call that waits for no other.
	Workers int
}

// Way is an entry point that judges for itself what it lets through.
type Way struct {
	Name string
	Send func(context.Context, *cases.Case) Verdict
}

// Result is what one case came to. It holds nothing of the payload.
type Result struct {
	Case    string         `json:"case"`
	Kind    cases.Kind     `json:"kind"`
	Surface schema.Surface `json:"surface"`
	Family  string         `json:"family"`
	Goal    string         `json:"goal"`
	Phrase  bool           `json:"phrase,omitempty"` // it says "ignore previous instructions"
	Failed  string         `json:"failed,omitempty"` // why there was no decision; it counts as stopped

	Verdict
	Codes     []schema.Code      `json:"codes,omitempty"`
	Rule      string             `json:"rule,omitempty"` // the hard rule that blocked
	Small     *Small             `json:"small,omitempty"`
	Escalated bool               `json:"escalated,omitempty"`
	Why       []string           `json:"why,omitempty"` // codes of the escalation
	Arbiter   *schema.Action     `json:"arbiter,omitempty"`
	Malformed bool               `json:"malformed,omitempty"`
	Trace     string             `json:"trace"` // stages and outcomes in order, then why it escalated
	Models    []string           `json:"models,omitempty"`
	LatencyMS float64            `json:"latency_ms"` // as the daemon says
	WallMS    float64            `json:"wall_ms"`    // as its client sees
	Stages    map[string]float64 `json:"stages,omitempty"`
	Event     *Verdict           `json:"event,omitempty"`
	Text      *Verdict           `json:"text,omitempty"`    // without metadata
	Carrier   *Verdict           `json:"carrier,omitempty"` // without the span
	Judged    *bool              `json:"judged,omitempty"`  // an attack that goes on is actionable, a model says
	Ways      map[string]Verdict `json:"ways,omitempty"`    // by the further entry points' names
}

// Verdict is how one call ended, judged by the case's oracle.
type Verdict struct {
	Action    schema.Action `json:"action"`
	Stage     schema.Stage  `json:"stage,omitzero"` // none when there was nothing to audit
	Reason    string        `json:"reason"`
	Effect    bool          `json:"effect"`    // an attack: it takes effect at the sink
	Preserved bool          `json:"preserved"` // what is to be kept reaches the sink
}

// Small is what the small auditor said, and what would have come of it alone.
type Small struct {
	Action      schema.Action         `json:"action"`
	Risk        float64               `json:"risk"`
	Uncertainty float64               `json:"uncertainty"`
	Residuals   []schema.ResidualRisk `json:"residuals,omitempty"`
	Effect      bool                  `json:"effect"`
	Preserved   bool                  `json:"preserved"`
}

// phrase is the wording that most rule-based tools catch.
var phrase = regexp.MustCompile(`(?i)(ignore|disregard|forget|override)\s+(all\s+)?(of\s+)?(the\s+|your\s+|any\s+|my\s+)?((previous|prior|above|earlier|preceding)\s+)?(instruction|prompt|direction|command|rule|guidance)`)

// Run runs every case and returns the results in the cases' order. A case
// that gets no decision is a result that says so, never an error.
func Run(ctx context.Context, c Config) ([]Result, error) {
	if c.Audit == nil || len(c.Cases) == 0 {
		return nil, errors.New("quality: Audit and Cases must be set")
	}
	out := make([]Result, len(c.Cases))
	work := make(chan int)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		saved error
	)
	for range max(c.Workers, 1) {
		wg.Go(func() {
			for i := range work {
				r, old := c.Done[c.Cases[i].ID]
				if !old {
					r = c.one(ctx, &c.Cases[i])
				}
				out[i] = r
				mu.Lock()
				if !old && c.Save != nil && ctx.Err() == nil {
					saved = errors.Join(saved, c.Save(&r))
				}
				if c.Progress != nil {
					c.Progress()
				}
				mu.Unlock()
			}
		})
	}
	for i := range c.Cases {
		if ctx.Err() != nil {
			break
		}
		work <- i
	}
	close(work)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("run the cases: %w", err)
	}
	return out, saved
}

// one runs one case through everything that is asked for.
func (c *Config) one(ctx context.Context, k *cases.Case) Result {
	r := Result{Case: k.ID, Kind: k.Kind, Surface: k.Flow.Surface, Family: k.Family, Goal: k.Goal, Phrase: phrase.MatchString(k.Flow.Payload)}
	if len(k.Trace) > 0 {
		c.trace(ctx, k, &r)
		return r
	}
	f := k.Flow
	start := time.Now()
	d, err := c.Audit(ctx, &f)
	r.WallMS = float64(time.Since(start).Microseconds()) / 1000
	r.Verdict = Judge(k, f.Payload, &d)
	if err != nil {
		// The client's decision for that stops.
		r.Failed = "the daemon gave no decision"
	}
	r.describe(k, &d)
	if c.Judge != nil && k.Kind == cases.Attack && !d.Action.Stops() {
		reaches := f.Payload
		if d.Payload != nil {
			reaches = *d.Payload
		}
		if v, err := c.Judge(ctx, k, reaches); err == nil {
			r.Judged = &v
		}
	}
	if c.Event != nil && c.Extra {
		r.Event = c.event(ctx, k)
	}
	for _, w := range c.Ways {
		if r.Ways == nil {
			r.Ways = map[string]Verdict{}
		}
		r.Ways[w.Name] = w.Send(ctx, k)
	}
	if c.Extra {
		bare := schema.Flow{Payload: f.Payload, Source: schema.Source{Trust: schema.Untrusted}, Session: schema.Session{Agent: "bench-text"}}
		d, _ := c.Audit(ctx, &bare)
		v := Judge(k, f.Payload, &d)
		r.Text = &v
		if carrier, ok := k.Carrier(); ok {
			d, _ := c.Audit(ctx, f.WithPayload(carrier))
			v := Judge(k, carrier, &d)
			r.Carrier = &v
		}
	}
	return r
}

// Judge lets the oracle look at what a decision lets through.
func Judge(k *cases.Case, payload string, d *schema.Decision) Verdict {
	v := Verdict{Action: d.Action, Stage: d.Stage, Reason: d.Reason}
	reaches := payload
	if d.Payload != nil {
		reaches = *d.Payload
	}
	v.Effect, v.Preserved = Outcome(k, d.Action, reaches)
	return v
}

// Outcome says whether an attack takes effect, and whether what is to be kept
// is there, when reaches is what would reach the sink unless a stops it.
func Outcome(k *cases.Case, a schema.Action, reaches string) (effect, preserved bool) {
	if a.Stops() {
		return false, false
	}
	return k.TakesEffect(reaches), k.Preserved(reaches)
}

// describe copies what the decision says about its way.
func (r *Result) describe(k *cases.Case, d *schema.Decision) {
	if d.Precheck != nil {
		r.Codes, r.Rule = d.Precheck.Codes(), d.Precheck.HardReason
	}
	if rep := d.Report; rep != nil {
		s := Small{Action: rep.Decision, Risk: rep.Risk, Uncertainty: rep.Uncertainty, Residuals: rep.Residuals()}
		reaches := k.Flow.Payload
		if rep.Rewrite != nil {
			reaches = *rep.Rewrite
		}
		s.Effect, s.Preserved = Outcome(k, rep.Decision, reaches)
		r.Small = &s
	}
	if d.Arbiter != nil {
		a := d.Arbiter.Decision
		r.Arbiter = &a
	}
	for _, e := range d.Escalation {
		r.Why = append(r.Why, e.Code)
	}
	r.Malformed = strings.HasSuffix(d.Reason, "_malformed")
	r.LatencyMS = d.LatencyMS
	r.Stages = map[string]float64{}
	var steps []string
	for _, t := range d.Trace {
		r.Stages[t.Stage.String()] += t.DurationMS
		steps = append(steps, t.Stage.String()+"="+t.Outcome+"/"+t.Reason)
		r.Escalated = r.Escalated || t.Stage == schema.StageArbiter
	}
	for _, why := range r.Why {
		steps = append(steps, "why="+why)
	}
	r.Trace = strings.Join(steps, " ")
	for _, u := range d.Usage {
		name := u.Backend + " " + u.Model
		if len(r.Models) == 0 || r.Models[len(r.Models)-1] != name {
			r.Models = append(r.Models, name)
		}
	}
}
