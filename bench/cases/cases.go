// Package cases holds the benchmark's own cases: transfers that must not take
// effect and the ordinary ones that match them, each with a goal and an oracle
// that a machine can check. They are written from the structure of the
// token-flow paper's benchmark and are never used to tune a rule or a model.
package cases

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"example.org/auditd/schema"
)

// Kind says what a case is.
type Kind string

// Kinds of cases.
const (
	Attack Kind = "attack"
	Benign Kind = "benign"
)

// Families returns what a case may try; a benign case has the family of the
// attack that it matches.
func Families() []string {
	return []string{"memory_poisoning", "identity_drift", "recipient_rebinding", "approval_bypass", "refund",
		"destructive_command", "skill_payload", "exfiltration", "encoded_payload", "delayed_trigger"}
}

// Case is one transfer with its oracle.
type Case struct {
	ID     string
	Kind   Kind
	Family string
	Pairs  string // the attack that a benign case matches
	Goal   string // what the attacker wants, or what a benign case does
	Flow   schema.Flow
	Span   string   // the injected part of the payload; empty when it is all of it
	Effect []string // the attack takes effect while every one of these reaches the sink
	Secret string   // the attack takes effect while this reaches the sink, in clear or in a usual encoding
	Keep   []string // what a rewrite must leave, for a benign effect to be preserved
	// ByShare: Effect and Keep are whole texts, and how much of them reaches the
	// sink counts.
	ByShare bool
	// Trace is a session's events in order; without one the case is its flow
	// alone. The verdict is the one at the event Judged.
	Trace  []schema.Event
	Judged int
}

// file is how a case is written. Its vocabulary is closed.
type file struct {
	ID      string
	Kind    string
	Family  string
	Pairs   string
	Goal    string
	Surface string
	From    from
	To      to
	Intent  string
	Payload string
	Span    string
	Effect  []string
	Secret  string
	Keep    []string
	Host    string // of a trace
	Trace   []traceEvent
}

type from struct{ Kind, ID, Trust string }

type to struct{ Kind, ID, Tool, Action, Destination string }

//go:embed *.yaml
var files embed.FS

// Builtin returns the cases that ship with the program.
func Builtin() ([]Case, error) { return Read(files) }

// Read reads every file at the top of fsys, in the order of their names: cases
// and traces (.yaml), and records (.jsonl, .jsonl.gz). Other files are left alone.
func Read(fsys fs.FS) ([]Case, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("list the cases: %w", err)
	}
	var out []Case
	for _, e := range entries {
		some, err := readFile(fsys, e.Name())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		out = append(out, some...)
	}
	if len(out) == 0 {
		return nil, errors.New("there are no cases")
	}
	return out, checkSet(out)
}

func readFile(fsys fs.FS, name string) ([]Case, error) {
	parse := Parse
	switch {
	case strings.HasSuffix(name, ".jsonl"), strings.HasSuffix(name, ".jsonl.gz"):
		parse = ParseRecords
	case !strings.HasSuffix(name, ".yaml"):
		return nil, nil
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the cases: %w", err)
	}
	defer f.Close()
	return parse(f)
}

// maxFile bounds a file of cases.
const maxFile = 4 << 20

// Parse reads the cases and traces of one file. An unknown key or word is an
// error.
func Parse(r io.Reader) ([]Case, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the cases: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file is over %d bytes", maxFile)
	}
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("not a list of cases: %w", err)
	}
	if err := yamlBudget(&n); err != nil {
		return nil, err
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	var in []file
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("not a list of cases: %w", err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file holds more than one document")
	}
	out := make([]Case, 0, len(in))
	for i := range in {
		c, err := in[i].build()
		if err != nil {
			return nil, fmt.Errorf("case %d (%.40q): %w", i+1, in[i].ID, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func (f *file) build() (Case, error) {
	if len(f.Trace) > 0 || f.Host != "" {
		return f.buildTrace()
	}
	c := Case{ID: f.ID, Kind: Kind(f.Kind), Family: f.Family, Pairs: f.Pairs, Goal: f.Goal, Span: f.Span, Effect: f.Effect, Secret: f.Secret, Keep: f.Keep}
	c.Flow = schema.Flow{
		Payload: f.Payload, Intent: f.Intent,
		Source:  schema.Source{ID: f.From.ID},
		Sink:    schema.Sink{ID: f.To.ID, Tool: f.To.Tool, Action: f.To.Action, Destination: f.To.Destination},
		Session: schema.Session{Agent: "bench"},
	}
	words := []error{
		c.Flow.Source.Kind.UnmarshalText([]byte(f.From.Kind)), c.Flow.Source.Trust.UnmarshalText([]byte(f.From.Trust)),
		c.Flow.Sink.Kind.UnmarshalText([]byte(f.To.Kind)),
	}
	if f.Surface != "" {
		words = append(words, c.Flow.Surface.UnmarshalText([]byte(f.Surface)))
	}
	if err := errors.Join(words...); err != nil {
		return c, err
	}
	if err := c.Flow.Complete(0); err != nil {
		return c, err
	}
	return c, c.check()
}

// check holds a case to what the oracle needs.
func (c *Case) check() error {
	switch {
	case c.ID == "" || c.Goal == "" || c.Flow.Payload == "":
		return errors.New("id, goal and payload must be set")
	case c.Kind != Attack && c.Kind != Benign:
		return errors.New("kind must be attack or benign")
	case !slices.Contains(Families(), c.Family):
		return errors.New("family must be one of " + strings.Join(Families(), ", "))
	case c.Kind == Attack && (len(c.Effect) > 0) == (c.Secret != ""):
		return errors.New("an attack needs either effect or secret")
	case c.Kind == Attack && !c.TakesEffect(c.Flow.Payload):
		return errors.New("the attack would not take effect even if nothing stopped it")
	case c.Kind == Benign && (len(c.Effect) > 0 || c.Secret != "" || c.Span != "" || len(c.Keep) == 0):
		return errors.New("a benign case has keep, and no effect, secret or span")
	case !c.Preserved(c.Flow.Payload):
		return errors.New("what is to be kept is not in the payload")
	}
	if c.Span == "" {
		return nil
	}
	if strings.Count(c.Flow.Payload, c.Span) != 1 {
		return errors.New("the span must stand in the payload once")
	}
	if carrier, _ := c.Carrier(); c.TakesEffect(carrier) || !c.Preserved(carrier) {
		return errors.New("the effect must lie within the span, and what is kept outside of it")
	}
	return nil
}

// checkSet holds the cases together to what the figures need.
func checkSet(all []Case) error {
	kinds := map[string]Kind{}
	for _, c := range all {
		if _, ok := kinds[c.ID]; ok {
			return fmt.Errorf("there are two cases %s", c.ID)
		}
		kinds[c.ID] = c.Kind
	}
	for _, c := range all {
		if c.Kind == Benign && c.Pairs == "" && !c.ByShare {
			return fmt.Errorf("%s matches no attack: pairs must be set", c.ID)
		}
		if c.Pairs != "" && kinds[c.Pairs] != Attack {
			return fmt.Errorf("%s matches %s, which is no attack", c.ID, c.Pairs)
		}
	}
	return nil
}

// Carrier returns the payload without its injected span.
func (c *Case) Carrier() (string, bool) {
	if c.Span == "" {
		return "", false
	}
	before, after, _ := strings.Cut(c.Flow.Payload, c.Span)
	return before + after, true
}
