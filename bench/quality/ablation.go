package quality

import (
	"context"
	"slices"

	"example.org/auditd/bench/cases"
	"example.org/auditd/inference"
	"example.org/auditd/schema"
)

// Fields is how much of the report an auditor is let say; a higher one
// includes the lower.
type Fields uint8

// What a report may hold.
const (
	DecisionOnly Fields = iota
	WithRisk
	WithUncertainty
	WithResiduals
	AllFields
)

// unsaid is what a number that the report may not hold reads as: nothing is
// known, which is neither safe nor harmful.
const unsaid = 0.5

// Mask lets a's reports hold no more than f, so that the same auditor can be
// measured with every output schema of the paper's comparison.
func Mask(a inference.Auditor, f Fields) inference.Auditor { return masked{a, f} }

type masked struct {
	inference.Auditor
	fields Fields
}

func (m masked) Audit(ctx context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	rep, usage, err := m.Auditor.Audit(ctx, rec)
	if err != nil {
		return rep, usage, err
	}
	if m.fields < AllFields {
		rep.Exploitability, rep.Impact, rep.RewriteCompleteness, rep.NeedsLargeReview = unsaid, unsaid, unsaid, false
	}
	if m.fields < WithResiduals {
		rep.ResidualRiskTypes = []schema.ResidualRisk{schema.ResidualNone}
	}
	if m.fields < WithUncertainty {
		rep.Uncertainty = unsaid
	}
	if m.fields < WithRisk {
		rep.Risk = unsaid
	}
	return rep, usage, nil
}

// Allower stands in for an auditor where the precheck alone is measured.
type Allower struct{}

// Identity says that there is no model.
func (Allower) Identity() string { return "none (a stand-in allows at once)" }

// Ready is always nil.
func (Allower) Ready() error { return nil }

// Audit allows.
func (Allower) Audit(context.Context, *schema.Record) (schema.Report, schema.Usage, error) {
	return schema.Report{Decision: schema.Allow, Risk: .01, Uncertainty: .01, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}, Evidence: []string{}},
		schema.Usage{Backend: "none", Model: "none"}, nil
}

// Redaction is what replacing secrets by pattern is worth on the attacks that
// the small auditor rewrote.
func Redaction(set []cases.Case, results []Result, redact func(string) string) Rewrites {
	var out Rewrites
	var removed, kept tally
	for i := range results {
		r := &results[i]
		k := slices.IndexFunc(set, func(c cases.Case) bool { return c.ID == r.Case })
		if k < 0 || r.Kind != cases.Attack || r.Small == nil || r.Small.Action != schema.RewriteAndContinue {
			continue
		}
		text := redact(set[k].Flow.Payload)
		out.N++
		removed.add(0, !set[k].TakesEffect(text))
		kept.add(0, set[k].Preserved(text))
	}
	out.RiskRemoved, out.StillActionable = removed.all(), removed.inverse()
	out.Preserved, out.OverDeletion = kept.all(), kept.inverse()
	return out
}

func (t *tally) inverse() Share {
	u := tally{n: t.n}
	u.k[0] = t.n[0] - t.k[0]
	return u.all()
}
