package report

import (
	"fmt"
	"io"
	"strings"

	"example.org/auditd/bench/quality"
	"example.org/auditd/schema"
)

// Study is the runs that stand beside the paper's tables.
type Study struct {
	Run       Run                         `json:"run"` // nothing left out
	Parts     map[string]*quality.Summary `json:"parts"`
	Redaction quality.Rewrites            `json:"redaction"`
	Others    []Run                       `json:"others,omitempty"` // other auditors
}

// none is a cell that the paper leaves open.
const none = -1

// Paper writes the token-flow paper's tables (arXiv 2607.08395) with ours in
// front: ours (the paper's).
func Paper(w io.Writer, st *Study) error {
	m, r := &markdown{}, &st.Run
	m.line("# Beside the token-flow paper\n")
	m.line("auditd %s · cases: %s\n", r.Version, orDash(r.Cases))
	m.line("Models that ran: auditor %s; arbiter %s. The paper: Qwen3-4B as auditor, Qwen3.6-Plus as arbiter, 88 attacks and 38 benign cases of CIK-Bench, which are not the cases here.\n", orDash(r.Auditor), orDash(r.Arbiter))
	m.line("Cells are ours (the paper's), shares in percent; \"not run\" needs a model that was not there.")
	full := st.Parts["full"]
	m.paperMain(full)
	m.paperBenign(full)
	m.paperAblations(st)
	m.paperSizes(st)
	m.paperRewrites(st, full)
	m.paperSchemas(st)
	m.paperBuckets(full)
	m.honest(full)
	if _, err := w.Write(m.Bytes()); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}

// cell is ours beside the paper's.
func cell(ours quality.Share, ran bool, paper float64) string {
	text := "not run"
	if ran {
		text = "–"
		if ours != nil {
			text = fmt.Sprintf("%.1f", 100*ours.Share)
		}
	}
	return text + theirs(paper, "%.1f")
}

func theirs(paper float64, format string) string {
	if paper == none {
		return " (–)"
	}
	return fmt.Sprintf(" ("+format+")", paper)
}

// seconds is a mean latency beside the paper's.
func seconds(ms float64, ran bool, paper float64) string {
	if !ran {
		return "not run" + theirs(paper, "%.2f s")
	}
	return fmt.Sprintf("%.2f s", ms/1000) + theirs(paper, "%.2f s")
}

func (m *markdown) paperMain(s *quality.Summary) {
	m.line("\n## Attacks (the paper's Table 1)")
	m.head("", "context", "authority", "capability", "ASR", "RR", "HR", "latency")
	ran := s != nil
	if !ran {
		s = &quality.Summary{}
	}
	paper := paperASR()
	row := []string{"auditd (TokenWall)"}
	for i, x := range surfaces() {
		row = append(row, cell(s.ASR.Of(x), ran, paper[i]))
	}
	m.row(append(row, cell(s.RR, ran, 54.5), cell(s.HR, ran, 33.0), seconds(s.Latency.Attacks.Mean, ran, 16.9))...)
	for _, p := range []struct {
		name  string
		cells [7]float64
	}{
		{"OpenGuardrails", [7]float64{41.7, 46.2, 50.0, 45.5, 54.5, 0.0, 0.67}},
		{"ClawBands", [7]float64{16.7, 11.5, 73.1, 31.8, 15.9, 52.3, 42.1}},
		{"CIK-Defense", [7]float64{19.4, 19.2, 73.1, 35.2, 64.8, 0.0, 53.8}},
		{"OpenClaw Shield", [7]float64{19.4, 19.2, 84.6, 38.6, 59.1, 2.3, 50.0}},
		{"SecureClaw", [7]float64{25.0, 42.3, 76.9, 45.5, 51.1, 3.4, 62.4}},
		{"ClawSec", [7]float64{27.8, 34.6, 84.6, 46.6, 1.1, 52.3, 41.5}},
		{"ClawKeeper", [7]float64{13.8, 19.2, 11.5, 14.7, 15.9, 69.3, 64.3}},
	} {
		row := []string{p.name}
		for i, v := range p.cells {
			if i == 6 {
				row = append(row, fmt.Sprintf("not run (%.2f s)", v))
				continue
			}
			row = append(row, fmt.Sprintf("not run (%.1f)", v))
		}
		m.row(row...)
	}
}

