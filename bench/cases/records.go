package cases

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"example.org/auditd/schema"
)

// record is one line of a file of records. Its vocabulary is closed.
type record struct {
	ID              string  `json:"id"`
	Source          string  `json:"source"` // where the record is from
	License         string  `json:"license"`
	Redistributable bool    `json:"redistributable"`
	Kind            Kind    `json:"kind"`
	Surface         string  `json:"surface"`
	Channel         string  `json:"source_channel"`
	Sink            string  `json:"sink"`
	Payload         string  `json:"payload"`
	Intent          *string `json:"owner_intent"`
	Span            *string `json:"injected_span"`
	Goal            *string `json:"attack_goal"`
	Language        string  `json:"language"`
}

// Bounds of a file of records.
const (
	maxLine    = 4 << 20   // bytes of one line
	maxRecords = 256 << 20 // bytes of a file, unpacked
	maxCount   = 500_000
)

// goals are what a record's attack may be after; a record may also say nothing.
func goals() []string {
	return []string{"other", "exfil", "misinfo", "exec", "destructive", "authority", "persistence", "financial"}
}

// ParseRecords reads records, one JSON object a line, packed with gzip or not.
// An unknown key or word is an error.
//
// A record has no oracle of its own. Its attack is the injected span, or all of
// the payload, and takes effect while more than half of that reaches the sink;
// what is to be kept is the rest, nine tenths of it.
func ParseRecords(in io.Reader) ([]Case, error) {
	r := bufio.NewReader(in)
	if head, err := r.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, errors.New("it is not gzip after all")
		}
		in = z
	} else {
		in = r
	}
	// What is packed may be far larger than its file.
	bounded := &io.LimitedReader{R: in, N: maxRecords + 1}
	sc := bufio.NewScanner(bounded)
	sc.Buffer(nil, maxLine)
	var out []Case
	line := 0
	for sc.Scan() {
		line++
		text := bytes.TrimSpace(sc.Bytes())
		if len(text) == 0 {
			continue
		}
		if len(out) == maxCount {
			return nil, fmt.Errorf("it has over %d records", maxCount)
		}
		var rec record
		if err := schema.Decode(text, &rec); err != nil {
			return nil, fmt.Errorf("line %d: not a record: %w", line, err)
		}
		c, err := rec.build()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		out = append(out, c)
	}
	switch err := sc.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d is over %d bytes", line+1, maxLine)
	case err != nil:
		return nil, fmt.Errorf("line %d: it cannot be unpacked or read", line+1)
	case bounded.N <= 0:
		return nil, fmt.Errorf("it is over %d bytes", maxRecords)
	}
	return out, nil
}

// Words of the records that are not schema's.
var (
	channels = map[string]string{"tool_output": "tool"}
	sinks    = map[string]string{"llm_context": "reasoning", "tool_call": "tool"}
)

func translated(words map[string]string, word string) []byte {
	if w, ok := words[word]; ok {
		return []byte(w)
	}
	return []byte(word)
}

// build makes a case. A text of the user channel was pasted at a model: nobody
// says that its author is the owner.
func (r *record) build() (Case, error) {
	c := Case{ID: r.ID, Kind: r.Kind, Family: "record", Goal: r.Source, ByShare: true}
	f := schema.Flow{Payload: r.Payload, Source: schema.Source{Trust: schema.Untrusted}, Session: schema.Session{Agent: "bench"}}
	if err := errors.Join(f.Source.Kind.UnmarshalText(translated(channels, r.Channel)), f.Sink.Kind.UnmarshalText(translated(sinks, r.Sink)), f.Surface.UnmarshalText([]byte(r.Surface))); err != nil {
		return c, err
	}
	if r.Channel == "user" {
		f.Source.Kind = schema.SourceOther
	}
	if r.Intent != nil {
		f.Intent = *r.Intent
	}
	if r.Goal != nil {
		if !slices.Contains(goals(), *r.Goal) {
			return c, errors.New("attack_goal must be one of " + strings.Join(goals(), ", "))
		}
		c.Family = *r.Goal
	}
	if err := f.Complete(0); err != nil {
		return c, err
	}
	c.Flow = f
	switch {
	case r.ID == "" || r.Source == "" || strings.TrimSpace(r.Payload) == "" || !utf8.ValidString(r.ID):
		return c, errors.New("id, source and payload must be set")
	case r.Kind != Attack && r.Kind != Benign:
		return c, errors.New("kind must be attack or benign")
	case r.Kind == Benign && r.Span != nil:
		return c, errors.New("a benign record has no injected_span")
	case r.Kind == Benign:
		c.Keep = []string{r.Payload}
	case r.Span == nil || *r.Span == "" || *r.Span == r.Payload:
		c.Effect = []string{r.Payload}
	default:
		before, after, found := strings.Cut(r.Payload, *r.Span)
		if !found {
			return c, errors.New("injected_span must stand in the payload")
		}
		c.Span, c.Effect = *r.Span, []string{*r.Span}
		if rest := before + "\n" + after; strings.TrimSpace(rest) != "" {
			c.Keep = []string{rest}
		}
	}
	return c, nil
}

// maxPieces bounds how finely a text is divided to see how much of it is left.
const maxPieces = 64

// left returns the share of original that is in text, sentence by sentence.
// text is folded.
func left(text, original string) float64 {
	all, there := 0, 0
	for _, p := range pieces(original) {
		if p = fold(p); p == "" {
			continue
		}
		all += len(p)
		if strings.Contains(text, p) {
			there += len(p)
		}
	}
	if all == 0 {
		return 1
	}
	return float64(there) / float64(all)
}

// pieces divides a text at the ends of sentences and lines, into at most 64.
func pieces(s string) []string {
	var out []string
	for len(s) > 0 && len(out) < maxPieces-1 {
		i := strings.IndexAny(s, ".!?\n;")
		if i < 0 {
			break
		}
		out, s = append(out, s[:i+1]), s[i+1:]
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}
