package auditlog

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"example.org/auditd/schema"
	"golang.org/x/mod/sumdb/note"
)

// Errors that callers branch on.
var (
	ErrLocked   = errors.New("another process has the log open")
	ErrFailed   = errors.New("the log failed and takes no record until it is opened again")
	ErrClosed   = errors.New("the log is closed")
	ErrNotFound = errors.New("the log has no such record")
)

// Config is what a log needs.
type Config struct {
	Dir string // the state directory
	Now func() time.Time
	// Keys, if set, are used in place of the files log.key, log.pub, log.mac.
	Keys *Keys
	// Redact replaces secrets in the short texts of a decision (identifiers,
	// evidence, intent) before they go to values/. When nil they are left out.
	Redact func(string) string
	Log    *slog.Logger

	// SegmentBytes and SegmentAge say when a new segment is begun; 0 means
	// 8 MiB and 24 hours. Redacted texts expire by whole segments.
	SegmentBytes int64
	SegmentAge   time.Duration
}

const (
	defaultSegmentBytes = 8 << 20
	defaultSegmentAge   = 24 * time.Hour
	// maxBatch bounds what one sync covers, and so how long the first of a
	// batch waits for the writing of the others.
	maxBatch = 256
)

// Log is an open log. Its methods may be called concurrently.
type Log struct {
	cfg    Config
	keys   *Keys
	signer note.Signer
	lock   *os.File
	queue  chan *pending // unbuffered: what the committer has taken, it answers
	quit   chan struct{} // closed by Close
	done   chan struct{} // closed when the committer has ended

	// disk makes writes durable; tests replace it to make them fail.
	disk disk

	// w belongs to the committer alone, once Open has returned.
	w writer

	// mu guards what readers see: only what has been acknowledged.
	mu      sync.RWMutex
	size    int64
	note    []byte // the signed head
	closed  []*closedSegment
	active  activeSegment
	failure error         // why the log takes no more records
	changed chan struct{} // closed and replaced when size grows
	ended   bool

	repaired Repaired
}

// disk is how the log reaches its files.
type disk struct {
	writeAt func(*os.File, []byte, int64) (int, error)
	sync    func(*os.File) error
}

// activeSegment is the segment that is being written, as readers see it.
type activeSegment struct {
	first   int64
	offsets []int64
	ids     map[uint64][]int64 // positions, ascending
}

// pending is one record on its way to the disk.
type pending struct {
	ctx context.Context
	id  string
	// rotate asks for a new segment, beginning with this record.
	rotate bool
	body   []byte
	value  []byte
	index  int64
	err    error
	done   chan struct{}
}

// Append records a decision. When it returns without an error the record is on
// the disk, and its index is returned. On an error the decision must not be
// enforced as anything but a block; the record may be in the log all the same
// when ctx ended while it was being written.
func (l *Log) Append(ctx context.Context, e Entry) (int64, error) {
	w := entryWriter{mac: hmac.New(sha256.New, l.keys.MAC), redact: l.cfg.Redact}
	body, value, err := w.encode(&e, recordRest{Time: l.cfg.Now().UTC()})
	if err != nil {
		return -1, err
	}
	return l.append(ctx, &pending{ctx: ctx, id: e.Decision.ID, body: body, value: value})
}

func (l *Log) append(ctx context.Context, p *pending) (int64, error) {
	p.done = make(chan struct{})
	if err := ctx.Err(); err != nil {
		return -1, fmt.Errorf("record a decision: %w", err)
	}
	select {
	case l.queue <- p:
	case <-ctx.Done():
		return -1, fmt.Errorf("record a decision: %w", ctx.Err())
	case <-l.quit:
		return -1, ErrClosed
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return -1, fmt.Errorf("record a decision (it may have been written): %w", ctx.Err())
	}
	if p.err != nil {
		return -1, p.err
	}
	return p.index, nil
}

// appendEvent records something about the log itself.
func (l *Log) appendEvent(ctx context.Context, r recordRest, rotate bool) (int64, error) {
	r.Time = l.cfg.Now().UTC()
	body, err := schema.Encode(r)
	if err != nil {
		return -1, fmt.Errorf("encode a record: %w", err)
	}
	return l.append(ctx, &pending{ctx: ctx, body: body, rotate: rotate})
}

// commits runs until Close. It takes whatever is waiting, so one sync serves
// all who came during the last one; it never waits for more to come.
func (l *Log) commits() {
	defer close(l.done)
	for {
		var batch []*pending
		select {
		case p := <-l.queue:
			batch = append(batch, p)
		case <-l.quit:
			return
		}
	fill:
		for len(batch) < maxBatch {
			select {
			case p := <-l.queue:
				batch = append(batch, p)
			default:
				break fill
			}
		}
		l.commit(batch)
	}
}

// commit writes a batch and answers everybody in it.
func (l *Log) commit(batch []*pending) {
	l.mu.RLock()
	failure := l.failure
	l.mu.RUnlock()
	live := batch[:0:0]
	for _, p := range batch {
		switch {
		case failure != nil:
			p.err = failure
		case p.ctx.Err() != nil:
			p.err = fmt.Errorf("record a decision: %w", p.ctx.Err())
		default:
			live = append(live, p)
		}
	}
	if len(live) > 0 {
		if err := l.write(live); err != nil {
			err = fmt.Errorf("%w: %w", ErrFailed, err)
			l.mu.Lock()
			l.failure = err
			l.mu.Unlock()
			l.cfg.Log.Error("the decision log failed; every flow is blocked until it is opened again", "err", err)
			for _, p := range live {
				p.err = err
			}
		}
	}
	for _, p := range batch {
		close(p.done)
	}
}

// Err says why the log takes no records, or nil.
func (l *Log) Err() error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.failure
}

// Size is the number of acknowledged records.
func (l *Log) Size() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.size
}

// Changed returns a channel that is closed when the log next grows; nil once it
// is closed. Take it before asking for Size.
func (l *Log) Changed() <-chan struct{} {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.changed
}

// Checkpoint returns the signed statement of what was acknowledged. Kept where
// the owner's uid cannot write, it shows a later rewriting of the log.
func (l *Log) Checkpoint() []byte {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return append([]byte(nil), l.note...)
}

// VerifierKey is the public key that checkpoints are signed with.
func (l *Log) VerifierKey() string { return l.keys.Verifier }

// Keyed returns the digest under which a text of a kind stands in the records.
func (l *Log) Keyed(kind, text string) Keyed { return l.keys.Keyed(kind, text) }

// Repaired says what Open had to repair; nothing of it was acknowledged.
func (l *Log) Repaired() Repaired { return l.repaired }

// Close ends the log. Appends that have not been taken yet fail.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return nil
	}
	l.ended = true
	l.mu.Unlock()
	close(l.quit)
	<-l.done
	err := l.w.close()
	l.mu.Lock()
	close(l.changed)
	l.changed = nil
	l.mu.Unlock()
	return errors.Join(err, l.lock.Close())
}
