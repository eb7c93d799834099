package auditlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"example.org/auditd/internal/durable"
	"golang.org/x/mod/sumdb/tlog"
)

// writer is the state of the committer.
type writer struct {
	dir                   string
	segment, values       *os.File
	head, tree            *os.File
	first                 int64 // name of the segment
	begun                 time.Time
	segmentEnd, valuesEnd int64
	state                 chainState // after the last record
	edge                  edge
	offsets               []int64
	ids                   []idEntry
}

func (w *writer) close() error {
	var errs []error
	for _, f := range []*os.File{w.segment, w.values, w.head, w.tree} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// write makes a batch durable. The order is what everything else relies on:
// values and records, then a sync of both, then the head that counts them,
// then its sync. What the head does not count was never acknowledged.
func (l *Log) write(batch []*pending) error {
	w := &l.w
	now := l.cfg.Now()
	due := w.segmentEnd >= l.cfg.SegmentBytes || now.Sub(w.begun) >= l.cfg.SegmentAge ||
		slices.ContainsFunc(batch, func(p *pending) bool { return p.rotate })
	if len(w.offsets) > 0 && due {
		if err := l.rotate(now); err != nil {
			return err
		}
	}
	if len(w.offsets) == 0 {
		w.begun = now
	}
	var records, values []byte
	var hashes []tlog.Hash
	treeAt := tlog.StoredHashCount(w.edge.size)
	n := len(w.offsets)
	for _, p := range batch {
		var ref *ValueRef
		if p.value != nil {
			ref = &ValueRef{At: w.valuesEnd + int64(len(values)), Bytes: int64(len(p.value)), Digest: valueDigest(p.value)}
			values = append(append(values, p.value...), '\n')
		}
		line := append(recordHead(w.state.next, w.state.hash, p.id, ref), ',')
		line = append(line, p.body[1:]...)
		p.index = w.state.next
		w.offsets = append(w.offsets, w.segmentEnd+int64(len(records)))
		w.ids = append(w.ids, idEntry{hashID([]byte(p.id)), p.index - w.first})
		w.state.hash = tlog.RecordHash(line)
		w.state.next++
		hashes = append(hashes, w.edge.add(w.state.hash)...)
		records = append(append(records, line...), '\n')
	}
	if err := l.put(records, values); err != nil {
		return err
	}
	if treeFile := (treeFile{w.tree}); len(hashes) > 0 {
		if err := treeFile.write(treeAt, hashes); err != nil {
			return err
		}
	}
	msg, err := l.putHead(now)
	if err != nil {
		return err
	}
	l.publish(msg, n)
	return nil
}

// put writes records and values, and syncs both at once.
func (l *Log) put(records, values []byte) error {
	w := &l.w
	if len(values) > 0 {
		if _, err := l.disk.writeAt(w.values, values, w.valuesEnd); err != nil {
			return fmt.Errorf("write values: %w", err)
		}
	}
	if _, err := l.disk.writeAt(w.segment, records, w.segmentEnd); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	valuesErr := make(chan error, 1)
	if len(values) > 0 {
		go func() { valuesErr <- l.disk.sync(w.values) }()
	} else {
		valuesErr <- nil
	}
	err := l.disk.sync(w.segment)
	if verr := <-valuesErr; err != nil || verr != nil {
		return fmt.Errorf("sync records: %w", errors.Join(err, verr))
	}
	w.segmentEnd += int64(len(records))
	w.valuesEnd += int64(len(values))
	return nil
}

func (l *Log) putHead(now time.Time) ([]byte, error) {
	w := &l.w
	h := head{size: w.edge.size, root: w.edge.root(), chain: w.state.hash, segment: w.first, bytes: w.segmentEnd,
		values: w.valuesEnd, time: now}
	msg, err := h.sign(l.signer)
	if err != nil {
		return nil, err
	}
	if _, err := l.disk.writeAt(w.head, padHead(msg), 0); err != nil {
		return nil, fmt.Errorf("write the head: %w", err)
	}
	if err := l.disk.sync(w.head); err != nil {
		return nil, fmt.Errorf("sync the head: %w", err)
	}
	return msg, nil
}

// publish lets readers see the records from position n of the segment on.
func (l *Log) publish(msg []byte, n int) {
	w := &l.w
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size, l.note = w.edge.size, msg
	l.active.first = w.first
	l.active.offsets = append(l.active.offsets, w.offsets[n:]...)
	for _, e := range w.ids[n:] {
		l.active.ids[e.hash] = append(l.active.ids[e.hash], e.pos)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// rotate finishes the segment and begins the next. Everything in it is durable
// already.
func (l *Log) rotate(now time.Time) error {
	w := &l.w
	c, err := writeIndex(w.dir, &scan{first: w.first, end: w.state, bytes: w.segmentEnd, offsets: w.offsets, ids: w.ids})
	if err != nil {
		return err
	}
	if err := errors.Join(w.segment.Close(), w.values.Close()); err != nil {
		return fmt.Errorf("close a segment: %w", err)
	}
	w.first, w.segmentEnd, w.valuesEnd, w.offsets, w.ids = w.state.next, 0, 0, nil, nil
	if err := w.openSegment(os.O_EXCL); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = append(l.closed, c)
	l.active = activeSegment{first: w.first, ids: map[uint64][]int64{}}
	return nil
}

// openSegment opens the files of segment w.first, creating them if need be.
func (w *writer) openSegment(flag int) (err error) {
	flag |= os.O_RDWR | os.O_CREATE
	if w.segment, err = os.OpenFile(segmentPath(w.dir, w.first), flag, 0o600); err != nil {
		return fmt.Errorf("open a segment: %w", err)
	}
	if w.values, err = os.OpenFile(valuesPath(w.dir, w.first), flag, 0o600); err != nil {
		return fmt.Errorf("open a values file: %w", err)
	}
	if err := durable.SyncDir(valuesDir(w.dir)); err != nil {
		return err
	}
	return durable.SyncDir(logDir(w.dir))
}

func writeAt(f *os.File, b []byte, at int64) (int, error) {
	n, err := f.WriteAt(b, at)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}
