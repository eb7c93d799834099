package prompts

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// ErrCode says that the canary or the nonce did not come back: the prompt was
// cut, or the model answered something else.
var ErrCode = errors.New("the codes of the prompt did not come back")

// ErrEmpty says that the model said nothing.
var ErrEmpty = errors.New("the answer is empty")

// MaxWire is how many bytes an answer may have before it is looked at.
const MaxWire = 16 << 10

// wire is the model's answer, in short keys: on a CPU every token of an answer
// costs about as much as twenty of its prompt. Pointers tell a missing field
// from a zero.
type wire struct {
	Canary         *string                `json:"c"`
	Evidence       *[]int                 `json:"e"`
	Residual       *[]schema.ResidualRisk `json:"t"`
	Risk           *int                   `json:"r"`
	Uncertainty    *int                   `json:"u"`
	Exploitability *int                   `json:"x"`
	Impact         *int                   `json:"i"`
	Decision       *string                `json:"d"`
	Cut            *[]int                 `json:"w"`
	Completeness   *int                   `json:"k"`
	Review         *bool                  `json:"q"`
	Nonce          *string                `json:"n"`
}

// wireSchema returns the JSON Schema of an answer about n spans. Nothing in it
// is a constant of the prompt: a schema that held the codes would make the
// server write them, whatever the model saw.
func wireSchema(arbiter bool, n int) []byte {
	const (
		code  = `{"type":"string","pattern":"^[a-z]{6}$"}`
		score = `{"type":"integer","minimum":0,"maximum":99}`
		types = `{"type":"array","minItems":1,"maxItems":8,"items":{"type":"string","enum":["none","sensitive_span","external_sink","side_effect","irreversible_action","authority_crossing","recipient_ambiguity","prompt_control","tool_induction"]}}`
		words = `{"type":"string","enum":["allow","rewrite","defer","block"]}`
	)
	spans := func(most int) string {
		if most = min(most, n); most == 0 {
			return `{"type":"array","maxItems":0,"items":{"type":"integer"}}`
		}
		return fmt.Sprintf(`{"type":"array","maxItems":%d,"items":{"type":"integer","minimum":1,"maximum":%d}}`, most, n)
	}
	fields := []struct {
		key, schema string
		auditorOnly bool
	}{
		{"c", code, false}, {"e", spans(8), false}, {"t", types, false}, {"r", score, false},
		{"u", score, true}, {"x", score, true}, {"i", score, true}, {"d", words, false}, {"w", spans(MaxSegments), false},
		{"k", score, true}, {"q", `{"type":"boolean"}`, true}, {"n", code, false},
	}
	var props, required bytes.Buffer
	for _, f := range fields {
		if f.auditorOnly && arbiter {
			continue
		}
		if props.Len() > 0 {
			props.WriteByte(',')
			required.WriteByte(',')
		}
		fmt.Fprintf(&props, "%q:%s", f.key, f.schema)
		fmt.Fprintf(&required, "%q", f.key)
	}
	return fmt.Appendf(nil, `{"type":"object","additionalProperties":false,"properties":{%s},"required":[%s]}`, &props, &required)
}

// Answer is a model's checked answer to one prompt.
type Answer struct {
	prompt         *Prompt
	decision       schema.Action
	residual       []schema.ResidualRisk
	risk           float64
	uncertainty    float64
	exploitability float64
	impact         float64
	completeness   float64
	review         bool
	evidence       []int // numbers of spans, from 1
	cut            []int
}

