package approval

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
)

// TestOneAgentCannotFlood: it fills its own share, the rest is refused and
// counted, and another agent's one question comes second.
func TestOneAgentCannotFlood(t *testing.T) {
	db, err := sqlite.Open(t.TempDir()+"/a.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	q, err := New(Config{DB: db, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(agent, payload string) error {
		f := &schema.Flow{Payload: payload, Session: schema.Session{Agent: agent}}
		if err := f.Complete(0); err != nil {
			return err
		}
		_, err := q.Ask(t.Context(), &schema.Question{Summary: "x", Flow: f})
		return err
	}
	refused := 0
	for i := range 60 {
		if err := ask("loud", strconv.Itoa(i)); errors.Is(err, ErrFull) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := ask("quiet", "one"); err != nil {
		t.Fatalf("another agent: %v", err)
	}
	if refused != 10 || q.Refused()["loud"] != 10 || len(q.Refused()) != 1 {
		t.Errorf("%d refused, %v", refused, q.Refused())
	}
	list, err := q.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fair := Fair(list)
	if len(fair) != 51 || fair[0].Flow.Payload != "0" || fair[1].Flow.Session.Agent != "quiet" || fair[2].Flow.Payload != "1" {
		t.Errorf("the order: %s, %s, %s", fair[0].Flow.Payload, fair[1].Flow.Payload, fair[2].Flow.Payload)
	}
	for i := range 2 * maxRefused {
		q.noteRefused(strconv.Itoa(i))
	}
	if len(q.Refused()) > maxRefused {
		t.Errorf("%d agents are remembered", len(q.Refused()))
	}
}
