package dualview

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"example.org/auditd/schema"
)

// Authority says who made a grant.
type Authority uint8

// Authorities. The zero value is nobody, and allows nothing.
const (
	ByNobody Authority = iota
	ByPolicy           // a rule of the owner
	ByPerson           // a person's answer to a question about this very call
)

// Grant is the permission to put originals into one sink. Its zero value
// permits nothing.
type Grant struct {
	By    Authority
	Owner string // whose symbols; symbols of any other owner stay closed
	// AgentTrusted says that the agent on whose behalf this happens is one that
	// the owner trusts with symbols. A person's own view of a text counts as
	// trusted. Without it nothing is resolved.
	AgentTrusted bool
	Sink         schema.Sink
	// Binding is the digest of the exact call. A person's grant must have one.
	Binding schema.Digest
	// Expires is when the grant ends. A grant without an end is refused.
	Expires time.Time
}

// ErrNoGrant means that a symbol was not resolved because nothing permits it.
var ErrNoGrant = errors.New("no grant permits it")

// check refuses a grant that does not hold now.
func (g Grant) check(now time.Time) error {
	switch {
	case g.By != ByPolicy && g.By != ByPerson:
		return fmt.Errorf("%w: nobody made this grant", ErrNoGrant)
	case g.Owner == "":
		return fmt.Errorf("%w: the grant names no owner", ErrNoGrant)
	case !g.AgentTrusted:
		return fmt.Errorf("%w: the agent is not trusted with symbols", ErrNoGrant)
	case g.By == ByPerson && g.Binding == "":
		return fmt.Errorf("%w: a person's grant must be bound to a call", ErrNoGrant)
	case g.Expires.IsZero() || !now.Before(g.Expires):
		return fmt.Errorf("%w: the grant has expired", ErrNoGrant)
	}
	return nil
}

// SinkRule is a place that a secret may go to. Kind and Tool must be equal to
// the sink's; Destination is equal to it, or "*.example.com" for every host
// below that domain. An empty Destination matches only an empty one.
type SinkRule struct {
	Kind        schema.SinkKind `json:"kind"`
	Tool        string          `json:"tool"`
	Destination string          `json:"destination,omitempty"`
}

func (r SinkRule) permits(s schema.Sink) bool {
	if r.Kind != s.Kind || r.Tool == "" || r.Tool != s.Tool {
		return false
	}
	if below, ok := strings.CutPrefix(r.Destination, "*."); ok {
		return below != "" && strings.HasSuffix(strings.ToLower(s.Destination), "."+strings.ToLower(below))
	}
	return r.Destination == s.Destination
}

// Original is resolved text on its way to the sink that its grant names. It
// does not print: only Reveal gives the text.
type Original struct{ text string }

// OriginalText marks a text that was put together from originals.
func OriginalText(text string) Original { return Original{text} }

// Reveal returns the text. The caller hands it to the sink of the grant and to
// nothing else.
func (o Original) Reveal() string { return o.text }

// Format keeps originals out of logs, errors and test output, whatever the
// verb.
func (o Original) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "[original, %d bytes]", len(o.text)) }

// MarshalJSON refuses: an original is never part of a record.
func (o Original) MarshalJSON() ([]byte, error) {
	return nil, errors.New("an original must not be written into a record")
}
