package claudehook

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

const (
	maxBatch     = 128 // calls of one batch
	batchWorkers = 4
)

// Report decides an event: the firewall's Event with a credential. It has no
// error: every failure is an outcome that stops.
type Report func(context.Context, *schema.Event) schema.Outcome

// Config is what an Adapter is made of.
type Config struct {
	// Answered returns a person's answer to a question ("approved", "denied",
	// or anything else while there is none), waiting for it as long as ctx
	// allows where wait is set. nil: no deferred call is ever approved.
	Answered func(ctx context.Context, id string, wait bool) string
	// Settle is how long the first prompt of a session waits for news of
	// instruction files: the host sends them before it and does not wait for
	// them to arrive.
	Settle time.Duration
	// Panicked is told when a call failed; nil for nobody.
	Panicked func(v any)
}

// Adapter answers hooks. It is safe for concurrent use.
type Adapter struct {
	cfg    Config
	ledger *ledger
}

// New returns an Adapter that remembers nothing yet.
func New(cfg Config) *Adapter { return &Adapter{cfg: cfg, ledger: newLedger()} }

// Answer returns the answer to a hook's input. event is the hook's name as its
// caller was told, or empty. Whatever goes wrong, the answer stops. With wait
// a deferred call waits for the owner as long as ctx allows.
func (a *Adapter) Answer(ctx context.Context, event string, body []byte, wait bool, report Report) (out []byte) {
	defer func() {
		if v := recover(); v != nil {
			if a.cfg.Panicked != nil {
				a.cfg.Panicked(v)
			}
			out = Stop(event, body, "auditd failed while it decided, so this is stopped; the daemon's log has the details.")
		}
	}()
	h, err := parse(body)
	if err != nil {
		return Stop(event, body, "The hook's input is not valid, so this is stopped: "+err.Error()+".")
	}
	if event != "" && h.Event != event || !slices.Contains(Events(), h.Event) {
		return h.stop("auditd was given a hook event that it does not expect, so this is stopped. Run auditd status claude-code.").encode()
	}
	return a.decide(ctx, h, wait, report).encode()
}

func (a *Adapter) decide(ctx context.Context, h *hook, wait bool, report Report) answer {
	workspace := a.ledger.workspace(h.Session, h.Cwd)
	switch h.Event {
	case instructions:
		return a.instructions(ctx, h, workspace, report)
	case preTool, skillCommand:
		if closed, why, _ := a.ledger.closed(h.Session); closed {
			return h.stop("This session is closed. " + why)
		}
	case prompt, expansion:
		a.settle(ctx, h.Session)
		if !a.ledger.loaded(ctx, h.Session) {
			return h.stop("auditd has not finished with this session's instruction files.")
		}
		if ans, closed := a.refuseClosed(ctx, h, report); closed {
			return ans
		}
	case postBatch:
		return a.batch(ctx, h, workspace, report)
	case preCompact:
		return answer{} // it moves what was decided about already
	}
	e := h.event(workspace)
	if e == nil {
		return answer{}
	}
	o := a.ask(ctx, e, wait && h.Event == preTool, report)
	ans := h.answer(o)
	a.remember(h, e, o, &ans)
	return ans
}

// ask reports e, and once more with the ticket when the owner has approved
// what was deferred.
func (a *Adapter) ask(ctx context.Context, e *schema.Event, wait bool, report Report) schema.Outcome {
	o := report(ctx, e)
	if o.Action != schema.DeferToHuman || o.Ticket == "" || a.cfg.Answered == nil {
		return o
	}
	for _, d := range o.Decisions {
		if d.Action != schema.DeferToHuman {
			continue
		}
		if d.Question == "" || a.cfg.Answered(ctx, d.Question, wait) != "approved" {
			return o
		}
	}
	again := *e
	again.Ticket = o.Ticket
	return report(ctx, &again)
}

// remember notes what was decided, and puts a reference into a text that
// replaces a result: the batch shows whether the host took it, and a tool's
// own output cannot know the reference.
func (a *Adapter) remember(h *hook, e *schema.Event, o schema.Outcome, ans *answer) {
	switch h.Event {
	case preTool:
		if o.Action.Stops() {
			a.ledger.note(h.Session, h.CallID, record{state: denied})
		}
	case postTool:
		switch {
		case o.Action == schema.Allow:
			a.ledger.note(h.Session, h.CallID, record{state: passed})
		case o.Action == schema.RewriteAndContinue && o.Reason == schema.ReasonNothingHidden:
			a.ledger.note(h.Session, h.CallID, record{state: passed})
		case o.Action == schema.RewriteAndContinue && freshSymbol(o.Result, h.Response) != "":
			// It did not exist when the tool ran: a host that shows it shows the
			// replacement.
			a.ledger.note(h.Session, h.CallID, record{state: replacedBy, ref: freshSymbol(o.Result, h.Response), why: "Untrusted output could not be replaced by symbols."})
		case o.Action == schema.RewriteAndContinue:
			a.ledger.note(h.Session, h.CallID, record{state: replaced})
		default:
			ref := newRef()
			*ans = h.stop(o.Message + howToApprove(o) + " (" + ref + ")")
			a.ledger.note(h.Session, h.CallID, record{state: replacedBy, ref: ref, why: o.Message, event: e})
		}
	case postFailure:
		if o.Action == schema.Allow {
			a.ledger.note(h.Session, h.CallID, record{state: passed})
		} else {
			a.ledger.note(h.Session, h.CallID, record{state: stopped, event: e, why: o.Message + howToApprove(o)})
		}
	}
}

var symbolForm = regexp.MustCompile(`symu[0-9a-z]{32}u`)

