package schema

import (
	"encoding/json"
	"fmt"
)

// Phase is the moment at which a host reports an event.
type Phase uint8

// Phases (docs/design: the life of a tool call).
const (
	PhaseUnset Phase = iota
	PhaseSessionStart
	PhaseBootstrap
	PhasePrompt
	PhaseBeforeTool
	PhaseAfterTool
	PhaseMemory
	PhaseWebhook
	PhaseMessageOut
	PhaseInspect
	PhaseSessionEnd
)

var phaseNames = []string{
	PhaseSessionStart: "session-start", PhaseBootstrap: "bootstrap", PhasePrompt: "prompt", PhaseBeforeTool: "before-tool",
	PhaseAfterTool: "after-tool", PhaseMemory: "memory", PhaseWebhook: "webhook", PhaseMessageOut: "message-out",
	PhaseInspect: "inspect", PhaseSessionEnd: "session-end",
}

func (p Phase) String() string                { return enumString("Phase", phaseNames, p) }
func (p Phase) MarshalText() ([]byte, error)  { return enumText("phase", phaseNames, p) }
func (p *Phase) UnmarshalText(t []byte) error { return enumParse("phase", phaseNames, p, t) }

// Event is what a mediation point (plugin, hook, proxy) reports.
type Event struct {
	Host      string          `json:"host"` // openclaw, claude-code, mcp, proxy, …
	Agent     string          `json:"agent"`
	Session   string          `json:"session"`
	CallID    string          `json:"call_id,omitempty"`
	Phase     Phase           `json:"phase"`
	Tool      string          `json:"tool,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"` // before-tool, after-tool
	Result    json.RawMessage `json:"result,omitempty"` // after-tool
	IsError   bool            `json:"is_error,omitempty"`
	Text      string          `json:"text,omitempty"`   // prompt, bootstrap, memory, webhook, message-out
	Origin    string          `json:"origin,omitempty"` // file, URL, sender, channel
	Sender    string          `json:"sender,omitempty"` // prompt: who wrote it, "owner" for the owner
	Workspace string          `json:"workspace,omitempty"`
	Ticket    string          `json:"ticket,omitempty"`
	// DeadlineMS is how long the host waits, in milliseconds.
	DeadlineMS int `json:"deadline_ms,omitempty"`
}

// Complete validates e. maxBody is in bytes; 0 means DefaultMaxPayload.
func (e *Event) Complete(maxBody int) error {
	if maxBody <= 0 {
		maxBody = DefaultMaxPayload
	}
	if e.Phase == PhaseUnset {
		return fieldErrorf("phase", "is missing")
	}
	for _, n := range []struct{ field, value string }{
		{"host", e.Host}, {"agent", e.Agent}, {"session", e.Session}, {"call_id", e.CallID}, {"tool", e.Tool},
		{"origin", e.Origin}, {"sender", e.Sender}, {"workspace", e.Workspace}, {"ticket", e.Ticket},
	} {
		if len(n.value) > MaxName {
			return fieldErrorf(n.field, "is %d bytes, the limit is %d", len(n.value), MaxName)
		}
	}
	for _, n := range []struct {
		field string
		size  int
	}{{"params", len(e.Params)}, {"result", len(e.Result)}, {"text", len(e.Text)}} {
		if n.size > maxBody {
			err := fieldErrorf(n.field, "is %d bytes, the limit is %d", n.size, maxBody)
			err.TooLarge = true
			return err
		}
	}
	if e.Host == "" || e.Session == "" {
		return fieldErrorf("host, session", "must both be set")
	}
	if (e.Phase == PhaseBeforeTool || e.Phase == PhaseAfterTool) && e.Tool == "" {
		return fieldErrorf("tool", "is missing for phase %s", e.Phase)
	}
	if e.DeadlineMS < 0 {
		return fieldErrorf("deadline_ms", "is %d, the least is 0", e.DeadlineMS)
	}
	return nil
}

// Outcome is the answer to an event. Its zero value denies: nothing may go on
// unless Action is allow, or rewrite_and_continue with the fields given here.
type Outcome struct {
	Action  Action `json:"action"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Params and Result replace what the event held, in the same shape.
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Text   *string         `json:"text,omitempty"`
	Ticket string          `json:"ticket,omitempty"`
	// Decisions are those of the flows that the event yielded, the deciding
	// one first.
	Decisions []Decision `json:"decisions,omitempty"`
}

// HowToApprove says, after Message, what the owner types and what the agent does
// then, such as "repeat exactly the same call"; empty when nobody is asked.
func (o *Outcome) HowToApprove(then string) string {
	if o.Action != DeferToHuman {
		return ""
	}
	ids := ""
	for i := range o.Decisions {
		if q := o.Decisions[i].Question; q != "" {
			ids += " " + q
		}
	}
	if ids == "" {
		return ""
	}
	return " The owner approves it with `auditd approve" + ids + "` in a terminal; then " + then + "."
}

// ReasonNothingHidden is the reason of an outcome that replaces a result by one
// with the same content: paths at most are other ones. A host that shows the
// original instead shows nothing that it should not.
const ReasonNothingHidden = "nothing_hidden"

// String shows an event for a log: what happened, never what it held.
func (e *Event) String() string {
	return fmt.Sprintf("%s %s %s session=%s call=%s", e.Host, e.Phase, e.Tool, e.Session, e.CallID)
}
