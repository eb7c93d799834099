package isolate

import (
	"container/list"
	"context"
	"strconv"
	"sync"
	"time"

	"example.org/auditd/schema"
)

// Bounds of the answers that are kept for a report that comes again.
const (
	maxAnswers = 1024
	maxBytes   = 64 << 20
	keepAnswer = 10 * time.Minute
)

// answers remembers what was said about a call's events, so that a host which
// reports one twice does not run a command twice, and gets the same symbols. An
// answer that stopped is not kept: a person may have said yes since.
type answers struct {
	now func() time.Time

	mu    sync.Mutex
	order *list.List // of *answer, the oldest first; guarded by mu
	byKey map[schema.Digest]*list.Element
	bytes int
}

type answer struct {
	key  schema.Digest
	made time.Time
	done chan struct{} // closed when out is there
	out  schema.Outcome
	size int
}

func newAnswers(now func() time.Time) *answers {
	return &answers{now: now, order: list.New(), byKey: map[schema.Digest]*list.Element{}}
}

// once returns what decide says about e, or what it said about the same report
// of the same call.
func (a *answers) once(ctx context.Context, e *schema.Event, decide func() schema.Outcome) schema.Outcome {
	if e.CallID == "" {
		return decide()
	}
	key := schema.DigestOf("event", e.Host, e.Agent, e.Session, e.CallID, e.Phase.String(), e.Tool, string(e.Params), string(e.Result), strconv.FormatBool(e.IsError), e.Text, e.Origin, e.Sender, e.Workspace, e.Ticket)
	a.mu.Lock()
	a.drop()
	if el, ok := a.byKey[key]; ok {
		made := el.Value.(*answer)
		a.mu.Unlock()
		select {
		case <-made.done:
			return made.out
		case <-ctx.Done():
			return stopped("late", "Stopped: it took too long.")
		}
	}
	mine := &answer{key: key, made: a.now(), done: make(chan struct{}), out: stopped("internal_error", "Stopped by an internal error.")}
	el := a.order.PushBack(mine)
	a.byKey[key] = el
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		close(mine.done)
		switch {
		case a.byKey[key] != el: // it was dropped meanwhile
		case mine.out.Action.Stops():
			a.remove(el)
		default:
			mine.size = size(mine.out)
			a.bytes += mine.size
		}
	}()
	mine.out = decide()
	return mine.out
}

func size(o schema.Outcome) int {
	n := len(o.Params) + len(o.Result) + 1024
	if o.Text != nil {
		n += len(*o.Text)
	}
	return n
}

// drop forgets what is old or too much. It holds mu.
func (a *answers) drop() {
	for el := a.order.Front(); el != nil; el = a.order.Front() {
		made := el.Value.(*answer)
		if len(a.byKey) < maxAnswers && a.bytes < maxBytes && a.now().Sub(made.made) < keepAnswer {
			return
		}
		a.remove(el)
	}
}

// remove forgets one. It holds mu.
func (a *answers) remove(el *list.Element) {
	made := el.Value.(*answer)
	delete(a.byKey, made.key)
	a.order.Remove(el)
	a.bytes -= made.size
}
