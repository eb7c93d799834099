package prompts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// Markers stand in a rewrite for what was taken out. They are the only text
// that a rewrite adds.
const (
	MarkRedacted  = schema.MaskSecret    // a secret
	MarkRemoved   = schema.MaskRemoved   // anything else
	MarkUntrusted = schema.MarkUntrusted // before a text that enters the agent's context
)

// errNothingCut says that a rewrite names a span without anything to remove.
var errNothingCut = errors.New("the rewrite names a span that cannot be taken out")

// Report makes the auditor's report out of the answers to all prompts of one
// record. Over several windows the most restrictive decision, the highest
// scores and the union of everything else hold.
func Report(answers []*Answer) (schema.Report, error) {
	if len(answers) == 0 {
		return schema.Report{}, errors.New("no answer")
	}
	rep := schema.Report{Decision: schema.Allow, RewriteCompleteness: 1}
	var cuts []cut
	rewrites := false
	for _, a := range answers {
		rewrites = rewrites || a.decision == schema.RewriteAndContinue
		// First, so that the limit on evidence does not cost it.
		rep.Evidence = append(rep.Evidence, a.cutText()...)
	}
	for _, a := range answers {
		rep.Decision = min(rep.Decision, a.decision)
		rep.Risk = max(rep.Risk, a.risk)
		rep.Uncertainty = max(rep.Uncertainty, a.uncertainty)
		rep.Exploitability = max(rep.Exploitability, a.exploitability)
		rep.Impact = max(rep.Impact, a.impact)
		rep.NeedsLargeReview = rep.NeedsLargeReview || a.review
		if !rewrites || a.decision == schema.RewriteAndContinue {
			rep.RewriteCompleteness = min(rep.RewriteCompleteness, a.completeness)
		}
		rep.ResidualRiskTypes = append(rep.ResidualRiskTypes, a.residual...)
		rep.Evidence = append(rep.Evidence, a.evidenceText()...)
		c, err := a.cuts()
		if err != nil {
			return schema.Report{}, err
		}
		cuts = append(cuts, c...)
	}
	rep.ResidualRiskTypes = union(rep.ResidualRiskTypes)
	rep.Evidence = bound(rep.Evidence)
	if rep.Decision == schema.RewriteAndContinue {
		text, err := answers[0].prompt.rewrite(cuts)
		switch {
		case err != nil:
			return schema.Report{}, err
		case text == "":
			rep.Decision = schema.Block // nothing would be left to forward
		default:
			rep.Rewrite = &text
		}
	}
	if err := rep.Validate(); err != nil {
		return schema.Report{}, err
	}
	return rep, nil
}

// ArbiterReport makes the arbiter's report out of its answer.
func ArbiterReport(a *Answer) (schema.ArbiterReport, error) {
	rep := schema.ArbiterReport{Decision: a.decision, Risk: a.risk, ResidualRiskTypes: union(a.residual), Evidence: bound(append(a.cutText(), a.evidenceText()...))}
	if a.decision == schema.RewriteAndContinue {
		cuts, err := a.cuts()
		if err != nil {
			return schema.ArbiterReport{}, err
		}
		text, err := a.prompt.rewrite(cuts)
		switch {
		case err != nil:
			return schema.ArbiterReport{}, err
		case text == "":
			rep.Decision = schema.Block
		default:
			rep.Rewrite = &text
		}
	}
	if err := rep.Validate(); err != nil {
		return schema.ArbiterReport{}, err
	}
	return rep, nil
}

// Expand reads the answer to the only prompt of a record.
func (p *Prompt) Expand(answer []byte) (schema.Report, error) {
	a, err := p.Parse(answer)
	if err != nil {
		return schema.Report{}, err
	}
	return Report([]*Answer{a})
}

type cut struct {
	Range
	secret bool
}

func (a *Answer) cuts() ([]cut, error) {
	if a.decision != schema.RewriteAndContinue {
		return nil, nil
	}
	var out []cut
	for _, n := range a.cut {
		seg := a.prompt.Segments[n-1]
		if len(seg.Cuts) == 0 {
			return nil, errNothingCut
		}
		for _, r := range seg.Cuts {
			out = append(out, cut{r, seg.Secret})
		}
	}
	return out, nil
}

// cutText names the bytes and the codes of what the answer takes out,
// neighbours in one line: a rewrite is accepted only where the evidence says
// what was identified.
func (a *Answer) cutText() []string {
	if a.decision != schema.RewriteAndContinue {
		return nil
	}
	var out []string
	for i := 0; i < len(a.cut); {
		first := a.prompt.Segments[a.cut[i]-1]
		end, codes := first.End, slices.Clone(first.Codes)
		for i++; i < len(a.cut) && a.cut[i] == a.cut[i-1]+1; i++ {
			seg := a.prompt.Segments[a.cut[i]-1]
			end, codes = seg.End, append(codes, seg.Codes...)
		}
		slices.Sort(codes)
		out = append(out, cite(first.Start, end, slices.Compact(codes)))
	}
	return out
}

// evidenceText names the bytes and the codes of each span that the answer
// cites. It does not quote them: reports are logged, and a span may be a secret.
func (a *Answer) evidenceText() []string {
	var out []string
	for _, n := range a.evidence {
		if a.decision == schema.RewriteAndContinue && slices.Contains(a.cut, n) {
			continue // in cutText
		}
		seg := a.prompt.Segments[n-1]
		out = append(out, cite(seg.Start, seg.End, seg.Codes))
	}
	return out
}

func cite(start, end int, codes []schema.Code) string {
	text := fmt.Sprintf("bytes %d-%d", start, end)
	if len(codes) > 0 {
		text += ": " + joinStrings(codes)
	}
	return text
}

func bound(evidence []string) []string {
	if evidence == nil {
		return []string{}
	}
	if len(evidence) > schema.MaxEvidence {
		return evidence[:schema.MaxEvidence]
	}
	return evidence
}

// union makes a set; none yields to everything else.
func union(list []schema.ResidualRisk) []schema.ResidualRisk {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	if len(list) > 1 {
		list = slices.DeleteFunc(list, func(r schema.ResidualRisk) bool { return r == schema.ResidualNone })
	}
	return list
}

// rewrite takes cuts out of the whole payload and puts markers in their places.
// It returns "" when nothing but markers and white space would be left.
func (p *Prompt) rewrite(cuts []cut) (string, error) {
	slices.SortFunc(cuts, func(a, b cut) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	var b strings.Builder
	at, left := 0, false
	if p.surface == schema.Context && !p.json {
		b.WriteString(MarkUntrusted)
	}
	keep := func(text string) {
		left = left || strings.TrimSpace(text) != ""
		b.WriteString(text)
	}
	for i, c := range cuts {
		start := max(c.Start, at)
		gap := p.payload[at:start]
		// Cuts with nothing but white space between them share one marker.
		if i > 0 && at > 0 && !c.secret && (gap == "" || !p.json && strings.TrimSpace(gap) == "") {
			at = max(at, c.End)
			continue
		}
		if c.End <= at {
			continue
		}
		keep(gap)
		if c.secret {
			b.WriteString(MarkRedacted)
		} else {
			b.WriteString(MarkRemoved)
		}
		at = c.End
	}
	keep(p.payload[at:])
	if !left {
		return "", nil
	}
	text := b.String()
	if p.json && !jsontext.Value(text).IsValid() {
		return "", errors.New("the rewrite is not valid JSON any more")
	}
	return text, nil
}
