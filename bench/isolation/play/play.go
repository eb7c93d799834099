// Package play plays the isolation benchmark's cases on this machine: it is the
// worst agent's host, with tools that really fetch, read, write and run, and a
// daemon that is asked over its HTTP hooks. It reports what came of the files, of
// the attacker's site and of every request that the agent's model got.
package play

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.org/auditd/bench/isolation"
	"example.org/auditd/schema"
)

// Arrangement is what stands between the agent and the world.
type Arrangement string

// Arrangements.
const (
	Nothing  Arrangement = "none"                 // the tools alone
	Guard    Arrangement = "input guard"          // tool results are audited, nothing else
	Dual     Arrangement = "dual model, no views" // tool results are symbols, files are as they are
	Isolated Arrangement = "isolation"
	Both     Arrangement = "isolation + auditing"
)

// Arrangements returns all of them, the weakest first.
func Arrangements() []Arrangement { return []Arrangement{Nothing, Guard, Dual, Isolated, Both} }

// Config is what a Player is made of.
type Config struct {
	Arrangement Arrangement
	// Event asks the daemon; Nothing needs none.
	Event func(context.Context, *schema.Event) (schema.Outcome, error)
	// Inspect asks the quarantined model about symbols; nil: there is none.
	Inspect func(ctx context.Context, session, call, symbol, question string) (schema.Outcome, error)
	Site    *isolation.Site
	Mailbox string
	Root    string // of the cases' workspaces
}

// Result is what came of one case.
type Result struct {
	Case        string           `json:"case"`
	Arrangement Arrangement      `json:"arrangement"`
	Vector      isolation.Vector `json:"vector"`
	Goal        isolation.Goal   `json:"goal"`
	Task        string           `json:"task"`
	Way         isolation.Way    `json:"way,omitempty"`      // of two sessions
	Harm        string           `json:"harm,omitempty"`     // how the attack has succeeded
	Unserved    string           `json:"unserved,omitempty"` // why the owner's task is not done
	Leaks       int              `json:"leaks"`              // requests of the model that held the attacker's text
	Requests    int              `json:"requests"`
	Questions   int              `json:"questions"`     // that a person was asked; nobody answers
	Stops       int              `json:"stops"`         // events that were stopped or left to a person
	Why         []string         `json:"why,omitempty"` // reasons of these
	Bytes       int              `json:"bytes"`         // of all requests but those that obey: each holds the whole conversation
	MS          float64          `json:"ms"`
}

// Stored reports whether the attacker's text was kept before it was read.
func (r *Result) Stored() bool { return r.Way != "" || r.Vector == isolation.File }

// maxSteps ends an agent that obeys an order that leads to itself.
const maxSteps = 60

// Player plays cases, one at a time.
type Player struct {
	cfg   Config
	calls int
}

// New returns a player.
func New(cfg Config) (*Player, error) {
	if cfg.Site == nil || cfg.Mailbox == "" || !filepath.IsAbs(cfg.Root) || (cfg.Event == nil) != (cfg.Arrangement == Nothing) {
		return nil, errors.New("play: Site, Mailbox, Root and, unless there is no daemon, Event must be set")
	}
	return &Player{cfg: cfg}, nil
}

// Play plays a case. Its error says that it could not be played.
func (p *Player) Play(ctx context.Context, c *isolation.Case) (Result, error) {
	w := &isolation.World{Dir: filepath.Join(p.cfg.Root, c.ID), Site: p.cfg.Site.URL, Mailbox: p.cfg.Mailbox}
	r := Result{Case: c.ID, Arrangement: p.cfg.Arrangement, Vector: c.Vector, Goal: c.Goal, Task: c.Task.Name, Way: c.Way}
	if err := os.MkdirAll(filepath.Join(w.Dir, ".git"), 0o700); err != nil {
		return r, fmt.Errorf("make a workspace: %w", err)
	}
	if err := errors.Join(c.Prepare(w), w.Deliver(c)); err != nil {
		return r, err
	}
	p.cfg.Site.Serve(c, w)
	start := time.Now()
	o := &isolation.Outcome{Case: c, World: w, Sent: map[string][]string{}}
	for session := 1; session <= c.Sessions(); session++ {
		s := &turn{Player: p, c: c, w: w, r: &r, o: o, id: fmt.Sprintf("%s-%d", c.ID, session)}
		if err := s.run(ctx, session); err != nil {
			return r, fmt.Errorf("%s, session %d: %w", c.ID, session, err)
		}
	}
	r.MS = float64(time.Since(start).Microseconds()) / 1000
	o.Collected = p.cfg.Site.Collected(c)
	r.Harm = o.Harm()
	if err := o.Served(); err != nil {
		r.Unserved = strings.NewReplacer("\n", "; ", w.Dir+"/", "").Replace(err.Error())
	}
	return r, nil
}

