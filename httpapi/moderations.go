package httpapi

import (
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// ModerationRequest is OpenAI's: a string, several, or parts with a type.
type ModerationRequest struct {
	Input jsontext.Value            `json:"input"`
	Model string                    `json:"model,omitempty"`
	Rest  map[string]jsontext.Value `json:",unknown"`
}

// ModerationAnswer is OpenAI's.
type ModerationAnswer struct {
	ID      string             `json:"id"`
	Model   string             `json:"model"`
	Results []ModerationResult `json:"results"`
}

// ModerationResult is the result for one input. Its categories are OpenAI's,
// which auditd does not judge and which are always false, and one for each
// residual risk type.
type ModerationResult struct {
	Flagged    bool                `json:"flagged"`
	Categories map[string]bool     `json:"categories"`
	Scores     map[string]float64  `json:"category_scores"`
	Applied    map[string][]string `json:"category_applied_input_types"`
}

// openaiCategories must be there: OpenAI's own client libraries require them.
var openaiCategories = [...]string{"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent",
	"self-harm", "self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic"}

func (s *Server) moderations(c *gin.Context) {
	data, err := s.body(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	var r ModerationRequest
	if err := decodeForeign(data, &r); err != nil {
		s.fail(c, err)
		return
	}
	inputs, err := moderationInputs(r.Input)
	if err != nil {
		s.fail(c, err)
		return
	}
	flows := make([]*schema.Flow, len(inputs))
	for i, text := range inputs {
		flows[i] = &schema.Flow{Payload: text, Source: schema.Source{Kind: schema.SourceOther, Trust: schema.Untrusted},
			Sink: schema.Sink{Kind: schema.SinkReasoning}, Session: schema.Session{Agent: "moderations"}}
		if err := flows[i].Complete(s.cfg.MaxPayload); err != nil {
			p := *asProblem(err)
			p.field = "input[" + strconv.Itoa(i) + "]"
			p.message = p.field + ": " + p.message
			s.fail(c, &p)
			return
		}
	}
	a := ModerationAnswer{ID: "modr-", Model: "auditd", Results: make([]ModerationResult, len(flows))}
	decisions := make([]schema.Decision, len(flows))
	s.each(len(flows), func(i int) { decisions[i] = s.decide(c, flows[i]) })
	for i := range decisions {
		a.Results[i] = moderationResult(&decisions[i])
	}
	a.ID += decisions[0].ID
	s.answer(c, a)
}

// moderationInputs reads the three forms of input. A part that is not text
// can't be judged, and is refused rather than passed over.
func moderationInputs(raw jsontext.Value) ([]string, error) {
	var one string
	if json.Unmarshal(raw, &one) == nil && raw.Kind() == '"' {
		return []string{one}, nil
	}
	var entries []jsontext.Value
	if err := json.Unmarshal(raw, &entries); err != nil || len(entries) == 0 {
		return nil, invalid("input", "must be a string or a non-empty array")
	}
	if len(entries) > maxTexts {
		return nil, invalid("input", "has "+strconv.Itoa(len(entries))+" entries, the limit is "+strconv.Itoa(maxTexts))
	}
	texts := make([]string, len(entries))
	for i, e := range entries {
		field := "input[" + strconv.Itoa(i) + "]"
		if e.Kind() == '"' {
			if err := json.Unmarshal(e, &texts[i]); err != nil {
				return nil, invalid(field, "is not a string")
			}
			continue
		}
		var part struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		if err := json.Unmarshal(e, &part); err != nil || part.Type != "text" || part.Text == nil {
			return nil, invalid(field, "must be a string or a part of type text; nothing else is looked into")
		}
		texts[i] = *part.Text
	}
	return texts, nil
}

// moderationResult flags whatever would not go through unchanged: this shape
// has no way to say "rewritten".
func moderationResult(d *schema.Decision) ModerationResult {
	r := ModerationResult{Flagged: d.Action != schema.Allow, Categories: map[string]bool{}, Scores: map[string]float64{}, Applied: map[string][]string{}}
	for _, name := range openaiCategories {
		r.Categories[name], r.Scores[name], r.Applied[name] = false, 0, []string{}
	}
	risk := 1.0 // without a report nothing bounds it
	switch {
	case d.Report != nil:
		risk = d.Report.Risk
	case !r.Flagged:
		risk = 0
	}
	for x := schema.ResidualSensitiveSpan; x < schema.ResidualNone; x++ {
		name := "auditd/" + x.String()
		hit := d.Report != nil && d.Report.HasResidual(x)
		r.Categories[name], r.Scores[name], r.Applied[name] = r.Flagged && hit, 0, []string{"text"}
		if hit {
			r.Scores[name] = risk
		}
	}
	r.Categories["auditd/stopped"], r.Applied["auditd/stopped"] = r.Flagged, []string{"text"}
	r.Scores["auditd/stopped"] = risk
	return r
}
