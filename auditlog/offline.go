package auditlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// Line is one acknowledged record as it stands in its file.
type Line struct {
	Index   int64
	Text    []byte // without the newline
	segment int64
}

// Record decodes the line.
func (l *Line) Record() (*Record, error) { return ParseRecord(l.Text) }

// Value returns the redacted text of a record of the log under dir, or nil
// when it has none or it was erased.
func (l *Line) Value(dir string) (*Value, error) {
	r, err := l.Record()
	if err != nil {
		return nil, err
	}
	return readValue(dir, l.segment, r.Value)
}

// acknowledged reads from the files alone how many records count.
func acknowledged(dir string) (int64, error) {
	pub, err := readVerifierKey(dir)
	if err != nil {
		return 0, err
	}
	verifier, err := note.NewVerifier(pub)
	if err != nil {
		return 0, errors.New("log.pub is malformed")
	}
	h, _, err := readHeadOf(dir, verifier)
	if err != nil {
		return 0, err
	}
	return h.size, nil
}

// Lines reads the acknowledged records from index from on out of the files
// under dir; the daemon need not run, and may. It checks that the indexes follow
// one another, no more than that: Verify does. The sequence ends with the first
// error.
func Lines(dir string, from int64) iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		size, err := acknowledged(dir)
		if err == nil {
			err = eachLine(dir, max(0, from), size, func(l *Line) bool { return yield(l, nil) })
		}
		if err != nil && err != errStop {
			yield(nil, err)
		}
	}
}

// eachLine calls f for the records [from, to).
func eachLine(dir string, from, to int64, f func(*Line) bool) error {
	if from >= to {
		return nil
	}
	segments, err := listSegments(dir)
	if err != nil {
		return err
	}
	next := from
	for i, first := range segments {
		if first >= to || i+1 < len(segments) && segments[i+1] <= from {
			continue
		}
		file, err := os.Open(segmentPath(dir, first))
		if err != nil {
			return fmt.Errorf("open a segment: %w", err)
		}
		index := first
		_, err = lines(file, -1, func(text []byte, _ int64) error {
			defer func() { index++ }()
			if index < from {
				return nil
			}
			if index >= to {
				return errStop
			}
			h, err := parseLineHead(text)
			if err != nil || h.index != index || index != next {
				return fmt.Errorf("record %d is not where it belongs: verify the log", next)
			}
			next++
			if !f(&Line{Index: index, Text: append([]byte(nil), text...), segment: first}) {
				return errStop
			}
			return nil
		})
		file.Close()
		if err != nil {
			return err
		}
	}
	if next != to {
		return fmt.Errorf("records %d to %d are missing: verify the log", next, to-1)
	}
	return nil
}

// Lookup finds a record by its index or the id of its decision.
func Lookup(dir string, index int64, id string) (*Line, error) {
	var found *Line
	for l, err := range Lines(dir, index) {
		if err != nil {
			return nil, err
		}
		if id == "" {
			return l, nil
		}
		if h, err := parseLineHead(l.Text); err == nil && string(h.id) == id {
			found = l // the last one counts
		}
	}
	if found == nil {
		return nil, ErrNotFound
	}
	return found, nil
}

// Follow is Lines that goes on with what is added, looking every so often,
// until ctx ends or there is an error.
func Follow(ctx context.Context, dir string, from int64, every time.Duration) iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		next := max(0, from)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			for l, err := range Lines(dir, next) {
				if !yield(l, err) || err != nil {
					return
				}
				next = l.Index + 1
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// Tail yields the records from index from on and goes on with what is added,
// until ctx ends, the log is closed, or there is an error.
func (l *Log) Tail(ctx context.Context, from int64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for next := max(0, from); ; {
			l.mu.RLock()
			size, changed := l.size, l.changed
			l.mu.RUnlock()
			for ; next < size; next++ {
				r, err := l.Get(next)
				if !yield(r, err) || err != nil {
					return
				}
			}
			if changed == nil {
				return // closed
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}
}
