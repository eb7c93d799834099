package dualview

import (
	"fmt"
	"time"
	"unicode/utf8"

	"example.org/auditd/schema"
)

// Provenance says where a value came from. Every word of it is trusted: it is
// what the runtime knows (the tool, the address that was asked for, the path of
// the field in the tool's declared result), never what the value says.
type Provenance struct {
	Kind    schema.SourceKind `json:"kind"`
	Tool    string            `json:"tool,omitempty"`
	Field   string            `json:"field,omitempty"`
	Origin  string            `json:"origin,omitempty"` // URL, path, sender, agent or port
	Agent   string            `json:"agent,omitempty"`
	Session string            `json:"session,omitempty"`
	CallID  string            `json:"call_id,omitempty"`
	Trust   schema.Trust      `json:"trust"`
	// Parents are the symbols that the value was made from, all of them.
	Parents []Symbol `json:"-"`
}

const maxParents = 4096

func (p *Provenance) validate() error {
	for _, s := range []string{p.Tool, p.Field, p.Origin, p.Agent, p.Session, p.CallID} {
		if len(s) > schema.MaxName || !utf8.ValidString(s) {
			return fmt.Errorf("a field of the provenance is over %d bytes or not valid UTF-8", schema.MaxName)
		}
	}
	if p.Trust > schema.Derived {
		return fmt.Errorf("trust %s needs no symbol", p.Trust)
	}
	if len(p.Parents) > maxParents {
		return fmt.Errorf("%d parents, the limit is %d", len(p.Parents), maxParents)
	}
	return nil
}

// Info is all that can be known about a symbol without a grant.
type Info struct {
	Symbol     Symbol
	Owner      string
	Created    time.Time
	Size       int64
	Secret     bool
	Provenance Provenance
}
