package bench

import (
	"context"
	"testing"
	"time"

	"example.org/auditd/schema"
)

// TestOpenLoopSeesAStall: one answer that holds up all others is seen by every
// call that was due meanwhile. A closed loop would count one slow call.
func TestOpenLoopSeesAStall(t *testing.T) {
	gate := make(chan struct{}, 1)
	gate <- struct{}{}
	l, err := Open(t.Context(), OpenConfig{Rate: 1000, Calls: 200, Flow: Mixed, Call: func(_ context.Context, f *schema.Flow) (schema.Decision, error) {
		<-gate
		defer func() { gate <- struct{}{} }()
		if f.Payload == Mixed(10).Payload {
			time.Sleep(150 * time.Millisecond)
		}
		return schema.Decision{}, nil
	}})
	if err != nil || l.Calls != 200 || l.Failed != 0 {
		t.Fatal(l, err)
	}
	// Half of the calls were due in the first half of the stall.
	if l.Response.P50 < 10 || l.Waiting < 50 {
		t.Errorf("%+v", l)
	}
}

func TestOpenLoopCountsFailures(t *testing.T) {
	l, err := Open(t.Context(), OpenConfig{Rate: 10000, Calls: 10, Flow: Sized(300), Call: func(_ context.Context, f *schema.Flow) (schema.Decision, error) {
		if len(f.Payload) < 300 {
			t.Error(len(f.Payload))
		}
		return schema.Decision{}, context.DeadlineExceeded
	}})
	if err != nil || l.Failed != 10 || l.Achieved != 0 {
		t.Error(l, err)
	}
	if _, err := Open(t.Context(), OpenConfig{}); err == nil {
		t.Error("an empty configuration is no error")
	}
}

var kept [][]byte

func TestAllocations(t *testing.T) {
	kept = nil
	n := Allocations(func() { kept = append(kept[:0], make([]byte, 100), make([]byte, 200)) })
	if n < 2 || n > 2.5 {
		t.Errorf("%v allocations", n)
	}
}