// freshSymbol returns a symbol of a replacement that the original has not.
func freshSymbol(replacement, original []byte) string {
	for _, s := range symbolForm.FindAll(replacement, 100) {
		if !bytes.Contains(original, s) {
			return string(s)
		}
	}
	return ""
}

// batch is the last look before the model is called. It does not decide again
// what was decided, and ends the turn when that was not heeded.
func (a *Adapter) batch(ctx context.Context, h *hook, workspace string, report Report) answer {
	// A file that was loaded while the agent worked may have closed the session.
	if !a.ledger.loaded(ctx, h.Session) {
		return a.end(h, "an instruction file could not be looked at in time.", nil)
	}
	if closed, why, _ := a.ledger.closed(h.Session); closed {
		return h.stop("auditd ended this turn. " + why)
	}
	if len(h.Calls) > maxBatch {
		return a.end(h, "there are too many tool calls in one turn.", nil)
	}
	var unknown []*hook
	for i := range h.Calls {
		c := &h.Calls[i]
		c.Session, c.AgentType = h.Session, h.AgentType
		switch r := a.ledger.noted(h.Session, c.CallID); r.state {
		case passed, denied:
		case stopped:
			return a.end(h, r.why, r.event)
		case replacedBy:
			if !strings.Contains(string(c.Response), r.ref) {
				return a.end(h, r.why, r.event)
			}
		default: // replaced, or never reported
			unknown = append(unknown, c)
		}
	}
	outcomes := make([]schema.Outcome, len(unknown)) // the zero outcome blocks
	events := make([]*schema.Event, len(unknown))
	var wg sync.WaitGroup
	slots := make(chan struct{}, batchWorkers)
	for i, c := range unknown {
		if events[i] = c.after(workspace, c.Response, false); c.Tool == "" {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() {
				<-slots
				if v := recover(); v != nil && a.cfg.Panicked != nil {
					a.cfg.Panicked(v)
				}
			}()
			outcomes[i] = a.ask(ctx, events[i], false, report)
		})
	}
	wg.Wait()
	for i, o := range outcomes {
		if o.Action != schema.Allow {
			return a.end(h, o.Message+howToApprove(o), events[i])
		}
	}
	return answer{}
}

// end ends the turn and closes the session: what was stopped is in the
// transcript, and any further prompt would send it to the model.
func (a *Adapter) end(h *hook, why string, e *schema.Event) answer {
	a.ledger.close(h.Session, why, e)
	return h.stop("auditd ended this turn: a tool's output had to be kept from the model and could not be replaced. " + why + " Start a new session (/clear) to go on.")
}

// refuseClosed refuses the prompts of a closed session, unless the owner has
// approved by now what closed it.
func (a *Adapter) refuseClosed(ctx context.Context, h *hook, report Report) (answer, bool) {
	closed, why, events := a.ledger.closed(h.Session)
	if !closed {
		return answer{}, false
	}
	if len(events) > 0 {
		open := true
		for _, e := range events {
			open = open && a.ask(ctx, e, false, report).Action == schema.Allow
		}
		if open {
			a.ledger.open(h.Session)
			return answer{}, false
		}
	}
	return h.stop("This session holds text that auditd stopped. " + why + " Start a new session (/clear) to go on."), true
}

// settle waits at the first prompt of a session.
func (a *Adapter) settle(ctx context.Context, id string) {
	if a.cfg.Settle <= 0 || !a.ledger.first(id) {
		return
	}
	timer := time.NewTimer(a.cfg.Settle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// instructions looks at a file that the host has put into the model's context.
// Nothing holds that back, but the session's prompts can be.
func (a *Adapter) instructions(ctx context.Context, h *hook, workspace string, report Report) answer {
	defer a.ledger.load(h.Session)()
	decided := false
	defer func() {
		if !decided { // it panicked
			a.ledger.close(h.Session, "auditd failed while it looked at an instruction file.", nil)
		}
	}()
	text, err := readInstructions(h.File)
	if err != nil {
		why := "Claude Code has read an instruction file that auditd cannot read: " + err.Error() + "."
		a.ledger.close(h.Session, why, nil)
		decided = true
		return h.stop(why)
	}
	e := h.base(schema.PhaseBootstrap, workspace)
	e.Origin, e.Text = h.File, text
	o := a.ask(ctx, e, false, report)
	decided = true
	if o.Action == schema.Allow {
		return answer{}
	}
	why := "The instruction file " + h.File + " would steer the agent. Look at it and mend it, or remove it. " + o.Message + howToApprove(o)
	if o.Action == schema.DeferToHuman {
		a.ledger.close(h.Session, why, e)
	} else {
		a.ledger.close(h.Session, why, nil)
	}
	return h.stop(why)
}

// maxInstructions bounds an instruction file: what an event may carry.
const maxInstructions = schema.DefaultMaxPayload

// readInstructions reads an ordinary file of an ordinary size.
func readInstructions(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", errors.New("its path is not absolute")
	}
	// A named pipe would wait for its writer for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", errors.New("it cannot be opened")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxInstructions {
		return "", errors.New("it is not an ordinary file of an ordinary size")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxInstructions+1))
	if err != nil || len(data) > maxInstructions {
		return "", errors.New("it cannot be read")
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), nil
}

func newRef() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return "ref " + hex.EncodeToString(b[:])
}

// Expect reports whether data is an answer that Claude Code would understand;
// clients take anything else for a failure.
func Expect(data []byte) bool {
	var a answer
	return len(data) > 0 && jsontext.Value(data).Kind() == '{' && schema.Decode(data, &a) == nil
}
