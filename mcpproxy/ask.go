package mcpproxy

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// event is what every report of this proxy has.
func (p *Proxy) event(phase schema.Phase, tool string) *schema.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &schema.Event{Host: Host, Agent: p.agent, Session: p.cfg.Session, Phase: phase, Tool: p.toolName(tool), Workspace: p.cfg.Workspace}
}

func (p *Proxy) toolName(tool string) string {
	name := "mcp__" + p.cfg.Server + "__" + tool
	if len(name) > schema.MaxName {
		name = name[:schema.MaxName]
	}
	return name
}

// ask reports e, and once more with the ticket when the owner has approved what
// was deferred.
func (p *Proxy) ask(ctx context.Context, e *schema.Event) schema.Outcome {
	o, err := p.cfg.Report(ctx, e)
	if err != nil && o.Action != schema.Block {
		return schema.Outcome{Reason: "not_decided", Message: "No decision could be had."}
	}
	if o.Action != schema.DeferToHuman || o.Ticket == "" || p.cfg.Answered == nil {
		return o
	}
	for _, d := range o.Decisions {
		if d.Action == schema.DeferToHuman && (d.Question == "" || p.cfg.Answered(ctx, d.Question) != "approved") {
			return o
		}
	}
	again := *e
	again.Ticket = o.Ticket
	if o, err = p.cfg.Report(ctx, &again); err != nil && o.Action != schema.Block {
		return schema.Outcome{Reason: "not_decided", Message: "No decision could be had."}
	}
	return o
}

// outward asks about values on their way to the server, inward about those on
// their way to the client. Each returns what may go on in v's place.
func (p *Proxy) outward(ctx context.Context, tool, callID string, v jsontext.Value) (jsontext.Value, schema.Outcome) {
	e := p.event(schema.PhaseBeforeTool, tool)
	e.CallID, e.Params = callID, []byte(v)
	o := p.ask(ctx, e)
	return passed(v, jsontext.Value(o.Params), o)
}

func (p *Proxy) inward(ctx context.Context, phase schema.Phase, tool, callID string, params, v jsontext.Value, failed bool) (jsontext.Value, schema.Outcome) {
	e := p.event(phase, tool)
	e.CallID, e.Params, e.Result, e.IsError = callID, []byte(params), []byte(v), failed
	o := p.ask(ctx, e)
	return passed(v, jsontext.Value(o.Result), o)
}

// passed is what may go on: nil when nothing may.
func passed(v, rewritten jsontext.Value, o schema.Outcome) (jsontext.Value, schema.Outcome) {
	switch {
	case o.Action == schema.Allow:
		return v, o
	case o.Action == schema.RewriteAndContinue && len(rewritten) > 0 && rewritten.Kind() == v.Kind():
		return rewritten, o
	case o.Action == schema.RewriteAndContinue:
		o.Action, o.Message = schema.Block, "Blocked: what was to be changed could not be put back."
	}
	return nil, o
}

// explain is what the agent reads in place of what was stopped.
func explain(o schema.Outcome) string {
	text := o.Message
	if text == "" {
		text = "Blocked."
	}
	return "auditd: " + text + o.HowToApprove("repeat exactly the same call")
}
