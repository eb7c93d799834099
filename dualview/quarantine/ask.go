package quarantine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/auditd/dualview"
	"example.org/auditd/inference"
	"example.org/auditd/prompts"
	"example.org/auditd/schema"
)

// margin is for what an estimate of tokens gets wrong, beside what a server
// counts itself.
const margin = 64

// notesLength is how many characters the notes on a part of a large value may
// have.
const notesLength = 1200

// inquiry is one inspection on its way through the model.
type inquiry struct {
	*Quarantine
	question string
	calls    int // that are left
}

// answer resolves the values and asks about them: in one call if they fit
// together, else in as few as they fit into, whose notes are then asked about
// in their place. Values that would need more calls than are allowed are
// refused whole.
func (q *Quarantine) answer(ctx context.Context, r *Request, f *form, question string) (answer, int, error) {
	i := &inquiry{q, question, q.cfg.Calls}
	budget, err := i.budget(f)
	if err != nil {
		return nil, 0, err
	}
	var parts []part
	size := 0
	for n, s := range r.Symbols {
		info, err := q.cfg.Table.Info(ctx, q.cfg.Owner, s)
		if err != nil {
			return nil, 0, err
		}
		// No part has more bytes than four for each token.
		if size += int(info.Size); size > 4*budget*q.cfg.Calls {
			return nil, 0, ErrTooLarge
		}
		o, err := q.cfg.Table.Resolve(ctx, string(s), dualview.Raw, dualview.Grant{By: dualview.ByPolicy, Owner: q.cfg.Owner, AgentTrusted: r.AgentTrusted,
			Sink: schema.Sink{Kind: schema.SinkTool, Tool: Tool}, Expires: q.cfg.Now().Add(q.cfg.Timeout)})
		if err != nil {
			return nil, 0, err
		}
		pieces := split(fmt.Sprintf("value %d", n+1), o.Reveal(), budget, q.cfg.Calls)
		if pieces == nil {
			return nil, 0, ErrTooLarge
		}
		parts = append(parts, pieces...)
	}
	a, err := i.reduce(ctx, f, parts)
	if err != nil {
		return nil, 0, err
	}
	enc, err := schema.Encode(map[string]any(a))
	return a, len(enc), err
}

// budget is how many tokens of data one call has room for.
func (i *inquiry) budget(f *form) (int, error) {
	left := i.cfg.Model.Window() - i.output(f) - margin - prompts.EstimateTokens(system) - prompts.EstimateTokens(prompt(i.question, f.text, nil, ""))
	if left < 128 {
		return 0, fmt.Errorf("%w: question and form leave no room in the model's window", ErrTooLarge)
	}
	return left, nil
}

func (i *inquiry) output(f *form) int { return min(f.tokens, i.cfg.Output, i.cfg.Model.Window()/3) }

// reduce asks about parts until one call holds them all.
func (i *inquiry) reduce(ctx context.Context, f *form, parts []part) (answer, error) {
	final, err := i.budget(f)
	if err != nil {
		return nil, err
	}
	notes, err := newForm(&shape{kind: "string", length: notesLength})
	if err != nil {
		return nil, err
	}
	for {
		if calls := pack(parts, final); len(calls) == 1 {
			return i.ask(ctx, i.question, f, calls[0])
		}
		budget, err := i.budget(notes)
		if err != nil {
			return nil, err
		}
		calls := pack(parts, min(budget, final))
		if len(calls) >= i.calls {
			return nil, ErrTooLarge
		}
		var next []part
		for n, c := range calls {
			a, err := i.ask(ctx, "Write down everything in the data that helps to answer this question, with the exact words and numbers. "+i.question, notes, c)
			if err != nil {
				return nil, err
			}
			text, ok := a["result"].(string)
			if !ok {
				return nil, errAnswer
			}
			// Notes are as foreign as what they are about.
			pieces := split(fmt.Sprintf("notes on portion %d of the values", n+1), text, min(budget, final), 1)
			if pieces == nil {
				return nil, ErrTooLarge
			}
			next = append(next, pieces...)
		}
		if n := len(pack(next, final)); n > 1 && n >= len(calls) {
			return nil, ErrTooLarge // it does not get any smaller
		}
		parts = next
	}
}

// ask makes one call, and again where it failed in a way that may pass.
func (i *inquiry) ask(ctx context.Context, question string, f *form, parts []part) (answer, error) {
	var last error
	for try := range i.cfg.Tries {
		if try > 0 && !errors.Is(last, errAnswer) {
			timer := time.NewTimer(i.cfg.Pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return nil, ctx.Err()
			}
		}
		if i.calls--; i.calls < 0 {
			return nil, errors.Join(ErrTooLarge, last)
		}
		code, err := newCode(i.cfg.Rand, parts)
		if err != nil {
			return nil, err
		}
		text, err := i.call(ctx, &inference.Completion{System: system, User: prompt(question, f.text, parts, code), Schema: f.text, Output: i.output(f)})
		if err == nil {
			var a answer
			if a, err = f.parse([]byte(text)); err == nil {
				return a, nil
			}
		}
		if last = err; !mayPass(err) || ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

// mayPass reports whether asking again makes sense.
func mayPass(err error) bool {
	if errors.Is(err, errAnswer) {
		return true
	}
	switch inference.CauseOf(err) {
	case inference.CauseUnavailable, inference.CauseStatus, inference.CauseBusy, inference.CauseEmpty, inference.CauseMalformed:
		return true
	}
	return false
}

// call waits for a place and calls the model. It returns when ctx ends, whatever
// the model does; the place is given back when the model does.
func (i *inquiry) call(ctx context.Context, c *inference.Completion) (string, error) {
	select {
	case i.slots <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	type reply struct {
		text string
		err  error
	}
	done := make(chan reply, 1)
	go func() {
		r := reply{err: errPanic}
		defer func() {
			if recover() != nil {
				r = reply{err: errPanic}
			}
			<-i.slots
			done <- r
		}()
		r.text, _, r.err = i.cfg.Model.Complete(ctx, c)
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return "", r.err
		}
		return r.text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
