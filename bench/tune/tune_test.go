package tune

import (
	"math"
	"testing"

	"example.org/auditd/escalation"
)

func TestUpperBound(t *testing.T) {
	// Values of the exact method: 1-0.05^(1/n) for none, tables for the rest.
	for _, x := range []struct {
		k, n int
		want float64
	}{{0, 59, .0495}, {0, 10, .2589}, {1, 20, .2161}, {5, 100, .1023}, {10, 10, 1}} {
		if got := UpperBound(x.k, x.n, .95); math.Abs(got-x.want) > 2e-4 {
			t.Errorf("%d of %d: %.4f, want %.4f", x.k, x.n, got, x.want)
		}
	}
}

func TestPropose(t *testing.T) {
	var labels []Label
	for i := range 200 {
		risk := float64(i%50) / 100
		labels = append(labels, Label{Allows: true, Risk: risk, Harmful: false})
		labels = append(labels, Label{Allows: true, Risk: .3 + float64(i)/500, Harmful: true})
	}
	c := Config{MaxMiss: .05, Confidence: .95, Thresholds: escalation.Default()}
	p, err := Propose(labels, c)
	if err != nil || p.Best == nil {
		t.Fatal(err, p)
	}
	// Of 200 harmful ones four may be missed: UpperBound(4,200) is .045, of 5 .052.
	if *p.Best < .30 || *p.Best > .31 {
		t.Errorf("best %v", *p.Best)
	}
	for i, s := range p.Steps {
		if i > 0 && (s.Missed < p.Steps[i-1].Missed || s.Review > p.Steps[i-1].Review || s.Holds && !p.Steps[i-1].Holds) {
			t.Errorf("%+v after %+v", s, p.Steps[i-1])
		}
		if s.RiskMax >= c.Thresholds.SmallDefer.RiskMin {
			t.Errorf("%v does not ascend to small_defer", s.RiskMax)
		}
	}
	// An auditor that is certain and wrong: no value helps.
	for i := range labels {
		labels[i].Risk = 0
	}
	if p, err := Propose(labels, c); err != nil || p.Best != nil {
		t.Error(err, p.Best)
	}
	for _, bad := range []Config{{MaxMiss: 0, Confidence: .9}, {MaxMiss: .1, Confidence: 1}, {MaxMiss: math.NaN(), Confidence: .9}} {
		if _, err := Propose(labels, bad); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
	if _, err := Propose(nil, c); err == nil {
		t.Error("no labels: no error")
	}
}
