package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"example.org/auditd/auditlog"
	"example.org/auditd/firewall"
	"example.org/auditd/httpapi"
	"example.org/auditd/internal/durable"
	"example.org/auditd/policy"
	"example.org/auditd/replay"
	"example.org/auditd/schema"
)

type replayFlags struct {
	since                           time.Duration
	policy, model, thresholds, html string
	limit                           int
}

func (p *program) replayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use: "replay", Short: "Audit recorded flows again under another policy, model or limits", GroupID: "look", Args: cobra.NoArgs,
		Long: `replay audits the flows of the log again, in this process, and says which would
come out otherwise. It asks nobody, changes nothing and writes no log. The log
has texts with their secrets replaced: what that leaves out is said.`,
		Example: "  auditd replay --since 168h --policy new-policy.yaml --html diff.html",
		RunE:    func(c *cobra.Command, _ []string) error { return p.replay(c.Context(), &f) },
	}
	flags := c.Flags()
	flags.DurationVar(&f.since, "since", 24*time.Hour, "how far back")
	flags.StringVar(&f.policy, "policy", "", "policy file, in place of the one in force")
	flags.StringVar(&f.thresholds, "thresholds", "", "YAML file with the limits, in place of the policy's")
	flags.StringVar(&f.model, "model", "", "auditor in place of the configured one: onnx, ollama, openai, cascade, none, or the folder of an encoder")
	flags.IntVar(&f.limit, "limit", 1000, "flows, at most; the newest")
	flags.StringVar(&f.html, "html", "", "also write the report as a page to this file")
	return c
}

func (p *program) replay(ctx context.Context, f *replayFlags) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	if f.since <= 0 || f.limit < 1 || f.limit > 1_000_000 {
		return errors.New("--since must be a time span such as 168h, and --limit 1 to 1000000")
	}
	if err := begun(cfg.State); err != nil {
		return err
	}
	var under []string
	if f.policy != "" {
		cfg.Policy = f.policy
		under = append(under, "policy "+f.policy)
	}
	if f.model != "" {
		under = append(under, "auditor "+f.model)
		if slices.Contains([]string{"onnx", "ollama", "openai", "cascade", "none"}, f.model) {
			cfg.Auditor = f.model
		} else {
			cfg.Auditor, cfg.Onnx.Model = "onnx", f.model
		}
	}
	pol, err := replayPolicy(cfg.Policy, f.thresholds)
	if err != nil {
		return err
	}
	if f.thresholds != "" {
		under = append(under, "limits "+f.thresholds)
	}
	var records []replay.Recorded
	for line, err := range auditlog.Lines(cfg.State, 0) {
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		r, v, err := readLine(cfg.State, line)
		if err != nil {
			return err
		}
		if time.Since(r.Time) <= f.since {
			records = append(records, replay.Recorded{Record: r, Value: v})
		}
	}
	j := newJudges(ctx, cfg, p.getenv, slog.New(slog.DiscardHandler), func(string, string) {})
	defer j.Close()
	for end := time.Now().Add(time.Minute); j.loading() && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	fw, err := replayFirewall(cfg, pol, j, p.getenv)
	if err != nil {
		return err
	}
	report, err := replay.Run(ctx, records, replay.Config{Limit: f.limit, Audit: func(ctx context.Context, fl *schema.Flow) schema.Decision {
		return fw.Audit(ctx, fl, schema.CredentialHook)
	}})
	if err != nil {
		return err
	}
	if report.To = strings.Join(under, ", "); report.To == "" {
		report.To = "as things are now"
	}
	if f.html != "" {
		var b bytes.Buffer
		if err := report.HTML(&b); err != nil {
			return err
		}
		if err := durable.WriteFile(f.html, b.Bytes(), 0o600); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	if p.jsonOut {
		return p.printJSON(report)
	}
	p.painter(p.stdout).replayed(report)
	return nil
}

// replayPolicy is the policy at path with the limits of another file.
func replayPolicy(path, thresholds string) (*policy.Policy, error) {
	if thresholds == "" {
		return loadPolicy(path)
	}
	text, _, err := policyText(path)
	if err != nil {
		return nil, err
	}
	limits, err := os.ReadFile(thresholds)
	if err != nil {
		return nil, fmt.Errorf("read the limits: %w", err)
	}
	var doc, part map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(text), &doc), yaml.Unmarshal(limits, &part)); err != nil {
		return nil, fmt.Errorf("read the limits: %w", err)
	}
	if inner, ok := part["thresholds"].(map[string]any); ok {
		part = inner
	}
	doc["thresholds"] = part
	out, err := yaml.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("put the limits into the policy: %w", err)
	}
	pol, err := policy.Parse(out)
	if err != nil {
		return nil, fmt.Errorf("--thresholds %s: %w", thresholds, err)
	}
	return pol, nil
}

