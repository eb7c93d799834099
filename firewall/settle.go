package firewall

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"example.org/auditd/schema"
)

// settle makes t's verdict a decision: it asks a person where that was decided,
// writes the log and returns what may be enforced.
func (fw *Firewall) settle(ctx context.Context, t *transfer) schema.Decision {
	// The work's deadline may be over, or its caller gone. The log is written
	// all the same, within the margin.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(t.margin, t.deadline.Sub(fw.cfg.Now())))
	defer cancel()

	observed := t.mode == schema.ModeObserve && t.policy != nil
	t.hidden = t.hides()
	if !t.hidden && t.verdict.action == schema.DeferToHuman && !observed {
		fw.ask(ctx, t)
	}
	d := fw.decision(t)
	if observed {
		would := d.Action
		d.Observed, d.Action, d.Mediation, d.Payload = &would, schema.Allow, schema.MediationNone, nil
	}
	start := fw.cfg.Now()
	index, err := fw.record(ctx, t, &d)
	took := fw.cfg.Now().Sub(start)
	d.LogIndex = index
	v := next("")
	if err != nil {
		v = stop("log_failed", "")
		fw.failure(schema.StageLog, "log_failed")
		fw.cfg.Logger.ErrorContext(ctx, "couldn't write the decision log: the flow is blocked", "decision", t.id, "error", err)
		fw.unlogged(&d, observed)
	}
	fw.traceStage(t, schema.StageLog, v, took)
	d.Trace = t.trace
	d.LatencyMS = milliseconds(fw.cfg.Now().Sub(t.start))
	if fw.cfg.Metrics.Decided != nil {
		fw.cfg.Metrics.Decided(&d)
	}
	fw.cfg.Logger.InfoContext(ctx, "decided", "decision", d.ID, "action", d.Action.String(), "stage", d.Stage.String(), "reason", d.Reason,
		"source", t.original.Source.Kind.String(), "sink", t.original.Sink.Kind.String(), "ms", d.LatencyMS)
	return d
}

// unlogged blocks a decision that could not be recorded. An agent that is only
// observed is never stopped, and the decision says that the record is missing.
func (fw *Firewall) unlogged(d *schema.Decision, observed bool) {
	d.LogIndex = -1
	if observed {
		d.Reason, d.Message = "log_failed", messageOf("log_failed")
		return
	}
	*d = schema.Decision{
		ID: d.ID, Time: d.Time, Action: schema.Block, Stage: schema.StageLog, Reason: "log_failed", Message: messageOf("log_failed"),
		Precheck: d.Precheck, Report: d.Report, Usage: d.Usage, PolicyDigest: d.PolicyDigest, LogIndex: -1,
	}
}

// decision writes down what t came to.
func (fw *Firewall) decision(t *transfer) schema.Decision {
	d := schema.Decision{
		ID: t.id, Time: t.start, Action: t.verdict.action, Stage: t.stage, Reason: t.verdict.reason, Message: t.verdict.message,
		Precheck: t.first, Report: t.report, Second: t.second, Residual: t.residual, Escalation: t.escalation, Arbiter: t.arbiter,
		Usage: t.usage, Trace: t.trace, Cached: t.cached, LogIndex: -1,
	}
	d.Suppressed = t.suppressed
	if t.lift != "" {
		d.Suppressed = append(slices.Clone(d.Suppressed), schema.Suppressed{By: t.lift, Judgement: true})
	}
	if d.Message == "" {
		d.Message = messageOf(d.Reason)
	}
	if t.policy != nil {
		d.PolicyDigest = t.policy.Digest()
	}
	if t.hidden {
		d.Action, d.Mediation, d.Stage, d.Reason, d.Message = schema.RewriteAndContinue, schema.MediationSymbols, schema.StageIsolation, "isolated", messageOf("isolated")
		return d
	}
	if d.Action == schema.RewriteAndContinue {
		if !t.rewritten || len(t.edits) == 0 {
			d.Action, d.Stage, d.Reason, d.Message = schema.Block, schema.StageRewrite, "no_rewrite", messageOf("no_rewrite")
		} else {
			payload := t.payload
			d.Mediation, d.Payload, d.Diff = schema.MediationText, &payload, t.edits
		}
	}
	if q := t.question; q != nil && d.Action == schema.DeferToHuman {
		expires := q.Expires
		d.Ticket, d.Expires, d.Question = q.Ticket, &expires, q.ID
	}
	return d
}