func (m *markdown) paperBenign(s *quality.Summary) {
	m.line("\n## Ordinary cases")
	m.head("", "PR", "HR of those that do not pass", "latency")
	ran := s != nil
	if !ran {
		s = &quality.Summary{}
	}
	m.row("auditd (TokenWall)", cell(s.PR.All, ran, 97.4), cell(s.BenignHR, ran, 0), seconds(s.Latency.Benign.Mean, ran, .69))
	for _, p := range []struct {
		name       string
		pr, hr, ms float64
	}{{"ClawSec", 97.4, 100, 1.44}, {"SecureClaw", 94.7, 0, 3.48}, {"ClawBands", 92.1, 100, 6.02}, {"ClawKeeper", 92.1, 66.7, 5.75},
		{"CIK-Defense", 89.5, 100, 7.54}, {"OpenClaw Shield", 89.5, 25, 7.19}, {"OpenGuardrails", 100, 0, 0}} {
		m.row(p.name, fmt.Sprintf("not run (%.1f)", p.pr), fmt.Sprintf("not run (%.1f)", p.hr), fmt.Sprintf("not run (%.2f s)", p.ms))
	}
}

func (m *markdown) paperAblations(st *Study) {
	m.line("\n## Parts left out")
	m.head("", "ASR", "HR", "LCR", "PR", "latency")
	for _, p := range []struct {
		name               string
		asr, hr, lcr, late float64
	}{{"full", 12.5, 33.0, 15.9, 16.9}, {"without fallback", 20.4, 30.7, 0, 3.9}, {"without rewrite", 12.5, 38.6, 29.5, 35.1},
		{"without small auditor", 18.2, 20.5, 94.3, 74.7}, {"large only", 8.0, 23.9, 100, 82.4}, {"precheck only", none, none, none, none},
		{"without Φ", none, none, none, none}, {"without u", none, none, none, none}, {"decision only", none, none, none, none}} {
		s, ran := st.Parts[p.name]
		if !ran {
			s = &quality.Summary{}
		}
		m.row(p.name, cell(s.ASR.All, ran, p.asr), cell(s.HR, ran, p.hr), cell(s.LCRAttacks, ran, p.lcr), cell(s.PR.All, ran, -1), seconds(s.Latency.Attacks.Mean, ran, p.late))
	}
	m.line("\nOf the last three the paper says that ASR rises up to 28.4. LCR, HR and latency are of the attacks.")
}

func (m *markdown) paperSizes(st *Study) {
	m.line("\n## The auditor's size")
	m.head("auditor", "ASR", "LCR", "PR", "small latency", "overall latency")
	add := func(name string, s *quality.Summary, p [5]float64) {
		ran := s != nil
		if !ran {
			s = &quality.Summary{}
		}
		m.row(name, cell(s.ASR.All, ran, p[0]), cell(s.LCRAttacks, ran, p[1]), cell(s.PR.All, ran, p[2]), seconds(s.Latency.Small.Mean, ran, p[3]), seconds(s.Latency.Overall.Mean, ran, p[4]))
	}
	other := func(size string) *quality.Summary {
		for i := range st.Others {
			if r := &st.Others[i]; strings.Contains(strings.ToLower(r.Auditor), "qwen3:"+size) {
				return r.Summary
			}
		}
		if r := &st.Run; r.Summary != nil && strings.Contains(strings.ToLower(r.Auditor), "qwen3:"+size) {
			return r.Summary
		}
		return nil
	}
	for _, p := range []struct {
		size  string
		cells [5]float64
	}{{"1.7b", [5]float64{23.1, 38.6, 92.1, .69, 37.0}}, {"4b", [5]float64{12.5, 15.9, 97.4, 1.01, 16.9}},
		{"8b", [5]float64{11.8, 17.2, 97.4, 2.16, 18.8}}, {"14b", [5]float64{9.7, 12.4, 97.4, 3.50, 16.2}}} {
		add("Qwen3 "+p.size, other(p.size), p.cells)
	}
	open := [5]float64{none, none, none, none, none}
	if s := st.Parts["full"]; s != nil {
		add(st.Run.Auditor, s, open)
	}
	for i := range st.Others {
		add(st.Others[i].Auditor, st.Others[i].Summary, open)
	}
}