// replay audits what the daemon's own log has again, for the page. It shares
// the auditor with live flows and asks it one thing at a time.
func (d *daemon) replay(ctx context.Context, r *httpapi.ReplayRequest, progress func(done, of int)) (*replay.Report, error) {
	pol := d.policies.Policy()
	if r.Policy != "" {
		var err error
		if pol, err = policy.Parse([]byte(r.Policy)); err != nil {
			return nil, err
		}
	}
	fw, err := replayFirewall(d.cfg, pol, d.judges, d.getenv)
	if err != nil {
		return nil, err
	}
	var records []replay.Recorded
	flows := 0
	for i := d.log.Size() - 1; i >= 0 && flows < r.Limit; i-- {
		rec, err := d.log.Get(i)
		if err != nil {
			return nil, err
		}
		if rec.Time.Before(r.Since) || ctx.Err() != nil {
			break
		}
		if rec.Decision == nil || rec.Flow == nil {
			continue
		}
		v, err := d.log.Value(rec)
		if err != nil {
			v = nil // damaged: verification reports it, and it counts as gone here
		}
		records = append(records, replay.Recorded{Record: rec, Value: v})
		flows++
	}
	slices.Reverse(records)
	done := 0
	return replay.Run(ctx, records, replay.Config{Limit: r.Limit, Audit: func(ctx context.Context, fl *schema.Flow) schema.Decision {
		out := fw.Audit(ctx, fl, schema.CredentialHook)
		done++
		progress(done, flows)
		return out
	}})
}

// replayFirewall decides as the daemon does, but asks nobody and keeps nothing.
func replayFirewall(cfg *Config, pol *policy.Policy, j *judges, getenv func(string) string) (*firewall.Firewall, error) {
	checker, err := newChecker(pol, cfg, getenv)
	if err != nil {
		return nil, err
	}
	return firewall.New(firewall.Config{
		Check: checker.Check, Redact: checker.Redact,
		Append: func(context.Context, firewall.Entry) (int64, error) { return 0, nil },
		Ask: func(_ context.Context, q *schema.Question) (*schema.Question, error) {
			asked := *q
			asked.ID, asked.Ticket = "replay", "replay" // good for nothing: nothing redeems it
			return &asked, nil
		},
		Policy: func() *policy.Policy { return pol }, Auditor: j.auditor, Arbiter: j.arbiter,
		Deadline: time.Duration(cfg.Deadline), MaxPayload: cfg.MaxPayload, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
}

func (o *painter) replayed(r *replay.Report) {
	o.printf("%s audited again: %s\n", o.paint(bold, fmt.Sprintf("%d recorded flows", r.Flows)), oneLine(r.To, 200))
	o.printf("  %s would be stopped now and were not\n", o.paint(yellow, fmt.Sprintf("%4d", r.Added)))
	o.printf("  %s were stopped and would not be now\n", o.paint(red, fmt.Sprintf("%4d", r.Lost)))
	o.printf("  %4d would come out otherwise in another way\n  %4d come out the same\n", r.Other, r.Same)
	if r.Flows > 0 {
		o.printf("  half within %s then, %s now; 95 %% within %s and %s\n", millis(r.Before.P50), millis(r.After.P50), millis(r.Before.P95), millis(r.After.P95))
	}
	if r.Redacted > 0 {
		o.printf("  %s\n", o.paint(yellow, fmt.Sprintf("%d had secrets replaced in the log: what a secret raised then, it does not raise here", r.Redacted)))
	}
	for _, why := range slices.Sorted(maps.Keys(r.Skipped)) {
		o.printf("  %s\n", o.paint(dim, fmt.Sprintf("%d left out: %s", r.Skipped[why], why)))
	}
	if len(r.Changes) == 0 {
		return
	}
	var rows [][]string
	for _, c := range r.Changes {
		note := ""
		if c.Redacted {
			note = "secrets replaced"
		}
		rows = append(rows, []string{c.Decision, oneLine(c.Agent, 24), oneLine(c.Source, 30) + " → " + oneLine(c.Sink, 24), c.Before.String() + " (" + c.Why + ")", c.After.String() + " (" + c.WhyNow + ")", note})
	}
	o.printf("\n")
	o.table([]string{"decision", "agent", "flow", "then", "now", ""}, rows)
}
