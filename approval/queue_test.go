package approval_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.org/auditd/approval"
	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
)

// clock can be set. It starts at a fixed time.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.ns.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	return c
}
func (c *clock) now() time.Time      { return time.Unix(0, c.ns.Load()) }
func (c *clock) add(d time.Duration) { c.ns.Add(int64(d)) }

type fixture struct {
	*approval.Queue
	*clock
	db   *sql.DB
	path string
}

func setUp(t testing.TB, change func(*approval.Config)) *fixture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "auditd.db")
	c := newClock()
	db, q := openQueue(t, path, c, change)
	return &fixture{q, c, db, path}
}

func openQueue(t testing.TB, path string, c *clock, change func(*approval.Config)) (*sql.DB, *approval.Queue) {
	t.Helper()
	db, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	cfg := approval.Config{DB: db, Now: c.now}
	if change != nil {
		change(&cfg)
	}
	q, err := approval.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return db, q
}

func question(t testing.TB, payload string) *schema.Question {
	t.Helper()
	f := &schema.Flow{Payload: payload, Source: schema.Source{Kind: schema.SourceWeb, Trust: schema.Untrusted}, Ticket: "SECRET-of-the-caller",
		Sink: schema.Sink{Kind: schema.SinkExec, Tool: "shell", ID: "local"}, Session: schema.Session{Agent: "main", ID: "s1", Workspace: "/w"}}
	if err := f.Complete(0); err != nil {
		t.Fatal(err)
	}
	return &schema.Question{Flow: f, Decision: "d-1", Summary: "run a command", Reasons: []string{"side_effect"}}
}

