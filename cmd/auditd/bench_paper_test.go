package main

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"example.org/auditd/api"
	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/quality"
	"example.org/auditd/firewall"
	"example.org/auditd/inference"
	"example.org/auditd/schema"
)

// scripted judges the built-in cases by their labels, with some of everything:
// rewrites, clear and unclear decisions, named residuals.
type scripted struct{ byPayload map[string]*cases.Case }

func newScripted(set []cases.Case) scripted {
	s := scripted{map[string]*cases.Case{}}
	for i := range set {
		s.byPayload[set[i].Flow.Payload] = &set[i]
	}
	return s
}

func (scripted) Identity() string { return "scripted" }
func (scripted) Ready() error     { return nil }

func (s scripted) Audit(_ context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	rep := schema.Report{Decision: schema.Allow, Risk: .05, Uncertainty: .1, Exploitability: .1, Impact: .1, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}, Evidence: []string{}}
	c := s.byPayload[rec.Flow.Payload]
	if c == nil { // a payload that was rewritten
		return rep, schema.Usage{Backend: "scripted"}, nil
	}
	h := fnv.New32a()
	h.Write([]byte(c.ID))
	n := h.Sum32() % 4
	if c.Kind == cases.Benign {
		if n == 0 {
			rep.ResidualRiskTypes, rep.Risk = []schema.ResidualRisk{schema.ResidualPromptControl, schema.ResidualAuthority, schema.ResidualExternalSink}, .15
		}
		return rep, schema.Usage{Backend: "scripted"}, nil
	}
	rep.Risk, rep.Exploitability, rep.Impact = .9, .9, .9
	switch {
	case c.Span != "":
		cut := strings.Replace(c.Flow.Payload, c.Span, schema.MaskRemoved, 1)
		rep.Decision, rep.Rewrite, rep.RewriteCompleteness, rep.Evidence = schema.RewriteAndContinue, &cut, .95, []string{c.Span}
		if len(c.Span) > schema.MaxEvidenceText {
			return rep, schema.Usage{}, fmt.Errorf("span of %s is too long", c.ID)
		}
	case n == 0: // wrong, and not sure
		rep.Decision, rep.Risk, rep.Uncertainty = schema.Allow, .1, .6
	case n == 1:
		rep.Decision, rep.Uncertainty = schema.Block, .6
	case n == 2:
		rep.Decision = schema.DeferToHuman
	default:
		rep.Decision = schema.Block
	}
	return rep, schema.Usage{Backend: "scripted"}, nil
}

// Window and Complete: asked for words of its own, it writes prose.
func (scripted) Window() int { return 8192 }

func (scripted) Complete(context.Context, *inference.Completion) (string, schema.Usage, error) {
	return "This looks risky to me, I would rather stop it.", schema.Usage{Backend: "scripted"}, nil
}

// stern is an arbiter that blocks.
type stern struct{}

func (stern) Identity() string { return "stern" }
func (stern) Ready() error     { return nil }
func (stern) Arbitrate(context.Context, *schema.ArbiterRecord) (schema.ArbiterReport, schema.Usage, error) {
	return schema.ArbiterReport{Decision: schema.Block, Risk: .9, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualSideEffect}, Evidence: []string{}}, schema.Usage{Backend: "stern"}, nil
}

// TestEveryAblationChangesTheTrace: a switch that changes nothing is a defect,
// and where its direction is known it has that direction.
func TestEveryAblationChangesTheTrace(t *testing.T) {
	set, err := cases.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	p := &program{getenv: func(name string) string { return map[string]string{"HOME": home}[name] }, stdout: new(bytes.Buffer), stderr: new(bytes.Buffer)}
	cfg := defaultConfig(p.getenv)
	if err := cfg.complete(p.getenv); err != nil {
		t.Fatal(err)
	}
	j := &judges{auditor: newScripted(set), arbiter: stern{}}
	traces, sums := map[string]string{}, map[string]*quality.Summary{}
	ruled := 0 // cases that the owner's shipped rules decide before any model
	for _, a := range ablations() {
		run, err := p.runAblation(t.Context(), &cfg, j, &a, &paperOptions{})
		if err != nil {
			t.Fatalf("%s: %v", a.name, err)
		}
		var b strings.Builder
		for _, r := range run.Results {
			fmt.Fprintln(&b, r.Case, r.Trace)
			if a.name == "large only" && r.Stage == schema.StagePolicy {
				ruled++
			}
		}
		traces[a.name], sums[a.name] = b.String(), run.Summary
		if a.name != "full" && traces[a.name] == traces["full"] {
			t.Errorf("%s changes no trace", a.name)
		}
	}
	if free := sums["schema: free form"]; free.Invalid == nil || free.Invalid.Share < .7 || free.PR.All.K > 3 {
		t.Errorf("free form: invalid %+v, PR %+v", free.Invalid, free.PR.All)
	}
	full := sums["full"]
	if full.Mediated.K == 0 || full.LCR.K == 0 || full.Arbitrated == 0 {
		t.Fatalf("the script does not use every stage: %+v %+v", full.Mediated, full.LCR)
	}
	if got := sums["without rewrite"]; got.Mediated.K != 0 || got.LCR.K <= full.LCR.K {
		t.Errorf("without rewrite: %d mediated, LCR %d, in full %d", got.Mediated.K, got.LCR.K, full.LCR.K)
	}
	for _, name := range []string{"without u", "without Φ"} {
		if got := sums[name]; got.LCR.K >= full.LCR.K {
			t.Errorf("%s: LCR %d, in full %d", name, got.LCR.K, full.LCR.K)
		}
	}
	for _, name := range []string{"decision only", "precheck only", "without fallback"} {
		got := sums[name]
		if got.LCR.K != 0 && name != "without fallback" || got.Arbitrated != 0 {
			t.Errorf("%s: LCR %d, %d arbitrated", name, got.LCR.K, got.Arbitrated)
		}
		if got.ASR.All.K <= full.ASR.All.K {
			t.Errorf("%s: ASR %d, in full %d", name, got.ASR.All.K, full.ASR.All.K)
		}
	}
	if sums["precheck only"].ASR.All.K <= sums["decision only"].ASR.All.K {
		t.Error("the precheck alone lets no more through than the auditor's decisions")
	}
	if got := sums["large only"].LCR.K; got != len(set)-ruled || ruled > len(set)/4 {
		t.Errorf("large only: the arbiter sees %d of %d, rules decide %d", got, len(set), ruled)
	}
}

// TestJudgeIsNotMeasured: a model does not judge itself.
func TestJudgeIsNotMeasured(t *testing.T) {
	home := t.TempDir()
	p := &program{getenv: func(name string) string { return map[string]string{"HOME": home}[name] }}
	cfg, err := p.config()
	if err != nil {
		t.Fatal(err)
	}
	j := &judges{auditor: newScripted(nil), names: []api.ModelInfo{{Role: "auditor"}}, ready: []func() error{func() error { return nil }}}
	b, err := p.startBench(t.Context(), cfg, firewall.Ablation{}, j)
	if err != nil {
		t.Fatal(err)
	}
	defer b.stop()
	o := &qualityOptions{judge: InspectorConfig{Backend: "openai", Model: "Scripted:latest", URL: "http://127.0.0.1:9/v1"}}
	if _, _, err := p.referee(t.Context(), b.client, cfg, o); err == nil || !strings.Contains(err.Error(), "does not judge itself") {
		t.Errorf("the measured model judges: %v", err)
	}
	if judge, _, err := p.referee(t.Context(), b.client, cfg, &qualityOptions{}); judge != nil || err != nil {
		t.Errorf("without a model: %v", err)
	}
}
