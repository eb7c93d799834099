package onnx

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"example.org/auditd/schema"
)

// The map from the model's calibrated log-odds to the report's risk and
// uncertainty. d is the distance from the stop threshold in logits. Both curves
// are monotone in |d| and fitted to the escalation predicate's defaults
// (docs/auditor.md shows them):
//
//	d < 0   allow   risk = 0.20·e^d            uncertainty = 0.25·e^d
//	d ≥ 0   stop    risk = 1 − 0.65·e^(−d/1.57) uncertainty = 0.60·e^(−d/2.16)
//
// So every allow is a clear one; a stop is gray at first, and clear (risk at
// least 0.75, uncertainty at most 0.30) from 1.5 logits over the threshold.
const (
	allowRisk        = 0.20
	allowUncertainty = 0.25
	stopRiskSlope    = 1.57
	stopUncertainty  = 0.60
	stopSlope        = 2.16
	// weight of the windows' disagreement, which only adds to a stop's doubt.
	disagreementWeight = 0.30
)

func risk(d float64) float64 {
	if d < 0 {
		return allowRisk * math.Exp(d)
	}
	return 1 - 0.65*math.Exp(-d/stopRiskSlope)
}

func uncertainty(d, disagreement float64) float64 {
	if d < 0 {
		return allowUncertainty * math.Exp(d)
	}
	return min(1, stopUncertainty*math.Exp(-d/stopSlope)+disagreementWeight*disagreement)
}

const (
	residualMin     = 0.5  // probability from which a residual type is named
	completeMin     = 0.90 // the escalation predicate's least completeness
	reviewMin       = 0.35 // uncertainty from which a stronger look is asked for
	maxEvidence     = 4
	maxCited        = schema.MaxEvidence - maxEvidence
	maxEvidenceText = 200 // bytes; enough to find the place
	rewriteRounds   = 2
)

// report makes the structured report of the scores. Where the text can be
// mended it is rewritten and audited again; use sums what that cost.
func (a *Auditor) report(ctx context.Context, f *schema.Flow, payload string, s Scores, use *schema.Usage) (schema.Report, error) {
	use.PromptTokens, use.Windows = s.Tokens, s.Encoded
	d := s.Attack - a.stop
	rep := schema.Report{
		Decision:          schema.Allow,
		Risk:              risk(d),
		Uncertainty:       uncertainty(d, s.Disagreement),
		Exploitability:    s.Scores[1],
		Impact:            s.Scores[2],
		ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone},
		Evidence:          []string{},
	}
	if d < 0 {
		rep.RewriteCompleteness = 1 // nothing had to be taken out
		return rep, nil
	}
	for i := range s.Spans {
		s.Spans[i] = widen(payload, s.Spans[i])
	}
	s.Spans = disjoint(s.Spans)
	rep.Evidence = evidence(payload, s.Spans)
	rep.ResidualRiskTypes = residuals(&s)
	rep.NeedsLargeReview = rep.Uncertainty > reviewMin
	rep.Decision = schema.Block
	if s.Decision[outDefer] > s.Decision[outBlock] {
		rep.Decision = schema.DeferToHuman
	}
	if !mendable(f, &s) {
		return rep, nil
	}
	text, cut, left, err := a.mend(ctx, f, payload, &s, use)
	if err != nil {
		return schema.Report{}, err
	}
	// The completeness is what the second audit says, not a guess.
	completeness := 1 - risk(left.Attack-a.stop)
	if left.Attack >= a.stop || completeness < completeMin {
		rep.RewriteCompleteness = completeness
		return rep, nil
	}
	rep.Decision, rep.Rewrite = schema.RewriteAndContinue, &text
	rep.Evidence = append(cited(cut), rep.Evidence...)
	rep.RewriteCompleteness = completeness
	rep.ResidualRiskTypes = []schema.ResidualRisk{schema.ResidualNone}
	// How sure we are of the whole: of the verdict on the original, scaled
	// so that a clear stop is a clear rewrite, and of the second audit.
	rep.Uncertainty = max(rep.Uncertainty*0.25/0.30, uncertainty(left.Attack-a.stop, left.Disagreement))
	rep.Uncertainty = min(rep.Uncertainty, 1)
	return rep, nil
}

// residuals names what is wrong with a stopped text.
func residuals(s *Scores) []schema.ResidualRisk {
	var out []schema.ResidualRisk
	for i, p := range s.Residual {
		if p >= residualMin {
			out = append(out, schema.ResidualSensitiveSpan+schema.ResidualRisk(i))
		}
	}
	if out == nil {
		out = append(out, schema.ResidualPromptControl) // an instruction that is not the owner's, at least
	}
	return out
}

// cited names the bytes that a rewrite leaves out: a rewrite is accepted only
// where the evidence says what it removes.
func cited(cut []schema.Span) []string {
	cut = slices.Clone(cut)
	for len(cut) > maxCited {
		// Cite two parts and what stands between them as one.
		at := 0
		for i := range len(cut) - 1 {
			if cut[i+1].Start-cut[i].End < cut[at+1].Start-cut[at].End {
				at = i
			}
		}
		cut[at].End = cut[at+1].End
		cut = slices.Delete(cut, at+1, at+2)
	}
	out := make([]string, 0, len(cut))
	for _, s := range cut {
		out = append(out, fmt.Sprintf("bytes %d-%d: %s", s.Start, s.End, s.Category))
	}
	return out
}

// evidence quotes the unsafe spans: exact substrings of the payload.
func evidence(payload string, spans []schema.Span) []string {
	out := make([]string, 0, min(len(spans), maxEvidence))
	for _, s := range spans {
		if len(out) == maxEvidence {
			break
		}
		e := strings.TrimSpace(payload[s.Start:s.End])
		if len(e) > maxEvidenceText {
			e = e[:maxEvidenceText]
			for len(e) > 0 && !utf8.ValidString(e[len(e)-min(len(e), utf8.UTFMax):]) {
				e = e[:len(e)-1]
			}
		}
		if e != "" && utf8.ValidString(e) {
			out = append(out, e)
		}
	}
	return out
}
