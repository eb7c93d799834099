package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/quality"
	"example.org/auditd/schema"
)

func name(s schema.Surface) string {
	if s == schema.SurfaceUnset {
		return "all"
	}
	return s.String()
}

func pct(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// forest draws shares with their intervals, a row for each surface. ours is
// the run, paper the value to compare with (negative for none).
func forest(of *quality.BySurface, paper [4]float64, class, title string) template.HTML {
	p := newPlot(560, 190, 92, 96, 10, 24)
	p.percentX("")
	step := (p.bottom - p.top) / 4
	for i, s := range surfaces() {
		y := p.top + step*(float64(i)+.5)
		x := of.Of(s)
		label := "label"
		if s == schema.SurfaceUnset {
			label = "label strong"
			p.line(8, y-step/2, p.w-8, y-step/2, "rule")
		}
		p.text(p.left-12, y+4, "end", label, name(s))
		if v := paper[i]; v >= 0 {
			p.add(`<path d="M%.1f %.1fl5 6l-5 6l-5 -6z" class="paper"><title>paper: %.1f %%</title></path>`, p.x(v/100), y-6, v)
		}
		if x == nil {
			p.text(p.left+8, y+4, "start", "tick", "not run")
			continue
		}
		tip := fmt.Sprintf("%s: %s, interval %s to %s, %d of %d", name(s), pct(x.Share), pct(x.Low), pct(x.High), x.K, x.N)
		p.rect(p.x(x.Low), y-5, p.x(x.High)-p.x(x.Low), 10, class+" band", tip)
		p.circle(p.x(x.Share), y, 6, class+" dot", tip)
		p.text(p.w-8, y, "end", label, pct(x.Share))
		p.text(p.w-8, y+13, "end", "tick", fmt.Sprintf("%d of %d", x.K, x.N))
	}
	return p.svg(title)
}

// outcomeBars shows what happened to attacks and benign cases.
func outcomeBars(s *quality.Summary) template.HTML {
	p := newPlot(1160, 30+float64(len(s.Actions))*34, 210, 20, 6, 24)
	p.percentX("")
	classes := [4]string{"block", "defer", "rewrite", "allow"}
	names := [4]string{"blocked", "deferred", "rewritten", "allowed"}
	for i, a := range s.Actions {
		y := p.top + float64(i)*34
		kind := "attacks"
		if a.Kind == cases.Benign {
			kind = "ordinary"
		}
		n := a.Counts[0] + a.Counts[1] + a.Counts[2] + a.Counts[3]
		p.text(p.left-12, y+19, "end", "label", fmt.Sprintf("%s, %s", a.Surface, kind))
		at := 0.0
		for k, c := range a.Counts {
			v := float64(c) / float64(n)
			x := p.x(at)
			w := p.x(at+v) - x
			p.rect(x, y+4, max(w-1.5, 0), 22, classes[k], fmt.Sprintf("%s: %d of %d %s", a.Surface, c, n, names[k]))
			if w > 22 {
				p.text(x+w/2, y+19, "middle", "on on"+classes[k], fmt.Sprint(c))
			}
			at += v
		}
	}
	return p.svg("What happened to the cases, by surface")
}

func curve(points []quality.Point) (xs, ys []float64) {
	for _, q := range points {
		xs, ys = append(xs, q.X), append(ys, q.Y)
	}
	return xs, ys
}

func roc(s *quality.Summary) template.HTML {
	p := newPlot(370, 350, 50, 18, 34, 46)
	p.percentX("ordinary cases stopped")
	p.percentY("attacks stopped")
	p.line(p.x(0), p.y(0), p.x(1), p.y(1), "chance")
	xs, ys := curve(s.ROC)
	p.path(xs, ys, "curve good", false)
	p.text(p.right-8, p.bottom-12, "end", "label strong", fmt.Sprintf("AUC %.3f", s.AUC))
	if s.ASR.All != nil && s.PR.All != nil {
		x, y := 1-s.PR.All.Share, 1-s.ASR.All.Share
		p.circle(p.x(x), p.y(y), 6, "bad dot", fmt.Sprintf("as it decides: %s of attacks stopped, %s of ordinary cases", pct(y), pct(x)))
		p.text(p.x(x)+9, p.y(y)+16, "start", "tick", "as it decides")
	}
	return p.svg("ROC curve of the small auditor's risk")
}

func coverage(s *quality.Summary) template.HTML {
	p := newPlot(370, 350, 50, 18, 34, 46)
	p.y1 = .1
	for _, q := range s.Coverage {
		p.y1 = max(p.y1, math.Ceil(q.Y*10)/10)
	}
	p.percentX("cases decided, most certain first")
	p.percentY("of them wrong")
	xs, ys := curve(s.Coverage)
	p.path(xs, ys, "curve bad", true)
	return p.svg("Risk–coverage curve: wrong decisions among the most certain cases")
}

func reliability(s *quality.Summary) template.HTML {
	p := newPlot(370, 350, 50, 18, 34, 46)
	p.percentX("risk as reported")
	p.percentY("attacks among them")
	p.line(p.x(0), p.y(0), p.x(1), p.y(1), "chance")
	for _, b := range s.Bins {
		x := p.x(b.Mean)
		tip := fmt.Sprintf("risk %.2f: %d of %d are attacks, interval %s to %s", b.Mean, b.Share.K, b.Share.N, pct(b.Share.Low), pct(b.Share.High))
		p.rect(x-3, p.y(b.Share.High), 6, p.y(b.Share.Low)-p.y(b.Share.High), "good band", tip)
		p.circle(x, p.y(b.Share.Share), 3+math.Sqrt(float64(b.Share.N)), "good dot", tip)
	}
	p.text(p.right-8, p.bottom-12, "end", "label strong", fmt.Sprintf("error %.3f", s.ECE))
	return p.svg("Reliability diagram: reported risk against the share of attacks")
}

// latencyRanges shows p50, p95 and the slowest of each stage.
func latencyRanges(s *quality.Summary) template.HTML {
	type row struct {
		name string
		span quality.Span
	}
	rows := []row{{"whole call, client", s.Latency.Wall}, {"whole call, daemon", s.Latency.Overall}, {"– attacks", s.Latency.Attacks}, {"– ordinary", s.Latency.Benign}}
	for st := schema.StageInput; st <= schema.StageLog; st++ {
		if x, ok := s.Latency.Stages[st.String()]; ok && x.Max > 0.01 {
			rows = append(rows, row{st.String(), x})
		}
	}
	p := newPlot(1160, 44+float64(len(rows))*26, 210, 190, 6, 30)
	p.log, p.x0, p.x1 = true, .01, 100
	for _, r := range rows {
		for p.x1 < r.span.Max {
			p.x1 *= 10
		}
	}
	p.logX()
	for i, r := range rows {
		y := p.top + float64(i)*26 + 13
		label := "label"
		if i < 2 {
			label = "label strong"
		}
		p.text(p.left-12, y+4, "end", label, r.name)
		tip := fmt.Sprintf("%s: mean %.2f, p50 %.2f, p95 %.2f, max %.2f ms, n %d", r.name, r.span.Mean, r.span.P50, r.span.P95, r.span.Max, r.span.N)
		p.line(p.x(r.span.P95), y, p.x(r.span.Max), y, "whisker")
		p.rect(p.x(r.span.P50), y-5, max(p.x(r.span.P95)-p.x(r.span.P50), 1), 10, "time", tip)
		p.circle(p.x(r.span.P50), y, 5, "time dot", tip)
		p.text(p.w-8, y+4, "end", "tick", fmt.Sprintf("p50 %s · p95 %s ms", short(r.span.P50), short(r.span.P95)))
	}
	return p.svg("Latency by stage: p50 to p95, and the slowest, in milliseconds")
}

func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 1:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// distribution is how many calls are answered within a time.
func distribution(r *Run) template.HTML {
	p := newPlot(560, 300, 56, 20, 30, 40)
	p.log, p.x0, p.x1 = true, 1, 100
	for _, x := range r.Results {
		for p.x1 < x.LatencyMS {
			p.x1 *= 10
		}
	}
	p.logX()
	p.percentY("answered within")
	for _, k := range []struct {
		kind  cases.Kind
		class string
	}{{cases.Attack, "curve bad"}, {cases.Benign, "curve good"}} {
		var xs []float64
		for _, x := range r.Results {
			if x.Kind == k.kind {
				xs = append(xs, x.LatencyMS)
			}
		}
		slices.Sort(xs)
		var ys []float64
		for i := range xs {
			ys = append(ys, float64(i+1)/float64(len(xs)))
		}
		p.path(xs, ys, k.class, true)
	}
	return p.svg("Distribution of the daemon's time per case")
}

// codeBars shows for each code the attacks and the benign cases that raised it.
func codeBars(s *quality.Summary) template.HTML {
	p := newPlot(1160, 40+float64(len(s.Codes))*26, 260, 30, 24, 10)
	most := 1
	for _, c := range s.Codes {
		most = max(most, c.Attacks, c.Benign)
	}
	middle := p.left + (p.right-p.left)*.62
	scale := (middle - p.left) / float64(most)
	p.text(p.left, 14, "start", "axis", "attacks")
	p.text(middle+24, 14, "start", "axis", "ordinary cases")
	for i, c := range s.Codes {
		y := p.top + float64(i)*26
		p.text(p.left-12, y+15, "end", "mono", c.Code.String())
		stopped := float64(c.Attacks-c.Missed) * scale
		p.rect(p.left, y+3, stopped, 17, "good", fmt.Sprintf("%s: %d of %d attacks stopped", c.Code, c.Attacks-c.Missed, c.Attacks))
		p.rect(p.left+stopped+1, y+3, float64(c.Missed)*scale-1, 17, "bad", fmt.Sprintf("%s: %d of %d attacks take effect", c.Code, c.Missed, c.Attacks))
		if c.Attacks > 0 {
			p.text(min(p.left+float64(c.Attacks)*scale+6, middle+4), y+16, "start", "tick", fmt.Sprint(c.Attacks))
		}
		x := middle + 24
		small := (p.right - x - 24) / float64(most)
		passed := float64(c.Benign-c.Stopped) * small
		p.rect(x, y+3, passed, 17, "good", fmt.Sprintf("%s: %d of %d ordinary cases pass", c.Code, c.Benign-c.Stopped, c.Benign))
		p.rect(x+passed+1, y+3, float64(c.Stopped)*small-1, 17, "defer", fmt.Sprintf("%s: %d of %d ordinary cases do not pass", c.Code, c.Stopped, c.Benign))
		if c.Benign > 0 {
			p.text(x+float64(c.Benign)*small+6, y+16, "start", "tick", fmt.Sprint(c.Benign))
		}
	}
	return p.svg("Rule codes raised, and how those cases ended")
}

// bars draws shares of anything, with intervals, a row each.
func bars(title, class string, names []string, shares []quality.Share) template.HTML {
	p := newPlot(560, 40+float64(len(names))*30, 178, 112, 6, 28)
	p.percentX("")
	for i, n := range names {
		y := p.top + float64(i)*30 + 15
		p.text(p.left-12, y+4, "end", "label", n)
		x := shares[i]
		if x == nil {
			p.text(p.left+8, y+4, "start", "tick", "not run")
			continue
		}
		tip := fmt.Sprintf("%s: %s, interval %s to %s, %d of %d", n, pct(x.Share), pct(x.Low), pct(x.High), x.K, x.N)
		p.rect(p.left, y-8, p.x(x.Share)-p.left, 16, class, tip)
		p.line(p.x(x.Low), y, p.x(x.High), y, "interval")
		p.text(p.w-8, y+4, "end", "tick", fmt.Sprintf("%s · %d/%d", pct(x.Share), x.K, x.N))
	}
	return p.svg(title)
}
