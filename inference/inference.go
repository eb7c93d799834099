// Package inference defines what an auditor and an arbiter are, why a call to
// one can fail, and the decorators that every backend shares. The backends
// themselves live in packages below this one; inferencetest holds the one
// conformance suite that all of them pass.
package inference

import (
	"context"
	"errors"
	"fmt"

	"example.org/auditd/schema"
)

// Auditor is a small local model that writes the structured risk report.
//
// An implementation is safe for concurrent use, honours ctx, never changes the
// record, and returns either a report that schema.Report.Validate accepts or
// an *Error. It never returns a report together with an error.
type Auditor interface {
	// Identity names backend, model, model digest and prompt version: all that
	// the same record's report depends on. It is part of the verdict cache's key.
	Identity() string
	// Ready returns nil once a call can be answered without loading a model,
	// and otherwise says what is missing.
	Ready() error
	Audit(ctx context.Context, rec *schema.Record) (schema.Report, schema.Usage, error)
}

// Arbiter is the stronger model that escalated flows are sent to. The contract
// is that of Auditor.
type Arbiter interface {
	Identity() string
	Ready() error
	Arbitrate(ctx context.Context, rec *schema.ArbiterRecord) (schema.ArbiterReport, schema.Usage, error)
}

// ErrAbsent is wrapped by what Ready returns when waiting is of no use: nothing
// is being loaded, the owner has to mend something first.
var ErrAbsent = errors.New("it is not there")

// Cause says why a model call gave no usable report. Every cause blocks; they
// differ in what the owner has to mend, and are counted apart.
type Cause uint8

// Causes.
const (
	CauseUnknown     Cause = iota
	CauseUnavailable       // refused connection, no such model, not loaded yet
	CauseTimeout           // the deadline passed
	CauseStatus            // the server answered 4xx or 5xx
	CauseBusy              // the queue was full, or the wait in it too long
	CauseEmpty             // an empty answer
	CauseMalformed         // not one JSON document of the schema
	CauseTruncated         // the prompt or the answer was cut
	CauseCanary            // the canary or nonce did not come back
	CauseCancelled         // the caller went away
)

var causeNames = [...]string{
	CauseUnknown: "unknown", CauseUnavailable: "unavailable", CauseTimeout: "timeout", CauseStatus: "status", CauseBusy: "busy",
	CauseEmpty: "empty", CauseMalformed: "malformed", CauseTruncated: "truncated", CauseCanary: "canary", CauseCancelled: "cancelled",
}

func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("Cause(%d)", uint8(c))
}

// Error is a failed model call. Its text never holds payload or what the model
// said.
type Error struct {
	Cause   Cause
	Backend string
	Err     error // for the log; may be nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Backend + ": " + e.Cause.String()
	}
	return fmt.Sprintf("%s: %s: %v", e.Backend, e.Cause, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// CauseOf returns the cause of err, CauseTimeout or CauseCancelled for a bare
// context error, and CauseUnknown for anything else.
func CauseOf(err error) Cause {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Cause
	case errors.Is(err, context.DeadlineExceeded):
		return CauseTimeout
	case errors.Is(err, context.Canceled):
		return CauseCancelled
	default:
		return CauseUnknown
	}
}
