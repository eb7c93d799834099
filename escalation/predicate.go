package escalation

import (
	"fmt"

	"example.org/auditd/schema"
)

// Outcome says whether a flow escalates and why. Its zero value says that the
// report may be enforced, so only Decide makes one.
type Outcome struct {
	Escalate bool
	Reasons  []schema.EscalationReason // at least one when Escalate
}

// Config is the predicate with parts of it switched off, for measuring what
// each part is worth. The zero switches are the whole predicate; a daemon that
// guards anything uses no other.
type Config struct {
	Thresholds Thresholds
	// WithoutSurface leaves out the surface conditions.
	WithoutSurface bool
	// WithoutUncertainty reads every report as certain.
	WithoutUncertainty bool
	// DecisionOnly enforces whatever the report decides.
	DecisionOnly bool
}

// Decide is the whole predicate. f is the flow as it now stands and pre its
// precheck; rep is the report on it, residual the risk of the mediated
// payload, and rewritten says that rep's rewrite was accepted and is f's
// payload.
func Decide(t Thresholds, f *schema.Flow, pre *schema.Precheck, rep *schema.Report, residual float64, rewritten bool) Outcome {
	return Config{Thresholds: t}.Decide(f, pre, rep, residual, rewritten)
}

// Decide is Decide with c's switches.
func (c Config) Decide(f *schema.Flow, pre *schema.Precheck, rep *schema.Report, residual float64, rewritten bool) Outcome {
	switch {
	case f == nil || pre == nil:
		return escalate(reason("no_precheck", ""))
	case rep == nil:
		return escalate(reason("no_report", ""))
	case c.DecisionOnly:
		return Outcome{}
	}
	t, u := c.Thresholds, rep.Uncertainty
	if c.WithoutUncertainty {
		u = 0
	}
	// A rewrite that was proposed but is not the payload cannot be enforced.
	if (rep.Decision == schema.RewriteAndContinue) != rewritten {
		return escalate(reason("rewrite_not_applied", ""))
	}

	missed := missedLimit(t, rep, u, residual)
	stops := rep.Decision.Stops() || rep.Decision == schema.RewriteAndContinue
	if missed == nil && stops {
		return Outcome{}
	}
	var reasons []schema.EscalationReason
	if !c.WithoutSurface {
		reasons = surfaceReasons(f, pre, rep)
	}
	if rep.NeedsLargeReview {
		reasons = append(reasons, reason("needs_large_review", ""))
	}
	if missed == nil && len(reasons) == 0 {
		return Outcome{}
	}
	return escalate(append(reasons, scoreReasons(t, rep, u, residual, missed)...)...)
}

// Residual is the risk of the mediated payload: that of the second audit where
// a rewrite was accepted, otherwise the report's risk if it names any residual
// risk, else 0.
func Residual(rep, second *schema.Report) float64 {
	switch {
	case second != nil:
		return second.Risk
	case rep != nil && len(rep.Residuals()) > 0:
		return rep.Risk
	default:
		return 0
	}
}

// missedLimit returns nil when the report ends the flow locally as far as its scores
// go, and otherwise the reason why it does not. All comparisons are written so
// that NaN makes nothing clear.
func missedLimit(t Thresholds, rep *schema.Report, u, residual float64) *schema.EscalationReason {
	type limit struct {
		name   string
		value  float64
		within bool
		bound  float64
	}
	least := func(name string, v, bound float64) limit { return limit{name, v, v >= bound, bound} }
	most := func(name string, v, bound float64) limit { return limit{name, v, v <= bound, bound} }

	var code string
	var limits []limit
	switch rep.Decision {
	case schema.Block:
		code = "unclear_block"
		limits = []limit{least("risk", rep.Risk, t.SmallBlock.RiskMin), most("uncertainty", u, t.SmallBlock.UncertaintyMax)}
	case schema.DeferToHuman:
		code = "unclear_defer"
		limits = []limit{least("risk", rep.Risk, t.SmallDefer.RiskMin), most("uncertainty", u, t.SmallDefer.UncertaintyMax)}
	case schema.RewriteAndContinue:
		code = "incomplete_rewrite"
		limits = []limit{
			least("rewrite_completeness", rep.RewriteCompleteness, t.CompleteRewrite.CompletenessMin),
			most("residual", residual, t.CompleteRewrite.ResidualMax),
			most("uncertainty", u, t.CompleteRewrite.UncertaintyMax),
		}
		// The auditor's flag is how it says that its rewrite is incomplete.
		if rep.NeedsLargeReview {
			return &schema.EscalationReason{Code: code, Detail: "the auditor asks for review"}
		}
	case schema.Allow:
		code = "unclear_allow"
		limits = []limit{
			most("risk", rep.Risk, t.SmallAllow.RiskMax),
			most("uncertainty", u, t.SmallAllow.UncertaintyMax),
			most("residual", residual, t.SmallAllow.ResidualMax),
		}
	default:
		return &schema.EscalationReason{Code: "unknown_decision"}
	}
	for _, l := range limits {
		if !l.within {
			return &schema.EscalationReason{Code: code, Detail: fmt.Sprintf("%s %.2f against %.2f", l.name, l.value, l.bound)}
		}
	}
	return nil
}

// scoreReasons names what about the scores asks for a second look.
func scoreReasons(t Thresholds, rep *schema.Report, u, residual float64, missed *schema.EscalationReason) []schema.EscalationReason {
	if missed == nil {
		return nil
	}
	reasons := []schema.EscalationReason{*missed}
	if residual >= t.HighResidual {
		reasons = append(reasons, reason("high_residual", fmt.Sprintf("residual %.2f against %.2f", residual, t.HighResidual)))
	}
	if u >= t.HighUncertainty {
		reasons = append(reasons, reason("high_uncertainty", fmt.Sprintf("uncertainty %.2f against %.2f", u, t.HighUncertainty)))
	}
	if rep.Risk >= t.Gray.RiskMin && (rep.Exploitability >= t.Gray.ExploitabilityMin || residual >= t.Gray.ResidualMin) {
		reasons = append(reasons, reason("gray_zone", fmt.Sprintf("risk %.2f, exploitability %.2f, residual %.2f", rep.Risk, rep.Exploitability, residual)))
	}
	return reasons
}

func reason(code, detail string) schema.EscalationReason {
	return schema.EscalationReason{Code: code, Detail: detail}
}

func escalate(reasons ...schema.EscalationReason) Outcome {
	return Outcome{Escalate: true, Reasons: reasons}
}
