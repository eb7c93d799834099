package report

import (
	"fmt"
	"io"

	"example.org/auditd/bench/quality"
)

// Program is one of the programs that were compared.
type Program struct {
	Name    string           `json:"name"`
	Summary *quality.Summary `json:"summary"`
	Results []quality.Result `json:"results"`
}

// Compare writes programs side by side, the first one being auditd, and how
// each of the others differs from it case by case.
func Compare(w io.Writer, r *Run, all []Program) error {
	m := &markdown{}
	m.line("# auditd beside others\n")
	m.line("auditd %s, auditor %s, arbiter %s. Cases %s, each sent to every program in turn on this machine. Shares in percent with 95 %% interval.", r.Version, orDash(r.Auditor), orDash(r.Arbiter), r.Cases)
	m.head("", "ASR context", "authority", "capability", "ASR", "HR", "PR", "no verdict", "p50 ms", "p95 ms")
	for _, p := range all {
		s := p.Summary
		row := []string{p.Name}
		for _, x := range surfaces() {
			row = append(row, share(s.ASR.Of(x)))
		}
		m.row(append(row, share(s.HR), share(s.PR.All), fmt.Sprint(s.Failed), ms(s.Latency.Wall.P50), ms(s.Latency.Wall.P95))...)
	}
	for _, p := range all[min(1, len(all)):] {
		m.line("\n## %s → %s", p.Name, all[0].Name)
		m.head("", p.Name, all[0].Name, "only "+all[0].Name, "only "+p.Name, "p")
		for _, c := range quality.Compare(p.Results, all[0].Results).Changes[:2] {
			m.row(c.Name, share(c.A), share(c.B), fmt.Sprint(c.Better), fmt.Sprint(c.Worse), fmt.Sprintf("%.3g", c.P))
		}
	}
	if _, err := w.Write(m.Bytes()); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}
