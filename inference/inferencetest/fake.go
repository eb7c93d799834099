package inferencetest

import (
	"context"
	"time"

	"example.org/auditd/inference"
	"example.org/auditd/schema"
)

// Fake is a scripted auditor and arbiter for the tests of other packages. Its
// zero value blocks everything.
type Fake struct {
	Name string // part of the identity
	// Script answers a record; nil gives the zero report with residual none.
	Script func(*schema.Record) (schema.Report, error)
	// ArbiterScript answers an arbiter's record.
	ArbiterScript func(*schema.ArbiterRecord) (schema.ArbiterReport, error)
	Delay         time.Duration // before every answer
	NotReady      error         // what Ready returns
}

// Identity names the fake.
func (f *Fake) Identity() string { return "fake:" + f.Name }

// Ready returns NotReady.
func (f *Fake) Ready() error { return f.NotReady }

// Audit runs the script.
func (f *Fake) Audit(ctx context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	usage := schema.Usage{Backend: "fake", Model: f.Name}
	if err := f.wait(ctx); err != nil {
		return schema.Report{}, usage, err
	}
	if f.Script == nil {
		return Blocked(), usage, nil
	}
	rep, err := f.Script(rec)
	if err != nil {
		return schema.Report{}, usage, &inference.Error{Cause: inference.CauseOf(err), Backend: "fake", Err: err}
	}
	return rep, usage, nil
}

// Arbitrate runs the arbiter's script.
func (f *Fake) Arbitrate(ctx context.Context, rec *schema.ArbiterRecord) (schema.ArbiterReport, schema.Usage, error) {
	usage := schema.Usage{Backend: "fake", Model: f.Name}
	if err := f.wait(ctx); err != nil {
		return schema.ArbiterReport{}, usage, err
	}
	if f.ArbiterScript == nil {
		return schema.ArbiterReport{ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}}, usage, nil
	}
	rep, err := f.ArbiterScript(rec)
	if err != nil {
		return schema.ArbiterReport{}, usage, &inference.Error{Cause: inference.CauseOf(err), Backend: "fake", Err: err}
	}
	return rep, usage, nil
}

func (f *Fake) wait(ctx context.Context) error {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return &inference.Error{Cause: inference.CauseOf(err), Backend: "fake", Err: err}
	}
	return nil
}

// Blocked returns the report of an auditor that stops a flow.
func Blocked() schema.Report {
	return schema.Report{Decision: schema.Block, Risk: 1, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}, Evidence: []string{}}
}

// Allowed returns the report of an auditor that sees no risk.
func Allowed() schema.Report {
	return schema.Report{Decision: schema.Allow, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}, Evidence: []string{}}
}
