// Package textmodel is what every backend that talks to a language model does
// with a record: render it, send each prompt, read the answers strictly, make
// one report of them. A backend only sends.
package textmodel

import (
	"context"
	"errors"

	"example.org/auditd/inference"
	"example.org/auditd/prompts"
	"example.org/auditd/schema"
)

// Send makes one model call, adds its cost to usage and returns the text that
// the model wrote, or an *inference.Error.
type Send func(ctx context.Context, p *prompts.Prompt, usage *schema.Usage) (string, error)

// Model is a language model behind a protocol.
type Model struct {
	Backend string // as errors name it
	Render  *prompts.Renderer
	Send    Send
}

// Audit asks the model about the record, window by window if it is long. A
// window that blocks ends it: nothing that follows could undo it.
func (m *Model) Audit(ctx context.Context, rec *schema.Record, usage *schema.Usage) (schema.Report, error) {
	ps, err := m.Render.Audit(rec)
	if err != nil {
		return schema.Report{}, m.fail(err)
	}
	var answers []*prompts.Answer
	for _, p := range ps {
		a, err := m.ask(ctx, p, usage)
		if err != nil {
			return schema.Report{}, err
		}
		answers = append(answers, a)
		if a.Decision() == schema.Block {
			break
		}
	}
	rep, err := prompts.Report(answers)
	if err == nil {
		err = rep.ValidateRewrite(rec.Flow.Payload)
	}
	if err != nil {
		return schema.Report{}, m.fail(err)
	}
	return rep, nil
}

// Arbitrate asks the model to decide an escalated flow.
func (m *Model) Arbitrate(ctx context.Context, rec *schema.ArbiterRecord, usage *schema.Usage) (schema.ArbiterReport, error) {
	p, err := m.Render.Arbitrate(rec)
	if err != nil {
		return schema.ArbiterReport{}, m.fail(err)
	}
	a, err := m.ask(ctx, p, usage)
	if err != nil {
		return schema.ArbiterReport{}, err
	}
	rep, err := prompts.ArbiterReport(a)
	if err != nil {
		return schema.ArbiterReport{}, m.fail(err)
	}
	return rep, nil
}

func (m *Model) ask(ctx context.Context, p *prompts.Prompt, usage *schema.Usage) (*prompts.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, &inference.Error{Cause: inference.CauseOf(err), Backend: m.Backend, Err: err}
	}
	text, err := m.Send(ctx, p, usage)
	if err != nil {
		return nil, err
	}
	usage.Windows++
	a, err := p.Parse([]byte(text))
	if err != nil {
		return nil, m.fail(err)
	}
	return a, nil
}

func (m *Model) fail(err error) *inference.Error {
	cause := inference.CauseMalformed
	switch {
	case errors.Is(err, prompts.ErrTooLong):
		cause = inference.CauseTruncated
	case errors.Is(err, prompts.ErrCode):
		cause = inference.CauseCanary
	case errors.Is(err, prompts.ErrEmpty):
		cause = inference.CauseEmpty
	}
	return &inference.Error{Cause: cause, Backend: m.Backend, Err: err}
}
