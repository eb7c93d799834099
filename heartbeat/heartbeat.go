// Package heartbeat keeps what the plugins in agents' hosts say about
// themselves: that they are there, in which version, and what is wrong.
//
// A host that starts without its plugin says nothing, and that is how it is
// noticed. A report is no proof: whoever holds the hook token can make one. It
// tells an owner of a mistake, and lifts nothing.
package heartbeat

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Protocol is what plugins and this daemon speak. It changes when an older
// plugin would misread an answer.
const Protocol = 1

// Every is how often a plugin reports, Lost after how long it counts as gone.
const (
	Every = 20 * time.Second
	Lost  = 3 * Every
)

// Bounds of what is kept.
const (
	maxHosts    = 256
	maxProblems = 16
	maxText     = 300
)

// Report is what a plugin says about itself.
type Report struct {
	Host        string   `json:"host"`     // openclaw, …
	Instance    string   `json:"instance"` // one running host; a restart is another
	Plugin      string   `json:"plugin"`   // its version
	Protocol    int      `json:"protocol"`
	HostVersion string   `json:"host_version,omitempty"`
	Problems    []string `json:"problems,omitempty"` // why it denies everything
	Ends        bool     `json:"ends,omitempty"`     // the host stops now
}

// Answer tells the plugin whom it talks to.
type Answer struct {
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
	EveryMS  int    `json:"every_ms"`
}

// Seen is the last report of one instance.
type Seen struct {
	Report
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Alive reports whether the instance still runs at now.
func (s *Seen) Alive(now time.Time) bool { return !s.Ends && now.Sub(s.Last) < Lost }

// Fault says why the instance protects nothing, or is "".
func (s *Seen) Fault() string {
	switch {
	case len(s.Problems) > 0:
		return strings.Join(s.Problems, "; ")
	case s.Protocol != Protocol:
		return fmt.Sprintf("the plugin speaks protocol %d and the daemon %d", s.Protocol, Protocol)
	}
	return ""
}

// List are the reports, the newest first.
type List struct {
	Seen []Seen `json:"seen"`
}

// Board keeps the last report of each instance, in memory: after a restart of
// the daemon each is heard of again within Every.
type Board struct {
	now func() time.Time

	mu   sync.Mutex
	seen map[string]*Seen // guarded by mu
}

// New returns an empty board.
func New(now func() time.Time) *Board { return &Board{now: now, seen: map[string]*Seen{}} }

// Check says which field of a report is wrong.
func (r *Report) Check() (field, problem string) {
	for _, f := range []struct {
		name, text string
		needed     bool
	}{{"host", r.Host, true}, {"instance", r.Instance, true}, {"plugin", r.Plugin, true}, {"host_version", r.HostVersion, false}} {
		switch {
		case f.needed && f.text == "":
			return f.name, "is missing"
		case len(f.text) > maxText:
			return f.name, fmt.Sprintf("is %d bytes, the limit is %d", len(f.text), maxText)
		}
	}
	if len(r.Problems) > maxProblems {
		return "problems", fmt.Sprintf("are %d, the limit is %d", len(r.Problems), maxProblems)
	}
	for _, p := range r.Problems {
		if len(p) > maxText {
			return "problems", fmt.Sprintf("hold one of %d bytes, the limit is %d", len(p), maxText)
		}
	}
	return "", ""
}

// Note keeps a report that Check found right.
func (b *Board) Note(r *Report) {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	key := r.Host + "\x00" + r.Instance
	s := b.seen[key]
	if s == nil {
		if len(b.seen) >= maxHosts {
			oldest := ""
			for k, v := range b.seen {
				if oldest == "" || v.Last.Before(b.seen[oldest].Last) {
					oldest = k
				}
			}
			delete(b.seen, oldest)
		}
		s = &Seen{First: now}
		b.seen[key] = s
	}
	s.Report, s.Last = *r, now
	s.Problems = slices.Clone(r.Problems)
}

// Seen returns the reports, the newest first.
func (b *Board) Seen() []Seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Seen, 0, len(b.seen))
	for _, s := range b.seen {
		c := *s
		c.Problems = slices.Clone(s.Problems)
		out = append(out, c)
	}
	slices.SortFunc(out, func(x, y Seen) int { return y.Last.Compare(x.Last) })
	return out
}

// Alive reports whether an instance of host runs whose plugin works.
func (b *Board) Alive(host string) bool {
	now := b.now()
	return slices.ContainsFunc(b.Seen(), func(s Seen) bool { return s.Host == host && s.Alive(now) && s.Fault() == "" })
}
