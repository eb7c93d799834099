package report

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"example.org/auditd/bench/isolation/play"
	"example.org/auditd/bench/quality"
)

// Isolation is a run of the isolation benchmark.
type Isolation struct {
	Version string        `json:"version"`
	Auditor string        `json:"auditor"` // of the arrangements that audit
	Summary *play.Summary `json:"summary"`
	Results []play.Result `json:"results"`
}

// paperIsolation are the two-view paper's figures (arXiv 2607.03821) with Haiku
// 4.5 as agent: ASR, immediate, stored, utility, tokens. Its cases and agents are
// not ours: the agent here obeys everything.
func paperIsolation(a play.Arrangement) (figures [5]float64, name string) {
	switch a {
	case play.Nothing:
		return [5]float64{57, 57.2, 56.7, 83.4, 0}, "baseline"
	case play.Guard:
		return [5]float64{7.8, 3.9, 15.6, 85.3, 18.3}, "input guardrail"
	case play.Dual:
		return [5]float64{17.8, 0, 53.3, 81.8, 40.8}, "Dual LLM"
	case play.Isolated:
		return [5]float64{0, 0, 0, 81.6, 48.2}, "DualView"
	}
	return [5]float64{none, none, none, none, none}, ""
}

// IsolationMarkdown writes the figures as tables.
func IsolationMarkdown(w io.Writer, r *Isolation) error {
	m := &markdown{}
	m.line("# What isolation stops\n")
	m.line("auditd %s · auditor where one audits: %s. The agent obeys every order that it can read; the quarantined model answers as the attacker wishes; nobody answers questions.", r.Version, orDash(r.Auditor))
	m.line("\nShares in percent with 95 %% Wilson interval and n; in brackets the two-view paper's figure with Haiku 4.5.")
	m.head("", "ASR", "immediate", "stored", "two sessions", "utility", "utility, nobody attacks", "requests that leak", "cases that ask", "tokens")
	for i := range r.Summary.Rows {
		x := &r.Summary.Rows[i]
		paper, _ := paperIsolation(x.Arrangement)
		m.row(string(x.Arrangement), share(x.ASR)+theirs(paper[0], "%.1f"), share(x.Immediate)+theirs(paper[1], "%.1f"), share(x.Stored)+theirs(paper[2], "%.1f"), share(x.TwoSessions),
			share(x.Utility)+theirs(paper[3], "%.1f"), share(x.Ordinary), share(x.Leaking), share(x.Asking), overhead(x)+theirs(paper[4], "+%.1f %%"))
	}
	m.head("", "cases", "questions", "events stopped", "requests", "tokens in all", "mean ms a case")
	for i := range r.Summary.Rows {
		x := &r.Summary.Rows[i]
		m.row(string(x.Arrangement), fmt.Sprint(x.Cases), fmt.Sprint(x.Questions), fmt.Sprint(x.Stops), fmt.Sprint(x.Requests), fmt.Sprint(x.Tokens), ms(x.MeanMS))
	}
	for _, list := range []struct {
		title string
		notes []play.Note
	}{{"Attacks that succeed in spite of isolation", r.Summary.Harm}, {"Tasks that isolation keeps from being done", r.Summary.Loss}} {
		m.line("\n## %s (%d)\n", list.title, len(list.notes))
		for _, n := range list.notes {
			m.line("- `%s`, %s: %s", n.Case, n.Arrangement, n.Why)
		}
	}
	if _, err := w.Write(m.Bytes()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func overhead(x *play.Row) string {
	if x.Overhead == nil {
		return fmt.Sprint(x.Tokens)
	}
	return fmt.Sprintf("%+.1f %%", 100**x.Overhead)
}

// IsolationHTML writes one page that holds everything.
func IsolationHTML(w io.Writer, r *Isolation) error {
	const frame = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>auditd bench isolation</title>{{.Style}}</head><body><main>
<h1>What isolation stops</h1>
<p class="meta">auditd {{.Version}} · auditor where one audits {{.Auditor}}</p>
{{.Sections}}
</main></body></html>
`
	sections, err := isolationSections(r)
	if err != nil {
		return err
	}
	t, err := template.New("page").Parse(frame)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	if err := t.Execute(w, map[string]any{"Style": styleOfPage(), "Version": r.Version, "Auditor": orDash(r.Auditor), "Sections": sections}); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// isolationSections are the run's part of a page.
func isolationSections(r *Isolation) (template.HTML, error) {
	const text = `<p class="note lead">The agent obeys every order that it can read, the quarantined model answers as the attacker wishes, and nobody answers questions. Ranges are 95 % Wilson intervals.</p>
<section class="wide"><h2>Attacks that succeed</h2><p class="note">Less is better. By where the attacker's text comes from: at once from a page or a mail, or kept in a file or a memory before it is read. The diamond is the two-view paper's figure, with a model that resists many attacks.</p>{{.ASR}}</section>
<div class="two">
<section><h2>The owner's task is done</h2><p class="note">More is better. A symbol in anything that a person reads counts as not done. Where auditing is on, it keeps attack text out of what people read too: a task that saves such a text is stopped with it.</p>{{.Utility}}</section>
<section><h2>The task is done when nobody attacks</h2><p class="note">The same tasks on ordinary texts: what is lost here is a false alarm.</p>{{.Ordinary}}</section>
<section><h2>The model read the attacker's text</h2><p class="note">Cases in which any request of the deciding model held a piece of it, in any usual encoding.</p>{{.Leaks}}</section>
</div>
<section class="scroll"><h2>What it costs</h2><p class="note">Requests that obey the attacker do not count.</p><table><tr><th>arrangement</th><th>cases that ask a person</th><th>questions</th><th>events stopped</th><th>requests</th><th>tokens</th><th>ms a case</th></tr>
{{range .Rows}}<tr><td>{{.Arrangement}}</td><td class="num">{{share .Asking}}</td><td class="num">{{.Questions}}</td><td class="num">{{.Stops}}</td><td class="num">{{.Requests}}</td><td class="num">{{overhead .}}</td><td class="num">{{ms .MeanMS}}</td></tr>{{end}}</table></section>
<section><details open><summary>Attacks that succeed in spite of isolation ({{len .Summary.Harm}})</summary><table>{{range .Summary.Harm}}<tr><td><code>{{.Case}}</code></td><td>{{.Arrangement}}</td><td>{{.Why}}</td></tr>{{end}}</table></details></section>
<section><details open><summary>Tasks that isolation keeps from being done ({{len .Summary.Loss}})</summary><table>{{range .Summary.Loss}}<tr><td><code>{{.Case}}</code></td><td>{{.Arrangement}}</td><td>{{.Why}}</td></tr>{{end}}</table></details></section>
`
	rows := make([]*play.Row, 0, len(r.Summary.Rows))
	var names []string
	var utility, ordinary, leaks []quality.Share
	for i := range r.Summary.Rows {
		x := &r.Summary.Rows[i]
		rows, names = append(rows, x), append(names, string(x.Arrangement))
		utility, ordinary, leaks = append(utility, x.Utility), append(ordinary, x.Ordinary), append(leaks, x.Leaking)
	}
	t, err := template.New("isolation").Funcs(template.FuncMap{"share": share, "ms": ms, "overhead": overhead}).Parse(text)
	if err != nil {
		return "", fmt.Errorf("read the page's template: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, map[string]any{"Summary": r.Summary, "Rows": rows, "ASR": arrangementsASR(rows),
		"Utility": bars("Tasks that are done, by arrangement", "good", names, utility), "Ordinary": bars("Tasks that are done on ordinary texts, by arrangement", "good", names, ordinary), "Leaks": bars("Cases in which the model read the attacker's text", "bad", names, leaks)}); err != nil {
		return "", fmt.Errorf("write the page: %w", err)
	}
	return template.HTML(b.String()), nil
}

// arrangementsASR draws, for each arrangement, the share of immediate and of
// stored attacks that succeed.
func arrangementsASR(rows []*play.Row) template.HTML {
	p := newPlot(1160, 34+float64(len(rows))*58, 210, 190, 6, 28)
	p.percentX("")
	for i, x := range rows {
		top := p.top + float64(i)*58
		p.text(p.left-12, top+33, "end", "label strong", string(x.Arrangement))
		paper, name := paperIsolation(x.Arrangement)
		for k, s := range []struct {
			name  string
			share quality.Share
			paper float64
			class string
		}{{"at once", x.Immediate, paper[1], "defer"}, {"kept first", x.Stored, paper[2], "bad"}} {
			y := top + 17 + float64(k)*24
			if s.paper >= 0 {
				p.add(`<path d="M%.1f %.1fl5 6l-5 6l-5 -6z" class="paper"><title>paper, %s: %.1f %%</title></path>`, p.x(s.paper/100), y-6, name, s.paper)
			}
			if s.share == nil {
				p.text(p.left+8, y+4, "start", "tick", "not run")
				continue
			}
			tip := fmt.Sprintf("%s, %s: %s, interval %s to %s, %d of %d", x.Arrangement, s.name, pct(s.share.Share), pct(s.share.Low), pct(s.share.High), s.share.K, s.share.N)
			p.rect(p.left, y-8, max(p.x(s.share.Share)-p.left, 2), 16, s.class, tip)
			p.line(p.x(s.share.Low), y, p.x(s.share.High), y, "interval")
			p.text(p.w-8, y+4, "end", "tick", fmt.Sprintf("%s %s · %d/%d", s.name, pct(s.share.Share), s.share.K, s.share.N))
		}
	}
	return p.svg("Attacks that succeed, by arrangement: at once, and kept first")
}
