package cases

import (
	"encoding/json"
	"errors"
	"fmt"

	"gopkg.in/yaml.v3"

	"example.org/auditd/schema"
)

// maxEvents bounds the events of one trace.
const maxEvents = 200

// traceEvent is how an event of a trace is written.
type traceEvent struct {
	Phase  string
	Tool   string
	Params map[string]any
	Result any
	Error  bool
	Text   string
	Origin string
	Sender string
	Judge  bool // the attack must be stopped here at the latest
}

// events builds a session's events. The one to be judged carries the payload.
func (f *file) events() ([]schema.Event, int, error) {
	if len(f.Trace) > maxEvents {
		return nil, 0, fmt.Errorf("trace has %d events, the limit is %d", len(f.Trace), maxEvents)
	}
	judged := -1
	var out []schema.Event
	for i, t := range f.Trace {
		e := schema.Event{Host: f.Host, Agent: "bench", Session: "case-" + f.ID, CallID: fmt.Sprintf("call-%d", i), Tool: t.Tool, IsError: t.Error, Text: t.Text, Origin: t.Origin, Sender: t.Sender}
		if err := e.Phase.UnmarshalText([]byte(t.Phase)); err != nil {
			return nil, 0, fmt.Errorf("trace[%d]: %w", i, err)
		}
		if e.Phase == schema.PhaseAfterTool && i > 0 && out[i-1].Phase == schema.PhaseBeforeTool && out[i-1].Tool == e.Tool {
			e.CallID = out[i-1].CallID
		}
		var err error
		if t.Params != nil {
			e.Params, err = json.Marshal(t.Params)
		}
		if err == nil && t.Result != nil {
			e.Result, err = json.Marshal(t.Result)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("trace[%d]: params and result must have the form of JSON", i)
		}
		if err := e.Complete(0); err != nil {
			return nil, 0, fmt.Errorf("trace[%d]: %w", i, err)
		}
		if t.Judge {
			if judged >= 0 {
				return nil, 0, errors.New("only one event of a trace can be judged")
			}
			judged = i
		}
		out = append(out, e)
	}
	if judged < 0 {
		return nil, 0, errors.New("one event of the trace must have judge: true")
	}
	return out, judged, nil
}

// buildTrace makes the case of a trace. Its flow is for the oracle and the
// labels: what the judged event carries.
func (f *file) buildTrace() (Case, error) {
	c := Case{ID: f.ID, Kind: Kind(f.Kind), Family: f.Family, Pairs: f.Pairs, Goal: f.Goal, Effect: f.Effect, Secret: f.Secret, Keep: f.Keep}
	if f.Payload != "" || f.Span != "" || f.From != (from{}) || f.To != (to{}) || f.Intent != "" {
		return c, errors.New("a trace has host, surface and trace in place of from, to, intent, payload and span")
	}
	if f.Host == "" {
		return c, errors.New("a trace needs its host")
	}
	if err := c.Flow.Surface.UnmarshalText([]byte(f.Surface)); err != nil {
		return c, err
	}
	var err error
	if c.Trace, c.Judged, err = f.events(); err != nil {
		return c, err
	}
	c.Flow.Payload = Carried(&c.Trace[c.Judged])
	c.Flow.Session.Agent = "bench"
	return c, c.check()
}

// Carried is the text that an event carries: its documents as they stand, and
// their strings without escapes.
func Carried(e *schema.Event) string {
	return e.Text + "\n" + Leaves(e.Params) + "\n" + Leaves(e.Result)
}

// Leaves returns a document as it stands, and its strings without escapes.
func Leaves(data json.RawMessage) string {
	if len(data) == 0 {
		return ""
	}
	var v any
	if json.Unmarshal(data, &v) != nil {
		return string(data)
	}
	b := append([]byte(nil), data...)
	b = append(b, '\n')
	var walk func(any)
	walk = func(v any) { // encoding/json bounds the depth
		switch x := v.(type) {
		case string:
			b = append(append(b, x...), '\n')
		case []any:
			for _, y := range x {
				walk(y)
			}
		case map[string]any:
			for _, y := range x {
				walk(y)
			}
		}
	}
	walk(v)
	return string(b)
}

// yamlBudget refuses a document whose aliases would make it far larger than its
// file.
func yamlBudget(n *yaml.Node) error {
	for _, c := range n.Content {
		if c.Kind == yaml.AliasNode || c.Anchor != "" {
			return errors.New("anchors and aliases are not taken")
		}
		if err := yamlBudget(c); err != nil {
			return err
		}
	}
	return nil
}