func ask(t testing.TB, q *approval.Queue, payload string) *schema.Question {
	t.Helper()
	out, err := q.Ask(context.Background(), question(t, payload))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func answer(t testing.TB, q *approval.Queue, id string, approve bool) {
	t.Helper()
	if err := q.Answer(context.Background(), id, approve, "owner", nil); err != nil {
		t.Fatal(err)
	}
}

func redeem(t testing.TB, q *approval.Queue, ticket string, binding schema.Digest) bool {
	t.Helper()
	ok, err := q.Redeem(context.Background(), ticket, binding)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestAskAnswerRedeem(t *testing.T) {
	f := setUp(t, nil)
	a := ask(t, f.Queue, "git push")
	if a.ID == "" || a.Ticket == "" || !a.Expires.Equal(f.now().Add(time.Hour)) || a.Binding != a.Flow.Binding() {
		t.Fatalf("asked: %+v", a)
	}
	if redeem(t, f.Queue, a.Ticket, a.Binding) {
		t.Fatal("redeemed before an answer")
	}
	pending, err := f.Pending(t.Context())
	if err != nil || len(pending) != 1 || pending[0].ID != a.ID || pending[0].Flow.Payload != "git push" || pending[0].Ticket != "" {
		t.Fatalf("pending: %+v, %v", pending, err)
	}
	answer(t, f.Queue, a.ID, true)
	// The daemon restarts: everything is on the disk.
	f.db.Close()
	f.db, f.Queue = openQueue(t, f.path, f.clock, nil)
	got, err := f.Get(t.Context(), a.ID)
	if err != nil || got.Answer != "approved" || got.By != "owner" || got.Answered == nil {
		t.Fatalf("got: %+v, %v", got, err)
	}
	for name, try := range map[string]struct {
		ticket  string
		binding schema.Digest
	}{
		"no ticket":       {"", a.Binding},
		"no binding":      {a.Ticket, ""},
		"another ticket":  {a.Ticket + "x", a.Binding},
		"another binding": {a.Ticket, question(t, "git push --force").Flow.Binding()},
		"the id":          {a.ID, a.Binding},
	} {
		if redeem(t, f.Queue, try.ticket, try.binding) {
			t.Errorf("%s: redeemed", name)
		}
	}
	if !redeem(t, f.Queue, a.Ticket, a.Binding) {
		t.Fatal("not redeemed")
	}
	if redeem(t, f.Queue, a.Ticket, a.Binding) {
		t.Fatal("redeemed twice")
	}
	if pending, _ := f.Pending(t.Context()); len(pending) != 0 {
		t.Errorf("still pending: %+v", pending)
	}
}

func TestAnswerRefuses(t *testing.T) {
	f := setUp(t, nil)
	denied, late := ask(t, f.Queue, "a"), ask(t, f.Queue, "b")
	answer(t, f.Queue, denied.ID, false)
	if redeem(t, f.Queue, denied.Ticket, denied.Binding) {
		t.Error("a denied question was redeemed")
	}
	f.add(time.Hour)
	for name, c := range map[string]struct {
		id      string
		approve bool
		grant   *approval.Grant
		want    error
	}{
		"unknown": {"q-nobody", true, nil, approval.ErrNotFound},
		"twice":   {denied.ID, true, nil, approval.ErrAnswered},
		"late":    {late.ID, true, nil, approval.ErrExpired},
	} {
		if err := f.Answer(t.Context(), c.id, c.approve, "owner", c.grant); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if redeem(t, f.Queue, late.Ticket, late.Binding) {
		t.Error("an expired question was redeemed")
	}
	if got, err := f.Get(t.Context(), late.ID); err != nil || got.Answer != "expired" {
		t.Errorf("late: %+v, %v", got, err)
	}
	if pending, _ := f.Pending(t.Context()); len(pending) != 0 {
		t.Errorf("an expired question is pending")
	}
}

func TestTicketRunsOut(t *testing.T) {
	f := setUp(t, nil)
	a := ask(t, f.Queue, "a")
	f.add(59 * time.Minute)
	answer(t, f.Queue, a.ID, true)
	f.add(10*time.Minute - 1)
	b := ask(t, f.Queue, "a")
	if b.ID != a.ID || b.Answer != "approved" {
		t.Fatalf("asking again after a yes: %+v", b)
	}
	f.add(1)
	if redeem(t, f.Queue, a.Ticket, a.Binding) || redeem(t, f.Queue, b.Ticket, a.Binding) {
		t.Error("redeemed after its time")
	}
}

func TestSameQuestion(t *testing.T) {
	f := setUp(t, nil)
	a, other := ask(t, f.Queue, "a"), ask(t, f.Queue, "other")
	if a.ID == other.ID || a.Group != other.Group || a.Group == "" {
		t.Fatalf("two payloads: ids %s %s, groups %s %s", a.ID, other.ID, a.Group, other.Group)
	}
	var tickets []string
	for range 40 {
		b := ask(t, f.Queue, "a")
		if b.ID != a.ID || b.Ticket == a.Ticket {
			t.Fatalf("asked again: %s %s", b.ID, b.Ticket)
		}
		f.add(1)
		tickets = append(tickets, b.Ticket)
	}
	var n int
	if err := f.db.QueryRow(`SELECT count(*) FROM approval_tickets`).Scan(&n); err != nil || n > 20 {
		t.Errorf("%d tickets are kept, %v", n, err)
	}
	answer(t, f.Queue, a.ID, true)
	if !redeem(t, f.Queue, tickets[39], a.Binding) || redeem(t, f.Queue, tickets[38], a.Binding) {
		t.Error("one of the tickets must be good, once")
	}
	if b := ask(t, f.Queue, "a"); b.ID == a.ID {
		t.Error("a used answer serves again")
	}
	answer(t, f.Queue, other.ID, false)
	if b := ask(t, f.Queue, "other"); b.ID != other.ID || b.Answer != "denied" || b.Ticket != "" {
		t.Errorf("asked again at once after a no: %+v", b)
	}
	f.add(10 * time.Minute)
	if b := ask(t, f.Queue, "other"); b.ID == other.ID {
		t.Error("not asked again after the cooldown")
	}
}

func TestRedeemConcurrently(t *testing.T) {
	f := setUp(t, nil)
	for i := range 10 {
		a := ask(t, f.Queue, fmt.Sprint("payload ", i))
		b := ask(t, f.Queue, fmt.Sprint("payload ", i))
		answer(t, f.Queue, a.ID, true)
		var won atomic.Int32
		var wg sync.WaitGroup
		for j := range 8 {
			wg.Go(func() {
				ticket := []string{a.Ticket, b.Ticket}[j%2]
				if ok, err := f.Redeem(context.Background(), ticket, a.Binding); err != nil {
					t.Error(err)
				} else if ok {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d redeemed, want 1", won.Load())
		}
	}
}

func TestAskConcurrently(t *testing.T) {
	f := setUp(t, nil)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { ask(t, f.Queue, "same") })
	}
	wg.Wait()
	if pending, err := f.Pending(t.Context()); err != nil || len(pending) != 1 {
		t.Errorf("%d questions, %v; want 1", len(pending), err)
	}
}

func TestFlood(t *testing.T) {
	f := setUp(t, func(c *approval.Config) { c.MaxPending, c.MaxPerAgent = 5, 3 })
	first := ask(t, f.Queue, "0")
	ask(t, f.Queue, "1")
	ask(t, f.Queue, "2")
	if _, err := f.Ask(t.Context(), question(t, "3")); !errors.Is(err, approval.ErrFull) {
		t.Fatalf("fourth of an agent: %v", err)
	}
	for i := range 3 {
		q := question(t, "x")
		q.Flow.Session.Agent = fmt.Sprint("agent", i)
		if _, err := f.Ask(t.Context(), q); (err == nil) != (i < 2) {
			t.Fatalf("agent %d: %v", i, err)
		}
	}
	if ask(t, f.Queue, "0").ID != first.ID {
		t.Error("the oldest question is gone")
	}
	f.add(time.Hour) // expired ones make room
	ask(t, f.Queue, "3")
}

func TestAskRefuses(t *testing.T) {
	f := setUp(t, nil)
	foreign := question(t, "a")
	foreign.Binding = question(t, "b").Flow.Binding()
	for name, q := range map[string]*schema.Question{"nil": nil, "no flow": {}, "foreign binding": foreign} {
		if _, err := f.Ask(t.Context(), q); err == nil {
			t.Errorf("%s: asked", name)
		}
	}
	f.db.Close()
	if _, err := f.Ask(t.Context(), question(t, "a")); err == nil {
		t.Error("asked without a database")
	}
	if ok, err := f.Redeem(t.Context(), "x", "y"); ok || err == nil {
		t.Error("redeemed without a database")
	}
	if _, ok, err := f.Allowed(t.Context(), question(t, "a").Flow, false); ok || err == nil {
		t.Error("allowed without a database")
	}
}

// TestTamperedBody: the stored question must be the one that the answer counts
// for, or the person would see one thing and approve another.
func TestTamperedBody(t *testing.T) {
	f := setUp(t, nil)
	a := ask(t, f.Queue, "rm -rf /")
	if _, err := f.db.Exec(`UPDATE approval_questions SET body = CAST(replace(CAST(body AS TEXT), 'rm -rf /', 'ls') AS BLOB)`); err != nil {
		t.Fatal(err)
	}
	if q, err := f.Get(t.Context(), a.ID); err == nil {
		t.Errorf("shown: %+v", q)
	}
}

func TestSecretsAndDeletion(t *testing.T) {
	f := setUp(t, nil)
	const payload = "PAYLOAD-CANARY"
	a, b := ask(t, f.Queue, payload), ask(t, f.Queue, payload+" two")
	holds := func(text string) bool {
		for _, suffix := range []string{"", "-wal"} {
			data, err := os.ReadFile(f.path + suffix)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if strings.Contains(string(data), text) {
				return true
			}
		}
		return false
	}
	if holds(a.Ticket) || holds("SECRET-of-the-caller") {
		t.Error("a ticket is stored")
	}
	if !holds(payload) {
		t.Error("the payload is not stored: the test proves nothing")
	}
	answer(t, f.Queue, a.ID, true)
	f.add(time.Hour + 24*time.Hour)
	if err := f.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if holds(payload) {
		t.Error("payload stays after its time")
	}
	for _, q := range []*schema.Question{a, b} {
		got, err := f.Get(t.Context(), q.ID)
		if err != nil || got.Flow != nil || got.Answer == "" || got.Binding != q.Binding {
			t.Errorf("after deletion: %+v, %v", got, err)
		}
	}
	f.add(31 * 24 * time.Hour)
	if err := f.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(t.Context(), a.ID); !errors.Is(err, approval.ErrNotFound) {
		t.Errorf("after the row's time: %v", err)
	}
	var n int
	if err := f.db.QueryRow(`SELECT count(*) FROM approval_tickets`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d tickets are left, %v", n, err)
	}
}

// bubble runs f with a clock that moves when everybody waits.
func bubble(t *testing.T, f func(t *testing.T, q *approval.Queue)) {
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "x.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		q, err := approval.New(approval.Config{DB: db, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		f(t, q)
	})
}

func TestWaitAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, q *approval.Queue) {
		a, b := ask(t, q, "a"), ask(t, q, "b")
		var got, other atomic.Pointer[schema.Question]
		go func() { x, _ := q.Wait(t.Context(), a.ID); got.Store(x) }()
		go func() { x, _ := q.Wait(t.Context(), b.ID); other.Store(x) }()
		synctest.Wait()
		answer(t, q, a.ID, true)
		synctest.Wait()
		if x := got.Load(); x == nil || x.Answer != "approved" {
			t.Errorf("woken with %+v", x)
		}
		if other.Load() != nil {
			t.Error("another question's waiter was told")
		}
		answer(t, q, b.ID, false)
		synctest.Wait()
		if x := other.Load(); x == nil || x.Answer != "denied" {
			t.Errorf("woken with %+v", x)
		}
		if x, err := q.Wait(t.Context(), a.ID); err != nil || x.Answer != "approved" {
			t.Errorf("waiting after the answer: %+v, %v", x, err)
		}
	})
}

