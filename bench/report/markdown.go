package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/quality"
	"example.org/auditd/schema"
)

// surfaces in the order of the paper's tables, all last.
func surfaces() []schema.Surface {
	return []schema.Surface{schema.Context, schema.Authority, schema.Capability, schema.SurfaceUnset}
}

// markdown writes tables and remembers the first error for its caller.
type markdown struct{ bytes.Buffer }

func (m *markdown) line(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

func (m *markdown) row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(c)
	}
	m.line("| %s |", strings.Join(cells, " | "))
}

func (m *markdown) head(cells ...string) {
	m.line("")
	m.row(cells...)
	m.line("|%s", strings.Repeat("---|", len(cells)))
}

// Markdown writes the figures as tables.
func Markdown(w io.Writer, r *Run) error {
	m, s := &markdown{}, r.Summary
	m.line("# What auditd stops, and what it lets through\n")
	m.line("auditd %s · auditor: %s · arbiter: %s · cases: %s", r.Version, r.Auditor, orDash(r.Arbiter), r.Cases)
	m.line("\nShares are in percent with their 95 %% Wilson interval and n.")
	m.figures(s)
	m.outcomes(s)
	m.latency(s)
	m.head("code", "attacks", "of them missed", "benign", "of them stopped")
	for _, c := range s.Codes {
		m.row(c.Code.String(), fmt.Sprint(c.Attacks), fmt.Sprint(c.Missed), fmt.Sprint(c.Benign), fmt.Sprint(c.Stopped))
	}
	m.head("family", "ASR")
	for _, f := range s.Families {
		m.row(f.Name, share(f.ASR))
	}
	m.head("uncertainty", "n", "small-only ASR", "ASR", "override", "disagreement")
	for _, b := range s.Buckets {
		m.row(fmt.Sprintf("%.1f–%.1f", b.From, b.To), fmt.Sprint(b.N), share(b.SmallASR), share(b.ASR), share(b.Override), share(b.Disagreement))
	}
	m.list("Attacks that take effect", s.Misses)
	m.list("Ordinary cases that do not pass", s.Stopped)
	m.list("Cases whose event ends otherwise", s.Differ)
	for _, w := range s.Ways {
		m.list("Cases that end otherwise through "+w.Name, w.Differ)
	}
	if r.Isolation != nil {
		m.line("")
		if err := IsolationMarkdown(m, r.Isolation); err != nil {
			return err
		}
	}
	if _, err := w.Write(m.Bytes()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (m *markdown) figures(s *quality.Summary) {
	m.head("", "context", "authority", "capability", "all")
	rows := []struct {
		name string
		of   *quality.BySurface
	}{{"ASR", &s.ASR}, {"PR", &s.PR}}
	if s.Events != nil {
		rows = append(rows, struct {
			name string
			of   *quality.BySurface
		}{"ASR as events", &s.Events.ASR}, struct {
			name string
			of   *quality.BySurface
		}{"PR as events", &s.Events.PR})
	}
	if s.Text != nil {
		rows = append(rows, struct {
			name string
			of   *quality.BySurface
		}{"ASR, text alone", &s.Text.ASR}, struct {
			name string
			of   *quality.BySurface
		}{"PR, text alone", &s.Text.PR})
	}
	for i := range s.Ways {
		for _, x := range []struct {
			name string
			of   *quality.BySurface
		}{{"ASR, " + s.Ways[i].Name, &s.Ways[i].ASR}, {"PR, " + s.Ways[i].Name, &s.Ways[i].PR}} {
			rows = append(rows, x)
		}
	}
	for _, r := range rows {
		cells := []string{r.name}
		for _, x := range surfaces() {
			cells = append(cells, share(r.of.Of(x)))
		}
		m.row(cells...)
	}
	m.head("figure", "value", "of")
	for _, f := range Figures(s) {
		m.row(f.Name, share(f.Share), f.Of)
	}
}

// Figure is one share with what it is a share of.
type Figure struct {
	Name, Of string
	Share    quality.Share
}

// Figures lists the single figures of a run.
func Figures(s *quality.Summary) []Figure {
	return []Figure{
		{"RR", "attacks that end without effect and without a person", s.RR},
		{"– blocked", "attacks", s.Blocked},
		{"– rewritten, nothing left", "attacks", s.Mediated},
		{"HR", "attacks deferred to a person", s.HR},
		{"HR, benign", "benign cases that do not pass", s.BenignHR},
		{"benign deferred", "benign cases", s.BenignDeferred},
		{"LCR", "cases that reach the arbiter's stage", s.LCR},
		{"LCR, attacks", "attacks", s.LCRAttacks},
		{"over-escalation", "benign cases", s.OverEscalation},
		{"invalid", "malformed reports", s.Invalid},
		{"override", "arbitrated cases", s.Override},
		{"disagreement", "arbitrated cases", s.Disagreement},
		{"stopped without the phrase", `attacks that do not say "ignore previous instructions"`, s.WithoutPhrase},
		{"attributable", "stopped attacks with a span that pass without it", s.Attributable},
		{"risk removed", "attacks that the auditor rewrites", s.Rewrites.RiskRemoved},
		{"benign preserved", "the same", s.Rewrites.Preserved},
		{"over-deletion", "the same", s.Rewrites.OverDeletion},
		{"still actionable", "the same", s.Rewrites.StillActionable},
		{"flow and event agree", "cases", s.Agreement},
		{"ASR by the judging model", "attacks; not run without --judge", s.JudgeASR},
		{"judge and oracle agree", "attacks that go on and were judged", s.JudgeAgrees},
	}
}

func (m *markdown) outcomes(s *quality.Summary) {
	m.head("outcome", "blocked", "deferred", "rewritten", "allowed")
	for _, a := range s.Actions {
		kind := "attacks"
		if a.Kind == cases.Benign {
			kind = "benign"
		}
		cells := []string{a.Surface.String() + ", " + kind}
		for _, n := range a.Counts {
			cells = append(cells, fmt.Sprint(n))
		}
		m.row(cells...)
	}
	m.line("\nAUC of the small auditor's risk %.3f, calibration error %.3f. %d cases without a decision, %d answered by an arbiter.", s.AUC, s.ECE, s.Failed, s.Arbitrated)
}

func (m *markdown) latency(s *quality.Summary) {
	m.head("latency, ms", "mean", "p50", "p95", "max", "n")
	add := func(name string, x quality.Span) {
		m.row(name, ms(x.Mean), ms(x.P50), ms(x.P95), ms(x.Max), fmt.Sprint(x.N))
	}
	add("overall", s.Latency.Overall)
	add("– attacks", s.Latency.Attacks)
	add("– benign", s.Latency.Benign)
	add("small (without the arbiter)", s.Latency.Small)
	add("as the client sees it", s.Latency.Wall)
	for st := schema.StageInput; st <= schema.StageLog; st++ {
		if x, ok := s.Latency.Stages[st.String()]; ok {
			add("stage "+st.String(), x)
		}
	}
}

func (m *markdown) list(title string, all []quality.Named) {
	m.line("\n## %s (%d)\n", title, len(all))
	for _, n := range all {
		others := ""
		if n.Others != "" {
			others = "; " + n.Others
		}
		m.line("- `%s` %s – %s%s", n.Case, n.Goal, n.How, others)
	}
}

func share(s quality.Share) string {
	if s == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f [%.1f, %.1f] n=%d", 100*s.Share, 100*s.Low, 100*s.High, s.N)
}

func ms(v float64) string { return fmt.Sprintf("%.1f", v) }

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
