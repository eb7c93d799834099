package schema

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Severity says what a matched code may do by itself.
type Severity uint8

// Severities.
const (
	Soft Severity = iota // evidence for the auditor and the escalation predicate
	Hard                 // stops the flow when its invariant holds
)

var severityNames = []string{Soft: "soft", Hard: "hard"}

func (s Severity) String() string                { return enumString("Severity", severityNames, s) }
func (s Severity) MarshalText() ([]byte, error)  { return enumText("severity", severityNames, s) }
func (s *Severity) UnmarshalText(t []byte) error { return enumParse("severity", severityNames, s, t) }

// Signal is one finding of the precheck.
type Signal struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule"`            // stable name of the rule, such as "shell-rm-recursive"
	Spans    []Span   `json:"spans,omitempty"` // where in the original payload
	// Via lists the decoders and folds under which the rule matched, outermost
	// first, such as ["base64","nfkc"]; empty when the plain text matched.
	Via []string `json:"via,omitempty"`
	// Detail is our own sentence about the match; it never quotes the payload.
	Detail string `json:"detail,omitempty"`
}

// Coverage says how much of the payload was looked at. Bytes is less than
// Total only when a decoder's bound was reached, and Limits then says which.
type Coverage struct {
	Bytes    int      `json:"bytes"`              // bytes of the original payload that were scanned
	Total    int      `json:"total"`              // bytes of the original payload
	Decoded  int      `json:"decoded"`            // bytes that decoders produced and that were scanned too
	Decoders []string `json:"decoders,omitempty"` // decoders and folds that changed something
	Limits   []string `json:"limits,omitempty"`   // bounds that were reached
}

// Precheck is the result of the deterministic stage (token-flow paper, Table 4).
type Precheck struct {
	Signals []Signal `json:"signals"`
	// HardBlock holds when a hard code's invariant is violated; HardReason
	// then names the rule.
	HardBlock  bool   `json:"hard_block"`
	HardReason string `json:"hard_reason,omitempty"`
	// Coarse hints in [0,1].
	Risk           float64  `json:"risk"`
	Exploitability float64  `json:"exploitability"`
	Impact         float64  `json:"impact"`
	Spans          []Span   `json:"spans,omitempty"` // segmentation of the payload
	Coverage       Coverage `json:"coverage"`
}

// Has reports whether a signal with code c was raised.
func (p *Precheck) Has(c Code) bool {
	return slices.ContainsFunc(p.Signals, func(s Signal) bool { return s.Code == c })
}

