package inference_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/auditd/inference"
	"example.org/auditd/inference/inferencetest"
	"example.org/auditd/schema"
)

// gate is an auditor whose calls wait until they are let through.
type gate struct {
	inferencetest.Fake
	entered chan struct{}
	leave   chan struct{}
	running atomic.Int32
	most    atomic.Int32
	calls   atomic.Int32
	deaf    bool // does not hear its context
	ended   atomic.Int32
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 100), leave: make(chan struct{})} }

func (g *gate) Audit(ctx context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	g.calls.Add(1)
	n := g.running.Add(1)
	defer g.running.Add(-1)
	defer g.ended.Add(1)
	for {
		most := g.most.Load()
		if n <= most || g.most.CompareAndSwap(most, n) {
			break
		}
	}
	g.entered <- struct{}{}
	if g.deaf {
		<-g.leave
		return inferencetest.Allowed(), schema.Usage{Backend: "gate", PromptTokens: 7}, nil
	}
	select {
	case <-g.leave:
		return inferencetest.Allowed(), schema.Usage{Backend: "gate", PromptTokens: 7}, nil
	case <-ctx.Done():
		return schema.Report{}, schema.Usage{}, &inference.Error{Cause: inference.CauseOf(ctx.Err()), Backend: "gate", Err: ctx.Err()}
	}
}

func wantCause(t *testing.T, err error, want inference.Cause) {
	t.Helper()
	var e *inference.Error
	if !errors.As(err, &e) || e.Cause != want {
		t.Errorf("%v, want cause %s", err, want)
	}
}

func TestCheckedRefuses(t *testing.T) {
	text := "x"
	for name, script := range map[string]func(*schema.Record) (schema.Report, error){
		"zero report": func(*schema.Record) (schema.Report, error) { return schema.Report{}, nil },
		"risk":        func(*schema.Record) (schema.Report, error) { r := inferencetest.Allowed(); r.Risk = 1.5; return r, nil },
		"action": func(*schema.Record) (schema.Report, error) {
			r := inferencetest.Allowed()
			r.Decision = 77
			return r, nil
		},
		"rewrite": func(*schema.Record) (schema.Report, error) {
			r := inferencetest.Allowed()
			r.Rewrite = &text
			return r, nil
		},
		"long rewrite": func(*schema.Record) (schema.Report, error) {
			long := string(make([]byte, 10_000))
			r := inferencetest.Allowed()
			r.Decision, r.Rewrite = schema.RewriteAndContinue, &long
			return r, nil
		},
		"panic": func(*schema.Record) (schema.Report, error) { panic("PLANTED") },
	} {
		t.Run(name, func(t *testing.T) {
			counted := map[inference.Cause]int{}
			c := inference.NewChecked(&inferencetest.Fake{Script: script}, inference.CheckedConfig{
				Count: func(_ string, cause inference.Cause) { counted[cause]++ },
			})
			rep, _, err := c.Audit(t.Context(), inferencetest.Record("x"))
			wantCause(t, err, inference.CauseMalformed)
			if rep.Decision != schema.Block || counted[inference.CauseMalformed] != 1 || len(counted) != 1 {
				t.Errorf("%v, counted %v", rep.Decision, counted)
			}
		})
	}
	_, _, err := inference.NewChecked(&inferencetest.Fake{}, inference.CheckedConfig{}).Audit(t.Context(), nil)
	wantCause(t, err, inference.CauseMalformed)
	_, _, err = inference.NewCheckedArbiter(&inferencetest.Fake{ArbiterScript: func(*schema.ArbiterRecord) (schema.ArbiterReport, error) {
		return schema.ArbiterReport{Decision: schema.Allow}, nil
	}}, inference.CheckedConfig{}).Arbitrate(t.Context(), &schema.ArbiterRecord{Current: inferencetest.Record("x").Flow})
	wantCause(t, err, inference.CauseMalformed)
}

