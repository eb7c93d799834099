package quarantine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/auditd/dualview"
	"example.org/auditd/inference"
	"example.org/auditd/schema"
)

// Property 25: cached by symbols, question, schema and model.
func TestProperty25Cached(t *testing.T) {
	e := newEnv(t, "")
	e.model.reply = says(`{"result":"x"}`)
	a, b := e.symbol("one"), e.symbol("two")
	for i, c := range []struct {
		r     *Request
		calls int
	}{
		{e.request("What?", "", a), 1},
		{e.request("What?", "", a), 1},
		{e.request("What?", ` { "type" : "string" } `, a), 1}, // the same form, written in another way
		{e.request("Why?", "", a), 2},
		{e.request("What?", `{"type":"string","maxLength":5}`, a), 3},
		{e.request("What?", "", b), 4},
		{e.request("What?", "", a, b), 5},
		{e.request("What?", "", a), 5},
	} {
		if _, err := e.q.Inspect(t.Context(), c.r); err != nil {
			t.Fatal(err)
		}
		if n := len(e.model.asked()); n != c.calls {
			t.Errorf("%d: %d calls, want %d", i, n, c.calls)
		}
	}
	e.model.reply = says("no")
	r := e.request("When?", "", a)
	if _, err := e.q.Inspect(t.Context(), r); err == nil {
		t.Error("a bad answer passed")
	}
	e.model.reply = says(`{"result":"x"}`)
	if res, err := e.q.Inspect(t.Context(), r); err != nil || res.Cached {
		t.Errorf("a failure was kept: %+v %v", res, err)
	}
	// Neither a value that is gone nor one of somebody else comes out of the cache.
	e.q.cfg.Owner = "bob"
	if _, err := e.q.Inspect(t.Context(), e.request("What?", "", a)); err == nil {
		t.Error("another owner got an answer")
	}
}

// The cache is bounded.
func TestCacheIsBounded(t *testing.T) {
	e := newEnv(t, "", func(c *Config) { c.CacheBytes = 64 })
	e.model.reply = says(`{"result":"0123456789"}`) // 23 bytes
	s := e.symbol("one")
	for i := range 10 {
		if _, err := e.q.Inspect(t.Context(), e.request(fmt.Sprint("What? ", i), "", s)); err != nil {
			t.Fatal(err)
		}
	}
	if n := e.q.cache.order.Len(); n != 2 || e.q.cache.size > 64 || len(e.q.cache.byKey) != n || len(e.q.cache.flights) != 0 {
		t.Errorf("%d answers, %d bytes", n, e.q.cache.size)
	}
}

// Equal questions at the same time are one call, and several values are asked
// about in one.
func TestProperty25Batched(t *testing.T) {
	e := newEnv(t, "")
	begun, release := make(chan struct{}, 100), make(chan struct{})
	e.model.reply = func(context.Context, *inference.Completion) (string, error) {
		begun <- struct{}{}
		<-release
		return `{"result":"x"}`, nil
	}
	a, b := e.symbol("value number one"), e.symbol("value number two")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := e.q.Inspect(t.Context(), e.request("What?", "", a, b)); err != nil {
				t.Error(err)
			}
		})
	}
	<-begun
	for joined := false; !joined; { // all eight are on their way
		joined = len(e.q.turns) == 8
		time.Sleep(time.Millisecond)
	}
	close(release)
	wg.Wait()
	if n := len(e.model.asked()); n != 1 {
		t.Errorf("%d calls", n)
	}
	if u := e.model.asked()[0].User; !strings.Contains(u, "number one") || !strings.Contains(u, "number two") {
		t.Error("a value is missing")
	}
}

// A value larger than the window is asked about in parts that together hold all
// of it, and never cut.
func TestProperty25LargeValuesAreChunked(t *testing.T) {
	e := newEnv(t, "", func(c *Config) { c.Calls = 40 })
	e.model.window = 3000
	var seen strings.Builder
	notes := 0
	e.model.reply = func(_ context.Context, c *inference.Completion) (string, error) {
		if strings.Contains(c.User, "Write down everything") {
			seen.WriteString(c.User)
			notes++
			return fmt.Sprintf(`{"result":"note %d"}`, notes), nil
		}
		for n := range notes {
			if !strings.Contains(c.User, fmt.Sprintf("note %d", n+1)) {
				t.Errorf("note %d is missing", n+1)
			}
		}
		return `{"result":"done"}`, nil
	}
	var value strings.Builder
	for i := range 600 {
		fmt.Fprintf(&value, "line w%dw of the text\n", i)
	}
	res, err := e.q.Inspect(t.Context(), e.request("What?", "", e.symbol(value.String())))
	if err != nil {
		t.Fatal(err)
	}
	if e.reveal(res.Symbols[0]) != "done" || notes < 2 {
		t.Errorf("%d notes", notes)
	}
	for i := range 600 {
		if !strings.Contains(seen.String(), fmt.Sprintf("w%dw", i)) {
			t.Errorf("line %d was never shown", i)
		}
	}
	for _, c := range e.model.asked() {
		if n := len(c.System) + len(c.User); n > 4*3000 {
			t.Errorf("a prompt of %d bytes", n)
		}
	}
}

