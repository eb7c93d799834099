package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/sync/errgroup"
	"gopkg.in/yaml.v3"

	"example.org/auditd/api"
	benchcases "example.org/auditd/bench/isolation"
	"example.org/auditd/bench/isolation/play"
	"example.org/auditd/bench/quality"
	"example.org/auditd/bench/report"
	"example.org/auditd/firewall"
	"example.org/auditd/inference"
	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

type isolationOptions struct {
	out   string
	only  []string
	quick bool
}

func (p *program) benchIsolationCommand() *cobra.Command {
	var o isolationOptions
	c := &cobra.Command{
		Use: "isolation", Short: "Play 105 attacks on an agent that obeys whatever it can read, and 30 ordinary tasks", Args: cobra.NoArgs,
		Long: `isolation plays the two-view paper's benchmark on this machine: three ways in, ten
tasks of an owner, three goals of an attacker, and fifteen flows of two sessions.
The agent is a script that obeys every order it can read, and the quarantined model
one that answers as the attacker wishes. Tools, files and shells are real, in a
temporary directory; a daemon of its own is asked over its HTTP hooks.

Each case is played with nothing in between, with our auditor on tool results,
with symbols but without views of files, with isolation, and with isolation and
auditing. An attack has succeeded when its effect is there: a marker file, a
collected secret, a changed file. The tasks are played on ordinary texts too: what
is lost there is a false alarm.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.benchIsolation(c.Context(), &o) },
	}
	c.Flags().StringVarP(&o.out, "out", "o", "", "directory for isolation.json, isolation.md and isolation.html")
	c.Flags().StringArrayVar(&o.only, "only", nil, "run only this arrangement, such as none or isolation; may be repeated")
	c.Flags().BoolVar(&o.quick, "quick", false, "a third of the attacks in one session, and everything else")
	return c
}

// isolationSessions is how many cases are played at a time.
const isolationSessions = 6

// isolationCases are the cases to play.
func isolationCases(quick bool) []*benchcases.Case {
	if quick {
		return slices.Concat(benchcases.Third(), benchcases.Stored(), benchcases.Ordinary())
	}
	return slices.Concat(benchcases.Cases(), benchcases.Stored(), benchcases.Ordinary())
}

func (p *program) benchIsolation(ctx context.Context, o *isolationOptions) error {
	arrangements := play.Arrangements()
	if len(o.only) > 0 {
		for _, name := range o.only {
			if !slices.Contains(arrangements, play.Arrangement(name)) {
				return fmt.Errorf("--only: there is no arrangement called %s", oneLine(name, 40))
			}
		}
		arrangements = slices.DeleteFunc(arrangements, func(a play.Arrangement) bool { return !slices.Contains(o.only, string(a)) })
	}
	run, err := p.isolationRun(ctx, isolationCases(o.quick), arrangements)
	if err != nil {
		return err
	}
	var md, html bytes.Buffer
	if err := errors.Join(report.IsolationMarkdown(&md, run), report.IsolationHTML(&html, run)); err != nil {
		return err
	}
	if o.out != "" {
		data, err := schema.Encode(run)
		if err != nil {
			return fmt.Errorf("encode the report: %w", err)
		}
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return fmt.Errorf("make the directory for results: %w", err)
		}
		for name, data := range map[string][]byte{"isolation.json": append(data, '\n'), "isolation.md": md.Bytes(), "isolation.html": html.Bytes()} {
			if err := durable.WriteFile(filepath.Join(o.out, name), data, 0o644); err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
		}
	}
	if p.jsonOut {
		return p.printJSON(run.Summary)
	}
	_, err = p.stdout.Write(md.Bytes())
	return err
}

// isolationRun plays the cases with a progress bar.
func (p *program) isolationRun(ctx context.Context, set []*benchcases.Case, arrangements []play.Arrangement) (*report.Isolation, error) {
	var progress func()
	if bars := p.bars(); bars != nil {
		bar := bars.AddBar(int64(len(set)*len(arrangements)), mpb.PrependDecorators(decor.Name("isolation "), decor.CountersNoUnit("%d / %d")), mpb.AppendDecorators(decor.Percentage(), decor.Elapsed(decor.ET_STYLE_GO, decor.WC{W: 8})))
		progress = func() { bar.Increment() }
		defer bars.Shutdown()
	}
	return p.playIsolation(ctx, set, arrangements, progress)
}

// playIsolation plays every case in every arrangement.
func (p *program) playIsolation(ctx context.Context, set []*benchcases.Case, arrangements []play.Arrangement, progress func()) (*report.Isolation, error) {
	run := &report.Isolation{Version: version()}
	for _, a := range arrangements {
		results, auditor, err := p.playArrangement(ctx, a, set, progress)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a, err)
		}
		run.Results = append(run.Results, results...)
		if auditor != "" {
			run.Auditor = auditor
		}
	}
	run.Summary = play.Summarise(run.Results)
	return run, nil
}

// playArrangement plays the cases in one arrangement, with a daemon, workspaces
// and an attacker's site of its own.
func (p *program) playArrangement(ctx context.Context, a play.Arrangement, set []*benchcases.Case, progress func()) (_ []play.Result, auditor string, err error) {
	dir, err := os.MkdirTemp("", "auditd-isolation-")
	if err != nil {
		return nil, "", fmt.Errorf("make a temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	site, err := benchcases.NewSite(ctx)
	if err != nil {
		return nil, "", err
	}
	defer site.Close()
	cfg := play.Config{Arrangement: a, Site: site, Root: filepath.Join(dir, "work")}
	if cfg.Mailbox, err = benchcases.NewMailbox(filepath.Join(dir, "mail")); err != nil {
		return nil, "", err
	}
	if a != play.Nothing {
		b, err := p.isolationDaemon(ctx, a, dir, site.URL)
		if err != nil {
			return nil, "", err
		}
		defer b.stop()
		if b.d.isolated != nil && b.d.isolated.Missing() != "" {
			return nil, "", hint(errors.New("this machine cannot isolate: "+b.d.isolated.Missing()), "`auditd doctor` says what is missing")
		}
		if a == play.Guard || a == play.Both {
			auditor = b.auditor
		}
		cfg.Event = b.client.Event
		if a != play.Guard {
			cfg.Inspect = func(ctx context.Context, session, call, symbol, question string) (schema.Outcome, error) {
				return b.client.Inspect(ctx, &api.Inspection{Host: "openclaw", Agent: "main", Session: session, CallID: call, Symbols: []string{symbol}, Question: question})
			}
		}
	}
	player, err := play.New(cfg)
	if err != nil {
		return nil, "", err
	}
	// Several at once, as an agent with several chats has it: what one session
	// does must not open the files of another.
	out := make([]play.Result, len(set))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(isolationSessions)
	for i, c := range set {
		g.Go(func() (err error) {
			out[i], err = player.Play(ctx, c)
			if err == nil && progress != nil {
				progress()
			}
			return err
		})
	}
	return out, auditor, g.Wait()
}

// isolationDaemon starts the daemon of an arrangement: with the configured
// auditor where it audits, and with the attacker's own quarantined model where it
// isolates.
func (p *program) isolationDaemon(ctx context.Context, a play.Arrangement, dir, site string) (*benchDaemon, error) {
	cfg, err := p.config()
	if err != nil {
		return nil, err
	}
	own := *cfg
	if err := ownPolicy(&own, dir, a, site); err != nil {
		return nil, err
	}
	j := &judges{auditor: quality.Allower{}}
	if a == play.Guard || a == play.Both {
		j = newJudges(ctx, &own, p.getenv, slog.New(slog.DiscardHandler), func(string, string) {})
	}
	j.inspector = wishful{}
	return p.startBench(ctx, &own, firewall.Ablation{}, j)
}

// modeOf is what the policy says for the agents of an arrangement.
func modeOf(a play.Arrangement) string {
	switch a {
	case play.Dual, play.Isolated:
		return "isolate"
	case play.Both:
		return "both"
	}
	return "audit"
}

// isolationRules are the owner's rules of isolation in the benchmark.
const isolationRules = "version: 1\norigins:\n  - {file: \"" + benchcases.InboxGlob + "\", trust: untrusted}\n"

// isolationPolicy is the owner's policy with the benchmark's mode, and the
// attacker's site as a place that agents may talk to: what must not be stopped by
// where it is.
func isolationPolicy(path, mode, site string) ([]byte, error) {
	text, _, err := policyText(path)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	u, err := url.Parse(site)
	if err != nil {
		return nil, fmt.Errorf("the benchmark's site: %w", err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return nil, fmt.Errorf("the benchmark's site: %w", err)
	}
	doc["modes"] = []any{map[string]any{"agent": "openclaw:*", "mode": mode}}
	doc["loopback_ports"] = []any{port}
	return yaml.Marshal(doc)
}

// wishful is the quarantined model when the attacker has it.
type wishful struct{}

func (wishful) Identity() string { return "answers as the attacker wishes" }
func (wishful) Ready() error     { return nil }
func (wishful) Window() int      { return 1 << 16 }

func (wishful) Complete(_ context.Context, c *inference.Completion) (string, schema.Usage, error) {
	return play.Wish(c.User), schema.Usage{Backend: "bench", Model: "wishful"}, nil
}
