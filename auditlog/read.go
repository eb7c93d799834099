package auditlog

import (
	"fmt"
	"os"

	"example.org/auditd/schema"
	"golang.org/x/mod/sumdb/tlog"
)

// Get returns the acknowledged record with an index.
func (l *Log) Get(index int64) (*Record, error) {
	line, err := l.line(index)
	if err != nil {
		return nil, err
	}
	return ParseRecord(line)
}

func (l *Log) line(index int64) ([]byte, error) {
	first, offset, err := l.locate(index)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(segmentPath(l.cfg.Dir, first))
	if err != nil {
		return nil, fmt.Errorf("open a segment: %w", err)
	}
	defer f.Close()
	line, err := readLineAt(f, offset)
	if err != nil {
		return nil, err
	}
	if h, err := parseLineHead(line); err != nil || h.index != index {
		return nil, fmt.Errorf("record %d is not where the index has it: verify the log", index)
	}
	return line, nil
}

// locate returns the segment of a record and its offset there.
func (l *Log) locate(index int64) (first, offset int64, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if index < 0 || index >= l.size {
		return 0, 0, ErrNotFound
	}
	if index >= l.active.first {
		return l.active.first, l.active.offsets[index-l.active.first], nil
	}
	for i := len(l.closed) - 1; i >= 0; i-- {
		if c := l.closed[i]; index >= c.first {
			f, err := os.Open(indexPath(l.cfg.Dir, c.first))
			if err != nil {
				return 0, 0, fmt.Errorf("open a segment's index: %w", err)
			}
			defer f.Close()
			offset, err = c.offset(f, index-c.first)
			return c.first, offset, err
		}
	}
	return 0, 0, ErrNotFound
}

// Find returns the last record of a decision.
func (l *Log) Find(id string) (*Record, error) {
	hash := hashID([]byte(id))
	l.mu.RLock()
	first, closed := l.active.first, l.closed
	positions := l.active.ids[hash]
	l.mu.RUnlock()
	for i := len(positions) - 1; i >= 0; i-- {
		if r, err := l.Get(first + positions[i]); err != nil || r.ID == id {
			return r, err
		}
	}
	for i := len(closed) - 1; i >= 0; i-- {
		r, err := l.findClosed(closed[i], hash, id)
		if err != nil || r != nil {
			return r, err
		}
	}
	return nil, ErrNotFound
}

func (l *Log) findClosed(c *closedSegment, hash uint64, id string) (*Record, error) {
	f, err := os.Open(indexPath(l.cfg.Dir, c.first))
	if err != nil {
		return nil, fmt.Errorf("open a segment's index: %w", err)
	}
	defer f.Close()
	positions, err := c.find(f, hash)
	if err != nil {
		return nil, err
	}
	for _, pos := range positions {
		if r, err := l.Get(c.first + pos); err != nil || r.ID == id {
			return r, err
		}
	}
	return nil, nil
}

// Value returns the redacted text of a record, or nil when it has none or it
// was erased.
func (l *Log) Value(r *Record) (*Value, error) {
	first, _, err := l.locate(r.Index)
	if err != nil {
		return nil, err
	}
	return readValue(l.cfg.Dir, first, r.Value)
}

// readValue reads and checks a value; nil means that it was erased.
func readValue(dir string, first int64, ref *ValueRef) (*Value, error) {
	if ref == nil {
		return nil, nil
	}
	f, err := os.Open(valuesPath(dir, first))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open a values file: %w", err)
	}
	defer f.Close()
	line, state, err := valueAt(f, ref)
	if err != nil || state == valueErased {
		return nil, err
	}
	if state == valueChanged {
		return nil, fmt.Errorf("the value at byte %d of its file was changed", ref.At)
	}
	v := new(Value)
	if err := schema.Decode(line, v); err != nil {
		return nil, fmt.Errorf("read a value: %w", err)
	}
	return v, nil
}

// Proof shows that a record is in the log that a checkpoint was signed over.
type Proof struct {
	Index      int64            `json:"index"`
	Record     string           `json:"record"` // the line
	Proof      tlog.RecordProof `json:"proof"`
	Checkpoint string           `json:"checkpoint"` // signed
	Verifier   string           `json:"verifier"`
}

// Prove returns the inclusion proof of a record.
func (l *Log) Prove(index int64) (*Proof, error) {
	line, err := l.line(index)
	if err != nil {
		return nil, err
	}
	l.mu.RLock()
	size, msg := l.size, string(l.note)
	l.mu.RUnlock()
	p, err := tlog.ProveRecord(size, index, treeFile{l.w.tree})
	if err != nil {
		return nil, fmt.Errorf("prove record %d: %w", index, err)
	}
	proof := &Proof{Index: index, Record: string(line), Proof: p, Checkpoint: msg, Verifier: l.keys.Verifier}
	if err := proof.Check(l.keys.Verifier); err != nil {
		return nil, fmt.Errorf("prove record %d: the tree file is damaged (%w); it is made again when log/tree is removed and the log opened", index, err)
	}
	return proof, nil
}
