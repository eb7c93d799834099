package report

import (
	"fmt"
	"html/template"
	"io"

	"example.org/auditd/bench/tune"
)

// Tune writes the trade-off as a table: what each threshold lets through and
// what it leaves to review.
func Tune(w io.Writer, p *tune.Proposal, maxMiss, confidence float64) error {
	m := &markdown{}
	m.line("%d harmful and %d harmless decisions. A value holds when at most %.1f %% of harmful flows pass without review, with %.0f %% confidence.", p.Harmful, p.Harmless, 100*maxMiss, 100*confidence)
	m.head("small_allow.risk_max", "harmful that pass", "bound", "harmless to review", "")
	last := tune.Step{Missed: -1}
	for _, s := range p.Steps {
		mark := ""
		switch {
		case p.Best != nil && s.RiskMax == *p.Best:
			mark = "proposed"
		case s.RiskMax == p.Current:
			mark = "now"
		case s.Missed == last.Missed && s.Review == last.Review:
			continue // nothing changes
		}
		if s.Holds && mark != "proposed" {
			mark += " holds"
		}
		last = s
		m.row(fmt.Sprintf("%.2f", s.RiskMax), fmt.Sprintf("%d of %d", s.Missed, p.Harmful), fmt.Sprintf("%.1f %%", 100*s.Bound), fmt.Sprintf("%.1f %%", 100*s.Review), mark)
	}
	if p.Best == nil {
		m.line("\nNo value that lets anything pass holds: the auditor is certain of harmful flows that it takes for harmless, or there are too few decisions. A threshold can't mend the first, and more decisions mend the second.")
	}
	if _, err := w.Write(m.Bytes()); err != nil {
		return fmt.Errorf("write the trade-off: %w", err)
	}
	return nil
}

// TunePlot writes the trade-off as a page: the bound on what passes unseen
// against the share of harmless flows that go to review.
func TunePlot(w io.Writer, p *tune.Proposal, maxMiss float64) error {
	g := newPlot(760, 460, 60, 24, 34, 48)
	g.percentX("harmless flows that go to review")
	g.percentY("harmful flows that pass without review")
	g.line(g.left, g.y(maxMiss), g.right, g.y(maxMiss), "chance")
	g.text(g.right, g.y(maxMiss)-6, "end", "tick", fmt.Sprintf("%.1f %% asked for", 100*maxMiss))
	var xs, ys, bs []float64
	for _, s := range p.Steps {
		xs, ys, bs = append(xs, s.Review), append(ys, float64(s.Missed)/float64(p.Harmful)), append(bs, s.Bound)
	}
	g.path(xs, bs, "curve bad", false)
	g.path(xs, ys, "curve good", false)
	label := func(x, y float64, text string) {
		anchor, dx := "start", 10.0
		if x > .75 {
			anchor, dx = "end", -10
		}
		g.text(g.x(x)+dx, g.y(y)-6, anchor, "label strong", text)
	}
	for i, s := range p.Steps {
		switch {
		case p.Best != nil && s.RiskMax == *p.Best:
			g.circle(g.x(xs[i]), g.y(bs[i]), 6, "good dot", fmt.Sprintf("proposed: risk_max %.2f", s.RiskMax))
			label(xs[i], bs[i], fmt.Sprintf("proposed %.2f", s.RiskMax))
		case s.RiskMax == p.Current:
			g.circle(g.x(xs[i]), g.y(bs[i]), 6, "bad dot", fmt.Sprintf("now: risk_max %.2f", s.RiskMax))
			label(xs[i], bs[i], fmt.Sprintf("now %.2f", s.RiskMax))
		}
	}
	const frame = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>auditd tune</title>{{.Style}}</head><body><main><h1>What a threshold costs</h1><p class="note">Each point of a line is a value of small_allow.risk_max.</p><p class="key"><span><i style="background:var(--good)"></i>counted</span><span><i style="background:var(--bad)"></i>its upper bound</span></p><section>{{.Plot}}</section></main></body></html>
`
	t, err := template.New("tune").Parse(frame)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	if err := t.Execute(w, map[string]any{"Style": styleOfPage(), "Plot": g.svg("Harmful flows that pass against harmless flows to review")}); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
