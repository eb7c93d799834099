package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"example.org/auditd/auditlog"
	"example.org/auditd/bench"
	"example.org/auditd/bench/isolation/play"
	"example.org/auditd/bench/quality"
	"example.org/auditd/dualview"
	"example.org/auditd/firewall"
	"example.org/auditd/schema"
)

type loadOptions struct {
	rates   []int
	seconds int
	bytes   []int
	sizes   []int
	auditor bool
	output  string
}

func (p *program) benchLoadCommand() *cobra.Command {
	var o loadOptions
	c := &cobra.Command{
		Use: "load", Short: "Measure under load that does not wait, and as log and symbol table grow", Args: cobra.NoArgs,
		Long: `load sends calls at fixed rates, whether or not the earlier ones have been
answered, and counts each from the moment at which it was due: a stall is then seen
by every call that was due during it. It does so cold and warm and by payload size.

Then it lets the decision log and the symbol table grow, and measures a decision
and an isolated event at each size. --sizes goes up to 10000000, which takes some
minutes and gigabytes of disk.

The daemon is its own, in a temporary directory. Without --auditor a stand-in that
allows at once takes the auditor's place.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.benchLoad(c.Context(), &o) },
	}
	c.Flags().IntSliceVar(&o.rates, "rates", []int{50, 200, 500}, "calls that begin in a second")
	c.Flags().IntVar(&o.seconds, "seconds", 3, "length of each measurement")
	c.Flags().IntSliceVar(&o.bytes, "bytes", []int{300, 4000, 64000}, "payload sizes, at the lowest rate")
	c.Flags().IntSliceVar(&o.sizes, "sizes", []int{1000, 10_000, 50_000}, "log records and symbols at which to measure, rising")
	c.Flags().BoolVar(&o.auditor, "auditor", false, "with the configured auditor")
	c.Flags().StringVarP(&o.output, "output", "o", "", "also write the measurements to this file, as JSON")
	return c
}

// loadReport is what `bench load` writes.
type loadReport struct {
	Version string     `json:"version"`
	Auditor string     `json:"auditor"`
	Cold    loadRow    `json:"cold"` // the first calls of a new daemon
	Rates   []loadRow  `json:"rates"`
	Sizes   []loadRow  `json:"payload_sizes"`
	Growth  []growth   `json:"growth"`
	Flat    [2]float64 `json:"flat"` // p50 at the largest size by p50 at the smallest: of a decision, and of an isolated event
}

type loadRow struct {
	Bytes int `json:"bytes,omitempty"` // 0: of mixed size
	bench.Load
	RSSMiB float64 `json:"rss_mib"`
}

// growth is the measurement at one size of log and symbol table.
type growth struct {
	Records     int             `json:"records"`
	Symbols     int             `json:"symbols"`
	Decision    bench.Quantiles `json:"decision"` // of a call over HTTP
	Isolated    bench.Quantiles `json:"isolated"` // of a tool's result that becomes symbols; none where this machine cannot isolate
	Allocations float64         `json:"allocations"`
	RSSMiB      float64         `json:"rss_mib"`
}

func (o *loadOptions) check() error {
	if o.seconds < 1 || o.seconds > 600 {
		return errors.New("--seconds must be 1 to 600")
	}
	for _, f := range []struct {
		name        string
		list        []int
		least, most int
	}{{"rates", o.rates, 1, 20_000}, {"bytes", o.bytes, 1, schema.DefaultMaxPayload - 100}, {"sizes", o.sizes, 100, 10_000_000}} {
		if len(f.list) == 0 {
			return fmt.Errorf("--%s must not be empty", f.name)
		}
		for i, n := range f.list {
			if n < f.least || n > f.most || i > 0 && n <= f.list[i-1] {
				return fmt.Errorf("--%s must be %d to %d each, rising", f.name, f.least, f.most)
			}
		}
	}
	return nil
}

func (p *program) benchLoad(ctx context.Context, o *loadOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	report, err := p.measureLoad(ctx, o)
	if err != nil {
		return err
	}
	if err := writeMeasurements(o.output, report); err != nil {
		return err
	}
	if p.jsonOut {
		return p.printJSON(report)
	}
	p.painter(p.stdout).load(report)
	return nil
}

func (p *program) measureLoad(ctx context.Context, o *loadOptions) (*loadReport, error) {
	dir, err := os.MkdirTemp("", "auditd-load-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	cfg, err := p.config()
	if err != nil {
		return nil, err
	}
	own := *cfg
	own.MaxInFlight = 512
	if err := ownPolicy(&own, dir, play.Isolated, "http://127.0.0.1:9"); err != nil {
		return nil, err
	}
	var stand *judges
	if !o.auditor {
		stand = &judges{auditor: quality.Allower{}}
	}
	b, err := p.startBench(ctx, &own, firewall.Ablation{}, stand)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	report := &loadReport{Version: version(), Auditor: b.auditor}
	var progress func()
	if bars := p.bars(); bars != nil {
		bar := bars.AddBar(0, mpb.PrependDecorators(decor.Name("calls "), decor.CurrentNoUnit("%d")))
		progress = func() { bar.Increment() }
		defer bars.Shutdown()
	}
	next := 0
	open := func(rate, calls, bytes int) (loadRow, error) {
		flow := bench.Mixed
		if bytes > 0 {
			flow = bench.Sized(bytes)
		}
		base := next
		next += calls
		l, err := bench.Open(ctx, bench.OpenConfig{Call: b.client.Audit, Flow: func(n int) *schema.Flow { return flow(base + n) }, Rate: float64(rate), Calls: calls, Progress: progress})
		return loadRow{Bytes: bytes, Load: l, RSSMiB: rss()}, err
	}
	if report.Cold, err = open(o.rates[0], o.rates[0], 0); err != nil {
		return nil, err
	}
	for _, rate := range o.rates {
		row, err := open(rate, rate*o.seconds, 0)
		if err != nil {
			return nil, err
		}
		report.Rates = append(report.Rates, row)
	}
	for _, bytes := range o.bytes {
		row, err := open(o.rates[0], o.rates[0]*o.seconds, bytes)
		if err != nil {
			return nil, err
		}
		report.Sizes = append(report.Sizes, row)
	}
	for _, size := range o.sizes {
		g, err := b.grow(ctx, size, dir)
		if err != nil {
			return nil, err
		}
		report.Growth = append(report.Growth, g)
	}
	first, last := report.Growth[0], report.Growth[len(report.Growth)-1]
	report.Flat[0] = last.Decision.P50 / first.Decision.P50
	if first.Isolated.P50 > 0 {
		report.Flat[1] = last.Isolated.P50 / first.Isolated.P50
	}
	return report, nil
}

// measured is how many calls are measured at each size.
const measured = 200

// grow lets the log and the symbol table have n entries, and measures.
func (b *benchDaemon) grow(ctx context.Context, n int, dir string) (g growth, err error) {
	if err := b.fillLog(ctx, n); err != nil {
		return g, err
	}
	isolates := b.d.isolated != nil && b.d.isolated.Missing() == ""
	if isolates {
		if g.Symbols, err = b.fillSymbols(ctx, n); err != nil {
			return g, err
		}
	}
	r, err := bench.Run(ctx, bench.Config{Call: b.client.Audit, Flow: func(i int) *schema.Flow { return bench.Mixed(n + i + 1<<27) }, Clients: []int{1}, Calls: measured, Warmup: 10})
	if err != nil {
		return g, err
	}
	g.Records, g.Decision, g.Allocations = int(b.d.log.Size()), r[0].Whole, r[0].Allocations
	if isolates {
		g.Isolated, err = b.isolatedEvents(ctx, n, dir)
	}
	g.RSSMiB = rss()
	return g, err
}

// writers at once: the log syncs for all that wait.
const writers = 256

func (b *benchDaemon) fillLog(ctx context.Context, n int) error {
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	missing := n - int(b.d.log.Size())
	for w := range writers {
		wg.Go(func() {
			for i := w; i < missing; i += writers {
				f := bench.Mixed(i)
				d := &schema.Decision{ID: fmt.Sprintf("fill-%d-%d", n, i), Time: time.Now(), Action: schema.Allow, Stage: schema.StageAuditor, Reason: "auditor_allow"}
				if _, err := b.d.log.Append(ctx, auditlog.Entry{Decision: d, Flow: f, RedactedPayload: f.Payload}); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return fmt.Errorf("fill the log: %w", err)
	default:
		return ctx.Err()
	}
}

func (b *benchDaemon) fillSymbols(ctx context.Context, n int) (int, error) {
	const batch = 1000
	for b.symbols < n {
		items := make([]dualview.Item, min(batch, n-b.symbols))
		for i := range items {
			items[i] = dualview.Item{Value: fmt.Appendf(nil, "value %d of a page about caches, which is long enough to be found again in other texts", b.symbols+i),
				Provenance: dualview.Provenance{Kind: schema.SourceWeb, Tool: "web_fetch", Field: "text", Origin: "https://docs.example.com/", Trust: schema.Untrusted}}
		}
		if _, err := b.d.isolated.table.SymboliseAll(ctx, ownerName, items); err != nil {
			return b.symbols, fmt.Errorf("fill the symbol table: %w", err)
		}
		b.symbols += len(items)
	}
	return b.symbols, nil
}

// isolatedEvents measures a page that becomes symbols.
func (b *benchDaemon) isolatedEvents(ctx context.Context, n int, dir string) (bench.Quantiles, error) {
	var times []float64
	for i := range measured {
		text := bench.Sized(2000)(n + i).Payload
		result, err := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "details": map[string]any{"url": "https://docs.example.com/", "status": 200, "text": text}})
		if err != nil {
			return bench.Quantiles{}, fmt.Errorf("make a result: %w", err)
		}
		start := time.Now()
		o, err := b.client.Event(ctx, &schema.Event{Host: "openclaw", Agent: "main", Session: "load", CallID: fmt.Sprintf("%d-%d", n, i), Phase: schema.PhaseAfterTool, Tool: "web_fetch", Workspace: dir,
			Params: json.RawMessage(`{"url":"https://docs.example.com/"}`), Result: result})
		if err != nil {
			return bench.Quantiles{}, err
		}
		if o.Action != schema.RewriteAndContinue {
			return bench.Quantiles{}, fmt.Errorf("an isolated event ends with %s (%s)", o.Action, o.Reason)
		}
		times = append(times, float64(time.Since(start).Microseconds())/1000)
	}
	return bench.QuantilesOf(times), nil
}

// ownPolicy gives a benchmark's daemon the owner's policy with a mode of the
// benchmark's, and rules of isolation.
func ownPolicy(own *Config, dir string, a play.Arrangement, site string) error {
	text, err := isolationPolicy(own.Policy, modeOf(a), site)
	if err != nil {
		return err
	}
	own.Policy, own.policyFile, own.isolationFile = filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "isolation.yaml")
	if err := errors.Join(os.WriteFile(own.Policy, text, 0o600), os.WriteFile(own.isolationFile, []byte(isolationRules), 0o600)); err != nil {
		return fmt.Errorf("write the benchmark's policy: %w", err)
	}
	return nil
}

func (o *painter) load(r *loadReport) {
	o.printf("%s  %s\n", o.paint(bold, "auditd "+r.Version), o.paint(dim, "auditor: "+r.Auditor))
	o.heading("Open loop", "response counts from when a call was due")
	rows := [][]string{loadCells("cold", &r.Cold)}
	for i := range r.Rates {
		rows = append(rows, loadCells("warm", &r.Rates[i]))
	}
	for i := range r.Sizes {
		rows = append(rows, loadCells(fmt.Sprintf("%d bytes", r.Sizes[i].Bytes), &r.Sizes[i]))
	}
	o.table([]string{"", "calls/s", "answered/s", "p50 ms", "p95 ms", "p99 ms", "max ms", "service p95", "waiting", "failed", "MiB"}, rows)
	o.heading("Growth", "")
	rows = nil
	for _, g := range r.Growth {
		isolated := "not run"
		if g.Isolated.Max > 0 {
			isolated = fmt.Sprintf("%.2f / %.2f", g.Isolated.P50, g.Isolated.P95)
		}
		rows = append(rows, []string{fmt.Sprint(g.Records), fmt.Sprint(g.Symbols), fmt.Sprintf("%.2f / %.2f", g.Decision.P50, g.Decision.P95), isolated, fmt.Sprintf("%.0f", g.Allocations), fmt.Sprintf("%.0f", g.RSSMiB)})
	}
	o.table([]string{"records", "symbols", "decision p50 / p95 ms", "isolated event", "allocs", "MiB"}, rows)
	o.field("largest by smallest", fmt.Sprintf("%.2f× for a decision, %.2f× for an isolated event", r.Flat[0], r.Flat[1]))
}

func loadCells(name string, r *loadRow) []string {
	ms := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	return []string{name, fmt.Sprintf("%.0f", r.Rate), fmt.Sprintf("%.0f", r.Achieved), ms(r.Response.P50), ms(r.Response.P95), ms(r.Response.P99), ms(r.Response.Max), ms(r.Service.P95),
		fmt.Sprint(r.Waiting), fmt.Sprint(r.Failed), fmt.Sprintf("%.0f", r.RSSMiB)}
}