// TestCheckedDeaf: a backend that does not hear its deadline does not hold the
// answer up.
func TestCheckedDeaf(t *testing.T) {
	g := newGate()
	g.deaf = true
	defer close(g.leave)
	c := inference.NewChecked(g, inference.CheckedConfig{Timeout: time.Millisecond})
	_, _, err := c.Audit(t.Context(), inferencetest.Record("x"))
	wantCause(t, err, inference.CauseTimeout)
}

func TestQueueBounds(t *testing.T) {
	g := newGate()
	q := inference.NewQueue(g, inference.QueueConfig{Concurrent: 2, Waiting: 3})
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, _, err := q.Audit(t.Context(), inferencetest.Record("x")); err != nil {
				t.Error(err)
			}
		})
	}
	for {
		if running, waiting := q.Depth(); running == 2 && waiting == 3 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	_, _, err := q.Audit(t.Context(), inferencetest.Record("x"))
	wantCause(t, err, inference.CauseBusy)
	close(g.leave)
	wg.Wait()
	if g.most.Load() != 2 || g.calls.Load() != 5 {
		t.Errorf("%d at once, %d calls", g.most.Load(), g.calls.Load())
	}
}

// TestQueueSheds: who could not be served in time is told at once.
func TestQueueSheds(t *testing.T) {
	g := newGate()
	now := time.Unix(0, 0)
	var skip atomic.Int64
	q := inference.NewQueue(g, inference.QueueConfig{Concurrent: 1, Waiting: 9, Now: func() time.Time { return now.Add(time.Duration(skip.Load())) }})
	first := make(chan struct{})
	go func() { q.Audit(t.Context(), inferencetest.Record("x")); close(first) }()
	<-g.entered
	skip.Store(int64(time.Hour)) // this call took an hour
	g.leave <- struct{}{}
	<-first

	go q.Audit(t.Context(), inferencetest.Record("x"))
	<-g.entered
	ctx, cancel := context.WithDeadline(t.Context(), now.Add(time.Hour+10*time.Minute))
	defer cancel()
	// The real clock is far past this deadline, so use one without a timer.
	_, _, err := q.Audit(untimed{ctx}, inferencetest.Record("x"))
	wantCause(t, err, inference.CauseBusy)
	if _, waiting := q.Depth(); waiting != 0 {
		t.Errorf("%d wait", waiting)
	}
	close(g.leave)
	// An idle queue takes everybody, however slow the last call was.
	for {
		if running, _ := q.Depth(); running == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, _, err := q.Audit(untimed{ctx}, inferencetest.Record("x")); err != nil {
		t.Error(err)
	}
}

// untimed has a deadline that never fires.
type untimed struct{ context.Context }

func (untimed) Done() <-chan struct{} { return nil }
func (untimed) Err() error            { return nil }

func TestQueueCancelWhileWaiting(t *testing.T) {
	g := newGate()
	q := inference.NewQueue(g, inference.QueueConfig{})
	go q.Audit(t.Context(), inferencetest.Record("x"))
	<-g.entered
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, _, err := q.Audit(ctx, inferencetest.Record("x"))
		result <- err
	}()
	for {
		if _, waiting := q.Depth(); waiting == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	wantCause(t, <-result, inference.CauseCancelled)
	close(g.leave)
	if g.calls.Load() != 1 {
		t.Error("the cancelled call ran")
	}
}

func TestDedup(t *testing.T) {
	g := newGate()
	d := inference.NewDedup(g)
	type result struct {
		rep   schema.Report
		usage schema.Usage
		err   error
	}
	results := make(chan result, 6)
	ask := func(ctx context.Context, payload string) {
		rep, usage, err := d.Audit(ctx, inferencetest.Record(payload))
		results <- result{rep, usage, err}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go ask(ctx, "same") // starts the call, and goes away
	<-g.entered
	for range 4 {
		go ask(t.Context(), "same")
	}
	time.Sleep(20 * time.Millisecond) // let them join; one that comes late costs a call, which is counted below
	cancel()
	wantCause(t, (<-results).err, inference.CauseCancelled)
	go ask(t.Context(), "other")
	<-g.entered
	close(g.leave)
	for range 5 {
		if r := <-results; r.err != nil || r.rep.Decision != schema.Allow || r.usage.Backend != "gate" {
			t.Errorf("%+v", r)
		}
	}
	if n := g.calls.Load(); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

// TestDedupLastLeaves: a call that nobody waits for is cancelled.
func TestDedupLastLeaves(t *testing.T) {
	g := newGate()
	d := inference.NewDedup(g)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { d.Audit(ctx, inferencetest.Record("x")); close(done) }()
	<-g.entered
	cancel()
	<-done
	for g.ended.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	// The next one starts anew.
	go func() { <-g.entered; close(g.leave) }()
	if _, _, err := d.Audit(t.Context(), inferencetest.Record("x")); err != nil {
		t.Error(err)
	}
}

// TestDedupOwnDeadline: another caller's short deadline is not ours.
func TestDedupOwnDeadline(t *testing.T) {
	g := newGate()
	d := inference.NewDedup(g)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	go d.Audit(ctx, inferencetest.Record("x"))
	<-g.entered
	result := make(chan error)
	go func() {
		_, _, err := d.Audit(t.Context(), inferencetest.Record("x"))
		result <- err
	}()
	<-g.entered // the second call, after the first has timed out
	close(g.leave)
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestDedupPanic(t *testing.T) {
	d := inference.NewDedup(&inferencetest.Fake{Script: func(*schema.Record) (schema.Report, error) { panic("x") }})
	_, _, err := d.Audit(t.Context(), inferencetest.Record("x"))
	wantCause(t, err, inference.CauseMalformed)
}

func TestCascade(t *testing.T) {
	failure := &inference.Error{Cause: inference.CauseMalformed, Backend: "fake"}
	says := func(rep schema.Report, err error) *inferencetest.Fake {
		return &inferencetest.Fake{Script: func(*schema.Record) (schema.Report, error) { return rep, err }}
	}
	unsure := inferencetest.Allowed()
	unsure.Uncertainty = 0.9
	undecided := func(_ *schema.Record, r *schema.Report) bool {
		return r.Uncertainty > 0.3 || r.Decision == schema.Block
	}
	for name, row := range map[string]struct {
		first, second *inferencetest.Fake
		want          schema.Action
		fails         bool
	}{
		"first decides":                 {says(inferencetest.Allowed(), nil), says(schema.Report{}, failure), schema.Allow, false},
		"second decides":                {says(unsure, nil), says(inferencetest.Blocked(), nil), schema.Block, false},
		"second allows":                 {says(unsure, nil), says(inferencetest.Allowed(), nil), schema.Allow, false},
		"first fails":                   {says(schema.Report{}, failure), says(inferencetest.Allowed(), nil), schema.Allow, false},
		"second fails":                  {says(unsure, nil), says(schema.Report{}, failure), schema.Block, true},
		"both fail":                     {says(schema.Report{}, failure), says(schema.Report{}, failure), schema.Block, true},
		"second fails, the first stops": {says(inferencetest.Blocked(), nil), says(schema.Report{}, failure), schema.Block, false},
	} {
		t.Run(name, func(t *testing.T) {
			rep, _, err := inference.NewCascade(row.first, row.second, undecided).Audit(t.Context(), inferencetest.Record("x"))
			if rep.Decision != row.want || (err != nil) != row.fails {
				t.Errorf("%v, %v", rep.Decision, err)
			}
		})
	}
	c := inference.NewCascade(&inferencetest.Fake{Name: "a"}, &inferencetest.Fake{Name: "b", NotReady: failure}, nil)
	if c.Identity() != "cascade(fake:a fake:b)" || c.Ready() == nil {
		t.Errorf("%s, %v", c.Identity(), c.Ready())
	}
}

func BenchmarkDecorators(b *testing.B) {
	var a inference.Auditor = &inferencetest.Fake{}
	a = inference.NewChecked(inference.NewDedup(inference.NewQueue(a, inference.QueueConfig{Concurrent: 4, Waiting: 1024})), inference.CheckedConfig{Timeout: time.Minute})
	rec := inferencetest.Record("hello")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := a.Audit(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
	}
}
