package claudehook

import (
	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// Marker starts every text that stands in the place of a withheld result.
const Marker = "[withheld by auditd] "

// answer is what Claude Code reads of an answer.
type answer struct {
	Continue   *bool     `json:"continue,omitempty"`
	StopReason string    `json:"stopReason,omitempty"`
	Decision   string    `json:"decision,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	System     string    `json:"systemMessage,omitempty"`
	Specific   *specific `json:"hookSpecificOutput,omitempty"`
}

type specific struct {
	Event            string         `json:"hookEventName"`
	Permission       string         `json:"permissionDecision,omitempty"`
	PermissionReason string         `json:"permissionDecisionReason,omitempty"`
	UpdatedInput     jsontext.Value `json:"updatedInput,omitempty"`
	UpdatedOutput    jsontext.Value `json:"updatedToolOutput,omitempty"`
	Context          string         `json:"additionalContext,omitempty"`
	SuppressPrompt   bool           `json:"suppressOriginalPrompt,omitempty"`
}

// encode writes a. It cannot fail for what this package puts in; if it did,
// the answer would still end the turn.
func (a answer) encode() []byte {
	data, err := schema.Encode(a)
	if err != nil {
		return []byte(`{"continue":false,"stopReason":"auditd could not write its answer","decision":"block","reason":"auditd could not write its answer"}`)
	}
	return data
}

// Stop returns an answer that stops whatever body is about. event is the name
// that the caller expects, used when body does not say one. It never fails.
func Stop(event string, body []byte, message string) []byte {
	h := glance(body)
	if h.Event == "" {
		h.Event = event
	}
	return h.stop(message).encode()
}

// stop is the answer that stops a hook's event.
func (h *hook) stop(message string) answer {
	no := false
	switch h.Event {
	case preTool, skillCommand:
		return answer{Specific: &specific{Event: h.Event, Permission: "deny", PermissionReason: message}}
	case postTool:
		out := withheld(h.Tool, h.Response, Marker+message)
		if out == nil { // nothing is known of its shape
			return answer{Continue: &no, StopReason: message}
		}
		return answer{Specific: &specific{Event: h.Event, UpdatedOutput: out, Context: "auditd: " + message}}
	case postFailure:
		// The batch that follows stops the turn.
		return answer{Specific: &specific{Event: h.Event, Context: "auditd: " + message}}
	case postBatch:
		return answer{Continue: &no, StopReason: message, Decision: "block", Reason: message}
	case prompt, expansion:
		return answer{Decision: "block", Reason: message, Specific: &specific{Event: h.Event, SuppressPrompt: true}}
	case stop, subagentStop:
		if h.Active { // it was already sent back once
			return answer{Continue: &no, StopReason: message}
		}
		return answer{Decision: "block", Reason: message}
	case sessionStart, sessionEnd, instructions: // nothing waits for these
		return answer{System: "auditd: " + message}
	default:
		return answer{Continue: &no, StopReason: message, Decision: "block", Reason: message}
	}
}

// answer is the answer to a hook's event whose outcome is o.
func (h *hook) answer(o schema.Outcome) answer {
	switch {
	case o.Action == schema.Allow:
		return answer{}
	case o.Action == schema.RewriteAndContinue:
		switch {
		case (h.Event == preTool) && isObject(o.Params):
			return answer{Specific: &specific{Event: h.Event, UpdatedInput: jsontext.Value(o.Params), Context: "auditd changed this call's arguments: " + o.Message}}
		case h.Event == postTool && len(o.Result) > 0:
			return answer{Specific: &specific{Event: h.Event, UpdatedOutput: jsontext.Value(o.Result)}}
		case h.Event == sessionStart && o.Text != nil: // how an isolated agent works with symbols
			return answer{Specific: &specific{Event: h.Event, Context: *o.Text}}
		case h.Event == stop && o.Text != nil:
			// The message itself cannot be changed. The person reads it beside
			// what the model wrote; the model does not.
			return answer{System: "The message with what its symbols stand for:\n" + *o.Text}
		}
		// This event cannot be rewritten, so it is stopped.
		return h.stop("Blocked: it would have to be changed, and Claude Code cannot change it here. " + o.Message)
	default:
		return h.stop(o.Message + howToApprove(o))
	}
}

func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }

// howToApprove says what the owner types and the agent does then.
func howToApprove(o schema.Outcome) string { return o.HowToApprove("repeat exactly the same call") }
