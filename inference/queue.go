package inference

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.org/auditd/schema"
)

// QueueConfig bounds what reaches a backend.
type QueueConfig struct {
	Concurrent int              // calls that run at once; 0 means 1
	Waiting    int              // calls that wait for their turn; 0 means 16
	Now        func() time.Time // nil means time.Now
}

// Queue is an Auditor that lets a bounded number of calls through and a bounded
// number wait. A call that would still be waiting when its deadline passes is
// refused at once with CauseBusy: its flow is blocked either way, and the
// sooner the caller knows, the better, and nothing behind it waits in vain.
//
// A place is given back when the backend returns, not when the caller gives up,
// so a backend that cannot be interrupted is never run more often than
// Concurrent times at once.
type Queue struct {
	next  Auditor
	cfg   QueueConfig
	slots chan struct{} // holds one token for each running call

	mu      sync.Mutex
	waiting int           // calls before <-slots
	usual   time.Duration // moving average of how long a call runs
}

// NewQueue wraps next.
func NewQueue(next Auditor, cfg QueueConfig) *Queue {
	if cfg.Concurrent < 1 {
		cfg.Concurrent = 1
	}
	if cfg.Waiting < 1 {
		cfg.Waiting = 16
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Queue{next: next, cfg: cfg, slots: make(chan struct{}, cfg.Concurrent)}
}

// Identity is that of the backend.
func (q *Queue) Identity() string { return q.next.Identity() }

// Ready is that of the backend.
func (q *Queue) Ready() error { return q.next.Ready() }

// Depth returns how many calls run and how many wait.
func (q *Queue) Depth() (running, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.slots), q.waiting
}

var (
	errQueueFull = errors.New("the queue before the model is full")
	errTooLate   = errors.New("the turn would come after the deadline")
)

// Audit waits for its turn and calls the backend.
func (q *Queue) Audit(ctx context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	if err := q.enter(ctx); err != nil {
		return schema.Report{}, schema.Usage{}, err
	}
	start := q.cfg.Now()
	defer func() {
		took := q.cfg.Now().Sub(start)
		q.mu.Lock()
		if q.usual == 0 {
			q.usual = took
		} else {
			q.usual += (took - q.usual) / 8
		}
		q.mu.Unlock()
		<-q.slots
	}()
	return q.next.Audit(ctx, rec)
}

func (q *Queue) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &Error{Cause: CauseOf(err), Backend: "queue", Err: err}
	}
	select {
	case q.slots <- struct{}{}: // a free place is always taken, so that the average cannot lock everybody out
		return nil
	default:
	}
	q.mu.Lock()
	if q.waiting >= q.cfg.Waiting {
		q.mu.Unlock()
		return &Error{Cause: CauseBusy, Backend: "queue", Err: errQueueFull}
	}
	if deadline, ok := ctx.Deadline(); ok {
		// Half of a running call is left on average.
		wait := q.usual*time.Duration(q.waiting)/time.Duration(q.cfg.Concurrent) + q.usual/2
		if q.cfg.Now().Add(wait).After(deadline) {
			q.mu.Unlock()
			return &Error{Cause: CauseBusy, Backend: "queue", Err: errTooLate}
		}
	}
	q.waiting++
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		q.waiting--
		q.mu.Unlock()
	}()
	select {
	case q.slots <- struct{}{}: // Go's channels serve waiting senders in order
		return nil
	case <-ctx.Done():
		cause := CauseBusy
		if errors.Is(ctx.Err(), context.Canceled) {
			cause = CauseCancelled
		}
		return &Error{Cause: cause, Backend: "queue", Err: ctx.Err()}
	}
}
