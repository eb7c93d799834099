package firewall

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"example.org/auditd/schema"
)

var errPhase = errors.New("its phase is unknown")

// Event decides everything that a host's event carries. It never fails: every
// failure is an outcome that stops. An event that carries nothing to audit is
// answered without a model.
func (fw *Firewall) Event(ctx context.Context, e *schema.Event, cred schema.Credential) schema.Outcome {
	return fw.EventOn(ctx, e, cred, Terms{})
}

// EventOn is Event on terms that the isolating half sets.
func (fw *Firewall) EventOn(ctx context.Context, e *schema.Event, cred schema.Credential, terms Terms) (out schema.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			fw.cfg.Logger.ErrorContext(ctx, "event panicked", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			out = schema.Outcome{Reason: "internal_error", Message: messageOf("internal_error")}
		}
		if fw.cfg.Metrics.Event != nil && e != nil {
			fw.cfg.Metrics.Event(e.Phase, out.Action, out.Reason)
		}
	}()
	if cred != schema.CredentialHook && cred != schema.CredentialOwner {
		return schema.Outcome{Reason: "no_credential", Message: messageOf("no_credential")}
	}
	if e == nil {
		return schema.Outcome{Reason: "no_flow", Message: messageOf("no_flow")}
	}
	event := *e
	s := &scene{event: &event, terms: terms, agent: event.Host + ":" + event.Agent, key: event.Host + "\x00" + event.Session}
	if err := event.Complete(fw.cfg.MaxPayload); err != nil {
		return fw.refuse(ctx, s, cred, nil, "invalid_event", schema.Error(err))
	}
	ctx, cancel := context.WithTimeout(ctx, fw.patience(event.DeadlineMS))
	defer cancel()
	s.label, s.intent = fw.sessions.label(s.key)
	p, err := fw.plan(s)
	if err != nil {
		return fw.refuse(ctx, s, cred, p.doc, "invalid_event", err.Error())
	}
	var decided []part
	for _, x := range p.parts {
		if x.screen && terms.Source == nil && fw.screened(x.flow) {
			continue
		}
		d := fw.AuditOn(ctx, x.flow, cred, terms)
		out.Decisions = append(out.Decisions, d)
		decided = append(decided, x)
		if d.Action == schema.Block {
			break // nothing that follows could make it better
		}
	}
	if len(out.Decisions) == 0 {
		note := p.note
		if note == "" {
			note = "screened"
		}
		return schema.Outcome{Action: schema.Allow, Reason: note, Message: "Allowed: there is nothing to audit."}
	}
	return fw.combine(ctx, s, cred, p, decided, out.Decisions)
}

// screened reports whether the precheck finds nothing at all in a flow whose
// arguments only name what is read.
func (fw *Firewall) screened(f *schema.Flow) bool {
	if fw.cfg.Check == nil {
		return false
	}
	g := *f
	if g.Complete(fw.cfg.MaxPayload) != nil {
		return false
	}
	pre := fw.cfg.Check(&g)
	return pre != nil && !pre.HardBlock && len(pre.Signals) == 0 && pre.Coverage.Bytes >= pre.Coverage.Total
}

// combine makes one outcome of the decisions: the worst counts, and rewrites
// go back to where their texts came from.
func (fw *Firewall) combine(ctx context.Context, s *scene, cred schema.Credential, p plan, parts []part, decisions []schema.Decision) schema.Outcome {
	worst := 0
	var tickets []string
	rewritten := false
	for i, d := range decisions {
		if d.Action < decisions[worst].Action {
			worst = i
		}
		if d.Ticket != "" {
			tickets = append(tickets, d.Ticket)
		}
		rewritten = rewritten || d.Action == schema.RewriteAndContinue
	}
	w := decisions[worst]
	out := schema.Outcome{Action: w.Action, Reason: w.Reason, Message: w.Message, Decisions: decidingFirst(decisions, worst)}
	switch {
	case w.Action == schema.DeferToHuman:
		out.Ticket = strings.Join(tickets, ",")
		fw.withhold(s, p.doc, &out)
	case w.Action == schema.Block:
		fw.withhold(s, p.doc, &out)
	case rewritten:
		if err := putBack(&out, p.doc, parts, decisions); err != nil {
			return fw.refuse(ctx, s, cred, p.doc, "rewrite_not_applicable", err.Error(), decisions...)
		}
	}
	return out
}

func decidingFirst(decisions []schema.Decision, i int) []schema.Decision {
	out := []schema.Decision{decisions[i]}
	out = append(out, decisions[:i]...)
	return append(out, decisions[i+1:]...)
}

// putBack applies the rewrites to the field that the flows came from.
func putBack(out *schema.Outcome, doc *document, parts []part, decisions []schema.Decision) error {
	with := replacements{}
	from := parts[0].from
	for i, d := range decisions {
		if d.Action != schema.RewriteAndContinue {
			continue
		}
		if d.Payload == nil || parts[i].from != from {
			return errNoPlace
		}
		if from == fieldText {
			out.Text = d.Payload
			continue
		}
		if err := parts[i].chosen.apply(d.Diff, with); err != nil {
			return err
		}
	}
	if from == fieldText {
		return nil
	}
	data, err := doc.encode(with)
	if err != nil {
		return err
	}
	if from == fieldParams {
		out.Params = data
	} else {
		out.Result = data
	}
	return nil
}

// withhold gives a host whose tool has already run a result to show instead,
// in the shape of the one that is withheld: some hosts take another result but
// not a no.
func (fw *Firewall) withhold(s *scene, doc *document, out *schema.Outcome) {
	if s.event.Phase != schema.PhaseAfterTool || doc == nil || len(doc.raw) == 0 {
		return
	}
	if data, err := doc.withhold("[withheld by auditd] " + out.Message); err == nil {
		out.Result = data
	}
}

// refuse stops an event that could not be turned into flows, or not back, and
// records that.
func (fw *Firewall) refuse(ctx context.Context, s *scene, cred schema.Credential, doc *document, reason, problem string, decisions ...schema.Decision) schema.Outcome {
	f := s.flow("", schema.Source{}, schema.Sink{Tool: shortID(s.event.Tool)})
	f.Session = schema.Session{Agent: shortID(s.agent), ID: shortID(s.event.Session), CallID: shortID(s.event.CallID)}
	f.Ticket = ""
	t := &transfer{id: newID(), cred: cred, start: fw.cfg.Now(), margin: fw.cfg.Margin, original: f, flow: f}
	t.deadline = t.start.Add(t.margin)
	t.stage = schema.StageInput
	if reason == "rewrite_not_applicable" {
		t.stage = schema.StageRewrite
	}
	if fw.cfg.Policy != nil {
		if t.policy = fw.cfg.Policy(); t.policy != nil {
			t.mode = t.policy.Mode(s.agent)
		}
	}
	t.verdict = stop(reason, "Blocked: the event cannot be handled: "+problem+".")
	t.failed = true
	fw.failure(t.stage, reason)
	d := fw.settle(ctx, t)
	out := schema.Outcome{Action: d.Action, Reason: d.Reason, Message: d.Message, Decisions: append([]schema.Decision{d}, decisions...)}
	if d.Action.Stops() {
		fw.withhold(s, doc, &out)
	}
	return out
}

// patience is how long an event may take: as long as its host waits, and no
// longer than the daemon's own budget.
func (fw *Firewall) patience(ms int) time.Duration {
	d := time.Duration(ms) * time.Millisecond
	if d <= 0 || d > fw.cfg.Deadline {
		return fw.cfg.Deadline
	}
	return d
}