func TestWaitExpires(t *testing.T) {
	bubble(t, func(t *testing.T, q *approval.Queue) {
		a := ask(t, q, "a")
		start := time.Now()
		x, err := q.Wait(t.Context(), a.ID)
		if err != nil || x.Answer != "expired" || time.Since(start) != time.Hour {
			t.Errorf("%+v, %v after %v", x, err, time.Since(start))
		}
	})
}

func TestWaitGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, q *approval.Queue) {
		a := ask(t, q, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if x, err := q.Wait(ctx, a.ID); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%+v, %v", x, err)
		}
		// The person answers later, and the agent tries again with its ticket.
		answer(t, q, a.ID, true)
		if !redeem(t, q, a.Ticket, a.Binding) {
			t.Error("the answer came after the call gave up, and was lost")
		}
		if _, err := q.Wait(t.Context(), "q-nobody"); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("unknown: %v", err)
		}
	})
}

func TestChanges(t *testing.T) {
	f := setUp(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	c := f.Changes(ctx)
	a := ask(t, f.Queue, "a")
	ask(t, f.Queue, "b")
	<-c
	select {
	case <-c:
		t.Error("told twice for what one reading shows")
	default:
	}
	answer(t, f.Queue, a.ID, true)
	<-c
	cancel()
}

func TestAnswered(t *testing.T) {
	f := setUp(t, nil)
	for _, x := range []struct {
		payload string
		answer  string
	}{{"ls", "approve"}, {"rm x", "deny"}, {"cat x", ""}} {
		q, err := f.Ask(t.Context(), question(t, x.payload))
		if err != nil {
			t.Fatal(err)
		}
		if x.answer != "" {
			if err := f.Answer(t.Context(), q.ID, x.answer == "approve", "owner", nil); err != nil {
				t.Fatal(err)
			}
		}
		f.add(time.Second)
	}
	got, err := f.Answered(t.Context())
	if err != nil || len(got) != 2 || got[0].Answer != "approved" || got[1].Answer != "denied" || got[0].Ticket != "" {
		t.Errorf("%v %+v", err, got)
	}
}
