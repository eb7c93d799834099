package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"example.org/auditd/internal/durable"
)

// valueState is what became of a value.
type valueState uint8

const (
	valueChanged valueState = iota // neither what was written nor erased
	valueErased
	valueThere
)

// valueAt reads a value. An erased one is a hole or blanks, or lies beyond the
// end of its file.
func valueAt(f *os.File, ref *ValueRef) ([]byte, valueState, error) {
	if ref.Bytes <= 0 || ref.Bytes > maxValueLine || ref.At < 0 {
		return nil, valueChanged, nil
	}
	b := make([]byte, ref.Bytes)
	n, err := f.ReadAt(b, ref.At)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, valueChanged, fmt.Errorf("read a value: %w", err)
	}
	switch {
	case blank(b[:n]):
		return nil, valueErased, nil
	case int64(n) == ref.Bytes && valueDigest(b) == ref.Digest:
		return b, valueThere, nil
	}
	return nil, valueChanged, nil
}

func blank(b []byte) bool { return len(bytes.Trim(b, " \x00")) == 0 }

// EraseValue erases the redacted text of one record, and records that. The
// bytes are overwritten in place; what a disk or file system keeps of them
// below that is out of reach.
func (l *Log) EraseValue(ctx context.Context, index int64, reason string) error {
	r, err := l.Get(index)
	if err != nil {
		return err
	}
	if r.Value == nil {
		return nil
	}
	// First the record: an erasure that a crash interrupts is on record, and can
	// be done again.
	if err := l.recordErasure(ctx, index, index+1, reason, false); err != nil {
		return err
	}
	first, _, err := l.locate(index)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(valuesPath(l.cfg.Dir, first), os.O_WRONLY, 0)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("erase a value: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{' '}, int(r.Value.Bytes)), r.Value.At); err != nil {
		return fmt.Errorf("erase a value: %w", err)
	}
	if err := durable.Sync(f); err != nil {
		return fmt.Errorf("erase a value: %w", err)
	}
	return nil
}

// ExpireValues erases the redacted texts of all segments whose last record is
// older than before, and records that. It returns how many records lost theirs.
// Segments are the unit: Config.SegmentAge bounds how much too late a text goes.
func (l *Log) ExpireValues(ctx context.Context, before time.Time, reason string) (int64, error) {
	l.mu.RLock()
	type part struct{ first, end int64 }
	var parts []part
	for _, c := range l.closed {
		parts = append(parts, part{c.first, c.first + c.count})
	}
	active := part{l.active.first, l.size}
	l.mu.RUnlock()
	if active.end > active.first {
		parts = append(parts, active)
	}
	erased := int64(0)
	for _, p := range parts {
		path := valuesPath(l.cfg.Dir, p.first)
		if _, err := os.Lstat(path); missing(err) {
			continue
		}
		r, err := l.Get(p.end - 1)
		if err != nil {
			return erased, err
		}
		if !r.Time.Before(before) {
			break // segments are in the order of time
		}
		// The record begins a new segment, so that the old one is finished and
		// nothing is added to the file any more.
		if err := l.recordErasure(ctx, p.first, p.end, reason, p == active); err != nil {
			return erased, err
		}
		if p == active && l.finishedAt(p.first) != p.end {
			continue // newer records came in first: theirs must stay
		}
		if err := os.Remove(path); err != nil {
			return erased, fmt.Errorf("erase values: %w", err)
		}
		if err := durable.SyncDir(valuesDir(l.cfg.Dir)); err != nil {
			return erased, fmt.Errorf("erase values: %w", err)
		}
		erased += p.end - p.first
	}
	return erased, nil
}

// finishedAt returns where a finished segment ends, or -1.
func (l *Log) finishedAt(first int64) int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, c := range l.closed {
		if c.first == first {
			return c.first + c.count
		}
	}
	return -1
}

func (l *Log) recordErasure(ctx context.Context, from, to int64, reason string, rotate bool) error {
	if !isWord(reason) {
		reason = "unspecified"
	}
	_, err := l.appendEvent(ctx, recordRest{Kind: KindErased, Erased: &Erased{From: from, To: to, Reason: reason}}, rotate)
	if err != nil {
		return fmt.Errorf("record an erasure: %w", err)
	}
	return nil
}
