package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"example.org/auditd/api"
	"example.org/auditd/dualview/mediate"
	"example.org/auditd/firewall"
	"example.org/auditd/schema"
)

// Firewall is the auditing half.
type Firewall interface {
	AuditOn(context.Context, *schema.Flow, schema.Credential, firewall.Terms) schema.Decision
	EventOn(context.Context, *schema.Event, schema.Credential, firewall.Terms) schema.Outcome
	Note(context.Context, *schema.Flow, schema.Decision) schema.Decision
}

// Config is what Events is made of.
type Config struct {
	Firewall Firewall
	// Mediator is the isolating half. Nil: this machine cannot isolate, Missing
	// says why, and every event is stopped.
	Mediator *mediate.Mediator
	Missing  string
	// Inspect asks a model that decides nothing about symbols; nil refuses.
	Inspect func(context.Context, *api.Inspection) schema.Outcome
	// Rules are the owner's; nil refuses to change them.
	Rules    *Rules
	Deadline time.Duration // for an event whose host gives no shorter one
	MaxBody  int           // bytes of one text of an event
	Now      func() time.Time
	Logger   *slog.Logger
}

// Events answers the events of isolated agents. It is safe for concurrent use.
type Events struct {
	cfg     Config
	answers *answers
}

// New checks cfg.
func New(cfg Config) (*Events, error) {
	if cfg.Firewall == nil || cfg.Logger == nil || cfg.Now == nil {
		return nil, errors.New("isolate: Firewall, Logger and Now must be set")
	}
	if cfg.Mediator == nil && cfg.Missing == "" {
		return nil, errors.New("isolate: without a Mediator, Missing must say why")
	}
	if cfg.Deadline <= 0 {
		cfg.Deadline = 30 * time.Second
	}
	return &Events{cfg: cfg, answers: newAnswers(cfg.Now)}, nil
}

// Missing says why events are stopped, if they are.
func (ev *Events) Missing() string {
	if ev.cfg.Mediator == nil {
		return ev.cfg.Missing
	}
	return ""
}

// Event answers one event of an agent whose mode is isolate or both. It never
// fails: every failure stops.
func (ev *Events) Event(ctx context.Context, event *schema.Event, cred schema.Credential, mode schema.Mode) (out schema.Outcome) {
	if event == nil || cred != schema.CredentialHook && cred != schema.CredentialOwner {
		return schema.Outcome{Reason: "no_credential", Message: "Refused: the caller has no valid credential."}
	}
	e := *event
	if err := e.Complete(ev.cfg.MaxBody); err != nil {
		return ev.note(ctx, &e, stopped("invalid_event", "Refused: "+schema.Error(err)+"."))
	}
	patience := time.Duration(e.DeadlineMS) * time.Millisecond
	if patience <= 0 || patience > ev.cfg.Deadline {
		patience = ev.cfg.Deadline
	}
	// The answer is written and recorded within what is left.
	ctx, cancel := context.WithTimeout(ctx, patience-min(patience/4, time.Second))
	defer cancel()
	return ev.answers.once(ctx, &e, func() schema.Outcome {
		if ev.cfg.Mediator == nil {
			return ev.note(ctx, &e, stopped("isolation_unavailable", "Stopped: this agent is to be isolated and the machine cannot do that: "+ev.cfg.Missing+". The owner sees it in auditd doctor."))
		}
		return ev.note(ctx, &e, ev.decide(ctx, &e, cred, mode))
	})
}

func stopped(reason, message string) schema.Outcome {
	return schema.Outcome{Action: schema.Block, Reason: reason, Message: message}
}

// decide runs both halves, and leaves them when the host's patience ends. What
// they find out later is thrown away, and the call that they may have begun is
// ended.
func (ev *Events) decide(ctx context.Context, e *schema.Event, cred schema.Credential, mode schema.Mode) schema.Outcome {
	done := make(chan schema.Outcome)
	mine := *e // it may still be looked at when the answer has been given
	go func() {
		out := ev.run(ctx, &mine, cred, mode)
		select {
		case done <- out:
		case <-ctx.Done():
			if e.Phase == schema.PhaseBeforeTool {
				ev.cfg.Mediator.Forget(context.WithoutCancel(ctx), e)
			}
		}
	}()
	select {
	case out := <-done:
		return out
	case <-ctx.Done():
		return stopped("late", "Stopped: it took too long.")
	}
}

// run runs both halves. A panic in one of them stops.
func (ev *Events) run(ctx context.Context, e *schema.Event, cred schema.Credential, mode schema.Mode) (out schema.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			ev.cfg.Logger.ErrorContext(ctx, "isolation panicked", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			out = stopped("internal_error", "Stopped by an internal error. The daemon's log has the details.")
		}
	}()
	a := &auditor{ev.cfg.Firewall, cred, mode}
	if e.Phase == schema.PhaseSessionStart || e.Phase == schema.PhaseSessionEnd || e.Phase == schema.PhasePrompt && e.Sender == "owner" {
		// The firewall keeps the session's label and what its owner asked for.
		if o := ev.cfg.Firewall.EventOn(ctx, e, cred, firewall.Terms{}); o.Action != schema.Allow {
			return o
		}
	}
	return ev.cfg.Mediator.EventWith(ctx, e, a)
}

