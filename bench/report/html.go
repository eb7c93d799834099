package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"example.org/auditd/bench/quality"
)

//go:embed page.html
var page string

// tile is one figure in large type.
type tile struct{ Name, Value, Note, Class string }

// paperASR and paperPR are the token-flow paper's own figures: Qwen3-4B with a
// large arbiter, on that paper's cases, which are not ours.
func paperASR() [4]float64 { return [4]float64{11.1, 15.4, 11.5, 12.5} }
func paperPR() [4]float64  { return [4]float64{-1, -1, -1, 97.4} }

// HTML writes one page that holds everything: no script, no network.
func HTML(w io.Writer, r *Run) error {
	t, err := template.New("report").Funcs(template.FuncMap{"share": share, "ms": ms, "orDash": orDash}).Parse(page)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	values := pageOf(r)
	if r.Isolation != nil {
		if values["Isolation"], err = isolationSections(r.Isolation); err != nil {
			return err
		}
	}
	if err := t.Execute(w, values); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func pageOf(r *Run) map[string]any {
	s := r.Summary
	var families, entries, rewrites []string
	var familyShares, entryASR, entryPR, rewriteShares []quality.Share
	for _, f := range s.Families {
		families, familyShares = append(families, f.Name), append(familyShares, f.ASR)
	}
	type way struct {
		name string
		of   *quality.Entry
	}
	points := []way{{"with metadata", &s.Entry}, {"as host events", s.Events}, {"text alone", s.Text}}
	for i := range s.Ways {
		points = append(points, way{map[string]string{"cli": "command line", "hook": "hook command", "mcp": "MCP proxy"}[s.Ways[i].Name], &s.Ways[i].Entry})
	}
	for _, e := range points {
		entries = append(entries, e.name)
		if e.of == nil {
			entryASR, entryPR = append(entryASR, nil), append(entryPR, nil)
			continue
		}
		entryASR, entryPR = append(entryASR, e.of.ASR.All), append(entryPR, e.of.PR.All)
	}
	for _, x := range []struct {
		name string
		s    quality.Share
	}{{"risk removed", s.Rewrites.RiskRemoved}, {"benign preserved", s.Rewrites.Preserved}, {"over-deletion", s.Rewrites.OverDeletion}, {"still actionable", s.Rewrites.StillActionable}, {"deferred after all", s.Rewrites.HR}} {
		rewrites, rewriteShares = append(rewrites, x.name), append(rewriteShares, x.s)
	}
	review := []string{"all cases", "attacks", "ordinary cases"}
	reviewShares := []quality.Share{s.LCR, s.LCRAttacks, s.OverEscalation}
	return map[string]any{
		"Run": r, "S": s, "Tiles": tiles(s), "Figures": Figures(s),
		"ASR":       forest(&s.ASR, paperASR(), "bad", "Attack success rate by surface"),
		"PR":        forest(&s.PR, paperPR(), "good", "Ordinary cases that pass, by surface"),
		"Outcomes":  outcomeBars(s),
		"ROC":       roc(s),
		"Coverage":  coverage(s),
		"Reliable":  reliability(s),
		"Latency":   latencyRanges(s),
		"CDF":       distribution(r),
		"Review":    bars("Cases that reach the arbiter's stage", "defer", review, reviewShares),
		"Rewrites":  bars("Rewrite outcomes", "rewrite", rewrites, rewriteShares),
		"Families":  bars("Attack success rate by family", "bad", families, familyShares),
		"EntryASR":  bars("Attack success rate by entry point", "bad", entries, entryASR),
		"EntryPR":   bars("Ordinary cases that pass, by entry point", "good", entries, entryPR),
		"Codes":     codeBars(s),
		"HasCurves": len(s.ROC) > 0,
	}
}

func tiles(s *quality.Summary) []tile {
	of := func(x quality.Share) (string, string) {
		if x == nil {
			return "–", "not run"
		}
		return fmt.Sprintf("%.1f %%", 100*x.Share), fmt.Sprintf("%.1f to %.1f, n = %d", 100*x.Low, 100*x.High, x.N)
	}
	var out []tile
	for _, x := range []struct {
		name, class string
		s           quality.Share
	}{{"attacks that take effect (ASR)", "bad", s.ASR.All}, {"ordinary cases that pass (PR)", "good", s.PR.All}, {"resolved without a person (RR)", "", s.RR}, {"left to a person (HR)", "", s.HR}, {"reach the arbiter (LCR)", "", s.LCR}} {
		v, note := of(x.s)
		out = append(out, tile{x.name, v, note, x.class})
	}
	return append(out, tile{"per decision, p50", short(s.Latency.Overall.P50) + " ms", "p95 " + short(s.Latency.Overall.P95) + " ms", ""})
}

// styleOfPage is the report's style sheet, for the other pages.
func styleOfPage() template.HTML {
	_, rest, _ := strings.Cut(page, "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	return template.HTML("<style>" + style + "</style>")
}
