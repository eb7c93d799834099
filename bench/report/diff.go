package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"example.org/auditd/bench/quality"
)

// Diff writes what changed from a to b.
func Diff(w io.Writer, a, b *Run, d *quality.Diff) error {
	m := &markdown{}
	m.line("A: auditor %s, arbiter %s, cases %s", orDash(a.Auditor), orDash(a.Arbiter), orDash(a.Cases))
	m.line("B: auditor %s, arbiter %s, cases %s", orDash(b.Auditor), orDash(b.Arbiter), orDash(b.Cases))
	m.head("", "A", "B", "better", "worse", "p", "")
	for _, c := range d.Changes {
		verdict := "more than noise"
		switch {
		case c.Better+c.Worse == 0:
			verdict = "the same"
		case c.Noise:
			verdict = "within noise"
		}
		if c.Rounded > 0 {
			verdict += fmt.Sprintf("; %d on a threshold, not counted", c.Rounded)
		}
		m.row(c.Name, share(c.A), share(c.B), fmt.Sprint(c.Better), fmt.Sprint(c.Worse), fmt.Sprintf("%.3f", c.P), verdict)
	}
	if d.Latency[0].Max > 0 && d.Latency[1].Max > 0 {
		m.line("\nTime of a decision, not judged: p50 %.1f → %.1f ms, p95 %.1f → %.1f ms.", d.Latency[0].P50, d.Latency[1].P50, d.Latency[0].P95, d.Latency[1].P95)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Allocations)) {
		m.line("\nAllocations of a decision, %s: %.0f → %.0f.", name, a.Allocations[name], b.Allocations[name])
	}
	if len(d.Cases) > 0 {
		m.line("")
	}
	for _, c := range d.Cases {
		word := "better"
		if c.Worse {
			word = "worse"
		}
		if c.Rounded {
			word = "rounded otherwise"
		}
		m.line("- %s: `%s` %s → %s", word, c.Case, c.A, c.B)
	}
	for _, x := range []struct {
		name string
		ids  []string
	}{{"only in A", d.OnlyA}, {"only in B", d.OnlyB}} {
		if len(x.ids) > 0 {
			m.line("\n%s: %s", x.name, strings.Join(x.ids, ", "))
		}
	}
	if _, err := w.Write(m.Bytes()); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}
