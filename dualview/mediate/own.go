package mediate

import (
	"context"
	"encoding/json"
	"strings"

	"example.org/auditd/schema"
)

// Answered notes what the daemon itself said to a call of one of isolation's own
// tools, between the call's two events. What comes back as the tool's result is
// shown as it is only if it is that and nothing else: whoever else stands between
// the daemon and the model has no say in it.
func (m *Mediator) Answered(host, session, callID string, out schema.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.calls[key(&schema.Event{Host: host, Session: session, CallID: callID})]; c != nil {
		c.answered = &out
	}
}

// ownResult is the one form in which a plugin returns an answer.
type ownResult struct {
	Content []ownBlock `json:"content"`
	Details *ownStatus `json:"details,omitempty"`
	IsError *bool      `json:"isError,omitempty"`
}

type ownBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type ownStatus struct {
	Status string `json:"status"`
}

// own returns the result of a call of one of isolation's own tools, if it holds
// the daemon's own answer and nothing else.
func (m *Mediator) own(ctx context.Context, c *call, result []byte) (json.RawMessage, bool, error) {
	if c.answered == nil {
		return nil, false, nil
	}
	var r ownResult
	if schema.Decode(result, &r) != nil || len(r.Content) != 1 || r.Content[0].Type != "text" || !says(c.answered, r.Content[0].Text) {
		return nil, false, nil
	}
	if d := r.Details; d != nil && d.Status != "completed" && d.Status != "error" {
		return nil, false, nil
	}
	// A rule that the owner allowed may quote a page.
	if known, err := m.cfg.Table.Known(ctx, []byte(r.Content[0].Text)); err != nil || len(known) > 0 {
		return nil, false, err
	}
	out, err := schema.Encode(r)
	return out, err == nil, err
}

// says reports whether text is what a plugin makes of an answer.
func says(o *schema.Outcome, text string) bool {
	if o.Action.Stops() {
		return text == "[auditd] "+o.Message+howToAllow(o)
	}
	if len(o.Result) == 0 {
		return text == o.Message
	}
	return sameJSON([]byte(text), o.Result)
}

// howToAllow is what the plugin adds to an answer that waits for the owner.
func howToAllow(o *schema.Outcome) string {
	var ids []string
	for i := range o.Decisions {
		if q := o.Decisions[i].Question; q != "" {
			ids = append(ids, "auditd approve "+q)
		}
	}
	if o.Action != schema.DeferToHuman || len(ids) == 0 {
		return ""
	}
	return " The owner can allow it with: " + strings.Join(ids, " and ") + ". Then repeat exactly the same call."
}

// sameJSON reports whether a is one JSON value that says the same as b. A model
// reads a's spaces and the order of its members too, so these must be as an
// encoder writes them.
func sameJSON(a, b []byte) bool {
	var v, w any
	if schema.Decode(a, &v) != nil || schema.Decode(b, &w) != nil {
		return false
	}
	x, err1 := json.Marshal(v)
	y, err2 := json.Marshal(w)
	return err1 == nil && err2 == nil && string(x) == string(y) && len(a) <= len(b)
}