// What would need more calls than are allowed is refused before any of them.
func TestProperty25TooLargeIsRefused(t *testing.T) {
	for name, values := range map[string][]string{
		"a large one": {strings.Repeat("some words ", 1000)},
		"far over":    {strings.Repeat("some words ", 100000)},
		"together":    {strings.Repeat("some words ", 100), strings.Repeat("more words ", 100), strings.Repeat("other words ", 100)},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, "", func(c *Config) { c.Calls = 2 })
			e.model.window = 1500
			e.model.reply = says(`{"result":"x"}`)
			var symbols []dualview.Symbol
			for _, v := range values {
				symbols = append(symbols, e.symbol(v))
			}
			out := e.q.Event(t.Context(), e.request("What?", "", symbols...))
			if out.Action != schema.Block || out.Reason != "inspect_too_large" || len(e.model.asked()) != 0 {
				t.Errorf("%+v, %d calls", out, len(e.model.asked()))
			}
		})
	}
}

// Failures that may pass are tried again, a bounded number of times.
func TestProperty25Retried(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		text  string
		calls int32
	}{
		{"malformed", nil, "no", 3},
		{"unavailable", &inference.Error{Cause: inference.CauseUnavailable}, "", 3},
		{"busy", &inference.Error{Cause: inference.CauseBusy}, "", 3},
		{"cut", &inference.Error{Cause: inference.CauseTruncated}, "", 1},
		{"unknown", errors.New("x"), "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnv(t, "", func(cfg *Config) { cfg.Tries = 3 })
			var n atomic.Int32
			e.model.reply = func(context.Context, *inference.Completion) (string, error) { n.Add(1); return c.text, c.err }
			s := e.symbol("value")
			if _, err := e.q.Inspect(t.Context(), e.request("What?", "", s)); err == nil || n.Load() != c.calls {
				t.Errorf("%v after %d calls, want %d", err, n.Load(), c.calls)
			}
			n.Store(0)
			e.model.reply = func(context.Context, *inference.Completion) (string, error) {
				if n.Add(1) == 1 {
					return c.text, c.err
				}
				return `{"result":"x"}`, nil
			}
			if _, err := e.q.Inspect(t.Context(), e.request("Why?", "", s)); (err == nil) != (c.calls > 1) {
				t.Error(err)
			}
		})
	}
}

// A model that does not answer, and does not listen either, ends with a
// time-out; it keeps its place, so that it is not asked ever more often.
func TestProperty25TimedOut(t *testing.T) {
	e := newEnv(t, "", func(c *Config) { c.Timeout, c.Concurrent = 50*time.Millisecond, 1 })
	release := make(chan struct{})
	defer close(release)
	e.model.reply = func(context.Context, *inference.Completion) (string, error) { <-release; return `{"result":"x"}`, nil }
	s := e.symbol("value")
	for i := range 3 {
		_, err := e.q.Inspect(t.Context(), e.request(fmt.Sprint("What? ", i), "", s))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if n := len(e.model.asked()); n != 1 {
		t.Errorf("%d calls run at once, want 1", n)
	}
}

// Too many inspections at once are refused.
func TestProperty25WaitingIsBounded(t *testing.T) {
	e := newEnv(t, "", func(c *Config) { c.Waiting = 1 })
	s := e.symbol("value")
	begun, release := make(chan struct{}), make(chan struct{})
	e.model.reply = func(context.Context, *inference.Completion) (string, error) {
		close(begun)
		<-release
		return `{"result":"x"}`, nil
	}
	done := make(chan error)
	go func() {
		_, err := e.q.Inspect(context.Background(), e.request("What?", "", s))
		done <- err
	}()
	<-begun
	if _, err := e.q.Inspect(t.Context(), e.request("Why?", "", s)); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The account of what a session was told outlives a restart of the quarantine.
func TestProperty24BudgetOutlivesARestart(t *testing.T) {
	e := newEnv(t, "inspect: {session_bits: 3}\n")
	e.model.reply = says(`{"result":"x"}`)
	s := e.symbol("value")
	if _, err := e.q.Inspect(t.Context(), e.request("What?", "", s)); err != nil {
		t.Fatal(err)
	}
	q, err := New(e.q.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Inspect(t.Context(), e.request("What?", "", s)); !errors.Is(err, ErrBudget) {
		t.Error(err)
	}
}
