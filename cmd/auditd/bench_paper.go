package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.org/auditd/bench/quality"
	"example.org/auditd/bench/report"
	"example.org/auditd/escalation"
	"example.org/auditd/firewall"
	"example.org/auditd/inference"
	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

// ablation is one way of leaving a part out.
type ablation struct {
	name     string
	switches firewall.Ablation
	fields   quality.Fields // of the auditor's report
	judge    bool           // the auditor judges; otherwise a stand-in allows
	arbiter  bool           // it means nothing without an arbiter
	words    bool           // the auditor writes words of its own; only a language model can
}

// ablations lists them in the order of the paper's tables; the first leaves
// nothing out. "schema" entries narrow the auditor's report.
func ablations() []ablation {
	phi := func(c escalation.Config) firewall.Ablation { return firewall.Ablation{Escalation: c} }
	all := func(name string, a firewall.Ablation) ablation {
		return ablation{name: name, switches: a, fields: quality.AllFields, judge: true}
	}
	schemas := func(name string, f quality.Fields, a firewall.Ablation) ablation {
		return ablation{name: name, switches: a, fields: f, judge: true}
	}
	large := func(name string, a firewall.Ablation) ablation { x := all(name, a); x.arbiter = true; return x }
	only := escalation.Config{DecisionOnly: true}
	return []ablation{
		all("full", firewall.Ablation{}),
		all("without fallback", firewall.Ablation{NoFallback: true}),
		all("without rewrite", firewall.Ablation{NoRewrite: true}),
		large("without small auditor", firewall.Ablation{NoAuditor: true}),
		large("large only", firewall.Ablation{LargeOnly: true}),
		{name: "precheck only", switches: phi(only)},
		all("without Φ", phi(escalation.Config{WithoutSurface: true})),
		all("without u", phi(escalation.Config{WithoutUncertainty: true})),
		all("decision only", phi(only)),
		{name: "schema: free form", fields: quality.AllFields, judge: true, words: true},
		schemas("schema: decision only", quality.DecisionOnly, phi(only)),
		schemas("schema: + risk", quality.WithRisk, firewall.Ablation{}),
		schemas("schema: + uncertainty", quality.WithUncertainty, firewall.Ablation{}),
		schemas("schema: + residual types", quality.WithResiduals, firewall.Ablation{}),
	}
}

type paperOptions struct {
	qualityOptions
	only []string
	with []string
}

