// Package marks keeps what the owner says of decisions that were wrong: a stop
// that should not have been (a false alarm), or something that should have been
// stopped (a miss). Each becomes a labelled case in the form of the benchmark's
// own, for tuning and for the next model; the text is in it only where the
// owner says so, and as the log has it, with its secrets replaced.
package marks

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"example.org/auditd/auditlog"
	"example.org/auditd/bench/cases"
	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

// What a mark says. Its zero value is refused.
const (
	FalseAlarm = "false_alarm" // it was stopped or changed, and was harmless
	Miss       = "miss"        // it went on, and should not have
	Withdrawn  = "withdrawn"   // an earlier mark was a mistake
)

// Limits.
const (
	maxNote  = 1024
	maxLine  = 1 << 20
	maxMarks = 20000
)

// ErrForm is wrapped by every refusal of a mark.
var ErrForm = errors.New("the mark is not valid")

// Mark is one of the owner's.
type Mark struct {
	Decision string        `json:"decision_id"`
	What     string        `json:"what"`
	Note     string        `json:"note,omitempty"` // the owner's words
	Time     time.Time     `json:"time"`
	Decided  time.Time     `json:"decided"`
	Action   schema.Action `json:"action"`
	Reason   string        `json:"reason"`
	Rules    []string      `json:"rules,omitempty"` // that had matched
	Payload  bool          `json:"payload"`         // the case holds the text
}

// Asked is what the owner says.
type Asked struct {
	What    string
	Note    string
	Payload bool   // keep the text with the case
	Family  string // one of the benchmark's; empty: guessed from the flow
	Part    string // of a miss: the part that should not have got through
}

// line is one line of the file.
type line struct {
	Mark Mark       `json:"mark"`
	Case cases.Form `json:"case"`
}

// Book holds the marks. It is safe for concurrent use.
type Book struct {
	path string
	now  func() time.Time

	mu    sync.Mutex
	marks map[string]Mark // the latest of each decision; guarded by mu
	lines int
}

