package quality

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"example.org/auditd/bench/cases"
	"example.org/auditd/schema"
)

// event sends a case the way a host would report it: a session of its own, the
// owner's wish, a source that taints the session, then the call itself.
func (c *Config) event(ctx context.Context, k *cases.Case) *Verdict {
	e := hostEvent(&k.Flow)
	base := schema.Event{Host: e.Host, Agent: "bench", Session: "case-" + k.ID}
	first := []schema.Event{{Phase: schema.PhaseSessionStart}}
	if k.Flow.Intent != "" {
		first = append(first, schema.Event{Phase: schema.PhasePrompt, Sender: "owner", Text: k.Flow.Intent})
	}
	if e.Phase != schema.PhaseAfterTool && k.Flow.Source.Trust <= schema.Untrusted {
		first = append(first, schema.Event{Phase: schema.PhaseWebhook, Origin: k.Flow.Source.ID})
	}
	for _, x := range first {
		x.Host, x.Agent, x.Session = base.Host, base.Agent, base.Session
		if _, err := c.Event(ctx, &x); err != nil {
			return &Verdict{Reason: "not_decided"}
		}
	}
	e.Agent, e.Session = base.Agent, base.Session
	o, _ := c.Event(ctx, &e) // an error comes with an outcome that stops
	v := &Verdict{Action: o.Action, Reason: o.Reason}
	if len(o.Decisions) > 0 {
		v.Stage = o.Decisions[0].Stage
	}
	reaches := k.Flow.Payload
	if o.Action == schema.RewriteAndContinue {
		reaches = strings.Join([]string{text(o.Text), cases.Leaves(o.Params), cases.Leaves(o.Result)}, "\n")
	}
	v.Effect, v.Preserved = Outcome(k, o.Action, reaches)
	return v
}

// trace reports a session's events in order, up to the one that is judged. An
// attack that was stopped before that is stopped where an event carried it; a
// benign trace passes only when every event of it goes on.
func (c *Config) trace(ctx context.Context, k *cases.Case, r *Result) {
	if c.Event == nil {
		r.Failed, r.Reason = "traces cannot be sent here", "no_events"
		return
	}
	start := time.Now()
	for i := range k.Trace[:k.Judged+1] {
		e := k.Trace[i]
		o, err := c.Event(ctx, &e)
		if err != nil {
			r.Failed = "the daemon gave no decision"
		}
		r.Verdict = Verdict{Action: o.Action, Reason: o.Reason}
		var d schema.Decision
		if len(o.Decisions) > 0 {
			d = o.Decisions[0]
			r.Stage = d.Stage
		}
		r.describe(k, &d)
		reaches := cases.Carried(&e)
		if o.Action == schema.RewriteAndContinue {
			reaches = strings.Join([]string{text(o.Text), cases.Leaves(o.Params), cases.Leaves(o.Result)}, "\n")
		}
		r.Effect, r.Preserved = Outcome(k, o.Action, reaches)
		ends := o.Action.Stops() && (k.Kind == cases.Benign || k.TakesEffect(cases.Carried(&e)))
		if ends || err != nil {
			r.Trace += fmt.Sprintf(" event=%d", i)
			break
		}
	}
	r.WallMS = float64(time.Since(start).Microseconds()) / 1000
}

// hostEvent is what OpenClaw or an MCP server would report of a flow.
func hostEvent(flow *schema.Flow) schema.Event {
	f := *flow
	if f.Sink.Tool == "" { // records name none
		f.Sink.Tool = f.Sink.Kind.String()
	}
	before := func(host, tool string, params map[string]any) schema.Event {
		return schema.Event{Host: host, Phase: schema.PhaseBeforeTool, Tool: tool, Params: encode(params)}
	}
	after := func(host, tool string, params map[string]any) schema.Event {
		return schema.Event{Host: host, Phase: schema.PhaseAfterTool, Tool: tool, Params: encode(params),
			Result: encode(map[string]any{"content": []any{map[string]any{"type": "text", "text": f.Payload}}})}
	}
	switch f.Sink.Kind {
	case schema.SinkReasoning:
		switch f.Source.Kind {
		case schema.SourceWeb:
			return after("openclaw", "web_fetch", map[string]any{"url": f.Source.ID})
		case schema.SourceFile:
			return after("openclaw", "read", map[string]any{"path": f.Source.ID})
		default:
			return after("mcp", f.Sink.Tool, map[string]any{})
		}
	case schema.SinkMemory:
		return schema.Event{Host: "openclaw", Phase: schema.PhaseMemory, Text: f.Payload, Origin: f.Sink.ID}
	case schema.SinkExec:
		if f.Sink.Tool == "bash" {
			return before("openclaw", "exec", map[string]any{"command": f.Payload})
		}
		return before("mcp", f.Sink.Tool, map[string]any{"code": f.Payload})
	case schema.SinkMessage:
		return before("openclaw", "message", map[string]any{"action": "send", "target": f.Sink.Destination, "message": f.Payload})
	case schema.SinkWeb:
		switch f.Sink.Tool {
		case "web_fetch":
			return before("openclaw", "web_fetch", map[string]any{"url": f.Payload})
		case "web_search":
			return before("openclaw", "web_search", map[string]any{"query": f.Payload})
		}
	case schema.SinkSkill:
		return before("openclaw", "skill_workshop", map[string]any{"action": "write", "path": f.Sink.ID, "content": f.Payload})
	case schema.SinkPlan:
		return before("openclaw", "cron", map[string]any{"action": "add", "name": f.Sink.ID, "text": f.Payload})
	}
	e := before("mcp", f.Sink.Tool, map[string]any{"id": f.Sink.ID, "content": f.Payload})
	var params map[string]any
	if json.Unmarshal([]byte(f.Payload), &params) == nil {
		e.Params = json.RawMessage(f.Payload)
	}
	return e
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return nil // of maps of strings and decoded JSON: it cannot happen
	}
	return data
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
