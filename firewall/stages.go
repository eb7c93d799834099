package firewall

import (
	"context"
	"strings"
	"unicode/utf8"

	"example.org/auditd/escalation"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
	"example.org/auditd/standing"
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
	if fw.cfg.Orders != nil {
		t.orders = fw.cfg.Orders(t.original, t.start)
	}
	pre, suppressed, ok := fw.check(t, t.original)
	if !ok {
		t.failed = true
		return stop("no_precheck", "")
	}
	t.pre, t.first, t.suppressed = pre, pre, suppressed
	if pre.HardBlock && !fw.cfg.Ablation.LargeOnly {
		return stop("hard_rule", "Blocked by the hard rule "+ruleName(pre)+". No approval lifts it; do it another way, or ask the owner to do it.")
	}
	if len(suppressed) > 0 {
		return next("suppressed")
	}
	return next("")
}

// check runs the precheck on f and takes away what the owner suppressed.
func (fw *Firewall) check(t *transfer, f *schema.Flow) (pre *schema.Precheck, suppressed []schema.Suppressed, ok bool) {
	if fw.cfg.Check == nil {
		return nil, nil, false
	}
	if pre = fw.cfg.Check(f); pre == nil {
		return nil, nil, false
	}
	pre, rules := t.policy.Suppress(f, pre, t.start)
	if len(rules) > 0 {
		suppressed = append(suppressed, schema.Suppressed{By: "policy", Rules: rules})
	}
	if pre.HardBlock {
		return pre, suppressed, true
	}
	for i := range t.orders {
		if pre, rules = pre.Without(t.orders[i].Dropped); len(rules) > 0 {
			suppressed = append(suppressed, schema.Suppressed{By: t.orders[i].ID, Rules: rules})
		}
	}
	return pre, suppressed, true
}

func ruleName(pre *schema.Precheck) string {
	if pre.HardReason == "" {
		return "(unnamed)"
	}
	return pre.HardReason
}

// refused blocks what the owner has said no to for good.
func (fw *Firewall) refused(_ context.Context, t *transfer) verdict {
	if len(t.orders) == 0 {
		return idle
	}
	for i := range t.orders {
		if o := &t.orders[i]; o.Effect == standing.Deny {
			return stop("refused", "Blocked: the owner has refused this and everything like it ("+o.ID+"): "+strings.TrimRight(o.Reason, ".")+". Do it another way, or talk to the owner.")
		}
	}
	return next("")
}

// lifted lets a flow on that the auditor would stop, where the owner has said
// that it is wrong about that place. Findings that can block by themselves, the
// owner's own rules, and a harm that the owner did not see then still count.
func (fw *Firewall) lifted(_ context.Context, t *transfer) verdict {
	if len(t.orders) == 0 {
		return idle
	}
	if t.report == nil || hasHardCode(t.pre) {
		return next("")
	}
	phi := fw.cfg.Ablation.Escalation
	phi.Thresholds = t.policy.Thresholds()
	if t.report.Decision == schema.Allow && !phi.Decide(t.flow, t.pre, t.report, t.residual, false).Escalate {
		return next("") // nothing stops it
	}
	for i := range t.orders {
		o := &t.orders[i]
		if !o.Lifts(t.report) {
			continue
		}
		if v := fw.applyRules(t, policy.Facts{Flow: t.flow, Precheck: t.pre, Report: t.report, Now: t.start}); !v.undecided {
			v.by = schema.StagePolicy
			return v
		}
		t.lift = o.ID
		return verdict{action: schema.Allow, reason: "suppressed", message: "Allowed by the owner's suppression " + o.ID + "."}
	}
	return next("")
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
	if t.terms.HardOnly {
		return verdict{action: schema.Allow, reason: "may_be_asked"}
	}
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
			ok, instead, err := fw.cfg.Redeem(ctx, ticket, f.Binding())
			if err != nil {
				t.failed = true
				fw.failure(schema.StageTicket, "ticket_failed")
				fw.cfg.Logger.ErrorContext(ctx, "couldn't redeem a ticket", "decision", t.id, "error", err)
				return stop("ticket_failed", "")
			}
			if ok {
				return fw.approved(t, instead)
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

// approved is what a person's yes comes to. Another text than the flow's is the
// person's own and may say anything but what a hard rule stops.
func (fw *Firewall) approved(t *transfer, instead *string) verdict {
	if instead == nil || *instead == t.original.Payload {
		return verdict{action: schema.Allow, reason: "approved"}
	}
	candidate := t.original.WithPayload(*instead)
	pre, _, ok := fw.check(t, candidate)
	if !ok {
		t.failed = true
		return stop("no_precheck", "")
	}
	if pre.HardBlock {
		return stop("rewrite_hard_rule", "Blocked: the text that the owner wrote breaks the hard rule "+ruleName(pre)+".")
	}
	t.flow, t.pre, t.edits, t.payload, t.rewritten = candidate, pre, []schema.Edit{replaced(t.original.Payload, *instead)}, *instead, true
	return verdict{action: schema.RewriteAndContinue, reason: "approved_edit"}
}

// replaced is the one edit that makes b of a.
func replaced(a, b string) schema.Edit {
	start, end := 0, 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	for start > 0 && (start < len(a) && !utf8.RuneStart(a[start]) || start < len(b) && !utf8.RuneStart(b[start])) {
		start--
	}
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	for end > 0 && !utf8.RuneStart(a[len(a)-end]) {
		end--
	}
	return schema.Edit{Start: start, End: len(a) - end, Mask: b[start : len(b)-end]}
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
