package claudehook

import (
	"container/list"
	"context"
	"path/filepath"
	"strings"
	"sync"

	"example.org/auditd/schema"
)

// Bounds of what is remembered. What was forgotten is audited once more.
const (
	maxCalls    = 8192
	maxSessions = 2048
	maxKept     = 8        // events that keep one session closed
	maxKeptSize = 64 << 10 // bytes of one such event's result
)

// state is what was decided about a call's result. The zero state is that
// nothing was, so it has to be.
type state uint8

const (
	unreported state = iota
	passed           // as it is
	denied           // the call did not run
	replaced         // by text that does not tell itself apart: look again
	replacedBy       // by text that holds the record's reference
	stopped          // it could not be replaced: the turn must end
)

type record struct {
	state state
	ref   string        // for replacedBy
	event *schema.Event // for stopped
	why   string
}

type session struct {
	workspace string
	closed    bool
	why       string
	events    []*schema.Event // that closed it
	forGood   bool            // one of them was not kept
	prompted  bool            // its first prompt has come
	loading   int             // files that are being looked at
	idle      chan struct{}   // closed when loading falls to zero
}

// ledger holds what was decided about calls and sessions, in memory.
type ledger struct {
	mu       sync.Mutex
	calls    recent[record]
	sessions recent[session]
}

func newLedger() *ledger {
	return &ledger{calls: newRecent[record](maxCalls), sessions: newRecent[session](maxSessions)}
}

// workspace returns the folder that a session began in while dir is below it,
// and nothing otherwise: an agent that changes to another folder must not make
// that one its workspace.
func (l *ledger) workspace(id, dir string) string {
	if !filepath.IsAbs(dir) {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions.get(id)
	if s.workspace == "" {
		s.workspace = filepath.Clean(dir)
	}
	if dir = filepath.Clean(dir); dir == s.workspace || strings.HasPrefix(dir, strings.TrimSuffix(s.workspace, "/")+"/") {
		return s.workspace
	}
	return ""
}

func (l *ledger) note(id, call string, r record) {
	if call == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	*l.calls.get(id + "\x00" + call) = r
}

func (l *ledger) noted(id, call string) record {
	if call == "" {
		return record{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.calls.get(id + "\x00" + call)
}

// first reports whether this is the session's first prompt, and that it came.
func (l *ledger) first(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions.get(id)
	first := !s.prompted
	s.prompted = true
	return first
}

// load notes that a file of the session's is being looked at, until done.
func (l *ledger) load(id string) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions.get(id)
	if s.loading++; s.loading == 1 {
		s.idle = make(chan struct{})
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if s.loading--; s.loading == 0 {
			close(s.idle)
		}
	}
}

// loaded waits until no file of the session's is being looked at; false when
// ctx ended first.
func (l *ledger) loaded(ctx context.Context, id string) bool {
	l.mu.Lock()
	s := l.sessions.get(id)
	busy, idle := s.loading > 0, s.idle
	l.mu.Unlock()
	if !busy {
		return true
	}
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}

// close refuses a session's prompts from now on, because of e.
func (l *ledger) close(id, why string, e *schema.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions.get(id)
	s.closed, s.why = true, why
	if e == nil || len(e.Result)+len(e.Params) > maxKeptSize || len(s.events) >= maxKept {
		s.forGood = true
		return
	}
	s.events = append(s.events, e)
}

// open takes a session's prompts again.
func (l *ledger) open(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions.get(id)
	s.closed, s.forGood, s.events, s.why = false, false, nil, ""
}

// closed says why a session is closed, and the events that an owner's approval
// of would open it again.
func (l *ledger) closed(id string) (yes bool, why string, events []*schema.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions.get(id)
	if s.forGood {
		return s.closed, s.why, nil
	}
	return s.closed, s.why, append([]*schema.Event(nil), s.events...)
}

// recent is a map that forgets what was used the longest ago.
type recent[T any] struct {
	max   int
	order *list.List
	byKey map[string]*list.Element
}

type entry[T any] struct {
	key   string
	value T
}

func newRecent[T any](max int) recent[T] {
	return recent[T]{max: max, order: list.New(), byKey: map[string]*list.Element{}}
}

// get returns the value under key, which is a zero one when there was none.
func (r *recent[T]) get(key string) *T {
	if e, ok := r.byKey[key]; ok {
		r.order.MoveToFront(e)
		return &e.Value.(*entry[T]).value
	}
	e := &entry[T]{key: key}
	r.byKey[key] = r.order.PushFront(e)
	if r.order.Len() > r.max {
		last := r.order.Back()
		r.order.Remove(last)
		delete(r.byKey, last.Value.(*entry[T]).key)
	}
	return &e.value
}
