package quality

import (
	"math"
	"testing"

	"example.org/auditd/bench/cases"
	"example.org/auditd/schema"
)

func TestCompare(t *testing.T) {
	run := func(effects string, extra ...string) []Result {
		var out []Result
		for i, c := range effects {
			r := Result{Case: string(rune('a' + i)), Kind: cases.Attack, Surface: schema.Context}
			r.Action, r.Effect = schema.Allow, c == '1'
			out = append(out, r)
		}
		for _, id := range extra {
			out = append(out, Result{Case: id, Kind: cases.Benign, Verdict: Verdict{Action: schema.Allow, Preserved: true}})
		}
		return out
	}
	d := Compare(run("0000000011", "x"), run("1111111101", "y"))
	c := d.Changes[0]
	if c.Worse != 8 || c.Better != 1 || c.A.K != 8 || c.B.K != 1 || c.Noise || math.Abs(c.Loss()-70) > 1e-9 {
		t.Errorf("%+v", c)
	}
	if len(d.Cases) != 9 || !d.Cases[0].Worse || d.Cases[8].Worse || len(d.OnlyA) != 1 || len(d.OnlyB) != 1 {
		t.Errorf("%+v", d)
	}
	if c := Compare(run("0011"), run("0110")).Changes[0]; !c.Noise || c.Loss() != 0 || c.P != 1 {
		t.Errorf("%+v", c)
	}

	// A case on a threshold is said and not counted; one whose findings or
	// numbers changed is.
	small := func(a schema.Action, risk float64, codes ...schema.Code) []Result {
		r := run("1")[0]
		r.Effect, r.Codes = a == schema.Allow, codes
		r.Small = &Small{Action: a, Risk: risk, Uncertainty: 0.5}
		return []Result{r}
	}
	for _, tt := range []struct {
		name           string
		b              []Result
		worse, rounded int
	}{
		{"on a threshold", small(schema.Allow, 0.48), 0, 1},
		{"the same numbers: another threshold", small(schema.Allow, 0.5), 1, 0},
		{"other numbers", small(schema.Allow, 0.3), 1, 0},
		{"other findings", small(schema.Allow, 0.48, schema.ExternalSink), 1, 0},
		{"no numbers", run("1"), 1, 0},
	} {
		c := Compare(small(schema.Block, 0.5), tt.b).Changes[0]
		if c.Worse != tt.worse || c.Rounded != tt.rounded || c.Better != 0 {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
	if p := signTest(5, 0); math.Abs(p-.0625) > 1e-9 {
		t.Error(p)
	}
	if d := Compare(nil, nil); len(d.Changes) != 3 || d.Changes[0].Loss() != 0 {
		t.Errorf("%+v", d)
	}
}
