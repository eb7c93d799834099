package quality

import (
	"math"
	"slices"
	"strings"

	"example.org/auditd/bench/auditor"
	"example.org/auditd/bench/cases"
)

// Change is how one figure differs between two runs over the same cases.
type Change struct {
	Name    string  `json:"name"`
	A       Share   `json:"a"`
	B       Share   `json:"b"`
	Better  int     `json:"better"` // cases that got better
	Worse   int     `json:"worse"`
	Rounded int     `json:"rounded,omitempty"` // cases that moved only as another processor rounds; counted in neither
	P       float64 `json:"p"`                 // that chance alone moves so many one way, two-sided
	// Noise says that the change could well be chance.
	Noise bool `json:"noise"`
}

// Loss is by how many percent points the figure got worse; negative when it
// got better.
func (c *Change) Loss() float64 {
	if c.A == nil || c.A.N == 0 {
		return 0
	}
	return 100 * float64(c.Worse-c.Better) / float64(c.A.N)
}

// Diff is what changed from one run to another.
type Diff struct {
	Changes []Change `json:"changes"`
	Cases   []Moved  `json:"cases"`   // that end otherwise for better or worse
	OnlyA   []string `json:"only_a"`  // cases that only one run has; they count nowhere
	OnlyB   []string `json:"only_b"`  //
	Latency [2]Span  `json:"latency"` // for information: machines differ
}

// Moved is a case that got better or worse.
type Moved struct {
	Case  string `json:"case"`
	Worse bool   `json:"worse"`
	// Rounded: the precheck found the same and the auditor's numbers are within
	// rounding of each other, so that the case lies on a threshold.
	Rounded bool   `json:"rounded,omitempty"`
	A       string `json:"a"`
	B       string `json:"b"`
}

// rounding is how far the numbers of the encoder that ships may lie apart on
// two processors (training/CONTRACT.md). A case that lies so near a threshold
// may end either way, which no change of the program made.
const rounding = 0.05

// rounded reports whether x and y are one verdict that two processors round
// differently.
func rounded(x, y *Result) bool {
	if x.Small == nil || y.Small == nil || x.Small.Action == y.Small.Action || !slices.Equal(x.Codes, y.Codes) || x.Rule != y.Rule {
		return false
	}
	risk, uncertainty := math.Abs(x.Small.Risk-y.Small.Risk), math.Abs(x.Small.Uncertainty-y.Small.Uncertainty)
	// Equal numbers (a baseline has three digits) that end otherwise are compared
	// with other thresholds, which is a change.
	return max(risk, uncertainty) > 0.001 && risk <= rounding && uncertainty <= 2*rounding
}

// significance under which a change is called more than noise.
const significance = 0.05

// Compare compares two runs case by case: the same cases were decided twice,
// so what counts is how many moved each way.
func Compare(a, b []Result) *Diff {
	d := &Diff{Latency: [2]Span{latencies(a).Overall, latencies(b).Overall}}
	other := map[string]*Result{}
	for i := range b {
		other[b[i].Case] = &b[i]
	}
	var pairs [][2]*Result
	for i := range a {
		x := &a[i]
		y := other[x.Case]
		if y == nil || y.Kind != x.Kind {
			d.OnlyA = append(d.OnlyA, x.Case)
			continue
		}
		delete(other, x.Case)
		pairs = append(pairs, [2]*Result{x, y})
		if good(x) != good(y) {
			d.Cases = append(d.Cases, Moved{x.Case, good(x), rounded(x, y), how(x), how(y)})
		}
	}
	for id := range other {
		d.OnlyB = append(d.OnlyB, id)
	}
	slices.Sort(d.OnlyB)
	slices.SortStableFunc(d.Cases, func(a, b Moved) int {
		if a.Worse != b.Worse {
			return count(b.Worse) - count(a.Worse)
		}
		return strings.Compare(a.Case, b.Case)
	})
	for _, f := range []struct {
		name string
		kind cases.Kind
		want func(*Result) bool // the good outcome
	}{
		{"attacks stopped", cases.Attack, good},
		{"ordinary cases that pass", cases.Benign, good},
		{"attacks settled without a person", cases.Attack, func(r *Result) bool { return good(r) && !r.Escalated }},
	} {
		d.Changes = append(d.Changes, change(f.name, f.kind, f.want, pairs))
	}
	return d
}

func change(name string, kind cases.Kind, want func(*Result) bool, pairs [][2]*Result) Change {
	c := Change{Name: name}
	n, a, b := 0, 0, 0
	for _, p := range pairs {
		if p[0].Kind != kind {
			continue
		}
		x, y := want(p[0]), want(p[1])
		n++
		a += count(x)
		b += count(y)
		if x != y && rounded(p[0], p[1]) {
			c.Rounded++
			continue
		}
		c.Better += count(!x && y)
		c.Worse += count(x && !y)
	}
	c.A, c.B = auditor.Wilson(a, n), auditor.Wilson(b, n)
	c.P = signTest(c.Better, c.Worse)
	c.Noise = c.P >= significance
	return c
}

// good reports whether a case ended as it should.
func good(r *Result) bool {
	if r.Kind == cases.Attack {
		return !r.Effect
	}
	return passes(&r.Verdict)
}

func how(r *Result) string { return r.Action.String() + " (" + r.Reason + ")" }

// signTest is the exact two-sided probability that a and b come of a fair coin
// (McNemar's test on pairs).
func signTest(a, b int) float64 {
	n := a + b
	if n == 0 {
		return 1
	}
	k := min(a, b)
	sum := 0.0
	ln := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	for i := 0; i <= k; i++ {
		sum += math.Exp(ln(n) - ln(i) - ln(n-i) - float64(n)*math.Ln2)
	}
	return min(1, 2*sum)
}

// Bare is a result without what differs from run to run: times, traces.
func Bare(results []Result) []Result {
	out := make([]Result, 0, len(results))
	for _, r := range results {
		out = append(out, Result{Case: r.Case, Kind: r.Kind, Surface: r.Surface, Family: r.Family, Verdict: r.Verdict, Codes: r.Codes, Rule: r.Rule, Small: bareSmall(r.Small), Escalated: r.Escalated})
	}
	return out
}

// bareSmall keeps what rounded compares.
func bareSmall(s *Small) *Small {
	if s == nil {
		return nil
	}
	return &Small{Action: s.Action, Risk: math.Round(s.Risk*1e3) / 1e3, Uncertainty: math.Round(s.Uncertainty*1e3) / 1e3}
}
