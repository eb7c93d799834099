package dualview

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// maxBacklog bounds the bytes of values that wait to be indexed. One that is
// larger by itself waits alone.
const maxBacklog = 64 << 20

var errIndex = errors.New("the content index is broken")

// backlog are values that are committed and wait to be indexed, in the order of
// their ids. A tool result need not wait for that: it has to be recognised before
// the next text is looked at, and not before its own symbol is shown. After a crash
// the values themselves say what is missing (see reindex). Its zero value is empty.
type backlog struct {
	mu   sync.Mutex
	cond sync.Cond // something was indexed; with mu

	jobs     []indexJob // guarded by mu, as is what follows
	bytes    int
	working  bool
	enqueued uint64
	finished uint64
	failed   error // nothing is known any more; it stays so
}

type indexJob struct {
	content int64
	data    []byte
}

// later indexes values in the background. The caller serialises calls by ascending
// ids, and may change the data afterwards.
func (x *index) later(jobs []indexJob) {
	if len(jobs) == 0 {
		return
	}
	b := &x.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, j := range jobs {
		b.jobs = append(b.jobs, indexJob{j.content, append([]byte(nil), j.data...)})
		b.bytes += len(j.data)
		b.enqueued++
	}
	if !b.working {
		b.working = true
		go x.work()
	}
}

// work indexes what waits, one value after the other, and ends.
func (x *index) work() {
	b := &x.backlog
	for {
		b.mu.Lock()
		if len(b.jobs) == 0 || b.failed != nil {
			b.jobs, b.bytes, b.working = nil, 0, false
			b.cond.Broadcast()
			b.mu.Unlock()
			return
		}
		job := b.jobs[0]
		b.mu.Unlock()

		err := x.one(job)

		b.mu.Lock()
		b.jobs = b.jobs[1:]
		b.bytes -= len(job.data)
		if b.finished++; err != nil {
			b.failed = err
		}
		b.cond.Broadcast()
		b.mu.Unlock()
	}
}

func (x *index) one(job indexJob) (err error) {
	defer func() {
		if p := recover(); p != nil {
			x.log.Error("the content index failed: no text is let through any more", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			err = errIndex
		}
	}()
	x.add(job.content, x.shingles(job.data))
	return nil
}

// settle waits until what was committed before the call is indexed.
func (x *index) settle(ctx context.Context) error {
	b := &x.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	upTo := b.enqueued
	return b.wait(ctx, func() bool { return b.finished >= upTo })
}

// room waits until there is room for more.
func (x *index) room(ctx context.Context) error {
	b := &x.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wait(ctx, func() bool { return b.bytes < maxBacklog })
}

// wait returns when ok does, the index is broken or ctx ends. It holds mu.
func (b *backlog) wait(ctx context.Context, ok func() bool) error {
	if b.failed == nil && ok() {
		return nil
	}
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.cond.Broadcast()
	})
	defer stop()
	for b.failed == nil && !ok() {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.cond.Wait()
	}
	return b.failed
}
