package httpapi

import (
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// maxTexts bounds how many pieces one foreign request may hold.
const maxTexts = 256

// LiteLLMRequest is what LiteLLM's generic guardrail sends. Unlike our own
// shapes it may hold fields that are not listed here: it belongs to somebody
// else, who adds to it.
type LiteLLMRequest struct {
	Texts     []string                  `json:"texts"`
	Images    []jsontext.Value          `json:"images,omitempty"`
	Tools     []jsontext.Value          `json:"tools,omitempty"`
	ToolCalls []jsontext.Value          `json:"tool_calls,omitempty"`
	InputType string                    `json:"input_type"` // request or response
	CallID    string                    `json:"litellm_call_id,omitempty"`
	TraceID   string                    `json:"litellm_trace_id,omitempty"`
	Rest      map[string]jsontext.Value `json:",unknown"`
}

// LiteLLMAnswer is what it expects.
type LiteLLMAnswer struct {
	Action        string   `json:"action"` // BLOCKED, NONE or GUARDRAIL_INTERVENED
	BlockedReason string   `json:"blocked_reason,omitempty"`
	Texts         []string `json:"texts,omitempty"`
}

// decodeForeign reads a document of somebody else's shape: bounded like ours,
// but fields that we don't know are ignored.
func decodeForeign(data []byte, v any) error {
	var any jsontext.Value
	if err := schema.Decode(data, &any); err != nil { // depth, one document, duplicate keys
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return invalid("body", "does not have the expected shape")
	}
	return nil
}

func (s *Server) litellm(c *gin.Context) {
	data, err := s.body(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	var r LiteLLMRequest
	if err := decodeForeign(data, &r); err != nil {
		s.fail(c, err)
		return
	}
	if n := len(r.Texts) + len(r.Tools) + len(r.ToolCalls); n > maxTexts {
		s.fail(c, invalid("texts", "texts, tools and tool_calls hold "+strconv.Itoa(n)+" entries, the limit is "+strconv.Itoa(maxTexts)))
		return
	}
	if r.InputType != "request" && r.InputType != "response" {
		s.fail(c, invalid("input_type", "must be request or response"))
		return
	}
	if len(r.Images) > 0 {
		// What can't be looked at is not let through.
		s.answer(c, LiteLLMAnswer{Action: "BLOCKED", BlockedReason: "auditd does not look into images, so it can't let one pass"})
		return
	}
	flows, err := s.litellmFlows(&r)
	if err != nil {
		s.fail(c, err)
		return
	}
	decisions := make([]schema.Decision, len(flows))
	s.each(len(flows), func(i int) { decisions[i] = s.decide(c, flows[i]) })
	s.answer(c, litellmAnswer(&r, decisions))
}

// litellmFlows makes one flow of each piece, the texts first. A request's
// texts are on their way into a model's context and of unknown origin; a
// response's are on their way to whoever asked.
func (s *Server) litellmFlows(r *LiteLLMRequest) ([]*schema.Flow, error) {
	var flows []*schema.Flow
	add := func(field string, i int, f schema.Flow) error {
		f.Session = schema.Session{Agent: "litellm", ID: r.TraceID, CallID: r.CallID}
		f.Source.Trust = schema.Untrusted
		if err := f.Complete(s.cfg.MaxPayload); err != nil {
			p := *asProblem(err)
			p.field = field + "[" + strconv.Itoa(i) + "]"
			p.message = p.field + ": " + p.message
			return &p
		}
		flows = append(flows, &f)
		return nil
	}
	for i, text := range r.Texts {
		f := schema.Flow{Payload: text, Source: schema.Source{Kind: schema.SourceOther}, Sink: schema.Sink{Kind: schema.SinkReasoning}}
		if r.InputType == "response" {
			f.Source.Kind, f.Sink.Kind = schema.SourceAgent, schema.SinkMessage
		}
		if err := add("texts", i, f); err != nil {
			return nil, err
		}
	}
	for i, tool := range r.Tools {
		f := schema.Flow{Payload: string(tool), Source: schema.Source{Kind: schema.SourceSkill}, Sink: schema.Sink{Kind: schema.SinkReasoning}}
		if err := add("tools", i, f); err != nil {
			return nil, err
		}
	}
	for i, call := range r.ToolCalls {
		var named struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		// An unnamed call is still audited, with all of its text.
		_ = json.Unmarshal(call, &named)
		f := schema.Flow{Payload: string(call), Source: schema.Source{Kind: schema.SourceAgent},
			Sink: schema.Sink{Kind: schema.SinkTool, Tool: named.Function.Name}}
		if err := add("tool_calls", i, f); err != nil {
			return nil, err
		}
	}
	return flows, nil
}

// litellmAnswer combines the decisions. Only texts can be rewritten in that
// shape, so a rewrite of anything else blocks.
func litellmAnswer(r *LiteLLMRequest, decisions []schema.Decision) LiteLLMAnswer {
	a := LiteLLMAnswer{Action: "NONE", Texts: append([]string(nil), r.Texts...)}
	changed := false
	for i, d := range decisions {
		switch {
		case d.Action == schema.Allow:
		case d.Action == schema.RewriteAndContinue && d.Payload != nil && i < len(r.Texts):
			a.Texts[i], changed = *d.Payload, true
		default:
			return LiteLLMAnswer{Action: "BLOCKED", BlockedReason: d.Message + " (decision " + d.ID + ")"}
		}
	}
	if !changed {
		a.Texts = nil
		return a
	}
	a.Action = "GUARDRAIL_INTERVENED"
	return a
}
