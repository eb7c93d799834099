package bench

import (
	"context"
	"errors"
	"testing"

	"example.org/auditd/schema"
)

func TestRunCountsEveryCall(t *testing.T) {
	calls := 0
	rounds, err := Run(t.Context(), Config{Calls: 20, Clients: []int{1, 4}, Warmup: 3, Flow: Mixed, Progress: nil,
		Call: func(_ context.Context, f *schema.Flow) (schema.Decision, error) {
			if err := f.Complete(0); err != nil {
				return schema.Decision{}, err
			}
			return schema.Decision{LatencyMS: 2, Trace: []schema.Trace{{Stage: schema.StagePolicy, DurationMS: 1}, {Stage: schema.StagePolicy, DurationMS: 1}}}, nil
		}})
	if err != nil || len(rounds) != 2 {
		t.Fatal(rounds, err)
	}
	for _, r := range rounds {
		calls += r.Calls
		if r.Failed != 0 || r.Stages["policy"].P50 != 2 || r.Decision.P99 != 2 || r.Whole.P50 > r.Whole.P99 || r.PerSecond <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if calls != 40 {
		t.Errorf("%d calls", calls)
	}
}

func TestRunSaysWhatFails(t *testing.T) {
	fail := func(context.Context, *schema.Flow) (schema.Decision, error) {
		return schema.Decision{}, errors.New("no")
	}
	if _, err := Run(t.Context(), Config{Calls: 1, Clients: []int{1}, Warmup: 1, Flow: Mixed, Call: fail}); err == nil {
		t.Error("a failing warm-up is no error")
	}
	rounds, err := Run(t.Context(), Config{Calls: 5, Clients: []int{1}, Flow: Mixed, Call: fail})
	if err != nil || rounds[0].Failed != 5 {
		t.Errorf("%+v %v", rounds, err)
	}
	if _, err := Run(t.Context(), Config{}); err == nil {
		t.Error("an empty configuration is no error")
	}
}
