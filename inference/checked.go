package inference

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/auditd/schema"
)

// CheckedConfig says how a backend is held to its contract.
type CheckedConfig struct {
	Timeout time.Duration // of one call, within the caller's deadline; 0 means the caller's alone
	// Count is called once for every failed call; nil means nobody counts.
	Count func(backend string, cause Cause)
}

// Checked is an Auditor that holds another one to its contract, whatever it
// does: it answers when the deadline passes although the backend does not, a
// panic is a malformed answer, and a report that does not validate never gets
// out. Every backend is used through it.
type Checked struct {
	next Auditor
	cfg  CheckedConfig
}

// NewChecked wraps next.
func NewChecked(next Auditor, cfg CheckedConfig) *Checked { return &Checked{next: next, cfg: cfg} }

// Identity is that of the backend.
func (c *Checked) Identity() string { return c.next.Identity() }

// Ready is that of the backend.
func (c *Checked) Ready() error { return c.next.Ready() }

// Audit calls the backend.
func (c *Checked) Audit(ctx context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	return checkedCall(ctx, c.cfg, "auditor", func(ctx context.Context) (schema.Report, schema.Usage, error) {
		if rec == nil || rec.Flow == nil {
			return schema.Report{}, schema.Usage{}, &Error{Cause: CauseMalformed, Backend: "auditor", Err: errors.New("no flow")}
		}
		return c.next.Audit(ctx, rec)
	}, func(r *schema.Report) error {
		if err := r.Validate(); err != nil {
			return err
		}
		return r.ValidateRewrite(rec.Flow.Payload)
	})
}

// CheckedArbiter does for an Arbiter what Checked does for an Auditor.
type CheckedArbiter struct {
	next Arbiter
	cfg  CheckedConfig
}

// NewCheckedArbiter wraps next.
func NewCheckedArbiter(next Arbiter, cfg CheckedConfig) *CheckedArbiter {
	return &CheckedArbiter{next: next, cfg: cfg}
}

// Identity is that of the backend.
func (c *CheckedArbiter) Identity() string { return c.next.Identity() }

// Ready is that of the backend.
func (c *CheckedArbiter) Ready() error { return c.next.Ready() }

// Arbitrate calls the backend.
func (c *CheckedArbiter) Arbitrate(ctx context.Context, rec *schema.ArbiterRecord) (schema.ArbiterReport, schema.Usage, error) {
	return checkedCall(ctx, c.cfg, "arbiter", func(ctx context.Context) (schema.ArbiterReport, schema.Usage, error) {
		if rec == nil || rec.Current == nil {
			return schema.ArbiterReport{}, schema.Usage{}, &Error{Cause: CauseMalformed, Backend: "arbiter", Err: errors.New("no flow")}
		}
		return c.next.Arbitrate(ctx, rec)
	}, func(r *schema.ArbiterReport) error {
		if err := r.Validate(); err != nil {
			return err
		}
		asAudit := schema.Report{Rewrite: r.Rewrite}
		return asAudit.ValidateRewrite(rec.Current.Payload)
	})
}

// checkedCall runs call in a goroutine of its own: a backend that cannot be
// interrupted, as a running matrix product cannot, must not hold the answer up.
// What it says after the deadline is dropped. The goroutine ends when the
// backend does; a Queue inside keeps their number bounded.
func checkedCall[R any](ctx context.Context, cfg CheckedConfig, role string,
	call func(context.Context) (R, schema.Usage, error), validate func(*R) error) (R, schema.Usage, error) {
	type result struct {
		rep   R
		usage schema.Usage
		err   error
	}
	var zero R
	fail := func(usage schema.Usage, err error) (R, schema.Usage, error) {
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{Cause: CauseOf(err), Backend: role, Err: err}
		}
		if cfg.Count != nil {
			cfg.Count(e.Backend, e.Cause)
		}
		return zero, usage, e
	}
	if cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return fail(schema.Usage{}, err)
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				// The panic's value may hold payload; its type does not.
				r = result{err: &Error{Cause: CauseMalformed, Backend: role, Err: fmt.Errorf("the backend panicked with a %T", p)}}
			}
			done <- r
		}()
		r.rep, r.usage, r.err = call(ctx)
		if r.err == nil {
			if err := validate(&r.rep); err != nil {
				r.err = &Error{Cause: CauseMalformed, Backend: orRole(r.usage.Backend, role), Err: err}
			}
		}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return fail(r.usage, r.err)
		}
		return r.rep, r.usage, nil
	case <-ctx.Done():
		return fail(schema.Usage{}, ctx.Err())
	}
}

func orRole(backend, role string) string {
	if backend == "" {
		return role
	}
	return backend
}
