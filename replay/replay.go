// Package replay audits recorded flows again, under another policy, model or
// limits, and says what would have come out otherwise. The log keeps texts with
// their secrets replaced, cut where they are very long, and for a while: what
// that leaves out is counted and said, and a difference on a changed text is
// marked as such.
package replay

import (
	"context"
	"slices"
	"strings"
	"time"

	"example.org/auditd/auditlog"
	"example.org/auditd/schema"
)

// maxListed bounds the differences that a report lists; all are counted.
const maxListed = 500

// Config is what a replay needs.
type Config struct {
	Audit func(context.Context, *schema.Flow) schema.Decision
	Limit int // flows that are audited again, the newest; at least 1
}

// Recorded is a record with its text, nil when that is gone.
type Recorded struct {
	Record *auditlog.Record
	Value  *auditlog.Value
}

// Report is what a replay found.
type Report struct {
	From, To string    `json:"-"`     // labels for a person
	Since    time.Time `json:"since"` // of the oldest flow that was audited again
	Flows    int       `json:"flows"` // that were audited again
	Same     int       `json:"same"`
	Added    int       `json:"added_stops"`
	Lost     int       `json:"lost_stops"`
	Other    int       `json:"other_changes"` // such as a block that would be a question
	// Redacted flows were audited again with placeholders in place of secrets:
	// what a secret would have raised, it does not raise here.
	Redacted int `json:"redacted"`
	// Skipped says how many were not audited again, by why.
	Skipped map[string]int `json:"skipped"`
	Before  Latency        `json:"before"`
	After   Latency        `json:"after"`
	Changes []Change       `json:"changes"` // at most 500, the newest first
}

// Latency is in milliseconds, over the flows that were judged both times.
type Latency struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
}

// Change is one flow that would have come out otherwise.
type Change struct {
	Decision string        `json:"decision_id"`
	Time     time.Time     `json:"time"`
	Agent    string        `json:"agent,omitempty"`
	Source   string        `json:"source"`
	Sink     string        `json:"sink"`
	Before   schema.Action `json:"before"`
	Why      string        `json:"before_reason"`
	After    schema.Action `json:"after"`
	WhyNow   string        `json:"after_reason"`
	Kind     string        `json:"kind"`               // added_stop, lost_stop or other
	Redacted bool          `json:"redacted,omitempty"` // its text had secrets replaced
}

// Reasons why a flow is not audited again.
const (
	skipErased  = "its text was erased"
	skipCut     = "its text is longer than is kept"
	skipOwner   = "you had decided it yourself"
	skipFailed  = "it could not be judged then"
	skipInvalid = "it was not valid"
)

// Run audits the newest of the recorded flows again. records are in the order
// of the log.
func Run(ctx context.Context, records []Recorded, c Config) (*Report, error) {
	out := &Report{Skipped: map[string]int{}, Changes: []Change{}}
	var before, after []float64
	for _, x := range slices.Backward(records) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if out.Flows >= max(c.Limit, 1) {
			break
		}
		r := x.Record
		if r.Decision == nil || r.Flow == nil {
			continue
		}
		if why := skip(r, x.Value); why != "" {
			out.Skipped[why]++
			continue
		}
		was := r.Decision.Action
		if r.Decision.Observed != nil {
			was = *r.Decision.Observed
		}
		d := c.Audit(ctx, flowOf(r, x.Value))
		now := d.Action
		if d.Observed != nil {
			now = *d.Observed
		}
		out.Flows, out.Since = out.Flows+1, r.Time
		redacted := len(x.Value.Payload) != r.Flow.Payload.Bytes || strings.Contains(x.Value.Payload, "⟦")
		if redacted {
			out.Redacted++
		}
		if !r.Decision.Cached && !d.Cached {
			before, after = append(before, r.Decision.LatencyMS), append(after, d.LatencyMS)
		}
		kind := "other"
		switch {
		case was == now:
			out.Same++
			continue
		case now.Stops() && !was.Stops():
			out.Added++
			kind = "added_stop"
		case was.Stops() && !now.Stops():
			out.Lost++
			kind = "lost_stop"
		default:
			out.Other++
		}
		if len(out.Changes) < maxListed {
			out.Changes = append(out.Changes, Change{Decision: r.ID, Time: r.Time, Agent: x.Value.Agent, Source: named(r.Flow.SourceKind.String(), x.Value.Source),
				Sink: named(r.Flow.SinkKind.String(), x.Value.Sink), Before: was, Why: r.Decision.Reason, After: now, WhyNow: d.Reason, Kind: kind, Redacted: redacted})
		}
	}
	out.Before, out.After = latency(before), latency(after)
	return out, nil
}

func named(kind, id string) string { return strings.TrimSpace(kind + " " + id) }

// skip says why a record can't be judged again as it was then.
func skip(r *auditlog.Record, v *auditlog.Value) string {
	d := r.Decision
	switch {
	case d.Stage == schema.StageInput:
		return skipInvalid
	case slices.Contains([]string{"approved", "approved_edit", "granted", "denied", "refused", "suppressed", "edit_fine", "edit_doubtful"}, d.Reason):
		return skipOwner
	case d.Report == nil && (strings.Contains(d.Reason, "auditor_") || d.Reason == "internal_error" || d.Stage == schema.StageLog):
		return skipFailed
	case v == nil || v.Payload == "" && r.Flow.Payload.Bytes > 0:
		return skipErased
	case slices.Contains(v.Cut, "payload"):
		return skipCut
	}
	return ""
}

// flowOf restores a flow from its record and its text.
func flowOf(r *auditlog.Record, v *auditlog.Value) *schema.Flow {
	f := r.Flow
	return &schema.Flow{Payload: v.Payload, Surface: f.Surface, Boundary: f.Boundary, Intent: v.Intent,
		Source: schema.Source{Kind: f.SourceKind, ID: v.Source, Trust: f.SourceTrust},
		Sink:   schema.Sink{Kind: f.SinkKind, ID: v.Sink, Tool: v.Tool, Action: v.ToolAction, Destination: v.Destination, Permissions: v.Permissions},
		// Another session: what was remembered of that one is in the trust.
		Session: schema.Session{Agent: v.Agent, ID: "replay", Workspace: v.Workspace}}
}

func latency(ms []float64) Latency {
	if len(ms) == 0 {
		return Latency{}
	}
	slices.Sort(ms)
	at := func(q float64) float64 { return ms[min(len(ms)-1, int(q*float64(len(ms))))] }
	return Latency{at(.5), at(.95)}
}
