package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
	"unicode/utf8"
)

// Limits on what a caller may send. A payload over its limit is refused whole,
// never cut: a cut would leave text that nobody audited.
const (
	DefaultMaxPayload = 1 << 20 // bytes of payload
	MaxSpans          = 4096    // spans a caller may name
	MaxName           = 1024    // bytes of any identifier
	MaxIntent         = 4096    // bytes of the owner-intent summary
	MaxDepth          = 32      // nesting of any JSON document
	MaxPermissions    = 64
)

// Span is a contiguous part of a payload, as half-open byte offsets.
type Span struct {
	Start    int          `json:"start"`
	End      int          `json:"end"`
	Category SpanCategory `json:"category"`
}

// Source says where the payload comes from, as the instrumented runtime knows
// it; nothing here is read out of the payload.
type Source struct {
	Kind  SourceKind `json:"kind"`
	ID    string     `json:"id,omitempty"` // URL, path, tool or sender
	Trust Trust      `json:"trust"`
}

// Sink says where the payload is about to go.
type Sink struct {
	Kind        SinkKind `json:"kind"`
	ID          string   `json:"id,omitempty"`          // path, component, channel
	Tool        string   `json:"tool,omitempty"`        // the tool that would act
	Action      string   `json:"action,omitempty"`      // what it would do, in the host's word
	Destination string   `json:"destination,omitempty"` // external destination, when content can leave
	Permissions []string `json:"permissions,omitempty"` // of that tool
}

