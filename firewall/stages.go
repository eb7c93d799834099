package firewall

import (
	"context"
	"strings"

	"example.org/auditd/escalation"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
)

// canonicalise makes the flow that all later stages see: validated, with the
// source's trust bounded by what the caller's credential may claim.
func (fw *Firewall) canonicalise(_ context.Context, t *transfer) verdict {
	if t.failed { // there was no flow
		return stop("no_flow", "")
	}
	if t.cred != schema.CredentialHook && t.cred != schema.CredentialOwner {
		return stop("no_credential", "")
	}
	if fw.cfg.Policy != nil {
		t.policy = fw.cfg.Policy()
	}
	if t.policy == nil {
		t.failed = true
		return stop("no_policy", "")
	}
	t.mode = t.policy.Mode(agentName(t.original))
	f := *t.original
	if err := f.Complete(fw.cfg.MaxPayload); err != nil {
		return stop("invalid_flow", "The flow was refused: "+schema.Error(err)+".")
	}
	if f.OwnerAuthorized && t.cred != schema.CredentialOwner {
		return stop("owner_authorized_refused", "The flow was refused: owner_authorized: only the owner's credential may set it.")
	}
	f.Source.Trust = t.policy.Trust(f.Source, t.cred)
	if k := f.Sink.Kind; f.Surface == schema.Context && k.Surface() == schema.Capability {
		// What acts or leaves stays an action whatever the caller calls it.
		f.Surface = schema.Capability
	}
	t.original, t.flow = &f, &f
	return next("")
}

// agentName is what the policy's modes match: "host:agent" as events write it.
func agentName(f *schema.Flow) string { return f.Session.Agent }

// precheck runs the deterministic rules. A hard invariant that is violated
// ends the flow here, and nothing after this stage can lift it.
func (fw *Firewall) precheck(ctx context.Context, t *transfer) verdict {
	pre, n, ok := fw.check(t, t.original)
	if !ok {
		t.failed = true
		return stop("no_precheck", "")
	}
	t.pre, t.first = pre, pre
	if pre.HardBlock && !fw.cfg.Ablation.LargeOnly {
		return stop("hard_rule", "Blocked by the hard rule "+ruleName(pre)+". No approval lifts it; do it another way, or ask the owner to do it.")
	}
	if n > 0 {
		return next("suppressed")
	}
	return next("")
}

// check runs the precheck on f and takes away what the owner suppressed.
func (fw *Firewall) check(t *transfer, f *schema.Flow) (pre *schema.Precheck, suppressed int, ok bool) {
	if fw.cfg.Check == nil {
		return nil, 0, false
	}
	if pre = fw.cfg.Check(f); pre == nil {
		return nil, 0, false
	}
	pre, suppressed = t.policy.Suppress(f, pre, t.start)
	return pre, suppressed, true
}

func ruleName(pre *schema.Precheck) string {
	if pre.HardReason == "" {
		return "(unnamed)"
	}
	return pre.HardReason
}

// ownerRules applies the owner's rules that do not need a report. A rule that
// asks waits for the next stage: the answer may be there already.
func (fw *Firewall) ownerRules(_ context.Context, t *transfer) verdict {
	v := fw.applyRules(t, policy.Facts{Flow: t.original, Precheck: t.pre, Now: t.start})
	if !v.undecided && v.action == schema.DeferToHuman {
		v.by = schema.StagePolicy
		t.waits = &v
		return next("asks")
	}
	return v
}

// reportRules applies the owner's rules over the small auditor's report.
func (fw *Firewall) reportRules(_ context.Context, t *transfer) verdict {
	if t.judged == nil {
		return next("")
	}
	return fw.applyRules(t, policy.Facts{Flow: t.flow, Precheck: t.pre, Report: t.judged, Now: t.start})
}

func (fw *Firewall) applyRules(t *transfer, facts policy.Facts) verdict {
	m, err := t.policy.Decide(facts)
	if err != nil {
		t.failed = true
		fw.failure(schema.StagePolicy, "rule_failed")
		return stop("rule_failed", "Blocked: "+err.Error()+". Ask the owner to mend the policy.")
	}
	if !m.Matched {
		return next("")
	}
	t.failed = t.failed || m.Late // a rule may expire: not to be remembered
	v := verdict{action: m.Action, reason: "owner_rule", message: ownerSentence(m)}
	if m.Action == schema.Allow && t.rewritten {
		v.action = schema.RewriteAndContinue
	}
	return v
}

// maxTickets bounds how many tickets one flow may bring.
const maxTickets = 8

// ticket looks for what a person allowed before: this very flow, or flows like
// it. Where nothing was allowed, a rule of the owner's that asks takes effect.
func (fw *Firewall) ticket(ctx context.Context, t *transfer) verdict {
	if t.terms.Approved {
		return verdict{action: schema.Allow, reason: "approved"}
	}
	v := fw.answered(ctx, t)
	switch {
	case !v.undecided:
		return v
	case t.waits != nil:
		return *t.waits
	case t.terms.RulesOnly:
		return verdict{action: schema.Allow, reason: "rules_only"}
	}
	return v
}

