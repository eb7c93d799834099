package mediate

import (
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"example.org/auditd/dualview/policy"
	"example.org/auditd/schema"
)

// What the model proxy calls what it reports of a request, as origins. A host
// that chose them itself would get no more: none of them is trusted by its name.
const (
	OriginPrompt     = "system-prompt"
	originDefinition = "tool-definition"
	originSaid       = "conversation"
)

// maxVouched bounds how many system prompts are remembered.
const maxVouched = 4096

// vouched remembers the system prompts that runtimes reported themselves when a
// session began. Its zero value has none.
type vouched struct {
	mu    sync.Mutex
	order list.List // of string, the youngest first
	known map[string]*list.Element
}

func (v *vouched) add(from string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.known[from]; e != nil {
		v.order.MoveToFront(e)
		return
	}
	if v.known == nil {
		v.known = map[string]*list.Element{}
	}
	v.known[from] = v.order.PushFront(from)
	if len(v.known) > maxVouched {
		delete(v.known, v.order.Remove(v.order.Back()).(string))
	}
}

func (v *vouched) has(from string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[from] != nil
}

// sessionStart tells the model about symbols. A system prompt that the runtime's
// own hook reports is its own, and is known again when it comes by the proxy.
func (m *Mediator) sessionStart(e *schema.Event) schema.Outcome {
	if e.Text != "" {
		m.vouched.add(policy.InstructionsOrigin(e.Host, "", false, []byte(e.Text)))
	}
	text := SystemPrompt
	return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "system_prompt", Message: "How to work with symbols.", Text: &text}
}

// inspect handles what a proxy finds in a request of the model: what nobody has
// reported before.
func (m *Mediator) inspect(ctx context.Context, e *schema.Event, a Auditor) (schema.Outcome, error) {
	switch {
	case e.Origin == OriginPrompt && len(e.Result) == 0:
		return m.systemPrompt(ctx, e)
	case e.Tool == originDefinition && len(e.Result) > 0:
		return m.definition(ctx, e)
	case e.Origin == originSaid && len(e.Result) > 0:
		args, err := m.cfg.Policy().SymboliseArguments(ctx, m.cfg.Table, m.request(e), e.Result)
		return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "symbols", Message: "What nobody has seen the model call is a symbol.", Result: args}, err
	case len(e.Result) > 0:
		return m.result(ctx, e, a, new(call))
	}
	return m.text(ctx, e, a)
}

// systemPrompt shows a system prompt that the runtime or the owner vouches for.
// A person is asked about another one: as a symbol it would be of no use, and in
// clear it would steer the model.
func (m *Mediator) systemPrompt(ctx context.Context, e *schema.Event) (schema.Outcome, error) {
	if e.Text == SystemPrompt {
		return schema.Outcome{Action: schema.Allow, Reason: "own", Message: "Allowed: it is auditd's own."}, nil
	}
	from := policy.InstructionsOrigin(e.Host, "", false, []byte(e.Text))
	switch trust := m.cfg.Policy().InstructionsTrust(from); {
	case trust == "untrusted":
		return schema.Outcome{Action: schema.Block, Reason: "instructions_refused", Message: "Stopped: a rule of the owner distrusts this system prompt."}, nil
	case trust != "trusted" && !m.vouched.has(from):
		flow := &schema.Flow{Payload: e.Text, Surface: schema.Context, Boundary: schema.BoundaryReasoning, Source: schema.Source{Kind: schema.SourceOther, ID: from, Trust: schema.Untrusted},
			Sink: schema.Sink{Kind: schema.SinkReasoning, Tool: OriginPrompt}, Session: schema.Session{Agent: e.Host + ":" + e.Agent, ID: e.Session}}
		out, approved, err := m.question(ctx, e, flow, "unknown_instructions", []string{"nobody vouches for this system prompt; a rule of isolation.yaml can: {instructions: " + from + ", trust: trusted}"},
			"Let "+e.Host+" use this system prompt")
		if err != nil || !approved {
			return out, err
		}
		m.vouched.add(from)
	}
	text, err := m.cfg.Policy().ShowText(ctx, m.cfg.Table, m.request(e), e.Text)
	if err != nil {
		return schema.Outcome{}, err
	}
	return replaced(e.Text, text, "shown without what is known to be untrusted"), nil
}