// Open reads the marks at path, if there are any.
func Open(path string, now func() time.Time) (*Book, error) {
	b := &Book{path: path, now: now, marks: map[string]Mark{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the marks: %w", err)
	}
	err = read(data, func(l *line) { b.keep(l.Mark) })
	if err != nil {
		return nil, fmt.Errorf("read the marks in %s: %w", path, err)
	}
	return b, nil
}

// read calls each for every line. A last line without its end was never
// acknowledged and is left out.
func read(data []byte, each func(*line)) error {
	if i := bytes.LastIndexByte(data, '\n'); i < len(data)-1 {
		data = data[:i+1]
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 2*maxLine)
	for n := 1; lines.Scan(); n++ {
		var l line
		if err := schema.Decode(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if l.Mark.Decision == "" {
			return fmt.Errorf("line %d: decision_id is missing", n)
		}
		each(&l)
	}
	return lines.Err()
}

func (b *Book) keep(m Mark) {
	b.lines++
	if m.What == Withdrawn {
		delete(b.marks, m.Decision)
	} else {
		b.marks[m.Decision] = m
	}
}

// Add files a mark for a recorded decision. v is its redacted text, or nil.
func (b *Book) Add(r *auditlog.Record, v *auditlog.Value, a Asked) (Mark, error) {
	l, err := label(r, v, a)
	if err != nil {
		return Mark{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lines >= maxMarks {
		return Mark{}, fmt.Errorf("%w: %s holds %d marks already: move the file away", ErrForm, filepath.Base(b.path), b.lines)
	}
	l.Mark.Time = b.now().UTC()
	data, err := schema.Encode(l)
	if err != nil {
		return Mark{}, fmt.Errorf("encode a mark: %w", err)
	}
	if len(data) > maxLine {
		return Mark{}, fmt.Errorf("%w: payload: the case would have %d bytes, the limit is %d", ErrForm, len(data), maxLine)
	}
	if err := b.append(data); err != nil {
		return Mark{}, err
	}
	b.keep(l.Mark)
	return l.Mark, nil
}

// append writes a line durably. What a crash left of an earlier one goes first.
func (b *Book) append(data []byte) error {
	if err := durable.MkdirAll(filepath.Dir(b.path)); err != nil {
		return fmt.Errorf("keep a mark: %w", err)
	}
	f, err := durable.OpenAppend(b.path)
	if err != nil {
		return fmt.Errorf("keep a mark: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return fmt.Errorf("keep a mark: %w", err)
	} else if n := info.Size(); n > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, n-1); err != nil {
			return fmt.Errorf("keep a mark: %w", err)
		}
		if last[0] != '\n' {
			if err := b.trim(f, n); err != nil {
				return fmt.Errorf("keep a mark: %w", err)
			}
		}
	}
	if _, err := f.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("keep a mark: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("keep a mark: %w", err)
	}
	return nil
}

// trim cuts an unfinished last line.
func (b *Book) trim(f *os.File, size int64) error {
	tail := make([]byte, min(size, 2*maxLine))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	return f.Truncate(size - int64(len(tail)) + int64(bytes.LastIndexByte(tail, '\n')+1))
}

// Of returns the mark of a decision.
func (b *Book) Of(decision string) (Mark, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, ok := b.marks[decision]
	return m, ok
}

// List returns the marks, the newest first.
func (b *Book) List() []Mark {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Mark, 0, len(b.marks))
	for _, m := range b.marks {
		out = append(out, m)
	}
	slices.SortFunc(out, func(x, y Mark) int { return y.Time.Compare(x.Time) })
	return out
}

// label makes the labelled case.
func label(r *auditlog.Record, v *auditlog.Value, a Asked) (*line, error) {
	refuse := func(field, problem string) (*line, error) {
		return nil, fmt.Errorf("%w: %s: %s", ErrForm, field, problem)
	}
	if r.Decision == nil || r.Flow == nil {
		return refuse("decision_id", "is no decision")
	}
	d, f := r.Decision, r.Flow
	stopped := d.Action != schema.Allow || d.Observed != nil && *d.Observed != schema.Allow
	switch {
	case a.What != FalseAlarm && a.What != Miss && a.What != Withdrawn:
		return refuse("what", "must be false_alarm, miss or withdrawn")
	case a.What == FalseAlarm && !stopped:
		return refuse("what", "it was allowed as it was, so it can be no false alarm")
	case a.What == Miss && d.Action == schema.Block && d.Observed == nil:
		return refuse("what", "it was blocked, so it can be no miss")
	case len(a.Note) > maxNote:
		return refuse("note", fmt.Sprintf("has %d bytes, the limit is %d", len(a.Note), maxNote))
	case a.Family != "" && !slices.Contains(cases.Families(), a.Family):
		return refuse("family", "must be one of "+strings.Join(cases.Families(), ", "))
	case a.Part != "" && a.What != Miss:
		return refuse("part", "belongs to a miss")
	}
	if v == nil {
		v = new(auditlog.Value)
	}
	if a.Payload && (v.Payload == "" || slices.Contains(v.Cut, "payload")) {
		return refuse("payload", "is not whole in the log any more, so that it can't be kept with the case")
	}
	if a.Part != "" && (!a.Payload || !strings.Contains(v.Payload, a.Part)) {
		return refuse("part", "must stand in the payload, and the payload be kept")
	}
	l := &line{Mark: Mark{Decision: r.ID, What: a.What, Note: a.Note, Decided: r.Time, Action: d.Action, Reason: d.Reason, Payload: a.Payload}}
	if p := d.Precheck; p != nil {
		for _, s := range p.Signals {
			if s.Rule != "" && !slices.Contains(l.Mark.Rules, s.Rule) {
				l.Mark.Rules = append(l.Mark.Rules, s.Rule)
			}
		}
	}
	c := &l.Case
	*c = cases.Form{ID: "own-" + r.ID, Kind: cases.Benign, Family: a.Family, Goal: a.Note, Intent: v.Intent,
		From: cases.From{Kind: f.SourceKind.String(), ID: v.Source, Trust: f.SourceTrust.String()},
		To:   cases.To{Kind: f.SinkKind.String(), ID: v.Sink, Tool: v.Tool, Action: v.ToolAction, Destination: v.Destination}}
	if f.Surface != schema.SurfaceUnset && f.Surface != f.SinkKind.Surface() {
		c.Surface = f.Surface.String()
	}
	if c.Family == "" {
		c.Family = family(f.SinkKind, d.Precheck)
	}
	if c.Goal == "" {
		c.Goal = "Marked by the owner: " + strings.ReplaceAll(a.What, "_", " ")
	}
	if a.What == Miss {
		c.Kind = cases.Attack
	}
	if a.Payload {
		c.Payload = v.Payload
		switch {
		case a.What != Miss:
			c.Keep = []string{v.Payload}
		case a.Part != "":
			c.Effect = []string{a.Part}
		default:
			c.Effect = []string{v.Payload}
		}
	}
	return l, nil
}

// Families are what a case may belong to.
func Families() []string { return cases.Families() }

// family guesses what a case would belong to.
func family(k schema.SinkKind, p *auditlog.Precheck) string {
	if p != nil && slices.ContainsFunc(p.Signals, func(s auditlog.Signal) bool { return s.Code == schema.EncodedPayload }) {
		return "encoded_payload"
	}
	switch k {
	case schema.SinkExec, schema.SinkFile:
		return "destructive_command"
	case schema.SinkIdentity:
		return "identity_drift"
	case schema.SinkMessage:
		return "recipient_rebinding"
	case schema.SinkPolicy, schema.SinkConfig:
		return "approval_bypass"
	case schema.SinkPayment:
		return "refund"
	case schema.SinkSkill:
		return "skill_payload"
	case schema.SinkWeb, schema.SinkTool:
		return "exfiltration"
	case schema.SinkPlan:
		return "delayed_trigger"
	default:
		return "memory_poisoning"
	}
}
