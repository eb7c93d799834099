package firewall

import (
	"container/list"
	"context"
	"strings"
	"sync"

	"example.org/auditd/schema"
)

// maxCachedPayload bounds a rewritten payload that is remembered, so that the
// cache's memory is bounded by its entries.
const maxCachedPayload = 64 << 10

// cache remembers what the models said about exactly the same flow under the
// same policy and models, and holds the judgements that are being made.
type cache struct {
	mu       sync.Mutex
	max      int
	order    *list.List // of *remembered, the most recently used first; guarded by mu
	byKey    map[schema.Digest]*list.Element
	inFlight map[schema.Digest]*flight
}

type remembered struct {
	key schema.Digest
	judgement
}

// flight is a judgement that is being made. done is closed when it is there.
type flight struct {
	done chan struct{}
	made judgement // valid once done is closed
}

func newCache(max int) *cache {
	return &cache{max: max, order: list.New(), byKey: map[schema.Digest]*list.Element{}, inFlight: map[schema.Digest]*flight{}}
}

// lookup returns a remembered judgement, or the flight that is making it, or a
// new flight that the caller must finish.
func (c *cache) lookup(key schema.Digest) (j *judgement, f *flight, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.order.MoveToFront(e)
		return &e.Value.(*remembered).judgement, nil, false
	}
	if f, ok := c.inFlight[key]; ok {
		return nil, f, false
	}
	f = &flight{done: make(chan struct{})}
	c.inFlight[key] = f
	return nil, f, true
}

// finish hands a judgement to those who wait and remembers it if it may be.
func (c *cache) finish(key schema.Digest, f *flight, j judgement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inFlight, key)
	f.made = j
	close(f.done)
	if !j.worthKeeping() || c.max <= 0 {
		return
	}
	c.byKey[key] = c.order.PushFront(&remembered{key, j})
	if c.order.Len() > c.max {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.byKey, last.Value.(*remembered).key)
	}
}

// worthKeeping: made by models, all of which worked, and not a question, which
// each caller must ask anew.
func (j judgement) worthKeeping() bool {
	return !j.failed && j.verdict.action != schema.DeferToHuman && len(j.payload) <= maxCachedPayload
}

// recall looks for the judgement of an identical flow. While one is being made
// it waits; if that one failed, it makes its own.
func (fw *Firewall) recall(ctx context.Context, t *transfer) verdict {
	t.key = fw.cacheKey(t)
	for {
		known, f, mine := fw.cache.lookup(t.key)
		if mine {
			t.flight = f
			fw.countCache(false)
			return next("")
		}
		if known == nil {
			select {
			case <-f.done:
				known = &f.made
			case <-ctx.Done():
				t.failed = true
				return stop("auditor_timeout", "")
			}
			if known.failed {
				continue
			}
		}
		fw.countCache(true)
		t.take(known)
		return t.verdict
	}
}

func (fw *Firewall) countCache(hit bool) {
	if fw.cfg.Metrics.Cache != nil {
		fw.cfg.Metrics.Cache(hit)
	}
}

// take makes another flow's judgement t's own.
func (t *transfer) take(j *judgement) {
	t.judgement = *j
	t.usage = nil // nothing was spent
	t.sent = ""   // and nothing left
	t.stage, t.cached = schema.StageCache, true
	if j.rewritten {
		t.flow = t.original.WithPayload(j.payload)
	}
}

// publish ends t's flight, whatever became of t.
func (fw *Firewall) publish(t *transfer) {
	if t.flight != nil {
		fw.cache.finish(t.key, t.flight, t.judgement)
		t.flight = nil
	}
}

// cacheKey names everything that the model stages depend on: the flow, the
// policy, the models, the signals that were left after suppression, whose days
// can end, and the standing orders that hold.
func (fw *Firewall) cacheKey(t *transfer) schema.Digest {
	parts := []string{"verdict", string(t.original.Key()), string(t.policy.Digest()), "", ""}
	if a := fw.cfg.Auditor; a != nil {
		parts[3] = a.Identity()
	}
	if a := fw.cfg.Arbiter; a != nil {
		parts[4] = a.Identity()
	}
	var rules strings.Builder
	for _, s := range t.pre.Signals {
		rules.WriteString(s.Code.String())
		rules.WriteByte(' ')
		rules.WriteString(s.Rule)
		rules.WriteByte('\n')
	}
	for i := range t.orders {
		parts = append(parts, t.orders[i].ID)
	}
	return schema.DigestOf(append(parts, rules.String())...)
}