func (m *markdown) paperRewrites(st *Study, full *quality.Summary) {
	m.line("\n## What a rewrite is worth")
	m.head("", "risk removed", "benign preserved", "over-deletion", "still actionable", "HR", "n")
	ran := full != nil
	local := quality.Rewrites{}
	if ran {
		local = full.Rewrites
	}
	add := func(name string, r *quality.Rewrites, ran bool, hr quality.Share, p [5]float64) {
		n := "–"
		if ran {
			n = fmt.Sprint(r.N)
		}
		m.row(name, cell(r.RiskRemoved, ran, p[0]), cell(r.Preserved, ran, p[1]), cell(r.OverDeletion, ran, p[2]), cell(r.StillActionable, ran, p[3]), cell(hr, ran, p[4]), n)
	}
	add("local rewrite", &local, ran, local.HR, [5]float64{66.7, 100, 0, 33.3, 0})
	add("redaction by pattern", &st.Redaction, ran, nil, [5]float64{40.7, 100, 0, 59.3, 0})
	add("arbiter", &quality.Rewrites{}, false, nil, [5]float64{88.9, 75, 25, 11.1, 0})
	m.line("\nTo defer or to block removes 100 and preserves 0 by construction (the paper the same). The cases are the attacks that the small auditor rewrites.")
}

func (m *markdown) paperSchemas(st *Study) {
	m.line("\n## How much the report says")
	m.head("output", "ASR", "invalid", "LCR", "over-escalation", "PR")
	for _, p := range []struct {
		name, part string
		cells      [5]float64
	}{{"free form", "schema: free form", [5]float64{19.3, 98.9, 0, 0, 34.2}}, {"decision only", "schema: decision only", [5]float64{26.1, 0, 0, 0, 97.4}},
		{"+ risk", "schema: + risk", [5]float64{22.7, 0, 81.8, 17, 97.4}}, {"+ uncertainty", "schema: + uncertainty", [5]float64{22.7, 0, 83, 25, 97.4}},
		{"+ residual types", "schema: + residual types", [5]float64{22.7, 0, 71.6, 25, 97.4}}, {"full", "full", [5]float64{12.5, 0, 15.9, 25, 97.4}}} {
		s, ran := st.Parts[p.part]
		if !ran {
			s = &quality.Summary{}
		}
		m.row(p.name, cell(s.ASR.All, ran, p.cells[0]), cell(s.Invalid, ran, p.cells[1]), cell(s.LCRAttacks, ran, p.cells[2]), cell(s.OverEscalation, ran, p.cells[3]), cell(s.PR.All, ran, p.cells[4]))
	}
	m.line("\nFree form needs an auditor that writes text. A number that an output lacks reads as 0.5.")
}

func (m *markdown) paperBuckets(s *quality.Summary) {
	m.line("\n## By the small auditor's uncertainty")
	m.head("uncertainty", "n", "small-only ASR", "ASR", "override", "disagreement")
	if s == nil {
		m.row("all", "not run", "not run", "not run", "not run", "not run")
		return
	}
	paper := [5][5]float64{{10, 0, 0, 10, 0}, {21, 76.2, 19, 71.4, 9.5}, {41, 68.3, 12.2, 90.2, 43.9}, {1, 100, 0, 100, 100}, {none, none, none, none, none}}
	arbitrated := s.Arbitrated > 0
	for i, b := range s.Buckets {
		p := paper[i]
		m.row(fmt.Sprintf("%.1f–%.1f", b.From, b.To), fmt.Sprint(b.N)+theirs(p[0], "%.0f"), cell(b.SmallASR, true, p[1]), cell(b.ASR, true, p[2]), cell(b.Override, arbitrated, p[3]), cell(b.Disagreement, arbitrated, p[4]))
	}
}

// honest ends with what the paper does not ask.
func (m *markdown) honest(s *quality.Summary) {
	if s == nil {
		return
	}
	m.line("\n## Intervals")
	m.head("", "context", "authority", "capability", "all")
	for _, x := range []struct {
		name string
		of   *quality.BySurface
	}{{"ASR", &s.ASR}, {"PR", &s.PR}} {
		row := []string{x.name}
		for _, surface := range []schema.Surface{schema.Context, schema.Authority, schema.Capability, schema.SurfaceUnset} {
			row = append(row, share(x.of.Of(surface)))
		}
		m.row(row...)
	}
}
