package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"example.org/auditd/bench"
	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/isolation/play"
	"example.org/auditd/bench/quality"
	"example.org/auditd/bench/report"
	"example.org/auditd/client"
	"example.org/auditd/firewall"
	"example.org/auditd/httpapi"
	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

// qualityOptions are the flags of `bench quality`.
type qualityOptions struct {
	cases    string
	out      string
	running  bool
	quick    bool
	fresh    bool
	baseline string
	entries  []string
	judge    InspectorConfig
	// isolation also plays the isolation benchmark, a third of it when thirds is
	// set.
	isolation, thirds bool
}

func (p *program) benchQualityCommand() *cobra.Command {
	var o qualityOptions
	c := &cobra.Command{
		Use: "quality", Short: "Measure what is let through and what is stood in the way of", Args: cobra.NoArgs,
		Long: `quality sends 88 attacks and 38 matched ordinary cases through a daemon of its own,
in a temporary directory and with your configuration, and judges by an oracle
what would reach each sink. Every case goes as a ready flow and as the event that
a host would report.

With --out it writes results.jsonl, report.json, report.md and report.html; a run
that was cut off goes on where it stopped.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.benchQuality(c.Context(), &o) },
	}
	c.Flags().StringVar(&o.cases, "cases", "", "directory with case files of your own in place of the built-in ones: cases and traces (*.yaml), records (*.jsonl, *.jsonl.gz)")
	c.Flags().StringSliceVar(&o.entries, "entry", nil, "also send every case through these entry points: cli, hook (Claude Code's hook command), mcp (the MCP proxy)")
	c.Flags().StringVarP(&o.out, "out", "o", "", "directory for results and reports")
	c.Flags().BoolVar(&o.running, "running", false, "ask the running daemon; its log and its questions then hold the cases too")
	c.Flags().BoolVar(&o.quick, "quick", false, "ready flows with metadata only")
	c.Flags().BoolVar(&o.fresh, "fresh", false, "start over where an earlier run left results")
	c.Flags().StringVar(&o.judge.Model, "judge", "", "a language model that also judges, by a fixed rubric, whether an attack is still actionable; none of those that are measured")
	c.Flags().StringVar(&o.judge.Backend, "judge-backend", "ollama", "where it runs: ollama, openai or anthropic")
	c.Flags().StringVar(&o.judge.URL, "judge-url", "", "its server")
	c.Flags().StringVar(&o.judge.KeyFile, "judge-key-file", "", "a file with its key")
	c.Flags().StringVar(&o.baseline, "baseline", "", "also write a baseline for bench diff to this file")
	return c
}

func (p *program) benchQuality(ctx context.Context, o *qualityOptions) error {
	set, err := readCases(o.cases)
	if err != nil {
		return err
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	run := report.Run{Version: version(), Cases: casesName(o.cases, set), Quick: o.quick}
	var c *client.Client
	dir := "" // of the daemon that is asked, when it is the benchmark's own
	if o.running {
		if c, err = p.client(); err != nil {
			return err
		}
		run.Auditor = "of the running daemon"
	} else {
		b, err := p.startBench(ctx, cfg, firewall.Ablation{}, nil)
		if err != nil {
			return err
		}
		defer b.stop()
		dir = b.dir
		c, run.Auditor, run.Arbiter, run.Policy = b.client, b.auditor, cfg.Arbiter.Backend, string(b.d.policies.Policy().Digest())
	}
	judge, closeJudge, err := p.referee(ctx, c, cfg, o)
	if err != nil {
		return err
	}
	defer closeJudge()
	run.Judge = o.judge.Model
	ways, closeWays, err := p.ways(ctx, o.entries, dir)
	if err != nil {
		return err
	}
	defer closeWays()
	run.Entries = o.entries
	results, err := p.runCases(ctx, c, set, o, &run, judge, ways...)
	if err != nil {
		return err
	}
	run.Summary, run.Results = quality.Summarise(results), results
	if !o.running {
		if run.Allocations, err = p.allocations(ctx, cfg); err != nil {
			return err
		}
	}
	if o.isolation {
		if run.Isolation, err = p.isolationRun(ctx, isolationCases(o.thirds), play.Arrangements()); err != nil {
			return err
		}
	}
	if err := p.writeReports(o.out, &run); err != nil {
		return err
	}
	if o.baseline != "" {
		if err := writeBaseline(o.baseline, &run); err != nil {
			return err
		}
	}
	if p.jsonOut {
		return p.printJSON(run.Summary)
	}
	return report.Markdown(p.stdout, &run)
}

func (p *program) benchReportCommand() *cobra.Command {
	var o qualityOptions
	full := false
	c := &cobra.Command{
		Use: "report -o DIR", Short: "Write one report: what the firewall stops, what isolation stops, and what it costs", Args: cobra.NoArgs,
		Long: `report runs bench quality and bench isolation, and writes both into report.html,
report.md and report.json. It needs no network; on two cores with the encoder that
ships it takes a few minutes.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.out == "" {
				return errors.New("--out must name a directory")
			}
			o.isolation, o.thirds = true, !full
			return p.benchQuality(c.Context(), &o)
		},
	}
	c.Flags().StringVarP(&o.out, "out", "o", "", "directory for results and reports")
	c.Flags().BoolVar(&o.fresh, "fresh", false, "start over where an earlier run left results")
	c.Flags().BoolVar(&full, "full", false, "all 105 cases of the isolation benchmark; 45 otherwise")
	c.Flags().StringSliceVar(&o.entries, "entry", nil, "as for bench quality")
	return c
}