func (fw *Firewall) answered(ctx context.Context, t *transfer) verdict {
	f := t.original
	if f.Ticket != "" && fw.cfg.Redeem != nil {
		for i, ticket := range strings.Split(f.Ticket, ",") {
			if ticket = strings.TrimSpace(ticket); ticket == "" || i >= maxTickets {
				continue
			}
			ok, err := fw.cfg.Redeem(ctx, ticket, f.Binding())
			if err != nil {
				t.failed = true
				fw.failure(schema.StageTicket, "ticket_failed")
				fw.cfg.Logger.ErrorContext(ctx, "couldn't redeem a ticket", "decision", t.id, "error", err)
				return stop("ticket_failed", "")
			}
			if ok {
				return verdict{action: schema.Allow, reason: "approved"}
			}
		}
	}
	if fw.cfg.Allowed == nil {
		return next("")
	}
	grant, ok, err := fw.cfg.Allowed(ctx, f, hasHardCode(t.pre))
	switch {
	case err != nil:
		// Without grants the flow is judged like any other, which is stricter.
		fw.failure(schema.StageTicket, "grants_failed")
		fw.cfg.Logger.ErrorContext(ctx, "couldn't look for a grant", "decision", t.id, "error", err)
		return next("grants_failed")
	case ok:
		return verdict{action: schema.Allow, reason: "granted", message: "Allowed by the owner's grant " + grant + "."}
	}
	return next("")
}

func hasHardCode(pre *schema.Precheck) bool {
	for _, s := range pre.Signals {
		if s.Code.Hard() {
			return true
		}
	}
	return false
}

// smallAudit asks the small auditor.
func (fw *Firewall) smallAudit(ctx context.Context, t *transfer) verdict {
	if fw.cfg.Ablation.NoAuditor || fw.cfg.Ablation.LargeOnly {
		return next("left out")
	}
	rep, v := fw.askAuditor(ctx, t, t.original, t.pre)
	if !v.undecided {
		return v
	}
	if err := rep.ValidateRewrite(t.original.Payload); err != nil {
		t.failed = true
		return stop("auditor_malformed", "")
	}
	t.report, t.judged = rep, rep
	t.residual = escalation.Residual(rep, nil)
	return next(rep.Decision.String())
}

// acceptRewrite takes the auditor's rewrite over, if it does nothing but take
// identified content away, and judges the flow that it makes.
func (fw *Firewall) acceptRewrite(ctx context.Context, t *transfer) verdict {
	if t.report == nil || t.report.Decision != schema.RewriteAndContinue || fw.cfg.Ablation.NoRewrite {
		return next("")
	}
	edits, err := diffRewrite(t.original, *t.report.Rewrite, t.first, t.report.Evidence)
	if err != nil {
		return stop("rewrite_invalid", "Blocked: the proposed rewrite was refused, "+err.Error()+".")
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
	second, v := fw.askAuditor(ctx, t, candidate, pre)
	if !v.undecided {
		v.reason = "second_" + v.reason
		return v
	}
	t.second = second
	if second.Risk > t.report.Risk {
		return stop("rewrite_riskier", "")
	}
	t.flow, t.pre, t.edits, t.payload, t.rewritten = candidate, pre, edits, payload, true
	t.residual = escalation.Residual(t.report, second)
	t.judged = afterRewrite(t.report, second)
	return next("rewritten")
}

// afterRewrite is what the escalation predicate looks at once a rewrite was
// accepted: the decision to rewrite and its completeness from the first report,
// and everything about what is left from the audit of the rewritten payload.
func afterRewrite(first, second *schema.Report) *schema.Report {
	r := *first
	r.Uncertainty = max(first.Uncertainty, second.Uncertainty)
	r.Exploitability, r.Impact = second.Exploitability, second.Impact
	r.ResidualRiskTypes = second.ResidualRiskTypes
	// A second audit that does not simply allow says that something is left.
	r.NeedsLargeReview = first.NeedsLargeReview || second.NeedsLargeReview || second.Decision != schema.Allow
	return &r
}

// settleLocally enforces the small auditor's report where the escalation
// predicate says that it is enough.
func (fw *Firewall) settleLocally(_ context.Context, t *transfer) verdict {
	phi := fw.cfg.Ablation.Escalation
	phi.Thresholds = t.policy.Thresholds()
	o := phi.Decide(t.flow, t.pre, t.judged, t.residual, t.rewritten)
	if o.Escalate && !fw.cfg.Ablation.NoFallback {
		t.escalation = o.Reasons
		if t.second != nil && t.second.Decision != schema.Allow {
			t.escalation = append(t.escalation, schema.EscalationReason{Code: "second_audit_" + t.second.Decision.String()})
		}
		return next("escalated")
	}
	return fw.enforceReport(t)
}

func (fw *Firewall) enforceReport(t *transfer) verdict {
	switch {
	case t.judged == nil:
		return stop("no_report", "")
	case t.judged.Decision == schema.Allow && !t.rewritten:
		return verdict{action: schema.Allow, reason: "auditor_allow"}
	case t.judged.Decision == schema.RewriteAndContinue && t.rewritten:
		return verdict{action: schema.RewriteAndContinue, reason: "auditor_rewrite"}
	case t.judged.Decision == schema.DeferToHuman:
		return verdict{action: schema.DeferToHuman, reason: "auditor_defer"}
	default:
		return stop("auditor_block", "")
	}
}