// auditor is the firewall, for one event.
type auditor struct {
	firewall Firewall
	cred     schema.Credential
	mode     schema.Mode
}

// Leaving audits a call with its originals. An agent that is isolated alone is
// held to the rules.
func (a *auditor) Leaving(ctx context.Context, l mediate.Leaving) schema.Outcome {
	return a.firewall.EventOn(ctx, l.Event, a.cred, firewall.Terms{Source: l.Source, Approved: l.Approved, HardOnly: l.Unasked, RulesOnly: l.Contained || a.mode == schema.ModeIsolate})
}

// Reading audits what would stay in clear.
func (a *auditor) Reading(ctx context.Context, f *schema.Flow) schema.Decision {
	return a.firewall.AuditOn(ctx, f, a.cred, firewall.Terms{Hide: true, RulesOnly: a.mode == schema.ModeIsolate})
}

// note records what became of an event, and takes out of the answer what the
// agent's side must not have. What cannot be recorded is stopped.
func (ev *Events) note(ctx context.Context, e *schema.Event, out schema.Outcome) schema.Outcome {
	d := schema.Decision{Action: out.Action, Reason: out.Reason, Message: out.Message}
	var asked []schema.Decision
	for _, o := range out.Decisions {
		if o.ID == "" { // the mediator's own question, which nobody has recorded
			d.Question, d.Ticket, d.Expires = o.Question, o.Ticket, o.Expires
			continue
		}
		asked = append(asked, bare(o))
	}
	if out.Action == schema.RewriteAndContinue {
		d.Mediation = schema.MediationSymbols
	}
	noted := ev.cfg.Firewall.Note(ctx, flowOf(e), d)
	if noted.Action != out.Action {
		if e.Phase == schema.PhaseBeforeTool && ev.cfg.Mediator != nil {
			ev.cfg.Mediator.Forget(context.WithoutCancel(ctx), e)
		}
		return schema.Outcome{Action: noted.Action, Reason: noted.Reason, Message: noted.Message, Decisions: []schema.Decision{noted}}
	}
	out.Decisions = append([]schema.Decision{noted}, asked...)
	if out.Action.Stops() {
		out.Params, out.Text, out.Result = nil, nil, nil
		if e.Phase == schema.PhaseAfterTool {
			// Some hosts take another result but not a no.
			out.Result = withheld(e.Result, out.Message)
		}
	}
	return out
}

// bare is a decision without anything that quotes what was decided about: the
// agent's side reads it.
func bare(d schema.Decision) schema.Decision {
	return schema.Decision{ID: d.ID, Time: d.Time, Action: d.Action, Mediation: d.Mediation, Stage: d.Stage, Reason: d.Reason, Message: d.Message,
		Ticket: d.Ticket, Expires: d.Expires, Question: d.Question, PolicyDigest: d.PolicyDigest, Cached: d.Cached, LogIndex: d.LogIndex, LatencyMS: d.LatencyMS}
}

// withheld is a text in place of a result. A result that is an object of content
// blocks, as most hosts have it, is one again.
func withheld(result json.RawMessage, message string) json.RawMessage {
	text := "[withheld by auditd] " + message
	block := []any{map[string]any{"type": "text", "text": text}}
	var shape any = text
	var object map[string]json.RawMessage
	switch {
	case json.Unmarshal(result, &object) == nil && object["content"] != nil:
		shape = map[string]any{"content": block, "isError": true}
	case strings.HasPrefix(strings.TrimLeft(string(result), " \t\r\n"), "["):
		shape = block
	}
	out, err := json.Marshal(shape)
	if err != nil {
		return nil
	}
	return out
}

// flowOf is an event as a flow, for the record: its labels and digests.
func flowOf(e *schema.Event) *schema.Flow {
	f := &schema.Flow{Source: schema.Source{Kind: schema.SourceOther, ID: e.Origin, Trust: schema.Untrusted}, Sink: schema.Sink{Kind: schema.SinkReasoning, Tool: e.Tool, Action: e.Phase.String()},
		Session: schema.Session{Agent: e.Host + ":" + e.Agent, ID: e.Session, CallID: e.CallID}}
	if filepath.IsAbs(e.Workspace) {
		f.Session.Workspace = e.Workspace
	}
	f.Payload = e.Text
	switch e.Phase {
	case schema.PhaseBeforeTool:
		f.Payload, f.Source.Kind, f.Sink.Kind = string(e.Params), schema.SourceAgent, schema.SinkTool
	case schema.PhaseAfterTool, schema.PhaseInspect:
		f.Source.Kind = schema.SourceTool
		if len(e.Result) > 0 {
			f.Payload = string(e.Result)
		}
	case schema.PhaseMessageOut:
		f.Source.Kind, f.Sink.Kind = schema.SourceAgent, schema.SinkMessage
	case schema.PhasePrompt:
		f.Source.Kind = schema.SourceUser
	case schema.PhaseWebhook:
		f.Source.Kind = schema.SourceWebhook
	case schema.PhaseMemory:
		f.Source.Kind = schema.SourceMemory
	}
	f.Surface, f.Boundary = f.Sink.Kind.Surface(), f.Sink.Kind.Boundary()
	return f
}
