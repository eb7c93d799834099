package firewall

import (
	"container/list"
	"strings"
	"sync"
	"unicode/utf8"

	"example.org/auditd/schema"
)

// How much of the owner's words is kept as a session's intent: enough to know
// what was asked for, little enough not to become the trajectory.
const (
	intentPrompts = 3
	intentBytes   = 1000 // of each
)

// sessions holds, for each session, the worst label of what it has read and
// what its owner asked for last. It is in memory alone: after a restart every
// session counts as having read untrusted content.
//
// A label only ever falls. A session's end does not forget it, and neither
// does a second start, because whoever holds the hook credential could report
// both to have an argument of a poisoned session pass for a clean one.
type sessions struct {
	mu      sync.Mutex
	max     int
	order   *list.List // of *session, the most recently used first; guarded by mu
	byKey   map[string]*list.Element
	evicted bool // from then on a session that starts may be one that was forgotten
}

type session struct {
	key     string
	trust   schema.Trust
	prompts []string
}

func newSessions(max int) *sessions {
	return &sessions{max: max, order: list.New(), byKey: map[string]*list.Element{}}
}

// get returns the session, or makes one with the label trust.
func (s *sessions) get(key string, trust schema.Trust) *session {
	if e, ok := s.byKey[key]; ok {
		s.order.MoveToFront(e)
		return e.Value.(*session)
	}
	x := &session{key: key, trust: trust}
	s.byKey[key] = s.order.PushFront(x)
	if s.order.Len() > s.max {
		last := s.order.Back()
		s.order.Remove(last)
		delete(s.byKey, last.Value.(*session).key)
		s.evicted = true
	}
	return x
}

// start notes that a session begins. Only one that was never seen is clean.
func (s *sessions) start(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.evicted {
		s.get(key, schema.Untrusted)
		return
	}
	s.get(key, schema.Owner)
}

// read notes that content with the label trust has reached the session.
func (s *sessions) read(key string, trust schema.Trust) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.get(key, schema.Untrusted)
	x.trust = min(x.trust, trust)
}

// prompt notes what the owner asked for.
func (s *sessions) prompt(key, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.get(key, schema.Untrusted)
	x.prompts = append(x.prompts, firstBytes(strings.TrimSpace(text), intentBytes))
	if n := len(x.prompts); n > intentPrompts {
		x.prompts = append([]string(nil), x.prompts[n-intentPrompts:]...)
	}
}

// label returns the session's label and its owner's intent.
func (s *sessions) label(key string) (schema.Trust, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byKey[key]
	if !ok {
		return schema.Untrusted, ""
	}
	s.order.MoveToFront(e)
	x := e.Value.(*session)
	return x.trust, strings.Join(x.prompts, "\n")
}

// firstBytes returns at most n bytes of s, on a character's boundary, and says
// when it cut.
func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const more = "…"
	n -= len(more)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + more
}
