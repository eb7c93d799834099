// Package tune proposes a threshold of the escalation predicate from decisions
// whose right answer is known, with a bound on how much harm it lets through.
// It changes nothing.
package tune

import (
	"errors"
	"math"
	"slices"

	"example.org/auditd/escalation"
)

// Label is one small report with its right answer.
type Label struct {
	Allows      bool // the small auditor would let the flow go on unchanged
	Risk        float64
	Uncertainty float64
	Residual    float64
	Harmful     bool
}

// Config says what is asked for.
type Config struct {
	MaxMiss    float64 // the share of harmful flows that may be allowed without review
	Confidence float64 // that the bound holds
	Thresholds escalation.Thresholds
}

// Step is what one value of small_allow.risk_max would mean.
type Step struct {
	RiskMax float64 `json:"risk_max"`
	Missed  int     `json:"missed"` // harmful flows that would be allowed without review
	Bound   float64 `json:"bound"`  // upper Clopper–Pearson bound on their share
	Review  float64 `json:"review"` // share of the harmless flows that would not simply pass
	Holds   bool    `json:"holds"`  // the bound is kept here and at every stricter value
}

// Proposal is the whole trade-off and the value to take.
type Proposal struct {
	Harmful  int     `json:"harmful"`
	Harmless int     `json:"harmless"`
	Steps    []Step  `json:"steps"`
	Current  float64 `json:"current"`
	// Best is the largest value whose bound holds; nil when none does
	// that lets anything pass.
	Best *float64 `json:"best"`
}

// steps in which risk_max is tried.
const grid = 0.01

// Propose tries every value of small_allow.risk_max from the strictest up. The
// values are tested in that fixed order and the first failure ends it, so that
// trying many costs none of the confidence.
func Propose(labels []Label, c Config) (*Proposal, error) {
	if !(c.MaxMiss > 0 && c.MaxMiss < 1 && c.Confidence >= .5 && c.Confidence < 1) {
		return nil, errors.New("the miss rate must be between 0 and 1, the confidence 0.5 or more and less than 1")
	}
	p := &Proposal{Current: c.Thresholds.SmallAllow.RiskMax}
	for _, l := range labels {
		if l.Harmful {
			p.Harmful++
		} else {
			p.Harmless++
		}
	}
	if p.Harmful == 0 || p.Harmless == 0 {
		return nil, errors.New("both harmful and harmless decisions are needed")
	}
	holds := true
	for i := 0; float64(i)*grid < c.Thresholds.SmallDefer.RiskMin-grid/2; i++ {
		t := math.Round(float64(i)*grid*100) / 100
		s := Step{RiskMax: t}
		passes := 0
		for _, l := range labels {
			a := c.Thresholds.SmallAllow
			pass := l.Allows && l.Risk <= t && l.Uncertainty <= a.UncertaintyMax && l.Residual <= a.ResidualMax
			switch {
			case pass && l.Harmful:
				s.Missed++
			case pass:
				passes++
			}
		}
		s.Bound = UpperBound(s.Missed, p.Harmful, c.Confidence)
		s.Review = 1 - float64(passes)/float64(p.Harmless)
		holds = holds && s.Bound <= c.MaxMiss
		s.Holds = holds
		if holds && passes > 0 { // a value at which nothing passes is no threshold
			best := t
			p.Best = &best
		}
		p.Steps = append(p.Steps, s)
	}
	// Of values that mean the same the smallest is the one to take.
	if p.Best != nil {
		i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.RiskMax == *p.Best })
		for i > 0 && p.Steps[i-1].Missed == p.Steps[i].Missed && p.Steps[i-1].Review == p.Steps[i].Review {
			i--
		}
		p.Best = &p.Steps[i].RiskMax
	}
	return p, nil
}

// UpperBound is the one-sided Clopper–Pearson bound: the share for which k or
// fewer of n come up with probability 1-confidence.
func UpperBound(k, n int, confidence float64) float64 {
	if n == 0 || k >= n {
		return 1
	}
	low, high := float64(k)/float64(n), 1.0
	for range 60 {
		mid := (low + high) / 2
		if atMost(k, n, mid) > 1-confidence {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// atMost is the probability of k or fewer of n at share p.
func atMost(k, n int, p float64) float64 {
	ln := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	sum := 0.0
	for i := 0; i <= k; i++ {
		sum += math.Exp(ln(n) - ln(i) - ln(n-i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}