func readCases(dir string) ([]cases.Case, error) {
	if dir == "" {
		return cases.Builtin()
	}
	return cases.Read(os.DirFS(dir))
}

// casesName identifies a set of cases by its content.
func casesName(dir string, set []cases.Case) string {
	name := "built in"
	if dir != "" {
		name = filepath.Base(dir)
	}
	var parts []string
	for i := range set {
		parts = append(parts, set[i].ID, string(set[i].Flow.Key()))
	}
	return fmt.Sprintf("%s (%d, %s)", name, len(set), schema.DigestOf(parts...)[:19])
}

// benchDaemon is a daemon in a temporary directory with a client of it.
type benchDaemon struct {
	d       *daemon
	dir     string
	symbols int // that a load benchmark has made
	client  *client.Client
	auditor string
	stop    func()
}

// startBench starts a daemon for a benchmark and waits until its auditor is
// there. judging takes the configured judges' place when it is not nil.
func (p *program) startBench(ctx context.Context, cfg *Config, a firewall.Ablation, judging *judges) (_ *benchDaemon, err error) {
	dir, err := os.MkdirTemp("", "auditd-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	undo := []func(){func() { os.RemoveAll(dir) }}
	stop := func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	own := *cfg
	own.State, own.Listen, own.Socket, own.ablation = filepath.Join(dir, "state"), "127.0.0.1:0", filepath.Join(dir, "socket"), a
	d, err := newDaemonWith(ctx, &own, p.getenv, slog.New(slog.DiscardHandler), judging)
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() { d.Close() })
	listeners, err := httpapi.Listen(own.Listen, own.Socket)
	if err != nil {
		return nil, err
	}
	serving, cancel := context.WithCancel(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = d.Serve(serving, listeners) // what fails here fails at the client
	}()
	undo = append(undo, func() { cancel(); <-served })
	limit := time.Now().Add(time.Duration(own.Ollama.LoadTimeout))
	for d.judges.loading() && time.Now().Before(limit) && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	if judging == nil {
		if err := d.judges.auditor.Ready(); err != nil {
			return nil, hint(fmt.Errorf("the auditor is not ready: %w", err), "`auditd doctor` says what is missing")
		}
	}
	return &benchDaemon{d: d, dir: dir, auditor: d.judges.String(), stop: stop,
		client: &client.Client{URL: "http://" + listeners[0].Addr().String(), TokenFile: client.TokenPath(own.State), Timeout: time.Duration(own.Deadline) + 5*time.Second}}, nil
}

// allocations counts what a decision allocates, with a stand-in for the auditor
// and the durable log: unlike its time it is nearly the same on every machine.
func (p *program) allocations(ctx context.Context, cfg *Config) (map[string]float64, error) {
	b, err := p.startBench(ctx, cfg, firewall.Ablation{}, &judges{auditor: quality.Allower{}})
	if err != nil {
		return nil, err
	}
	defer b.stop()
	out := map[string]float64{}
	n := 0
	for name, flow := range map[string]func(int) *schema.Flow{
		"a page of 4 KB":  bench.Sized(4096),
		"a shell command": func(n int) *schema.Flow { return bench.Mixed(4*n + 2) },
	} {
		out[name] = bench.Allocations(func() {
			n++
			if d := b.d.firewall.Audit(ctx, flow(n), schema.CredentialHook); d.Action.Stops() {
				err = fmt.Errorf("count allocations: a flow was stopped (%s)", d.Reason)
			}
		})
	}
	return out, err
}

