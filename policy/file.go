package policy

import (
	"errors"
	"fmt"
	"time"

	"gopkg.in/yaml.v3"

	"example.org/auditd/escalation"
	"example.org/auditd/schema"
)

// Limits of one file.
const (
	Version    = 1
	MaxFile    = 1 << 20 // bytes
	maxEntries = 2000    // of any list
	maxText    = 1024    // bytes of any name, glob or reason
	maxWhen    = 4096    // bytes of one expression
)

// File is the policy file, version 1. Every field but version may be left out.
type File struct {
	// Version must be 1.
	Version int `yaml:"version"`

	// Modes says what is done for an agent. The first entry whose glob matches
	// the agent's name counts; an agent that none matches is audited.
	Modes []ModeRule `yaml:"modes"`

	// Thresholds replaces single numbers of the escalation predicate.
	Thresholds escalation.Thresholds `yaml:"thresholds"`

	// NoArbiter is what happens to a flow that needs a stronger judge when
	// none is configured: defer_to_human (the default) or block.
	NoArbiter Word[schema.Action] `yaml:"no_arbiter"`

	// LoopbackPorts are ports on this machine that agents may talk to, such as
	// 11434. Without it a request to a loopback address is a hard block.
	LoopbackPorts []int `yaml:"loopback_ports"`

	// Known lists whom the owner's agents write to as a matter of course.
	Known Known `yaml:"known"`

	// Workspaces are folders in which agents may change and delete files, as
	// absolute paths. The workspace that a host reports counts too.
	Workspaces []string `yaml:"workspaces"`

	// Trust gives content from a source a trust level. The first entry that
	// matches counts. What no entry matches has the level of its kind, see
	// DefaultTrust; what a caller claims can lower a level, never raise it.
	Trust []TrustRule `yaml:"trust"`

	// Rules are the owner's own, in order; the first that matches decides.
	Rules []Rule `yaml:"rules"`

	// Suppressions take a code of the precheck away for a named place.
	Suppressions []Suppression `yaml:"suppressions"`
}

// Known lists recipients and domains, exactly or with a leading "*." for every
// domain below.
type Known struct {
	Recipients []string `yaml:"recipients"`
	Domains    []string `yaml:"domains"`
}

// ModeRule gives agents a mode.
type ModeRule struct {
	Agent string            `yaml:"agent"` // glob over "host:agent", such as "openclaw:*"
	Mode  Word[schema.Mode] `yaml:"mode"`  // both, audit, isolate, observe
}

// TrustRule gives a source a trust level. Kind must be set, and at least one
// of ID and Host.
type TrustRule struct {
	Kind  Word[schema.SourceKind] `yaml:"kind"`
	ID    string                  `yaml:"id"`    // glob over the source's id: * within a path element, ** across them
	Host  string                  `yaml:"host"`  // of a URL: exact, or "*.example.com" for all below
	Trust Word[schema.Trust]      `yaml:"trust"` // hostile, untrusted, derived, trusted
}

// Rule is one of the owner's own rules.
type Rule struct {
	Name string `yaml:"name"`
	// When is a CEL expression; see Variables for the names it may use. One
	// that uses report.* runs after the small auditor, every other before it.
	When string `yaml:"when"`
	// Then is allow, defer_to_human or block.
	Then   Word[schema.Action] `yaml:"then"`
	Reason string              `yaml:"reason"`
	// Expires is the last day on which the rule holds.
	Expires Date `yaml:"expires"`
}

// Suppression takes a soft code away where all of its set fields match. Code,
// reason and expires must be set, and at least one of tool, path and source.
type Suppression struct {
	Code    Word[schema.Code] `yaml:"code"`
	Tool    string            `yaml:"tool"`   // exact name of the tool
	Path    string            `yaml:"path"`   // glob over the sink's id, or over a file source's id
	Source  string            `yaml:"source"` // glob over the source's id
	Expires Date              `yaml:"expires"`
	Reason  string            `yaml:"reason"`
}

// Word is one of the schema's words in YAML. Set tells a word that was left
// out from the zero value.
type Word[T any] struct {
	Value T
	Set   bool
}

// UnmarshalYAML reads the word strictly.
func (w *Word[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return lineError(n, errors.New("must be one word"))
	}
	u, ok := any(&w.Value).(interface{ UnmarshalText([]byte) error })
	if !ok {
		return lineError(n, fmt.Errorf("internal error: %T is no word", w.Value))
	}
	if err := u.UnmarshalText([]byte(n.Value)); err != nil {
		return lineError(n, err)
	}
	w.Set = true
	return nil
}

// Date is a day in UTC. What holds until a day holds through its end.
type Date struct{ time.Time }

// UnmarshalYAML reads YYYY-MM-DD.
func (d *Date) UnmarshalYAML(n *yaml.Node) error {
	t, err := time.Parse(time.DateOnly, n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return lineError(n, errors.New("must be a day such as 2027-01-31"))
	}
	d.Time = t
	return nil
}

// past reports whether the day is over at now. A date that was left out never
// is.
func (d Date) past(now time.Time) bool {
	return !d.IsZero() && !now.UTC().Before(d.AddDate(0, 0, 1))
}

// Problem is one thing that is wrong with a file.
type Problem struct {
	Line int // 0 when it is about the whole file
	Text string
}

func (p Problem) Error() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Text)
}

func lineError(n *yaml.Node, err error) error { return Problem{n.Line, err.Error()} }