// Codes returns the distinct codes in ascending order.
func (p *Precheck) Codes() []Code {
	var codes []Code
	for _, s := range p.Signals {
		codes = append(codes, s.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// Without returns a precheck without the signals that drop chooses, and the
// names of their rules; p itself when there are none. p is not changed.
func (p *Precheck) Without(drop func(Signal) bool) (*Precheck, []string) {
	var kept []Signal
	var rules []string
	for _, s := range p.Signals {
		switch {
		case !drop(s):
			kept = append(kept, s)
		case !slices.Contains(rules, s.Rule):
			rules = append(rules, s.Rule)
		}
	}
	if len(kept) == len(p.Signals) {
		return p, nil
	}
	out := *p
	out.Signals = kept
	return &out, rules
}

// Record is the audit record that an auditor gets: the flow as it now stands
// and the precheck's findings on it. The whole trajectory is never sent
// (token-flow paper, section 3).
type Record struct {
	Flow     *Flow     `json:"flow"`
	Precheck *Precheck `json:"precheck"`
}

// Limits of a report.
const (
	MaxEvidence     = 16   // entries
	MaxEvidenceText = 512  // bytes of one entry
	maxRewriteSlack = 4096 // bytes a rewrite may be longer than its payload (markers)
)

// Report is the auditor's structured risk report, r_s = (d, x', ρ, u, ξ, ι, T,
// κ, q, e) of the token-flow paper, section 4. Scalars are in [0,1]. The zero
// Report blocks.
type Report struct {
	Decision            Action         `json:"decision"`
	Rewrite             *string        `json:"rewrite"` // nil unless Decision is rewrite_and_continue
	Risk                float64        `json:"risk"`
	Uncertainty         float64        `json:"uncertainty"`
	Exploitability      float64        `json:"exploitability"`
	Impact              float64        `json:"impact"`
	ResidualRiskTypes   []ResidualRisk `json:"residual_risk_types"` // a set; {none} when nothing is left
	RewriteCompleteness float64        `json:"rewrite_completeness"`
	NeedsLargeReview    bool           `json:"needs_large_review"`
	Evidence            []string       `json:"evidence"` // short strings grounded in the input
}

// HasResidual reports whether the report names residual risk r.
func (r *Report) HasResidual(x ResidualRisk) bool { return slices.Contains(r.ResidualRiskTypes, x) }

// Residuals returns the named residual risks without "none".
func (r *Report) Residuals() []ResidualRisk {
	return slices.DeleteFunc(slices.Clone(r.ResidualRiskTypes), func(x ResidualRisk) bool { return x == ResidualNone })
}

// Validate checks everything about the report that does not need the flow.
// A report that fails it is malformed and the flow is blocked.
func (r *Report) Validate() error {
	for _, s := range []struct {
		field string
		v     float64
	}{
		{"risk", r.Risk}, {"uncertainty", r.Uncertainty}, {"exploitability", r.Exploitability},
		{"impact", r.Impact}, {"rewrite_completeness", r.RewriteCompleteness},
	} {
		if math.IsNaN(s.v) || s.v < 0 || s.v > 1 {
			return fieldErrorf(s.field, "is outside [0,1]")
		}
	}
	if int(r.Decision) >= len(actionNames) {
		return fieldErrorf("decision", "is not an action")
	}
	if (r.Rewrite != nil) != (r.Decision == RewriteAndContinue) {
		return fieldErrorf("rewrite", "must be a string exactly when decision is rewrite_and_continue")
	}
	return validateFindings(r.ResidualRiskTypes, r.Evidence)
}

func validateFindings(residual []ResidualRisk, evidence []string) error {
	if len(residual) == 0 {
		return fieldErrorf("residual_risk_types", "is empty, say none")
	}
	seen := map[ResidualRisk]bool{}
	for _, x := range residual {
		if x == ResidualUnset || int(x) >= len(residualNames) {
			return fieldErrorf("residual_risk_types", "holds an unknown type")
		}
		if seen[x] {
			return fieldErrorf("residual_risk_types", "names %s twice", x)
		}
		seen[x] = true
	}
	if seen[ResidualNone] && len(residual) > 1 {
		return fieldErrorf("residual_risk_types", "holds none beside others")
	}
	if len(evidence) > MaxEvidence {
		return fieldErrorf("evidence", "has %d entries, the limit is %d", len(evidence), MaxEvidence)
	}
	for i, e := range evidence {
		if len(e) > MaxEvidenceText || !utf8.ValidString(e) {
			return fieldErrorf(fmt.Sprintf("evidence[%d]", i), "is over %d bytes or not valid UTF-8", MaxEvidenceText)
		}
	}
	return nil
}

// ValidateRewrite checks the length of a rewrite against the payload it was
// made from. What it says is checked by the firewall.
func (r *Report) ValidateRewrite(payload string) error {
	if r.Rewrite == nil {
		return nil
	}
	if n := len(*r.Rewrite); n > len(payload)+maxRewriteSlack {
		return fieldErrorf("rewrite", "is %d bytes, the payload has %d", n, len(payload))
	}
	if !utf8.ValidString(*r.Rewrite) {
		return fieldErrorf("rewrite", "is not valid UTF-8")
	}
	return nil
}

// ArbiterReport is the large arbiter's answer (token-flow paper, section 6). It
// is terminal: its rewrite is not audited again, but schema, decision and the
// hard constraints still apply. The zero ArbiterReport blocks.
type ArbiterReport struct {
	Decision          Action         `json:"decision"`
	Rewrite           *string        `json:"rewrite"`
	Risk              float64        `json:"risk"`
	ResidualRiskTypes []ResidualRisk `json:"residual_risk_types"`
	Evidence          []string       `json:"evidence"`
}

// Validate checks everything about the report that does not need the flow.
func (r *ArbiterReport) Validate() error {
	if math.IsNaN(r.Risk) || r.Risk < 0 || r.Risk > 1 {
		return fieldErrorf("risk", "is outside [0,1]")
	}
	if int(r.Decision) >= len(actionNames) {
		return fieldErrorf("decision", "is not an action")
	}
	if (r.Rewrite != nil) != (r.Decision == RewriteAndContinue) {
		return fieldErrorf("rewrite", "must be a string exactly when decision is rewrite_and_continue")
	}
	return validateFindings(r.ResidualRiskTypes, r.Evidence)
}

// ArbiterRecord is what the arbiter gets: the original flow, the flow as it now
// stands, the evidence and why it was asked.
type ArbiterRecord struct {
	Original *Flow     `json:"original"`
	Current  *Flow     `json:"current"`
	Precheck *Precheck `json:"precheck"`
	Report   *Report   `json:"report"`
	Reasons  []string  `json:"reasons"`
}

// Usage says what one model call cost.
type Usage struct {
	Backend      string  `json:"backend"` // onnx, ollama, openai, anthropic, cascade
	Model        string  `json:"model"`
	Digest       string  `json:"digest,omitempty"` // of the model file, where known
	PromptTokens int     `json:"prompt_tokens,omitempty"`
	OutputTokens int     `json:"output_tokens,omitempty"`
	Windows      int     `json:"windows,omitempty"` // windows that an encoder ran
	DurationMS   float64 `json:"duration_ms"`
	LoadMS       float64 `json:"load_ms,omitempty"`
}