// definition shows the description of a tool that the owner vouches for. There
// are many of them and a server changes them as it likes, so nobody is asked:
// another one is taken out, and the tool's name is left.
func (m *Mediator) definition(ctx context.Context, e *schema.Event) (schema.Outcome, error) {
	name := definedName(e.Result)
	from := policy.InstructionsOrigin(e.Host, name, true, e.Result)
	if m.cfg.Policy().InstructionsTrust(from) != "trusted" {
		m.cfg.Logger.WarnContext(ctx, "the description of a tool is withheld: a rule in isolation.yaml can trust it", "instructions", from)
		return schema.Outcome{Action: schema.Block, Reason: "unknown_instructions", Message: "Stopped: nobody vouches for what this tool says about itself. The owner can, with a rule about instructions in isolation.yaml."}, nil
	}
	doc, err := m.cfg.Policy().ShowDocument(ctx, m.cfg.Table, m.request(e), e.Result)
	if err != nil {
		return schema.Outcome{}, err
	}
	if bytes.Equal(doc, e.Result) {
		return schema.Outcome{Action: schema.Allow, Reason: "trusted", Message: "Allowed: the owner trusts it."}, nil
	}
	return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "symbols", Message: "What is known to be untrusted in it is a symbol.", Result: doc}, nil
}

// definedName is the name that a definition gives its tool, in the forms of the
// providers; empty where it has none.
func definedName(doc []byte) string {
	var d struct {
		Name     json.RawMessage `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(doc, &d) != nil {
		return ""
	}
	name := d.Function.Name
	if len(d.Name) > 0 && (json.Unmarshal(d.Name, &name) != nil || d.Function.Name != "") {
		return "" // one name or the other
	}
	return name
}

// question asks a person about a flow, or uses the answer that the event's ticket
// stands for.
func (m *Mediator) question(ctx context.Context, e *schema.Event, flow *schema.Flow, reason string, reasons []string, summary string) (out schema.Outcome, approved bool, err error) {
	if err := flow.Complete(0); err != nil {
		return schema.Outcome{}, false, err
	}
	if ok, tried, err := m.redeem(ctx, e.Ticket, flow); err != nil || tried {
		return schema.Outcome{}, ok && err == nil, err
	}
	if m.cfg.Ask == nil {
		return schema.Outcome{Action: schema.Block, Reason: "nobody_to_ask", Message: "Stopped: a person would have to see this, and nobody can be asked."}, false, nil
	}
	q, err := m.cfg.Ask(ctx, &schema.Question{Flow: flow, Reasons: reasons, Hard: true, Summary: summary})
	if err != nil {
		return schema.Outcome{}, false, err
	}
	if q == nil {
		return schema.Outcome{}, false, errors.New("the question was lost")
	}
	if q.Answer == "denied" {
		return schema.Outcome{Action: schema.Block, Reason: "denied", Message: "Stopped: the owner was asked about this very call and said no."}, false, nil
	}
	if e.Ticket == "" && q.Answer == "approved" && q.Ticket != "" {
		// The yes came after the first call had given up, and this one carries
		// no ticket. It is for this very call, and is used up now.
		if ok, tried, err := m.redeem(ctx, q.Ticket, flow); err != nil || tried {
			return schema.Outcome{}, ok && err == nil, err
		}
	}
	asked := schema.Decision{Action: schema.DeferToHuman, Question: q.ID, Ticket: q.Ticket, Expires: &q.Expires}
	return schema.Outcome{Action: schema.DeferToHuman, Reason: reason, Decisions: []schema.Decision{asked}, Message: "A person has to see this first: " + reasons[0] + ".", Ticket: q.Ticket}, false, nil
}

// redeem uses up what one of the tickets gives a right to. tried says that one of
// them did, or that it failed.
func (m *Mediator) redeem(ctx context.Context, tickets string, flow *schema.Flow) (ok, tried bool, err error) {
	if m.cfg.Redeem == nil {
		return false, false, nil
	}
	for i, ticket := range strings.Split(tickets, ",") {
		if ticket == "" || i >= maxTickets {
			continue
		}
		ok, err := m.cfg.Redeem(ctx, ticket, flow.Binding())
		if err != nil || ok {
			return ok, true, err
		}
	}
	return false, false, nil
}
