package firewall

import (
	"context"
	"testing"
	"time"

	"example.org/auditd/schema"
)

// TestNoteWaitsForTheLog: an isolated event has the whole of its caller's time
// for the log, and no longer.
func TestNoteWaitsForTheLog(t *testing.T) {
	slow := func(r *rig) {
		r.cfg.Append = func(ctx context.Context, _ Entry) (int64, error) {
			select {
			case <-time.After(3 * r.cfg.Margin):
				return 4, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
	}
	allowed := schema.Decision{Action: schema.Allow, Reason: "isolated"}
	if d := newRig(t, slow).fw.Note(t.Context(), page("x"), allowed); d.Action != schema.Allow || d.LogIndex != 4 {
		t.Errorf("a slow log stops events: %v %q at %d", d.Action, d.Reason, d.LogIndex)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if d := newRig(t, slow).fw.Note(ctx, page("x"), allowed); d.Action != schema.Block || d.Reason != "log_failed" {
		t.Errorf("the caller's time is over: %v %q", d.Action, d.Reason)
	}
}
