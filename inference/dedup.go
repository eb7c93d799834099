package inference

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"example.org/auditd/schema"
)

// Dedup is an Auditor that computes identical records in flight once. A host
// that retries, or a parallel plan that reads one page five times, then costs
// one model call.
//
// The call that runs belongs to nobody: it goes on while anybody waits for it
// and is cancelled when the last one has gone. It has the deadline of the
// caller that started it; a caller with more time left than that starts anew
// when it ends too early.
type Dedup struct {
	next Auditor

	mu      sync.Mutex
	flights map[schema.Digest]*flight
}

type flight struct {
	waiters int // guarded by Dedup.mu; 0 means that the call is being cancelled
	cancel  context.CancelFunc
	done    chan struct{} // closed once the fields below are set
	rep     schema.Report
	usage   schema.Usage
	err     error
}

// NewDedup wraps next.
func NewDedup(next Auditor) *Dedup {
	return &Dedup{next: next, flights: map[schema.Digest]*flight{}}
}

// Identity is that of the backend.
func (d *Dedup) Identity() string { return d.next.Identity() }

// Ready is that of the backend.
func (d *Dedup) Ready() error { return d.next.Ready() }

// Audit joins the call for the same record or starts one.
func (d *Dedup) Audit(ctx context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	key := schema.DigestOf(string(rec.Flow.Key()), d.next.Identity(), precheckKey(rec.Precheck))
	for {
		f, started := d.join(ctx, key, rec)
		select {
		case <-f.done:
		case <-ctx.Done():
			d.leave(key, f)
			return schema.Report{}, schema.Usage{}, &Error{Cause: CauseOf(ctx.Err()), Backend: "dedup", Err: ctx.Err()}
		}
		if !started && f.err != nil && ctx.Err() == nil {
			// The other caller's deadline, its place in the queue or its going
			// away is not ours.
			switch CauseOf(f.err) {
			case CauseTimeout, CauseBusy, CauseCancelled:
				continue
			}
		}
		usage := f.usage
		if !started { // the tokens were spent once
			usage.PromptTokens, usage.OutputTokens, usage.Windows = 0, 0, 0
		}
		return cloneReport(f.rep), usage, f.err
	}
}

func precheckKey(p *schema.Precheck) string {
	if p == nil {
		return ""
	}
	return fmt.Sprint(p.Codes(), p.HardBlock, p.Risk, p.Exploitability, p.Impact)
}

func (d *Dedup) join(ctx context.Context, key schema.Digest, rec *schema.Record) (f *flight, started bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.flights[key]; f != nil && f.waiters > 0 {
		f.waiters++
		return f, false
	}
	var cancel context.CancelFunc
	shared := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		shared, cancel = context.WithDeadline(shared, deadline)
	} else {
		shared, cancel = context.WithCancel(shared)
	}
	f = &flight{waiters: 1, cancel: cancel, done: make(chan struct{})}
	d.flights[key] = f
	go func() {
		defer cancel()
		defer close(f.done)
		// Out of the table first: who comes now must not get an answer that
		// was given before they asked.
		defer d.forget(key, f)
		defer func() {
			if p := recover(); p != nil {
				f.err = &Error{Cause: CauseMalformed, Backend: "dedup", Err: fmt.Errorf("the backend panicked with a %T", p)}
			}
		}()
		f.rep, f.usage, f.err = d.next.Audit(shared, rec)
	}()
	return f, true
}

func (d *Dedup) leave(key schema.Digest, f *flight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		f.cancel()
		if d.flights[key] == f {
			delete(d.flights, key)
		}
	}
}

func (d *Dedup) forget(key schema.Digest, f *flight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flights[key] == f {
		delete(d.flights, key)
	}
}

// cloneReport gives each caller a report of its own.
func cloneReport(r schema.Report) schema.Report {
	r.ResidualRiskTypes = slices.Clone(r.ResidualRiskTypes)
	r.Evidence = slices.Clone(r.Evidence)
	if r.Rewrite != nil {
		text := *r.Rewrite
		r.Rewrite = &text
	}
	return r
}
