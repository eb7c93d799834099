package isolate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"example.org/auditd/api"
	"example.org/auditd/dualview/policy"
	"example.org/auditd/schema"
)

// Rules lets agents see the owner's rules of isolation and propose changes.
// Every change is a question to a person; the model's word is never enough.
type Rules struct {
	Path string // of the owner's document
	Ask  func(context.Context, *schema.Question) (*schema.Question, error)
	// Redeem uses up the right that an answer gave.
	Redeem func(ctx context.Context, ticket string, binding schema.Digest) (bool, error)
	// InForce reports whether the document is what holds. One that was edited
	// meanwhile is not changed: a yes to one rule would let in all of the edit.
	InForce func() bool
	// Changed is called when the document has changed.
	Changed func() error
	Now     func() time.Time

	mu sync.Mutex // one change at a time
}

// maxWhy bounds the agent's own words in a question.
const maxWhy = 500

// Change answers one request. The zero outcome stops, and so does every failure.
func (r *Rules) Change(ctx context.Context, c *api.RuleChange) schema.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, err := r.change(ctx, c)
	if err != nil {
		return stopped("rule_refused", "Stopped: "+err.Error()+".")
	}
	return out
}

// Errors that an agent reads: our own words, which quote nothing.
var (
	errOp     = errors.New("op must be add, list or del")
	errKind   = errors.New("only trust rules can be listed and changed by an agent; the owner writes usage rules into isolation.yaml")
	errRule   = errors.New("the rule cannot be read: it names exactly one of url, file, agent, sender, webhook and instructions, and trust is trusted or untrusted")
	errRules  = errors.New("the rules cannot be read; the owner sees why with auditd policy check")
	errEdited = errors.New("isolation.yaml was edited and is not in force; the owner sees to it with auditd policy reload")
	errAsk    = errors.New("nobody could be asked")
	errWrite  = errors.New("the change could not be made; the rules are as they were")
)

func (r *Rules) change(ctx context.Context, c *api.RuleChange) (schema.Outcome, error) {
	if c.Kind != "trust" {
		return schema.Outcome{}, errKind
	}
	var change policy.Change
	switch c.Op {
	case "list":
		return r.list()
	case "add":
		change.Add = new(policy.OriginRule)
		if err := schema.Decode(c.Rule, change.Add); err != nil {
			return schema.Outcome{}, errRule
		}
	case "del":
		change.Remove = c.ID
	default:
		return schema.Outcome{}, errOp
	}
	if !r.InForce() {
		return schema.Outcome{}, errEdited
	}
	p, err := policy.Propose(r.Path, change)
	if err != nil {
		return schema.Outcome{}, errRule
	}
	q := &schema.Question{Flow: p.Flow, Binding: p.Binding, Summary: p.Summary, Reasons: []string{"policy_change"}, Hard: true}
	if c.Why != "" {
		q.Reasons = append(q.Reasons, "the agent says: "+strings.ToValidUTF8(c.Why[:min(len(c.Why), maxWhy)], ""))
	}
	asked, err := r.Ask(ctx, q)
	if err != nil || asked == nil {
		return schema.Outcome{}, errAsk
	}
	switch asked.Answer {
	case "denied":
		return stopped("denied", "Stopped: the owner was asked about this very change and said no."), nil
	case "approved":
		return r.apply(ctx, p, asked)
	}
	waits := schema.Decision{Action: schema.DeferToHuman, Question: asked.ID, Ticket: asked.Ticket, Expires: &asked.Expires}
	return schema.Outcome{Action: schema.DeferToHuman, Reason: "policy_change", Message: "The owner has to allow this change. Ask again once that has happened.", Ticket: asked.Ticket, Decisions: []schema.Decision{waits}}, nil
}

// apply makes an approved change, and uses the approval up.
func (r *Rules) apply(ctx context.Context, p *policy.Proposal, answer *schema.Question) (schema.Outcome, error) {
	if ok, err := r.Redeem(ctx, answer.Ticket, p.Binding); err != nil || !ok {
		return schema.Outcome{}, errWrite
	}
	if err := p.Apply(r.Path, answer, r.Now()); err != nil {
		return schema.Outcome{}, errWrite
	}
	if err := r.Changed(); err != nil {
		return schema.Outcome{}, fmt.Errorf("the change was made and is not in force: %w", errRules)
	}
	return schema.Outcome{Action: schema.Allow, Reason: "policy_changed", Message: "The owner allowed it, and it holds from now on."}, nil
}

func (r *Rules) list() (schema.Outcome, error) {
	d, err := policy.Read(r.Path)
	if err != nil {
		return schema.Outcome{}, errRules
	}
	doc, err := schema.Encode(map[string]any{"rules": append([]policy.Listed{}, d.List()...)})
	if err != nil {
		return schema.Outcome{}, errRules
	}
	return schema.Outcome{Action: schema.Allow, Reason: "listed", Message: "The owner's rules about origins.", Result: doc}, nil
}
