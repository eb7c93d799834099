package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"example.org/auditd/approval"
	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/report"
	"example.org/auditd/bench/tune"
	"example.org/auditd/escalation"
	"example.org/auditd/internal/durable"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
)

type tuneOptions struct {
	from       []string
	approvals  bool
	maxMiss    float64
	confidence float64
	plot       string
	apply      bool
}

func (p *program) tuneCommand() *cobra.Command {
	var o tuneOptions
	c := &cobra.Command{
		Use: "tune", Short: "Propose a threshold with a stated bound on what it lets through", GroupID: "setup", Args: cobra.NoArgs,
		Long: `tune takes decisions whose right answer is known, from reports of bench quality
(--from) or from what you approved and denied (--approvals), and proposes the largest
small_allow.risk_max at which no more than --max-miss of harmful flows pass without
review, by a Clopper–Pearson bound that holds with --confidence. It prints the whole
trade-off and changes nothing without --apply.

The bound holds for flows like those that it was made from. Questions that you were
asked are a chosen part of all flows.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.tune(c.Context(), &o) },
	}
	c.Flags().StringSliceVar(&o.from, "from", nil, "report.json of bench quality; may be given more than once")
	c.Flags().BoolVar(&o.approvals, "approvals", false, "use the questions that you answered")
	c.Flags().Float64Var(&o.maxMiss, "max-miss", 0.05, "share of harmful flows that may pass without review")
	c.Flags().Float64Var(&o.confidence, "confidence", 0.95, "that the bound holds")
	c.Flags().StringVarP(&o.plot, "out", "o", "", "also write the trade-off as a page with a plot to this file")
	c.Flags().BoolVar(&o.apply, "apply", false, "write the proposal into the policy file")
	return c
}

func (p *program) tune(ctx context.Context, o *tuneOptions) error {
	if len(o.from) == 0 && !o.approvals {
		return errors.New("name decisions: --from report.json, or --approvals")
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	pol, err := loadPolicy(cfg.Policy)
	if err != nil {
		return err
	}
	labels, err := benchLabels(o.from)
	if err != nil {
		return err
	}
	if o.approvals {
		more, err := approvalLabels(ctx, cfg)
		if err != nil {
			return err
		}
		labels = append(labels, more...)
	}
	proposal, err := tune.Propose(labels, tune.Config{MaxMiss: o.maxMiss, Confidence: o.confidence, Thresholds: pol.Thresholds()})
	if err != nil {
		return err
	}
	if o.plot != "" {
		var b bytes.Buffer
		if err := report.TunePlot(&b, proposal, o.maxMiss); err != nil {
			return err
		}
		if err := durable.WriteFile(o.plot, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write the plot: %w", err)
		}
	}
	if p.jsonOut {
		if err := p.printJSON(proposal); err != nil {
			return err
		}
	} else if err := report.Tune(p.stdout, proposal, o.maxMiss, o.confidence); err != nil {
		return err
	}
	switch {
	case !o.apply:
		return nil
	case proposal.Best == nil:
		return errors.New("nothing to apply: no value holds")
	}
	return p.applyRiskMax(cfg, *proposal.Best)
}

// benchLabels takes the reports of the small auditor out of runs. Attacks that
// its own rewrite or stop ends are no question of this threshold.
func benchLabels(paths []string) ([]tune.Label, error) {
	runs, err := readRuns(paths)
	if err != nil {
		return nil, err
	}
	var out []tune.Label
	for _, run := range runs {
		for _, r := range run.Results {
			if r.Small == nil {
				continue
			}
			l := tune.Label{Allows: r.Small.Action == schema.Allow, Risk: r.Small.Risk, Uncertainty: r.Small.Uncertainty, Harmful: r.Kind == cases.Attack}
			if len(r.Small.Residuals) > 0 {
				l.Residual = r.Small.Risk
			}
			out = append(out, l)
		}
	}
	return out, nil
}

// approvalLabels takes what the owner answered: what was denied is harmful.
func approvalLabels(ctx context.Context, cfg *Config) ([]tune.Label, error) {
	path := filepath.Join(cfg.State, "auditd.db")
	if _, err := os.Stat(path); err != nil {
		return nil, hint(fmt.Errorf("read the answers: %w", err), "nothing was asked yet, or the daemon keeps its state elsewhere")
	}
	db, err := sqlite.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	q, err := approval.New(approval.Config{DB: db, Now: time.Now, TTL: time.Duration(cfg.QuestionTTL)})
	if err != nil {
		return nil, err
	}
	answered, err := q.Answered(ctx)
	if err != nil {
		return nil, err
	}
	var out []tune.Label
	for _, a := range answered {
		if a.Report == nil {
			continue
		}
		out = append(out, tune.Label{Allows: a.Report.Decision == schema.Allow, Risk: a.Report.Risk, Uncertainty: a.Report.Uncertainty,
			Residual: escalation.Residual(a.Report, nil), Harmful: a.Answer == "denied"})
	}
	return out, nil
}

// applyRiskMax sets the threshold in the policy file and leaves the rest of it
// as it is. The file is checked before it takes the old one's place.
func (p *program) applyRiskMax(cfg *Config, v float64) error {
	path := cfg.Policy
	if path == "" {
		path = filepath.Join(configDir(p.getenv), "policy.yaml")
	}
	text, _, err := policyText(cfg.Policy)
	if err != nil {
		return err
	}
	changed, err := setRiskMax([]byte(text), v)
	if err != nil {
		return fmt.Errorf("change the policy: %w", err)
	}
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return fmt.Errorf("make the configuration directory: %w", err)
	}
	draft := path + ".draft"
	defer os.Remove(draft)
	if err := durable.WriteFile(draft, changed, 0o600); err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	if problems, err := policy.Check(draft); err != nil {
		return err
	} else if len(problems) > 0 {
		return fmt.Errorf("the changed policy is not valid: %s", problems[0])
	}
	if err := durable.WriteFile(path, changed, 0o600); err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	_, err = fmt.Fprintf(p.stdout, "\n%s: thresholds.small_allow.risk_max is now %.2f; restart the daemon\n", path, v)
	return err
}

// setRiskMax sets thresholds.small_allow.risk_max in a policy's text.
func setRiskMax(text []byte, v float64) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, errors.New("it holds no document")
	}
	at := doc.Content[0]
	for _, key := range []string{"thresholds", "small_allow", "risk_max"} {
		if at.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("line %d: not a map", at.Line)
		}
		var next *yaml.Node
		for i := 0; i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == key {
				next = at.Content[i+1]
			}
		}
		if next == nil {
			next = &yaml.Node{Kind: yaml.MappingNode}
			at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, next)
		}
		at = next
	}
	*at = yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatFloat(v, 'f', 2, 64), LineComment: at.LineComment}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