// ask puts the flow before a person. Where that cannot be done the flow is
// blocked: nobody would ever answer.
func (fw *Firewall) ask(ctx context.Context, t *transfer) {
	start := fw.cfg.Now()
	v := verdict{action: schema.DeferToHuman, reason: t.verdict.reason}
	defer func() {
		if p := recover(); p != nil {
			fw.cfg.Logger.ErrorContext(ctx, "asking a person panicked", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			v = stop("ask_failed", "")
			t.verdict, t.stage = v, schema.StageHuman
		}
		fw.traceStage(t, schema.StageHuman, v, fw.cfg.Now().Sub(start))
	}()
	if fw.cfg.Ask == nil {
		v = stop("ask_missing", "")
		t.verdict, t.stage = v, schema.StageHuman
		return
	}
	q := &schema.Question{
		Binding: t.original.Binding(), Decision: t.id, Flow: t.original, Report: t.report, Summary: summary(t.original),
		Hard: hasHardCode(t.first), Reasons: []string{t.verdict.reason},
	}
	for _, r := range t.escalation {
		q.Reasons = append(q.Reasons, r.Code)
	}
	if t.rewritten {
		payload := t.payload
		q.Rewrite = &payload
	}
	asked, err := fw.cfg.Ask(ctx, q)
	if err == nil && asked != nil && asked.Answer == "approved" && asked.Ticket != "" && fw.cfg.Redeem != nil {
		// The owner said yes after the first call had given up, and this caller
		// carries no ticket. The yes is for this very flow, and is used up now.
		if ok, instead, err := fw.cfg.Redeem(ctx, asked.Ticket, q.Binding); err == nil && ok {
			t.rewritten, t.edits = false, nil // the auditor's rewrite was not what the owner approved
			v = fw.approved(t, instead)
			t.verdict, t.stage = v, schema.StageTicket
			return
		}
		fw.failure(schema.StageHuman, "ticket_failed")
		v = stop("ticket_failed", "")
		t.verdict, t.stage = v, schema.StageHuman
		return
	}
	if err == nil && asked != nil && asked.Answer == "denied" {
		v = stop("denied", "")
		t.verdict, t.stage = v, schema.StageHuman
		return
	}
	if err != nil || asked == nil || asked.Ticket == "" {
		fw.failure(schema.StageHuman, "ask_failed")
		fw.cfg.Logger.ErrorContext(ctx, "couldn't ask a person", "decision", t.id, "error", err)
		v = stop("ask_failed", "")
		t.verdict, t.stage = v, schema.StageHuman
		return
	}
	t.question = asked
}

// summary says in our words what the agent wants to do. Names out of the call
// are not in it: an attacker chooses them.
func summary(f *schema.Flow) string {
	who := f.Session.Agent
	if who == "" {
		who = "An agent"
	}
	return fmt.Sprintf("%s wants to %s: %d bytes of %s content (%s)", who, wish(f.Sink.Kind), len(f.Payload), f.Source.Trust, f.Source.Kind)
}

func wish(k schema.SinkKind) string {
	switch k {
	case schema.SinkReasoning:
		return "read something"
	case schema.SinkMemory:
		return "keep something in its memory"
	case schema.SinkFile:
		return "write a file"
	case schema.SinkWeb:
		return "send a request"
	case schema.SinkTool:
		return "use a tool"
	case schema.SinkExec:
		return "run a command"
	case schema.SinkMessage:
		return "send a message"
	case schema.SinkIdentity:
		return "change who it is or acts for"
	case schema.SinkPolicy:
		return "change rules or approvals"
	case schema.SinkSkill:
		return "change a skill"
	case schema.SinkConfig:
		return "change a configuration"
	case schema.SinkPlan:
		return "plan something for later"
	case schema.SinkPayment:
		return "move money"
	default:
		return "do something"
	}
}

// record writes the log entry. A panic in it is a failure to write.
func (fw *Firewall) record(ctx context.Context, t *transfer, d *schema.Decision) (index int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			index, err = -1, fmt.Errorf("writing the log panicked with a %T", p)
		}
	}()
	if fw.cfg.Append == nil {
		return -1, fmt.Errorf("no decision log is configured")
	}
	kept := *d
	kept.Ticket = "" // a right, and the log is read by others than its holder
	kept.LatencyMS = milliseconds(fw.cfg.Now().Sub(t.start))
	entry := Entry{Decision: &kept, Flow: t.original, Sent: t.sent}
	if fw.cfg.Redact != nil && !t.textless {
		entry.RedactedPayload, _ = fw.cfg.Redact(t.original.Payload)
		if t.rewritten {
			entry.RedactedRewrite, _ = fw.cfg.Redact(t.payload)
		}
	}
	type written struct {
		index int64
		err   error
	}
	// A disk that hangs must not hold the answer past the host's patience.
	done := make(chan written, 1)
	go func() {
		w := written{-1, nil}
		defer func() {
			if p := recover(); p != nil {
				w = written{-1, fmt.Errorf("writing the log panicked with a %T", p)}
			}
			done <- w
		}()
		w.index, w.err = fw.cfg.Append(ctx, entry)
	}()
	select {
	case w := <-done:
		return w.index, w.err
	case <-ctx.Done():
		return -1, fmt.Errorf("couldn't write the log in time: %w", ctx.Err())
	}
}
