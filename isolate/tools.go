package isolate

import (
	"context"

	"example.org/auditd/api"
	"example.org/auditd/schema"
)

// Inspect answers a question about symbols; without an inspector it refuses. The
// same question of the same call gets the same answer and is charged once.
func (ev *Events) Inspect(ctx context.Context, r *api.Inspection) schema.Outcome {
	e := &schema.Event{Host: r.Host, Agent: r.Agent, Session: r.Session, CallID: r.CallID, Phase: schema.PhaseInspect, Tool: "inspect_symbol", Text: r.Question}
	asked, err := schema.Encode(r)
	if err != nil {
		return stopped("invalid_event", "Refused: the question cannot be read.")
	}
	e.Params = asked // what makes it the same question
	return ev.tool(ctx, e, func(ctx context.Context) schema.Outcome {
		if ev.cfg.Inspect == nil {
			return stopped("no_inspector", "Stopped: the owner has configured no model for looking at symbols. It is set under inspector in config.yaml.")
		}
		return ev.cfg.Inspect(ctx, r)
	})
}

// ChangeRules lists the owner's rules or proposes a change.
func (ev *Events) ChangeRules(ctx context.Context, c *api.RuleChange) schema.Outcome {
	e := &schema.Event{Host: c.Host, Agent: c.Agent, Session: c.Session, CallID: c.CallID, Phase: schema.PhaseBeforeTool, Tool: "isolation_policy", Ticket: c.Ticket}
	asked, err := schema.Encode(c)
	if err != nil {
		return stopped("invalid_event", "Refused: the change cannot be read.")
	}
	e.Params = asked
	return ev.tool(ctx, e, func(ctx context.Context) schema.Outcome {
		if ev.cfg.Rules == nil {
			return stopped("no_rules", "Stopped: the rules cannot be changed here.")
		}
		return ev.cfg.Rules.Change(ctx, c)
	})
}

// tool answers a call of one of isolation's own tools, in time and recorded.
func (ev *Events) tool(ctx context.Context, e *schema.Event, answer func(context.Context) schema.Outcome) schema.Outcome {
	if err := e.Complete(ev.cfg.MaxBody); err != nil {
		return ev.note(ctx, e, stopped("invalid_event", "Refused: "+schema.Error(err)+"."))
	}
	if ev.cfg.Mediator == nil {
		return ev.note(ctx, e, stopped("isolation_unavailable", "Stopped: this machine cannot isolate: "+ev.cfg.Missing+"."))
	}
	ctx, cancel := context.WithTimeout(ctx, ev.cfg.Deadline)
	defer cancel()
	out := ev.answers.once(ctx, e, func() schema.Outcome { return ev.note(ctx, e, answer(ctx)) })
	ev.cfg.Mediator.Answered(e.Host, e.Session, e.CallID, out)
	return out
}