// referee says whether an attack is still actionable in a text.
type referee = func(context.Context, *cases.Case, string) (bool, error)

// referee opens the judging model. A model that is measured must not judge
// itself.
func (p *program) referee(ctx context.Context, c *client.Client, cfg *Config, o *qualityOptions) (_ referee, done func(), err error) {
	done = func() {}
	if o.judge.Model == "" {
		return nil, done, nil
	}
	measured, err := c.Models(ctx)
	if err != nil {
		return nil, done, err
	}
	for _, m := range measured {
		if m.Role != "inspector" && quality.SameModel(m.Name, o.judge.Model) {
			return nil, done, fmt.Errorf("--judge: %s is the %s that is measured; a model does not judge itself", oneLine(o.judge.Model, 60), m.Role)
		}
	}
	j := new(judges)
	model, err := j.openInspector(ctx, &o.judge, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, done, err
	}
	for end := time.Now().Add(time.Duration(cfg.Ollama.LoadTimeout)); model.Ready() != nil && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(50 * time.Millisecond)
	}
	if err := model.Ready(); err != nil {
		return nil, done, fmt.Errorf("--judge: %w", err)
	}
	return quality.Referee(model), func() { j.Close() }, nil
}

// runCases runs the cases with a progress bar, and keeps results on the disk
// as they come when there is a place for them.
func (p *program) runCases(ctx context.Context, c *client.Client, set []cases.Case, o *qualityOptions, run *report.Run, judge referee, ways ...quality.Way) ([]quality.Result, error) {
	q := quality.Config{Cases: set, Judge: judge, Audit: c.Audit, Event: c.Event, Extra: !o.quick, Ways: ways}
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return nil, fmt.Errorf("make the directory for results: %w", err)
		}
		f, done, err := openResults(filepath.Join(o.out, "results.jsonl"), run, o.fresh)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		q.Done = done
		q.Save = func(r *quality.Result) error {
			data, err := schema.Encode(r)
			if err == nil {
				_, err = f.Write(append(data, '\n'))
			}
			if err != nil {
				return fmt.Errorf("keep a result: %w", err)
			}
			return nil
		}
	}
	if bars := p.bars(); bars != nil {
		bar := bars.AddBar(int64(len(set)), mpb.PrependDecorators(decor.Name("cases "), decor.CountersNoUnit("%d / %d")), mpb.AppendDecorators(decor.Percentage(), decor.Elapsed(decor.ET_STYLE_GO, decor.WC{W: 8})))
		q.Progress = func() { bar.Increment() }
		defer bars.Shutdown()
	}
	return quality.Run(ctx, q)
}

// openResults opens the file of results for more of the same run, and returns
// what it holds. A last line that was cut off is dropped.
func openResults(path string, run *report.Run, fresh bool) (*os.File, map[string]quality.Result, error) {
	head, err := schema.Encode(run.Header())
	if err != nil {
		return nil, nil, fmt.Errorf("encode the run: %w", err)
	}
	head = append(head, '\n')
	kept, done := head, map[string]quality.Result{}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read earlier results: %w", err)
	}
	if len(data) > 0 && !fresh {
		rest, same := bytes.CutPrefix(data, head)
		if !same {
			return nil, nil, hint(fmt.Errorf("%s holds results of another run", path), "give another directory, or --fresh to start over")
		}
		for r := bufio.NewReader(bytes.NewReader(rest)); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				break
			}
			var one quality.Result
			if schema.Decode(line, &one) != nil {
				return nil, nil, hint(fmt.Errorf("%s holds a line that is no result", path), "--fresh starts over")
			}
			done[one.Case], kept = one, append(kept, line...)
		}
	}
	if err := durable.WriteFile(path, kept, 0o644); err != nil {
		return nil, nil, fmt.Errorf("write results: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open results: %w", err)
	}
	return f, done, nil
}

// writeReports writes the three reports beside the results.
func (p *program) writeReports(dir string, run *report.Run) error {
	if dir == "" {
		return nil
	}
	data, err := schema.Encode(run)
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	var md, html bytes.Buffer
	if err := errors.Join(report.Markdown(&md, run), report.HTML(&html, run)); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"report.json": append(data, '\n'), "report.md": md.Bytes(), "report.html": html.Bytes()} {
		if err := durable.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
