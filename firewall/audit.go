package firewall

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime/debug"
	"time"

	"example.org/auditd/policy"
	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

// stage is one step of the procedure.
type stage struct {
	name schema.Stage
	run  func(context.Context, *transfer) verdict
}

// verdict is what a stage says. Its zero value blocks; only undecided lets the
// next stage run.
type verdict struct {
	undecided bool
	action    schema.Action
	reason    string       // a stable word
	message   string       // a sentence; empty takes the reason's own
	by        schema.Stage // that decided, where it is not the one that returned it
	idle      bool         // there was nothing to look at: the trace leaves it out
}

// next passes the flow on. note is for the trace.
func next(note string) verdict { return verdict{undecided: true, reason: note} }

// idle passes the flow on without a trace.
var idle = verdict{undecided: true, idle: true}

func stop(reason, message string) verdict {
	return verdict{action: schema.Block, reason: reason, message: message}
}

// transfer is one flow on its way through the stages. One goroutine owns it.
type transfer struct {
	id     string
	cred   schema.Credential
	policy *policy.Policy
	mode   schema.Mode

	start    time.Time
	deadline time.Time // when the caller stops waiting
	margin   time.Duration

	original *schema.Flow     // immutable evidence
	flow     *schema.Flow     // as it now stands
	pre      *schema.Precheck // of flow
	first    *schema.Precheck // of original
	judgement

	orders     []standing.Order    // the owner's, for this flow
	suppressed []schema.Suppressed // findings that they took away

	waits    *verdict // an owner's rule that asks, unless a ticket answers
	trace    []schema.Trace
	question *schema.Question
	key      schema.Digest // of the flow with policy and models
	flight   *flight       // set when others wait for this judgement
	cached   bool

	terms    Terms
	hidden   bool // decided: the caller hides the content
	textless bool // no text is kept beside the record
}

// judgement is what the model stages found out about a flow. It depends on
// nothing but the flow, the policy and the models, so that it may be shared
// with identical flows. It is immutable once its flow is decided.
type judgement struct {
	verdict    verdict
	stage      schema.Stage
	report     *schema.Report // as the auditor gave it
	second     *schema.Report // on the rewritten payload
	judged     *schema.Report // what the escalation predicate looks at
	residual   float64
	escalation []schema.EscalationReason
	arbiter    *schema.ArbiterReport
	usage      []schema.Usage
	edits      []schema.Edit // from original to flow
	rewritten  bool
	payload    string // of the flow, when rewritten
	lift       string // the standing order for which the report was not enforced
	sent       string
	failed     bool // something did not work: not to be remembered
}

// Audit decides one flow. It never fails: every failure is a decision that
// stops. f is not changed.
func (fw *Firewall) Audit(ctx context.Context, f *schema.Flow, cred schema.Credential) schema.Decision {
	return fw.AuditOn(ctx, f, cred, Terms{})
}

// AuditOn is Audit on terms that the isolating half sets.
func (fw *Firewall) AuditOn(ctx context.Context, f *schema.Flow, cred schema.Credential, terms Terms) schema.Decision {
	t := &transfer{id: newID(), cred: cred, start: fw.cfg.Now(), margin: fw.cfg.Margin, terms: terms}
	if f == nil {
		f = &schema.Flow{}
		t.failed = true
	}
	t.original, t.flow = f, f
	budget := f.Deadline(fw.cfg.Deadline)
	if d, ok := ctx.Deadline(); ok {
		budget = min(budget, time.Until(d))
	}
	// A short budget keeps most of itself for the models.
	t.margin = min(t.margin, max(budget, 0)/4)
	t.deadline = t.start.Add(budget)

	work, cancel := context.WithTimeout(ctx, budget-t.margin)
	defer cancel()
	fw.run(work, t)
	return fw.settle(ctx, t)
}

// run takes t through the stages until one decides.
func (fw *Firewall) run(ctx context.Context, t *transfer) {
	defer fw.publish(t)
	for _, s := range fw.stages {
		v := fw.runStage(ctx, t, s)
		if !v.undecided {
			t.verdict = v
			if v.by != schema.StageUnset {
				t.stage = v.by
			} else if !t.cached {
				t.stage = s.name
			}
			return
		}
	}
	t.stage, t.verdict = schema.StageUnset, stop("undecided", "")
}

// runStage runs one stage, times it, and turns a panic into a block.
func (fw *Firewall) runStage(ctx context.Context, t *transfer, s stage) (v verdict) {
	start := fw.cfg.Now()
	defer func() {
		if p := recover(); p != nil {
			// The value of a panic may hold payload; its type and the stack do not.
			fw.cfg.Logger.ErrorContext(ctx, "stage panicked", "stage", s.name.String(), "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			t.failed = true
			fw.failure(s.name, "panic")
			v = stop("internal_error", "")
		}
		if !v.idle {
			fw.traceStage(t, s.name, v, fw.cfg.Now().Sub(start))
		}
	}()
	return s.run(ctx, t)
}

func (fw *Firewall) traceStage(t *transfer, name schema.Stage, v verdict, d time.Duration) {
	outcome := "next"
	if !v.undecided {
		outcome = v.action.String()
	}
	t.trace = append(t.trace, schema.Trace{Stage: name, Outcome: outcome, Reason: v.reason, DurationMS: milliseconds(d)})
	if fw.cfg.Metrics.Stage != nil {
		fw.cfg.Metrics.Stage(name, d)
	}
}

// failure counts something that did not work, by its cause.
func (fw *Firewall) failure(s schema.Stage, cause string) {
	if fw.cfg.Metrics.Failed != nil {
		fw.cfg.Metrics.Failed(s, cause)
	}
}

func newID() string { return "d_" + rand.Text() }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
