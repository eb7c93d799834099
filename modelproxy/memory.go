package modelproxy

import (
	"container/list"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// Bounds of what is remembered. What was forgotten is audited once more.
const (
	maxKnown     = 1 << 16
	maxKnownSize = 64 << 20 // bytes of replacements
	maxSessions  = 4096
	maxTexts     = 4096             // of one result that is noted
	stoppedFor   = time.Minute      // how long a no is remembered: the owner may change the rules
	knownFor     = 24 * time.Hour   // how long a yes is
	hooksFor     = 15 * time.Minute // how long after a report of a hook its session counts as watched
)

// kind is what a text was decided about as: the same bytes may pass as one
// thing and not as another.
type kind string

const (
	kindSystem     kind = "system"
	kindDefinition kind = "definition"
	kindPrompt     kind = "prompt"
	kindResult     kind = "result" // a text in a tool's result
	kindDocument   kind = "document"
	kindSaid       kind = "said"   // by the model
	kindCalled     kind = "called" // arguments of a call of the model's
	kindResponse   kind = "response"
	kindMarker     kind = "marker"
)

// scope is whose text it is.
type scope struct{ host, session string }

type digest [sha256.Size]byte

// known is what was decided about some bytes. Its zero value says nothing.
type known struct {
	passed  bool   // as it is
	replace []byte // by this
	stopped string // by this sentence
	waits   bool   // for a person, who may answer at any time: not to be remembered
	until   time.Time
}

// Memory holds keyed digests of what was decided, so that what a hook or this
// proxy has looked at is not looked at again: every request of an agent repeats
// the whole conversation. It holds no text but replacements. It is safe for
// concurrent use.
type Memory struct {
	key [32]byte
	now func() time.Time

	mu       sync.Mutex
	entries  recent[digest, known]
	sessions recent[scope, state]
	markers  recent[string, scope]
	size     int
}

// state is what is known about a session.
type state struct {
	heard     time.Time // when a hook last reported something of it
	workspace string
	agent     string
	greeted   bool   // the daemon has been asked what belongs into its system prompt
	appendix  string // what it said
	resolved  bool   // symbols were resolved in what the model said
}

// NewMemory returns a Memory that knows nothing. Its key is random and never
// leaves it.
func NewMemory(now func() time.Time) *Memory {
	m := &Memory{now: now, entries: newRecent[digest, known](maxKnown), sessions: newRecent[scope, state](maxSessions), markers: newRecent[string, scope](maxSessions)}
	rand.Read(m.key[:]) // never fails
	m.entries.forgot = func(k known) { m.size -= len(k.replace) }
	return m
}

func (m *Memory) digest(k kind, s scope, tool, text string) digest {
	h := hmac.New(sha256.New, m.key[:])
	for _, p := range []string{string(k), s.host, s.session, tool, text} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	var d digest
	h.Sum(d[:0])
	return d
}

func (m *Memory) lookup(d digest) known {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.entries.peek(d)
	if k == nil || m.now().After(k.until) {
		return known{}
	}
	return *k
}

func (m *Memory) note(d digest, k known) {
	life := knownFor
	if k.stopped != "" {
		life = stoppedFor
	}
	k.until = m.now().Add(life)
	if len(k.replace) > maxKnownSize/16 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries.get(d)
	m.size += len(k.replace) - len(e.replace)
	*e = k
	for m.size > maxKnownSize {
		m.entries.dropLast()
	}
}

// pass notes that text may go on as it is.
func (m *Memory) pass(k kind, s scope, tool, text string) {
	m.note(m.digest(k, s, tool, text), known{passed: true})
}

// passResult notes every text of a result that was let pass, or of the one that
// took its place: the host shows them to its model one by one, in a shape of
// its own.
func (m *Memory) passResult(s scope, tool string, result []byte) {
	texts, ok := textsOf(result)
	if !ok {
		return
	}
	for _, t := range texts {
		m.pass(kindResult, s, tool, t)
	}
}

// Heard notes an event that a hook reported and what was decided about it.
func (m *Memory) Heard(e *schema.Event, o schema.Outcome) {
	s := scope{e.Host, e.Session}
	m.mu.Lock()
	x := m.sessions.get(s)
	x.heard = m.now()
	if e.Workspace != "" {
		x.workspace = e.Workspace
	}
	if e.Phase == schema.PhaseSessionEnd {
		x.heard = time.Time{}
	}
	m.mu.Unlock()
	var passed []byte
	switch {
	case o.Action == schema.Allow:
		passed = e.Result
		if e.Phase == schema.PhasePrompt {
			m.pass(kindPrompt, s, "", e.Text)
		}
	case o.Action == schema.RewriteAndContinue:
		passed = o.Result
	}
	if e.Phase == schema.PhaseAfterTool && len(passed) > 0 {
		m.passResult(s, e.Tool, passed)
	}
}

// markerForm is what Marker returns.
var markerForm = regexp.MustCompile(`auditd-session-[0-9a-f]{32}`)

// Marker returns a word for the system prompt of a session whose host does not
// name it in its requests. Nobody can make it up, so a request that holds it was
// built with the plugin at work.
func (m *Memory) Marker(host, session string) string {
	s := scope{host, session}
	d := m.digest(kindMarker, s, "", "")
	word := "auditd-session-" + hex.EncodeToString(d[:16])
	m.mu.Lock()
	defer m.mu.Unlock()
	*m.markers.get(word) = s
	return word
}

// marked returns the session whose marker stands last in text; "" when there is
// none of this host's.
func (m *Memory) marked(host, text string) string {
	found := markerForm.FindAllString(text, -1)
	if len(found) == 0 {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.markers.peek(found[len(found)-1])
	if s == nil || s.host != host {
		return ""
	}
	return s.session
}

// watched reports whether a hook has reported something of the session lately.
func (m *Memory) watched(s scope) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.sessions.peek(s)
	return x != nil && !x.heard.IsZero() && m.now().Sub(x.heard) < hooksFor
}

// session changes or reads what is known about a session.
func (m *Memory) session(s scope, do func(*state)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do(m.sessions.get(s))
}

// textsOf returns the strings of a JSON value that a model would read.
func textsOf(v []byte) ([]string, bool) {
	n, err := parse(v)
	if err != nil {
		return nil, false
	}
	var out []string
	ok := n.texts(&out)
	return out, ok
}

// texts collects the strings of a value; false when there are too many.
func (n *node) texts(out *[]string) bool {
	if n.kind == '"' {
		if n.text != "" {
			*out = append(*out, n.text)
		}
		return len(*out) <= maxTexts
	}
	for i, k := range n.kids {
		// One short word of the protocol is no text.
		if n.kind == '{' && k.kind == '"' && len(k.text) <= 24 && (n.names[i] == "type" || n.names[i] == "media_type") && word(k.text) {
			continue
		}
		if !k.texts(out) {
			return false
		}
	}
	return true
}

// canonical is a document's one spelling, for hashing; the bytes themselves
// where it has none.
func canonical(v []byte) string {
	c := jsontext.Value(append([]byte(nil), v...))
	if c.Canonicalize() != nil {
		return string(v)
	}
	return string(c)
}

// recent is a map that forgets what was used the longest ago.
type recent[K comparable, T any] struct {
	max    int
	order  *list.List
	byKey  map[K]*list.Element
	forgot func(T) // nil for nobody
}

type item[K comparable, T any] struct {
	key   K
	value T
}

func newRecent[K comparable, T any](max int) recent[K, T] {
	return recent[K, T]{max: max, order: list.New(), byKey: map[K]*list.Element{}}
}

// peek returns the value under key, nil when there is none.
func (r *recent[K, T]) peek(key K) *T {
	e, ok := r.byKey[key]
	if !ok {
		return nil
	}
	r.order.MoveToFront(e)
	return &e.Value.(*item[K, T]).value
}

// get returns the value under key, a zero one when there was none.
func (r *recent[K, T]) get(key K) *T {
	if v := r.peek(key); v != nil {
		return v
	}
	x := &item[K, T]{key: key}
	r.byKey[key] = r.order.PushFront(x)
	if r.order.Len() > r.max {
		r.dropLast()
	}
	return &x.value
}

func (r *recent[K, T]) dropLast() {
	last := r.order.Back()
	if last == nil {
		return
	}
	x := r.order.Remove(last).(*item[K, T])
	delete(r.byKey, x.key)
	if r.forgot != nil {
		r.forgot(x.value)
	}
}
