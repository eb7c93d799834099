package auditor

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"example.org/auditd/schema"
)

// record is one line of a data file.
type record struct {
	ID           string  `json:"id"`
	Source       string  `json:"source"`
	Kind         string  `json:"kind"` // attack or benign
	Surface      string  `json:"surface"`
	Channel      string  `json:"source_channel"`
	Sink         string  `json:"sink"`
	Payload      string  `json:"payload"`
	Intent       *string `json:"owner_intent"`
	InjectedSpan *string `json:"injected_span"`
}

// maxLine bounds one line of a data file.
const maxLine = 16 << 20

// read reads the records of a JSONL file, which may be compressed.
func read(path string, limit int) ([]record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open records: %w", err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		in = z
	}
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, maxLine)
	var out []record
	for line := 1; sc.Scan() && (limit == 0 || len(out) < limit); line++ {
		if len(strings.TrimSpace(sc.Text())) == 0 {
			continue
		}
		var r record
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s, line %d: not a record", path, line)
		}
		if r.Kind != "attack" && r.Kind != "benign" {
			return nil, fmt.Errorf("%s, line %d: kind is neither attack nor benign", path, line)
		}
		out = append(out, r)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return out, nil
}

// Words of the data files that differ from schema's.
var (
	channels = map[string]string{"tool_output": "tool"}
	sinks    = map[string]string{"llm_context": "reasoning", "tool_call": "tool"}
)

// flow makes the record's flow. A word that schema does not know becomes its
// "other". The data's user channel holds texts that were pasted at a model:
// its author is not known to be the owner.
func (r *record) flow(metadata bool) *schema.Flow {
	f := &schema.Flow{Payload: r.Payload, Source: schema.Source{Trust: schema.Untrusted}, Surface: schema.Context}
	if metadata {
		set := func(v interface{ UnmarshalText([]byte) error }, word string, other map[string]string) {
			if w, ok := other[word]; ok {
				word = w
			}
			if v.UnmarshalText([]byte(word)) != nil {
				return // left at its zero value
			}
		}
		set(&f.Surface, r.Surface, nil)
		set(&f.Sink.Kind, r.Sink, sinks)
		if r.Channel != "user" {
			set(&f.Source.Kind, r.Channel, channels)
		}
		if r.Intent != nil {
			f.Intent = *r.Intent
		}
	}
	// The payloads of data files may be over a daemon's limits; what Complete
	// fills in is all that is wanted of it.
	if err := f.Complete(maxLine); err != nil {
		f.Intent = ""
	}
	return f
}

// span is where the attack stands in the payload: the injected span, or all
// of it.
func (r *record) span() (start, end int) {
	if r.InjectedSpan != nil && *r.InjectedSpan != "" {
		if i := strings.Index(r.Payload, *r.InjectedSpan); i >= 0 {
			return i, i + len(*r.InjectedSpan)
		}
	}
	return 0, len(r.Payload)
}
