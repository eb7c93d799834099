package auditlog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.org/auditd/schema"
	"golang.org/x/mod/sumdb/tlog"
)

// Limits of what is written, so that no caller's input makes a record that
// later cannot be read.
const (
	maxLine   = 4 << 20 // bytes of one record
	maxWord   = 128     // bytes of one of our own words
	maxSpans  = 512     // spans kept per list; the rest is counted
	version   = 1       // of the record format
	timeShape = time.RFC3339Nano
)

// Kind says what a record is about.
type Kind string

// Kinds of records.
const (
	KindDecision Kind = "decision" // one decision of the firewall
	KindRepaired Kind = "repaired" // the log was opened after a crash, and what was cut
	KindErased   Kind = "erased"   // redacted texts were erased
)

// Record is one line of the log.
type Record struct {
	V     int    `json:"v"`
	Index int64  `json:"index"`
	Prev  string `json:"prev"` // hash of the line before, in base64
	ID    string `json:"decision_id,omitempty"`
	// Value says where the redacted text lies, and its digest. The text may
	// have been erased since.
	Value *ValueRef `json:"value,omitempty"`
	Kind  Kind      `json:"kind"`
	Time  time.Time `json:"time"`

	Decision *Decision `json:"decision,omitempty"`
	Flow     *Flow     `json:"flow,omitempty"`
	Repaired *Repaired `json:"repaired,omitempty"`
	Erased   *Erased   `json:"erased,omitempty"`
}

// ValueRef points into the values file of the record's segment.
type ValueRef struct {
	At     int64         `json:"at"`
	Bytes  int64         `json:"bytes"` // without the newline
	Digest schema.Digest `json:"digest"`
}

// Repaired says what Open found after a crash. Nothing of it was acknowledged.
type Repaired struct {
	CutBytes int64 `json:"cut_bytes"` // of an unfinished record
	Kept     int64 `json:"kept"`      // whole records beyond the last acknowledged one
}

// Erased says whose redacted texts were erased: the records [From, To).
type Erased struct {
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Reason string `json:"reason"`
}

// recordHead is the part of a record that only the committer knows. It is
// spliced in front of the encoded rest, so that encoding runs in the callers.
func recordHead(index int64, prev tlog.Hash, id string, v *ValueRef) []byte {
	b := make([]byte, 0, 320)
	b = append(b, `{"v":1,"index":`...)
	b = strconv.AppendInt(b, index, 10)
	b = append(b, `,"prev":"`...)
	b = append(b, prev.String()...)
	b = append(b, '"')
	if id != "" {
		b = append(b, `,"decision_id":"`...) // isWord has checked that nothing needs escaping
		b = append(b, id...)
		b = append(b, '"')
	}
	if v != nil {
		b = fmt.Appendf(b, `,"value":{"at":%d,"bytes":%d,"digest":"%s"}`, v.At, v.Bytes, v.Digest)
	}
	return b
}

// recordRest is a Record without what recordHead writes.
type recordRest struct {
	Kind     Kind      `json:"kind"`
	Time     time.Time `json:"time"`
	Decision *Decision `json:"decision,omitempty"`
	Flow     *Flow     `json:"flow,omitempty"`
	Repaired *Repaired `json:"repaired,omitempty"`
	Erased   *Erased   `json:"erased,omitempty"`
}

// ParseRecord reads one line, without its newline. It is strict: an unknown
// field, a duplicate or a wrong type is an error. It does not check the chain.
func ParseRecord(line []byte) (*Record, error) {
	if len(line) > maxLine {
		return nil, fmt.Errorf("a record has %d bytes, the limit is %d", len(line), maxLine)
	}
	r := new(Record)
	if err := schema.Decode(line, r); err != nil {
		return nil, fmt.Errorf("read a record: %w", err)
	}
	if r.V != version {
		return nil, fmt.Errorf("a record has version %d, this program reads %d", r.V, version)
	}
	if r.Index < 0 || r.Time.IsZero() {
		return nil, errors.New("a record lacks its index or time")
	}
	if _, err := tlog.ParseHash(r.Prev); err != nil {
		return nil, errors.New("a record's prev is not a hash")
	}
	if v := r.Value; v != nil && (v.At < 0 || v.Bytes <= 0 || v.Bytes > maxValueLine) {
		return nil, errors.New("a record's value lies outside any file")
	}
	ok := false
	switch r.Kind {
	case KindDecision:
		ok = r.Decision != nil && r.Flow != nil && isWord(r.ID) && r.Repaired == nil && r.Erased == nil
	case KindRepaired:
		ok = r.Repaired != nil && r.Decision == nil && r.Flow == nil && r.Erased == nil && r.ID == ""
	case KindErased:
		ok = r.Erased != nil && r.Decision == nil && r.Flow == nil && r.Repaired == nil && r.ID == "" &&
			r.Erased.From >= 0 && r.Erased.To >= r.Erased.From
	}
	if !ok {
		return nil, errors.New("a record is of no known kind, or does not hold what its kind has")
	}
	return r, nil
}

// lineHead is what opening a log needs of a line, found without decoding it:
// recordHead wrote it at the very beginning.
type lineHead struct {
	index int64
	prev  tlog.Hash
	id    []byte
	value ValueRef // without the digest
}

var errLineHead = errors.New("a record does not begin as records do")

func parseLineHead(line []byte) (lineHead, error) {
	var h lineHead
	rest, ok := bytes.CutPrefix(line, []byte(`{"v":1,"index":`))
	if !ok || len(line) > maxLine {
		return h, errLineHead
	}
	if h.index, rest, ok = cutInt(rest); !ok {
		return h, errLineHead
	}
	rest, ok = bytes.CutPrefix(rest, []byte(`,"prev":"`))
	if !ok || len(rest) < 45 || rest[44] != '"' {
		return h, errLineHead
	}
	var err error
	if h.prev, err = tlog.ParseHash(string(rest[:44])); err != nil {
		return h, errLineHead
	}
	rest = rest[45:]
	if after, ok := bytes.CutPrefix(rest, []byte(`,"decision_id":"`)); ok {
		end := bytes.IndexByte(after, '"')
		if end < 0 || !isWord(string(after[:end])) {
			return h, errLineHead
		}
		h.id, rest = after[:end], after[end+1:]
	}
	if after, ok := bytes.CutPrefix(rest, []byte(`,"value":{"at":`)); ok {
		if h.value.At, after, ok = cutInt(after); !ok {
			return h, errLineHead
		}
		if after, ok = bytes.CutPrefix(after, []byte(`,"bytes":`)); !ok {
			return h, errLineHead
		}
		if h.value.Bytes, _, ok = cutInt(after); !ok {
			return h, errLineHead
		}
	}
	if line[len(line)-1] != '}' {
		return h, errLineHead
	}
	return h, nil
}

func cutInt(b []byte) (int64, []byte, bool) {
	n := 0
	for n < len(b) && n < 19 && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	v, err := strconv.ParseInt(string(b[:n]), 10, 64)
	return v, b[n:], err == nil
}

// isWord reports whether s can be one of our own words: short, and of
// characters that need no escaping anywhere and make no sentence. Whatever is
// not may be payload, and stays out of the records.
func isWord(s string) bool {
	if s == "" || len(s) > maxWord {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.' || c == '_' || c == ':' || c == '/' || c == '+' || c == '-' || c == '@' || c == '#':
		default:
			return false
		}
	}
	return true
}
