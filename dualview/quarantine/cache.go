package quarantine

import (
	"container/list"
	"context"
	"sync"

	"example.org/auditd/schema"
)

// cache keeps checked answers, and lets equal questions that are asked at the
// same time share one. It holds what a model wrote about values, in memory only.
// Symbols are made anew for each inspection.
type cache struct {
	most int // bytes

	mu      sync.Mutex
	size    int
	order   *list.List // of *kept, the youngest first
	byKey   map[schema.Digest]*list.Element
	flights map[schema.Digest]*flight
}

type kept struct {
	key    schema.Digest
	size   int
	answer answer
}

// flight is a question that is being asked. Its fields are set before done is
// closed.
type flight struct {
	done   chan struct{}
	answer answer
	err    error
}

func newCache(most int) *cache {
	return &cache{most: most, order: list.New(), byKey: map[schema.Digest]*list.Element{}, flights: map[schema.Digest]*flight{}}
}

// get returns the answer under key, or has ask find it. ask runs to its own end
// even if this caller goes away: another one may wait, and what it finds is
// kept.
func (c *cache) get(ctx context.Context, key schema.Digest, ask func(context.Context) (answer, int, error)) (a answer, cached bool, err error) {
	c.mu.Lock()
	if e, ok := c.byKey[key]; ok {
		c.order.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(*kept).answer, true, nil
	}
	f, joined := c.flights[key]
	if !joined {
		f = &flight{done: make(chan struct{})}
		c.flights[key] = f
		go c.fly(context.WithoutCancel(ctx), key, f, ask)
	}
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.answer, joined, f.err
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

func (c *cache) fly(ctx context.Context, key schema.Digest, f *flight, ask func(context.Context) (answer, int, error)) {
	size := 0
	f.err = errPanic
	defer func() {
		if p := recover(); p != nil {
			f.answer, f.err = nil, errPanic
		}
		c.mu.Lock()
		delete(c.flights, key)
		if f.err == nil && size <= c.most {
			c.byKey[key] = c.order.PushFront(&kept{key, size, f.answer})
			for c.size += size; c.size > c.most; {
				old := c.order.Remove(c.order.Back()).(*kept)
				delete(c.byKey, old.key)
				c.size -= old.size
			}
		}
		c.mu.Unlock()
		close(f.done)
	}()
	f.answer, size, f.err = ask(ctx)
}