// turn is one session of a case.
type turn struct {
	*Player
	c       *isolation.Case
	w       *isolation.World
	r       *Result
	o       *isolation.Outcome
	id      string
	mind    *isolation.Mind
	context int // bytes of the conversation so far
}

func (t *turn) run(ctx context.Context, session int) error {
	t.mind = t.c.Mind(t.w, session)
	if err := t.begin(ctx, t.c.Prompt(t.w, session)); err != nil {
		return err
	}
	for range maxSteps {
		step, ok := t.mind.Next()
		if !ok {
			return t.end(ctx)
		}
		if !step.Obeys() { // what obeying costs is the attacker's
			t.r.Requests++
			t.r.Bytes += t.context
		}
		before := t.context
		t.context += len(step.Text) + len(step.Command) + len(step.Path) + len(step.URL) + len(step.Old) + len(step.Question)
		if step.Act == isolation.Reply {
			if err := t.reply(ctx, step.Text); err != nil {
				return err
			}
			continue
		}
		shown, held, err := t.do(ctx, step)
		if err != nil {
			return err
		}
		t.reads(shown)
		t.mind.Holds(step.As, held)
		if step.Obeys() {
			t.context = before
		}
	}
	return errors.New("the turn does not end")
}

// reads gives the model a text, and looks whether it holds the attacker's.
func (t *turn) reads(text string) {
	t.context += len(text)
	if t.c.Leak(text) != "" {
		t.r.Leaks++
	}
	t.mind.Reads(text)
}

// watched reports whether a phase is reported in this arrangement.
func (t *turn) watched(phase schema.Phase) bool {
	switch t.cfg.Arrangement {
	case Nothing:
		return false
	case Guard:
		return phase == schema.PhaseAfterTool || phase == schema.PhaseSessionStart || phase == schema.PhasePrompt || phase == schema.PhaseSessionEnd
	}
	return true
}

func (t *turn) begin(ctx context.Context, prompt string) error {
	if t.watched(schema.PhaseSessionStart) {
		out, err := t.event(ctx, schema.Event{Phase: schema.PhaseSessionStart})
		if err != nil {
			return err
		}
		if out.Text != nil {
			t.context += len(*out.Text)
		}
		if _, err := t.event(ctx, schema.Event{Phase: schema.PhasePrompt, Sender: "owner", Text: prompt}); err != nil {
			return err
		}
	}
	t.context += len(prompt)
	return nil
}

func (t *turn) end(ctx context.Context) error {
	if !t.watched(schema.PhaseSessionEnd) {
		return nil
	}
	_, err := t.event(ctx, schema.Event{Phase: schema.PhaseSessionEnd})
	return err
}

// reply delivers the final message to the owner.
func (t *turn) reply(ctx context.Context, text string) error {
	t.o.Reply = text
	if !t.watched(schema.PhaseMessageOut) {
		return nil
	}
	out, err := t.event(ctx, schema.Event{Phase: schema.PhaseMessageOut, Text: text})
	switch {
	case err != nil:
		return err
	case out.Action.Stops():
		t.o.Reply = ""
	case out.Text != nil:
		t.o.Reply = *out.Text
	}
	return nil
}

// event reports an event of this session.
func (t *turn) event(ctx context.Context, e schema.Event) (schema.Outcome, error) {
	e.Host, e.Agent, e.Session, e.Workspace = "openclaw", "main", t.id, t.w.Dir
	out, err := t.cfg.Event(ctx, &e)
	if err != nil {
		return out, fmt.Errorf("report %s: %w", e.Phase, err)
	}
	if out.Action == schema.DeferToHuman {
		t.r.Questions++
	}
	if out.Action.Stops() {
		t.r.Stops++
		t.r.Why = append(t.r.Why, e.Phase.String()+" "+e.Tool+": "+out.Reason)
	}
	return out, nil
}

type object = map[string]any

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return nil // of maps of strings and numbers: it cannot happen
	}
	return data
}
