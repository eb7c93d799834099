package firewall

import (
	"context"
	"fmt"
	"time"

	"example.org/auditd/schema"
)

// Terms are what the isolating half knows about a flow, beside its labels. The
// zero value changes nothing.
type Terms struct {
	// Source is where the least trusted of the symbols came from whose values
	// the event holds: what the agent passes on is no better than that.
	Source *schema.Source
	// Approved says that a person has allowed this very call with its originals
	// before their eyes. Hard rules and the owner's own still hold.
	Approved bool
	// HardOnly decides nothing but what stops whatever a person says: hard rules,
	// what the owner refused for good, and the owner's rules that block. The
	// isolating half asks so before it puts a question.
	HardOnly bool
	// RulesOnly asks no model and no person in a model's place: what the rules
	// let on is harmless because it is isolated.
	RulesOnly bool
	// Hide says that the caller can hide the content: what would be asked
	// about, changed, or stopped by a model is hidden instead, and nobody is
	// asked. A hard rule, and an owner's rule that blocks, still blocks.
	Hide bool
}

// hides reports whether a verdict means that the content is hidden.
func (t *transfer) hides() bool {
	if !t.terms.Hide {
		return false
	}
	switch t.verdict.action {
	case schema.DeferToHuman, schema.RewriteAndContinue:
		return true
	case schema.Block:
		switch t.judgedBy() {
		case schema.StageAuditor, schema.StageRewrite, schema.StageArbiter:
			return true
		}
	}
	return false
}

// judgedBy is the stage that decided, also where that was remembered.
func (t *transfer) judgedBy() schema.Stage {
	if t.stage == schema.StageCache {
		// Only judgements of models are remembered.
		return schema.StageAuditor
	}
	return t.stage
}

// Note records a decision that the isolating half has made about f: labels and
// digests alone, no text. What could not be recorded comes back as a block.
func (fw *Firewall) Note(ctx context.Context, f *schema.Flow, d schema.Decision) schema.Decision {
	now := fw.cfg.Now()
	t := &transfer{id: newID(), start: now, margin: fw.cfg.Margin, original: f, flow: f, textless: true}
	d.ID, d.Time, d.Stage, d.LogIndex = t.id, now, schema.StageIsolation, -1
	if fw.cfg.Policy != nil {
		if p := fw.cfg.Policy(); p != nil {
			d.PolicyDigest = p.Digest()
		}
	}
	// All that the caller still waits for belongs to the log here: a disk that
	// takes half a second now and then must not stop events.
	budget := fw.cfg.Deadline
	if end, ok := ctx.Deadline(); ok {
		budget = min(budget, time.Until(end))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(fw.cfg.Margin, budget))
	defer cancel()
	index, err := fw.record(ctx, t, &d)
	d.LogIndex = index
	if err != nil {
		fw.failure(schema.StageLog, "log_failed")
		fw.cfg.Logger.ErrorContext(ctx, "couldn't write the decision log: the event is blocked", "decision", t.id, "error", err)
		fw.unlogged(&d, false)
	}
	if fw.cfg.Metrics.Decided != nil {
		fw.cfg.Metrics.Decided(&d)
	}
	fw.cfg.Logger.InfoContext(ctx, "decided", "decision", d.ID, "action", d.Action.String(), "stage", d.Stage.String(), "reason", d.Reason,
		"source", f.Source.Kind.String(), "sink", f.Sink.Kind.String(), "ms", fmt.Sprint(milliseconds(fw.cfg.Now().Sub(now))))
	return d
}