// Parse reads a model's answer strictly: one JSON object of the schema with
// every field, in range, with the codes of this prompt and with spans that
// exist. No error quotes the answer.
func (p *Prompt) Parse(answer []byte) (*Answer, error) {
	if len(answer) > MaxWire {
		return nil, fmt.Errorf("the answer has %d bytes, the limit is %d", len(answer), MaxWire)
	}
	answer, err := clean(answer)
	if err != nil {
		return nil, err
	}
	var w wire
	if err := schema.Decode(answer, &w); err != nil {
		return nil, err
	}
	if w.Canary == nil || w.Nonce == nil {
		return nil, errors.New("c or n is missing")
	}
	if *w.Canary != p.canary || *w.Nonce != p.nonce {
		return nil, ErrCode
	}
	if w.Evidence == nil || w.Residual == nil || w.Decision == nil || w.Cut == nil {
		return nil, errors.New("one of e, t, d, w is missing")
	}
	a := &Answer{prompt: p, residual: *w.Residual}
	for _, s := range []struct {
		key         string
		from        *int
		to          *float64
		auditorOnly bool
	}{
		{"r", w.Risk, &a.risk, false}, {"u", w.Uncertainty, &a.uncertainty, true}, {"x", w.Exploitability, &a.exploitability, true},
		{"i", w.Impact, &a.impact, true}, {"k", w.Completeness, &a.completeness, true},
	} {
		switch {
		case s.auditorOnly && p.arbiter && s.from != nil:
			return nil, fmt.Errorf("%s is not a field of an arbiter's answer", s.key)
		case s.auditorOnly && p.arbiter:
		case s.from == nil:
			return nil, fmt.Errorf("%s is missing", s.key)
		case *s.from < 0 || *s.from > 99:
			return nil, fmt.Errorf("%s is outside 0 to 99", s.key)
		default:
			*s.to = float64(*s.from) / 100
		}
	}
	if (w.Review == nil) != p.arbiter {
		return nil, errors.New("q is missing or out of place")
	}
	if w.Review != nil {
		a.review = *w.Review
	}
	switch *w.Decision {
	case "allow":
		a.decision = schema.Allow
	case "rewrite":
		a.decision = schema.RewriteAndContinue
	case "defer":
		a.decision = schema.DeferToHuman
	case "block":
		a.decision = schema.Block
	default:
		return nil, errors.New("d is not a decision")
	}
	return a, a.check(*w.Evidence, *w.Cut)
}

// Decision is what the model decided about the window of the prompt.
func (a *Answer) Decision() schema.Action { return a.decision }

// clean takes off what models and servers are known to put around an answer:
// white space, a block of thinking although it was switched off, and a brace
// that was written twice because the grammar started after the model did.
// Nothing else is forgiven.
func clean(answer []byte) ([]byte, error) {
	answer = bytes.TrimSpace(answer)
	if rest, ok := bytes.CutPrefix(answer, []byte("<think>")); ok {
		_, after, ok := bytes.Cut(rest, []byte("</think>"))
		if !ok {
			return nil, errors.New("the answer is thinking without an end")
		}
		answer = bytes.TrimSpace(after)
	}
	if rest, ok := bytes.CutPrefix(answer, []byte("{")); ok {
		if rest = bytes.TrimSpace(rest); bytes.HasPrefix(rest, []byte("{")) {
			answer = rest
			if !jsontext.Value(answer).IsValid() { // the second brace was closed too
				answer = bytes.TrimSpace(bytes.TrimSuffix(answer, []byte("}")))
			}
		}
	}
	if len(answer) == 0 {
		return nil, ErrEmpty
	}
	return answer, nil
}

// check validates what refers to spans and what must agree with the decision.
func (a *Answer) check(evidence, cut []int) error {
	for key, list := range map[string][]int{"e": evidence, "w": cut} {
		if len(list) > MaxSegments {
			return fmt.Errorf("%s has %d entries, the limit is %d", key, len(list), MaxSegments)
		}
		for _, n := range list {
			if n < 1 || n > len(a.prompt.Segments) {
				return fmt.Errorf("%s names a span that does not exist", key)
			}
		}
	}
	if len(a.residual) == 0 {
		return errors.New("t is empty")
	}
	slices.Sort(a.residual)
	a.residual = slices.Compact(a.residual)
	if len(a.residual) > 1 && slices.Contains(a.residual, schema.ResidualNone) {
		return errors.New("t holds none beside others")
	}
	a.evidence = slices.Compact(slices.Sorted(slices.Values(evidence)))
	a.cut = slices.Compact(slices.Sorted(slices.Values(cut)))
	switch a.decision {
	case schema.RewriteAndContinue:
		if len(a.cut) == 0 {
			return errors.New("d is rewrite and w is empty")
		}
	case schema.Allow:
		if len(a.cut) > 0 {
			return errors.New("d is allow and w is not empty")
		}
	}
	return nil
}
