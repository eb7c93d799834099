package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"example.org/auditd/bench"
	"example.org/auditd/bench/quality"
	"example.org/auditd/client"
	"example.org/auditd/httpapi"
	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

func (p *program) benchCommand() *cobra.Command {
	c := &cobra.Command{Use: "bench", Short: "Measure this machine", GroupID: "look", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	var o benchOptions
	l := &cobra.Command{
		Use: "latency", Short: "Measure each stage and the whole call, at 1 to 64 clients", Args: cobra.NoArgs,
		Long: `latency starts a daemon of its own in a temporary directory, with the durable log,
and asks it over the loopback interface. Without --auditor a stand-in that allows
at once takes the auditor's place, so that what is measured is the daemon. Beside
it stands what a server that only reads, syncs a line to a file and answers takes
on the same machine.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.benchLatency(c.Context(), &o) },
	}
	l.Flags().IntVar(&o.calls, "calls", 2000, "calls for each number of clients")
	l.Flags().IntSliceVar(&o.clients, "clients", []int{1, 4, 16, 64}, "numbers of clients")
	l.Flags().BoolVar(&o.auditor, "auditor", false, "with the configured auditor")
	l.Flags().StringVarP(&o.output, "output", "o", "", "also write the measurements to this file, as JSON")
	c.AddCommand(l, p.benchReportCommand(), p.benchQualityCommand(), p.benchPaperCommand(), p.benchDiffCommand(), p.benchCompareCommand(), p.benchAuditorCommand(), p.benchIsolationCommand(), p.benchLoadCommand())
	return c
}

type benchOptions struct {
	calls   int
	clients []int
	auditor bool
	output  string
}

// latencyReport is what `bench latency` writes.
type latencyReport struct {
	Version  string        `json:"version"`
	Auditor  string        `json:"auditor"`
	ReadyMS  float64       `json:"ready_ms"` // from the start until flows can be decided
	RSSMiB   float64       `json:"rss_mib"`  // of this process after the rounds, clients included
	Daemon   []bench.Round `json:"daemon"`
	Baseline []bench.Round `json:"baseline"` // a bare server that syncs a line
}

func (p *program) benchLatency(ctx context.Context, o *benchOptions) (err error) {
	if o.calls < 1 || o.calls > 1_000_000 {
		return errors.New("--calls must be 1 to 1000000")
	}
	for _, n := range o.clients {
		if n < 1 || n > 256 {
			return errors.New("--clients must be 1 to 256 each")
		}
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "auditd-bench-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	cfg.State, cfg.Listen, cfg.Socket, cfg.MaxInFlight = filepath.Join(dir, "state"), "127.0.0.1:0", socketOff, 512
	report := latencyReport{Version: version()}

	var progress func()
	if bars := p.bars(); bars != nil {
		bar := bars.AddBar(int64(2*o.calls*len(o.clients)), mpb.PrependDecorators(decor.Name("measuring ")), mpb.AppendDecorators(decor.Percentage(), decor.Elapsed(decor.ET_STYLE_GO, decor.WC{W: 8})))
		progress = func() { bar.Increment() }
		defer bars.Shutdown()
	}
	if err := p.benchDaemon(ctx, cfg, o, progress, &report); err != nil {
		return err
	}
	if report.Baseline, err = baseline(ctx, dir, o, progress); err != nil {
		return err
	}
	if err := writeMeasurements(o.output, report); err != nil {
		return err
	}
	if p.jsonOut {
		return p.printJSON(report)
	}
	p.painter(p.stdout).latency(&report)
	return nil
}

// bars shows progress on a terminal, on standard error.
func (p *program) bars() *mpb.Progress {
	if !p.painter(p.stderr).colour {
		return nil
	}
	return mpb.New(mpb.WithOutput(p.stderr), mpb.WithWidth(50))
}

func (p *program) benchDaemon(ctx context.Context, cfg *Config, o *benchOptions, progress func(), report *latencyReport) error {
	start := time.Now()
	var stand *judges
	if !o.auditor {
		stand = &judges{auditor: quality.Allower{}}
	}
	d, err := newDaemonWith(ctx, cfg, p.getenv, slog.New(slog.DiscardHandler), stand)
	if err != nil {
		return err
	}
	defer d.Close()
	listeners, err := httpapi.Listen(cfg.Listen, "")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- d.Serve(serving, listeners) }()
	for d.judges.loading() && time.Since(start) < time.Minute {
		time.Sleep(time.Millisecond)
	}
	report.ReadyMS = float64(time.Since(start).Microseconds()) / 1000
	report.Auditor = d.judges.String()
	c := &client.Client{URL: "http://" + listeners[0].Addr().String(), TokenFile: client.TokenPath(cfg.State)}
	report.Daemon, err = bench.Run(ctx, bench.Config{Call: c.Audit, Flow: bench.Mixed, Clients: o.clients, Calls: o.calls, Warmup: 50, Progress: progress})
	report.RSSMiB = rss()
	stop()
	return errors.Join(err, <-served)
}

// baseline is a server of the standard library that reads a request, appends a
// line to a file, syncs it and answers: what a durable answer costs here before
// anybody decides anything. Each request syncs for itself.
func baseline(ctx context.Context, dir string, o *benchOptions, progress func()) ([]bench.Round, error) {
	f, err := os.Create(filepath.Join(dir, "baseline"))
	if err != nil {
		return nil, fmt.Errorf("make the baseline's file: %w", err)
	}
	defer f.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the baseline: %w", err)
	}
	answer := []byte(`{"decision_id":"b","time":"1970-01-01T00:00:00Z","action":"allow","mediation":"none","stage":"policy","reason":"r","message":"m","residual":0,"cached":false,"log_index":0,"latency_ms":0}`)
	s := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err == nil {
			_, err = f.Write(append(body, '\n'))
		}
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	})}
	go s.Serve(l)
	defer s.Close()
	c := &client.Client{URL: "http://" + l.Addr().String(), Token: "none"}
	return bench.Run(ctx, bench.Config{Call: c.Audit, Flow: bench.Mixed, Clients: o.clients, Calls: o.calls, Warmup: 20, Progress: progress})
}

// rss is the resident memory of this process, or 0 where the system does not
// say.
func rss() float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	return 0
}

func (o *painter) latency(r *latencyReport) {
	o.printf("%s  %s\n", o.paint(bold, "auditd "+r.Version), o.paint(dim, "auditor: "+r.Auditor))
	o.field("ready after", millis(r.ReadyMS))
	o.field("resident", fmt.Sprintf("%.0f MiB, the clients included", r.RSSMiB))
	o.heading("Whole call, as a client sees it", "")
	ms := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	var rows [][]string
	for i, x := range r.Daemon {
		ratio := "–"
		if i < len(r.Baseline) && r.Baseline[i].Whole.P95 > 0 {
			ratio = fmt.Sprintf("%.1f×", x.Whole.P95/r.Baseline[i].Whole.P95)
		}
		base := "–"
		if i < len(r.Baseline) {
			base = ms(r.Baseline[i].Whole.P95)
		}
		rows = append(rows, []string{fmt.Sprint(x.Clients), ms(x.Whole.P50), ms(x.Whole.P95), ms(x.Whole.P99), fmt.Sprintf("%.0f", x.PerSecond),
			fmt.Sprintf("%.0f", x.Allocations), fmt.Sprintf("%.1f", x.Bytes/1024), base, ratio, fmt.Sprint(x.Failed)})
	}
	o.table([]string{"clients", "p50 ms", "p95 ms", "p99 ms", "calls/s", "allocs", "KiB", "bare p95", "ratio", "failed"}, rows)
	if len(r.Daemon) == 0 {
		return
	}
	last := r.Daemon[len(r.Daemon)-1]
	o.heading("Stages", fmt.Sprintf("at %d clients", last.Clients))
	rows = nil
	for s := schema.StageInput; s <= schema.StageLog; s++ {
		if q, ok := last.Stages[s.String()]; ok {
			rows = append(rows, []string{s.String(), fmt.Sprintf("%.3f", q.P50), fmt.Sprintf("%.3f", q.P95), fmt.Sprintf("%.3f", q.P99)})
		}
	}
	o.table([]string{"stage", "p50 ms", "p95 ms", "p99 ms"}, rows)
}

// writeMeasurements writes them as JSON; an empty path means that nobody wants that.
func writeMeasurements(path string, report any) error {
	if path == "" {
		return nil
	}
	data, err := schema.Encode(report)
	if err != nil {
		return fmt.Errorf("encode the measurements: %w", err)
	}
	if err := durable.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the measurements: %w", err)
	}
	return nil
}