func (p *program) benchPaperCommand() *cobra.Command {
	var o paperOptions
	c := &cobra.Command{
		Use: "paper", Short: "Print our figures beside those of the token-flow paper", Args: cobra.NoArgs,
		Long: `paper runs the cases once with every part of the procedure and once with each part
left out, and prints the result beside the paper's tables, cell by cell. Cells that
need a model that is not configured say "not run". --with takes report.json files
of runs with other auditors (bench quality -o) for the table of auditor sizes.

The cases are ours: the paper's figures were measured on others, with larger models.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.benchPaper(c.Context(), &o) },
	}
	c.Flags().StringVar(&o.cases, "cases", "", "directory with case files of your own (*.yaml) in place of the built-in ones")
	c.Flags().StringVarP(&o.out, "out", "o", "", "directory for results, so that a run that was cut off can go on, and paper.md")
	c.Flags().BoolVar(&o.fresh, "fresh", false, "start over where an earlier run left results")
	c.Flags().StringSliceVar(&o.only, "only", nil, "run only these parts, such as \"full,without u\"")
	c.Flags().StringSliceVar(&o.with, "with", nil, "report.json of a run with another auditor")
	return c
}

func (p *program) benchPaper(ctx context.Context, o *paperOptions) error {
	set, err := readCases(o.cases)
	if err != nil {
		return err
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	study := &report.Study{Parts: map[string]*quality.Summary{}}
	if study.Others, err = readRuns(o.with); err != nil {
		return err
	}
	j := newJudges(ctx, cfg, p.getenv, slog.New(slog.DiscardHandler), func(string, string) {})
	defer j.Close()
	todo := ablations()
	for _, name := range o.only {
		if !slices.ContainsFunc(todo, func(a ablation) bool { return a.name == name }) {
			return fmt.Errorf("--only: there is no part called %s", oneLine(name, 40))
		}
	}
	for _, a := range todo {
		if len(o.only) > 0 && !slices.Contains(o.only, a.name) || a.arbiter && j.arbiter == nil || a.words && completer(j.auditor) == nil {
			continue
		}
		run, err := p.runAblation(ctx, cfg, j, &a, o)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		study.Parts[a.name] = run.Summary
		if a.name == "full" {
			study.Run = *run
			checker, err := benchChecker(cfg, p.getenv)
			if err != nil {
				return err
			}
			study.Redaction = quality.Redaction(set, run.Results, func(s string) string { out, _ := checker.Redact(s); return out })
		}
	}
	if study.Run.Summary == nil {
		study.Run = report.Run{Version: version(), Auditor: j.String(), Arbiter: cfg.Arbiter.Backend}
	}
	var b bytes.Buffer
	if err := report.Paper(&b, study); err != nil {
		return err
	}
	if o.out != "" {
		if err := durable.WriteFile(filepath.Join(o.out, "paper.md"), b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write the tables: %w", err)
		}
	}
	if p.jsonOut {
		return p.printJSON(study)
	}
	_, err = p.stdout.Write(b.Bytes())
	return err
}

// completer is the auditor as a language model; nil when it is none.
func completer(a inference.Auditor) inference.Completer {
	c, _ := a.(inference.Completer)
	return c
}

// runAblation runs the cases with a part left out, on judges that all parts
// share.
func (p *program) runAblation(ctx context.Context, cfg *Config, j *judges, a *ablation, o *paperOptions) (*report.Run, error) {
	set, err := readCases(o.cases)
	if err != nil {
		return nil, err
	}
	own := &judges{auditor: j.auditor, arbiter: j.arbiter, names: j.names, gone: j.gone}
	switch {
	case !a.judge:
		own.auditor = quality.Allower{}
	case a.words:
		own.auditor = quality.FreeForm(j.auditor, completer(j.auditor))
	case a.fields < quality.AllFields:
		own.auditor = quality.Mask(j.auditor, a.fields)
	}
	b, err := p.startBench(ctx, cfg, a.switches, own)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	run := &report.Run{Version: version(), Cases: casesName(o.cases, set), Auditor: b.auditor, Arbiter: cfg.Arbiter.Backend, Policy: string(b.d.policies.Policy().Digest()), Quick: true, Part: a.name}
	q := qualityOptions{cases: o.cases, quick: true, fresh: o.fresh}
	if o.out != "" {
		q.out = filepath.Join(o.out, strings.NewReplacer(" ", "-", ":", "", "+", "with", "Φ", "phi").Replace(a.name))
	}
	results, err := p.runCases(ctx, b.client, set, &q, run, nil)
	if err != nil {
		return nil, err
	}
	run.Summary, run.Results = quality.Summarise(results), results
	return run, nil
}

// maxReport bounds a report that is read back.
const maxReport = 64 << 20

func readRuns(paths []string) ([]report.Run, error) {
	var out []report.Run
	for _, path := range paths {
		r, err := readRun(path)
		if err != nil {
			return nil, err
		}
		out = append(out, *r)
	}
	return out, nil
}

func readRun(path string) (*report.Run, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	if info.Size() > maxReport {
		return nil, fmt.Errorf("%s is over %d bytes", path, maxReport)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	var r report.Run
	if err := schema.Decode(data, &r); err != nil || len(r.Results) == 0 {
		return nil, hint(fmt.Errorf("%s is no report.json", path), "`auditd bench quality -o DIR` writes one")
	}
	r.Summary = quality.Summarise(r.Results)
	return &r, nil
}

// benchChecker is the precheck that cfg describes.
func benchChecker(cfg *Config, getenv func(string) string) (redacter, error) {
	pol, err := loadPolicy(cfg.Policy)
	if err != nil {
		return nil, err
	}
	return newChecker(pol, cfg, getenv)
}

// redacter is what a study needs of the precheck.
type redacter interface {
	Redact(text string) (redacted string, placeholders map[string]string)
}
