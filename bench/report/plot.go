package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// plot draws one SVG. Colours are classes that the page's style sheet defines
// for light and dark; every text is escaped, since cases may be anybody's.
type plot struct {
	w, h                     float64
	left, right, top, bottom float64 // the frame
	x0, x1, y0, y1           float64 // the data's range
	log                      bool    // of the x axis
	b                        strings.Builder
}

func newPlot(w, h, left, right, top, bottom float64) *plot {
	return &plot{w: w, h: h, left: left, right: w - right, top: top, bottom: h - bottom, x1: 1, y1: 1}
}

func (p *plot) x(v float64) float64 {
	t := (v - p.x0) / (p.x1 - p.x0)
	if p.log {
		t = (math.Log10(max(v, p.x0)) - math.Log10(p.x0)) / (math.Log10(p.x1) - math.Log10(p.x0))
	}
	return p.left + min(max(t, 0), 1)*(p.right-p.left)
}

func (p *plot) y(v float64) float64 {
	return p.bottom - min(max((v-p.y0)/(p.y1-p.y0), 0), 1)*(p.bottom-p.top)
}

func (p *plot) add(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

func (p *plot) line(x1, y1, x2, y2 float64, class string) {
	p.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

// text is anchored at start, middle or end.
func (p *plot) text(x, y float64, anchor, class, s string) {
	p.add(`<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`, x, y, anchor, class, html.EscapeString(s))
}

func (p *plot) circle(x, y, r float64, class, tip string) {
	p.add(`<circle cx="%.1f" cy="%.1f" r="%.1f" class="%s"><title>%s</title></circle>`, x, y, r, class, html.EscapeString(tip))
}

func (p *plot) rect(x, y, w, h float64, class, tip string) {
	if w <= 0 || h <= 0 {
		return
	}
	p.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"><title>%s</title></rect>`, x, y, w, h, class, html.EscapeString(tip))
}

func (p *plot) path(xs, ys []float64, class string, steps bool) {
	if len(xs) == 0 {
		return
	}
	var d strings.Builder
	for i := range xs {
		switch {
		case i == 0:
			fmt.Fprintf(&d, "M%.1f %.1f", p.x(xs[i]), p.y(ys[i]))
		case steps:
			fmt.Fprintf(&d, "H%.1fV%.1f", p.x(xs[i]), p.y(ys[i]))
		default:
			fmt.Fprintf(&d, "L%.1f %.1f", p.x(xs[i]), p.y(ys[i]))
		}
	}
	p.add(`<path d="%s" class="%s"/>`, d.String(), class)
}

// percentX draws a horizontal axis from 0 to 100 %.
func (p *plot) percentX(label string) {
	for i := 0; i <= 4; i++ {
		v := float64(i) / 4
		p.line(p.x(v), p.top, p.x(v), p.bottom, "grid")
		p.text(p.x(v), p.bottom+16, "middle", "tick", fmt.Sprintf("%d %%", i*25))
	}
	if label != "" {
		p.text((p.left+p.right)/2, p.bottom+34, "middle", "axis", label)
	}
}

// percentY draws a vertical axis in percent up to y1.
func (p *plot) percentY(label string) {
	for i := 0; i <= 4; i++ {
		v := p.y0 + float64(i)/4*(p.y1-p.y0)
		p.line(p.left, p.y(v), p.right, p.y(v), "grid")
		p.text(p.left-6, p.y(v)+4, "end", "tick", fmt.Sprintf("%.0f %%", 100*v))
	}
	p.text(p.left, p.top-10, "start", "axis", label)
}

// logX draws a logarithmic axis of milliseconds.
func (p *plot) logX() {
	for v := p.x0; v <= p.x1*1.001; v *= 10 {
		p.line(p.x(v), p.top, p.x(v), p.bottom, "grid")
		label := fmt.Sprintf("%g ms", v)
		if v >= 1000 {
			label = fmt.Sprintf("%g s", v/1000)
		}
		p.text(p.x(v), p.bottom+16, "middle", "tick", label)
	}
}

// svg closes the drawing; title says what it shows to whoever can't see it.
func (p *plot) svg(title string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, p.w, p.h, html.EscapeString(title)) + "\n" + p.b.String() + "</svg>")
}
