package inference

import (
	"context"
	"errors"

	"example.org/auditd/schema"
)

// Cascade is an Auditor that asks a fast one first and a second, slower one
// only about what the first leaves undecided.
//
// What happens when one of them fails:
//   - The first fails: the second decides alone. It is a complete auditor by
//     itself; the first is only a short cut to it, so losing it costs time, not
//     safety. If no time is left, the result is the first's error.
//   - The second fails: the result is its error, and the flow is blocked. The
//     first's report must not stand in for it, because "undecided" is exactly
//     what that report said; an attacker who can slow the second down would
//     otherwise choose the weaker judge. One case is different: a first report
//     that blocks stands, since an error blocks too, and the report says why.
type Cascade struct {
	first, second Auditor
	undecided     func(*schema.Record, *schema.Report) bool
}

// NewCascade makes a cascade. undecided says whether the second must look at
// what the first said; nil means that it always must.
func NewCascade(first, second Auditor, undecided func(*schema.Record, *schema.Report) bool) *Cascade {
	if undecided == nil {
		undecided = func(*schema.Record, *schema.Report) bool { return true }
	}
	return &Cascade{first: first, second: second, undecided: undecided}
}

// Identity names both.
func (c *Cascade) Identity() string {
	return "cascade(" + c.first.Identity() + " " + c.second.Identity() + ")"
}

// Ready returns nil once both are ready.
func (c *Cascade) Ready() error { return errors.Join(c.first.Ready(), c.second.Ready()) }

// Audit asks the first, and the second if needed.
func (c *Cascade) Audit(ctx context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	rep, usage, err := c.first.Audit(ctx, rec)
	if err == nil && !c.undecided(rec, &rep) {
		return rep, usage, nil
	}
	if err != nil && ctx.Err() != nil {
		return schema.Report{}, usage, err
	}
	rep2, usage2, err2 := c.second.Audit(ctx, rec)
	total := schema.Usage{
		Backend: "cascade", Model: usage.Model + " " + usage2.Model, Digest: usage2.Digest,
		PromptTokens: usage.PromptTokens + usage2.PromptTokens, OutputTokens: usage.OutputTokens + usage2.OutputTokens,
		Windows: usage.Windows + usage2.Windows, DurationMS: usage.DurationMS + usage2.DurationMS, LoadMS: usage.LoadMS + usage2.LoadMS,
	}
	if err2 != nil {
		if err == nil && rep.Decision == schema.Block {
			return rep, total, nil
		}
		return schema.Report{}, total, err2
	}
	return rep2, total, nil
}
