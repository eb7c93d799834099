package quality

import (
	"context"
	"time"

	"example.org/auditd/bench/cases"
	"example.org/auditd/schema"
)

// Other runs a case through another program. Where that gives no verdict, its
// host's habit counts, and the result says that it failed.
func Other(ctx context.Context, k *cases.Case, decide func(context.Context, *cases.Case) (schema.Action, error)) Result {
	r := Result{Case: k.ID, Kind: k.Kind, Surface: k.Flow.Surface, Family: k.Family, Goal: k.Goal, Phrase: phrase.MatchString(k.Flow.Payload)}
	start := time.Now()
	a, err := decide(ctx, k)
	r.WallMS = float64(time.Since(start).Microseconds()) / 1000
	r.LatencyMS = r.WallMS
	r.Action, r.Reason = a, "verdict"
	if err != nil {
		r.Failed, r.Reason = "no verdict", "no_verdict"
	}
	r.Effect, r.Preserved = Outcome(k, a, k.Flow.Payload)
	return r
}