// Session says on whose behalf the flow happens.
type Session struct {
	Agent     string `json:"agent,omitempty"`
	ID        string `json:"id,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Workspace string `json:"workspace,omitempty"` // absolute path of the enclosing project
}

// Flow is one transfer of content from a source to a sink across a boundary:
// f = (x, s, t, c, b) of the token-flow paper, section 3. A Flow is immutable
// once it has been completed; a rewrite makes a candidate flow of its own.
type Flow struct {
	Payload  string   `json:"payload"`
	Surface  Surface  `json:"surface"`
	Boundary Boundary `json:"boundary"`
	Source   Source   `json:"source"`
	Sink     Sink     `json:"sink"`
	Session  Session  `json:"session"`
	Intent   string   `json:"intent,omitempty"` // what the owner asked for; from trusted signals only
	Spans    []Span   `json:"spans,omitempty"`

	// OwnerAuthorized says that the owner explicitly authorised this very
	// effect. Only the owner's credential may set it; from any other caller
	// it is refused.
	OwnerAuthorized bool `json:"owner_authorized,omitempty"`
	// Ticket is the right that a person's earlier answer gave.
	Ticket string `json:"ticket,omitempty"`
	// DeadlineMS bounds the whole call in milliseconds; 0 means the daemon's
	// default.
	DeadlineMS int `json:"deadline_ms,omitempty"`
}

// FieldError is a refusal of input: the field, as a JSON pointer or name, and
// what is wrong with it. Its text never holds payload.
type FieldError struct {
	Field    string // such as "sink.kind"
	Problem  string // such as "is 2097152 bytes, the limit is 1048576"
	TooLarge bool   // the input is over a size limit (HTTP 413)
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

func fieldErrorf(field, format string, args ...any) *FieldError {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Complete fills what the caller left out with the least trusting default and
// validates the flow. maxPayload is in bytes; 0 means DefaultMaxPayload.
func (f *Flow) Complete(maxPayload int) error {
	if maxPayload <= 0 {
		maxPayload = DefaultMaxPayload
	}
	if len(f.Payload) > maxPayload {
		e := fieldErrorf("payload", "is %d bytes, the limit is %d", len(f.Payload), maxPayload)
		e.TooLarge = true
		return e
	}
	if !utf8.ValidString(f.Payload) {
		return fieldErrorf("payload", "is not valid UTF-8")
	}
	for _, n := range []struct{ field, value string }{
		{"source.id", f.Source.ID}, {"sink.id", f.Sink.ID}, {"sink.tool", f.Sink.Tool}, {"sink.action", f.Sink.Action},
		{"sink.destination", f.Sink.Destination}, {"session.agent", f.Session.Agent}, {"session.id", f.Session.ID},
		{"session.call_id", f.Session.CallID}, {"session.workspace", f.Session.Workspace}, {"ticket", f.Ticket},
	} {
		if len(n.value) > MaxName {
			return fieldErrorf(n.field, "is %d bytes, the limit is %d", len(n.value), MaxName)
		}
		if !utf8.ValidString(n.value) {
			return fieldErrorf(n.field, "is not valid UTF-8")
		}
	}
	if len(f.Intent) > MaxIntent {
		return fieldErrorf("intent", "is %d bytes, the limit is %d", len(f.Intent), MaxIntent)
	}
	if len(f.Sink.Permissions) > MaxPermissions {
		return fieldErrorf("sink.permissions", "has %d entries, the limit is %d", len(f.Sink.Permissions), MaxPermissions)
	}
	for i, p := range f.Sink.Permissions {
		if len(p) > MaxName {
			return fieldErrorf(fmt.Sprintf("sink.permissions[%d]", i), "is %d bytes, the limit is %d", len(p), MaxName)
		}
	}
	if len(f.Spans) > MaxSpans {
		return fieldErrorf("spans", "has %d entries, the limit is %d", len(f.Spans), MaxSpans)
	}
	for i, s := range f.Spans {
		if s.Start < 0 || s.End <= s.Start || s.End > len(f.Payload) {
			return fieldErrorf(fmt.Sprintf("spans[%d]", i), "is [%d,%d), the payload has %d bytes", s.Start, s.End, len(f.Payload))
		}
		if !runeStart(f.Payload, s.Start) || !runeStart(f.Payload, s.End) {
			return fieldErrorf(fmt.Sprintf("spans[%d]", i), "cuts a character in two")
		}
		if s.Category == SpanUnset {
			return fieldErrorf(fmt.Sprintf("spans[%d].category", i), "is missing")
		}
	}
	if f.DeadlineMS < 0 {
		return fieldErrorf("deadline_ms", "is %d, the least is 0", f.DeadlineMS)
	}
	if f.Surface == SurfaceUnset {
		f.Surface = f.Sink.Kind.Surface()
	}
	if f.Boundary == BoundaryUnset {
		f.Boundary = f.Sink.Kind.Boundary()
	}
	return nil
}

func runeStart(s string, i int) bool { return i == len(s) || utf8.RuneStart(s[i]) }

// Digest is a SHA-256 in lower-case hex with its algorithm in front.
type Digest string

// DigestOf returns the digest of the parts, each preceded by its length so
// that no two lists of parts have the same digest.
func DigestOf(parts ...string) Digest {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write([]byte(p))
	}
	return Digest("sha256:" + hex.EncodeToString(h.Sum(nil)))
}

// Binding is the digest of everything that a person's answer is bound to: the
// exact payload and the exact sink, for one agent.
func (f *Flow) Binding() Digest {
	parts := []string{"binding", f.Payload, f.Surface.String(), f.Sink.Kind.String(), f.Sink.ID, f.Sink.Tool,
		f.Sink.Action, f.Sink.Destination, f.Session.Agent, f.Session.Workspace}
	return DigestOf(append(parts, f.Sink.Permissions...)...)
}

// Key is the digest of everything that a decision depends on apart from
// policy and model: what the verdict cache and the in-flight table go by.
func (f *Flow) Key() Digest {
	return DigestOf("flow", string(f.Binding()), f.Boundary.String(), f.Source.Kind.String(), f.Source.ID,
		f.Source.Trust.String(), f.Intent, fmt.Sprint(f.Spans), fmt.Sprint(f.OwnerAuthorized))
}

// WithPayload returns a candidate flow: f with another payload. The caller's
// spans are dropped because they point into the old one.
func (f *Flow) WithPayload(payload string) *Flow {
	g := *f
	g.Payload = payload
	g.Spans = nil
	return &g
}

// Deadline is the time that the caller gave for the whole call, or def.
func (f *Flow) Deadline(def time.Duration) time.Duration {
	if d := time.Duration(f.DeadlineMS) * time.Millisecond; d > 0 && d < def {
		return d
	}
	return def
}
