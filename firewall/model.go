package firewall

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/auditd/inference"
	"example.org/auditd/schema"
)

// readyPoll is how often a model that is being loaded is looked at. Loading
// takes seconds, and a look costs nothing.
const readyPoll = 20 * time.Millisecond

// await waits until ready returns nil or ctx ends.
func await(ctx context.Context, ready func() error) error {
	if err := ready(); err == nil || errors.Is(err, inference.ErrAbsent) {
		return err // what is not there does not come by waiting for it
	}
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if ready() == nil {
				return nil
			}
		}
	}
}

// result is what one model call returned.
type result[R any] struct {
	report R
	usage  schema.Usage
	err    error
}

// call runs one model call and leaves it when ctx ends, whether or not the
// backend notices: a host whose hook gets no answer in time may go on without
// one. The call's own panic is an error, since nothing else would catch it.
func call[R any](ctx context.Context, f func(context.Context) (R, schema.Usage, error)) (R, schema.Usage, error) {
	done := make(chan result[R], 1)
	go func() {
		var r result[R]
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("the model call panicked with a %T", p)
			}
			done <- r
		}()
		r.report, r.usage, r.err = f(ctx)
	}()
	select {
	case r := <-done:
		return r.report, r.usage, r.err
	case <-ctx.Done():
		var zero R
		return zero, schema.Usage{}, ctx.Err()
	}
}

// askAuditor audits f. The verdict is undecided when there is a report.
func (fw *Firewall) askAuditor(ctx context.Context, t *transfer, f *schema.Flow, pre *schema.Precheck) (*schema.Report, verdict) {
	a := fw.cfg.Auditor
	if a == nil {
		t.failed = true
		return nil, stop("auditor_missing", "")
	}
	if await(ctx, a.Ready) != nil {
		t.failed = true
		fw.failure(schema.StageAuditor, "not_ready")
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, stop("auditor_cancelled", "")
		}
		return nil, verdict{action: schema.DeferToHuman, reason: "auditor_not_ready"}
	}
	rep, usage, err := call(ctx, func(ctx context.Context) (schema.Report, schema.Usage, error) {
		return a.Audit(ctx, &schema.Record{Flow: f, Precheck: pre})
	})
	if err == nil {
		if verr := rep.Validate(); verr != nil {
			err = &inference.Error{Cause: inference.CauseMalformed, Backend: usage.Backend, Err: verr}
		}
	}
	if usage != (schema.Usage{}) {
		t.usage = append(t.usage, usage)
	}
	if err != nil {
		return nil, fw.modelFailed(ctx, t, schema.StageAuditor, "auditor_", err)
	}
	return &rep, next("")
}

// modelFailed blocks, and names the cause.
func (fw *Firewall) modelFailed(ctx context.Context, t *transfer, s schema.Stage, prefix string, err error) verdict {
	t.failed = true
	cause := inference.CauseOf(err).String()
	fw.failure(s, cause)
	fw.cfg.Logger.WarnContext(ctx, "model call failed", "decision", t.id, "stage", s.String(), "cause", cause, "error", err)
	return stop(prefix+cause, "")
}

// arbitrate asks the arbiter about what the small report could not settle. Its
// answer is terminal.
func (fw *Firewall) arbitrate(ctx context.Context, t *transfer) verdict {
	a := fw.cfg.Arbiter
	if a == nil {
		return verdict{action: t.policy.NoArbiter(), reason: "no_arbiter"}
	}
	if fw.cfg.Redact == nil {
		t.failed = true
		return stop("no_redaction", "")
	}
	if await(ctx, a.Ready) != nil {
		t.failed = true
		fw.failure(schema.StageArbiter, "not_ready")
		return verdict{action: t.policy.NoArbiter(), reason: "arbiter_not_ready"}
	}
	out, err := fw.redactRecord(t)
	if err != nil {
		t.failed = true
		return stop("redaction_failed", "")
	}
	t.sent = out.json
	rep, usage, err := call(ctx, func(ctx context.Context) (schema.ArbiterReport, schema.Usage, error) {
		return a.Arbitrate(ctx, out.record)
	})
	if err == nil {
		if verr := rep.Validate(); verr != nil {
			err = &inference.Error{Cause: inference.CauseMalformed, Backend: usage.Backend, Err: verr}
		}
	}
	if usage != (schema.Usage{}) {
		t.usage = append(t.usage, usage)
	}
	if err != nil {
		return fw.modelFailed(ctx, t, schema.StageArbiter, "arbiter_", err)
	}
	t.arbiter = &rep
	switch rep.Decision {
	case schema.Allow:
		if t.rewritten { // what is allowed is the flow as it now stands
			return verdict{action: schema.RewriteAndContinue, reason: "arbiter_allow"}
		}
		return verdict{action: schema.Allow, reason: "arbiter_allow"}
	case schema.RewriteAndContinue:
		return fw.acceptArbiterRewrite(t, out, &rep)
	case schema.DeferToHuman:
		return verdict{action: schema.DeferToHuman, reason: "arbiter_defer"}
	default:
		return stop("arbiter_block", "")
	}
}

// acceptArbiterRewrite takes the arbiter's rewrite over. It is not audited
// again, but everything that needs no judgement still holds for it.
func (fw *Firewall) acceptArbiterRewrite(t *transfer, out outbound, rep *schema.ArbiterReport) verdict {
	refuse := func(err error) verdict {
		return stop("rewrite_invalid", "Blocked: the arbiter's rewrite was refused, "+err.Error()+".")
	}
	text, err := out.restore(*rep.Rewrite)
	if err != nil {
		return refuse(err)
	}
	evidence := out.localEvidence(rep.Evidence)
	// What the small auditor cited counts too, where it spoke of this text.
	switch {
	case t.rewritten && t.second != nil:
		evidence = append(evidence, t.second.Evidence...)
	case !t.rewritten && t.report != nil:
		evidence = append(evidence, t.report.Evidence...)
	}
	// It may take away from the flow as it now stands, and so never bring
	// back what an earlier rewrite took.
	now, err := diffRewrite(t.flow, text, t.pre, evidence)
	if err != nil {
		return refuse(err)
	}
	edits := now
	if t.rewritten {
		if edits, err = composeEdits(t.original.Payload, t.edits, now); err != nil {
			return refuse(err)
		}
	}
	payload := schema.ApplyEdits(t.original.Payload, edits)
	candidate := t.original.WithPayload(payload)
	pre, _, ok := fw.check(t, candidate)
	if !ok {
		t.failed = true
		return stop("no_precheck", "")
	}
	if pre.HardBlock {
		return stop("rewrite_hard_rule", "Blocked: the rewritten payload breaks the hard rule "+ruleName(pre)+".")
	}
	t.flow, t.pre, t.edits, t.payload, t.rewritten = candidate, pre, edits, payload, true
	t.residual = rep.Risk
	return verdict{action: schema.RewriteAndContinue, reason: "arbiter_rewrite"}
}
