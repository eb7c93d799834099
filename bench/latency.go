// Package bench measures a running daemon: how long its calls and each of
// their stages take, and how many it answers, at a rising number of clients.
// It decides nothing and judges nothing; quality is measured in bench/auditor.
package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.org/auditd/schema"
)

// Config says what to measure.
type Config struct {
	// Call asks for one decision. It is called concurrently.
	Call func(context.Context, *schema.Flow) (schema.Decision, error)
	// Flow makes the nth flow. Flows that repeat measure the verdict cache.
	Flow    func(n int) *schema.Flow
	Clients []int // numbers of concurrent clients, in order
	Calls   int   // for each number of clients
	Warmup  int   // calls before the first measurement
	// Progress is called after each call; it may be nil.
	Progress func()
}

// Quantiles are of durations in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// Round is the measurement at one number of clients.
type Round struct {
	Clients   int                  `json:"clients"`
	Calls     int                  `json:"calls"`
	Failed    int                  `json:"failed"` // calls without a decision
	PerSecond float64              `json:"per_second"`
	Whole     Quantiles            `json:"whole"`    // as the client sees it
	Decision  Quantiles            `json:"decision"` // as the daemon sees it
	Stages    map[string]Quantiles `json:"stages"`
	// Allocations and Bytes are per call and of the whole process, client and
	// server, when both are in it.
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"bytes"`
}

// Run measures. It ends early, with what it has, when ctx ends.
func Run(ctx context.Context, c Config) ([]Round, error) {
	if c.Call == nil || c.Flow == nil || c.Calls <= 0 || len(c.Clients) == 0 {
		return nil, fmt.Errorf("bench: Call, Flow, Calls and Clients must be set")
	}
	var n atomic.Int64
	for range c.Warmup {
		if _, err := c.Call(ctx, c.Flow(int(n.Add(1)))); err != nil {
			return nil, fmt.Errorf("bench: the first calls: %w", err)
		}
	}
	var rounds []Round
	for _, clients := range c.Clients {
		if ctx.Err() != nil {
			break
		}
		rounds = append(rounds, round(ctx, &c, clients, &n))
	}
	return rounds, ctx.Err()
}

func round(ctx context.Context, c *Config, clients int, n *atomic.Int64) Round {
	type sample struct {
		whole    time.Duration
		decision float64
		trace    []schema.Trace
		failed   bool
	}
	samples := make([]sample, c.Calls)
	var next atomic.Int64
	var wg sync.WaitGroup
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range clients {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(c.Calls) && ctx.Err() == nil; i = next.Add(1) - 1 {
				f := c.Flow(int(n.Add(1)))
				t := time.Now()
				d, err := c.Call(ctx, f)
				samples[i] = sample{time.Since(t), d.LatencyMS, d.Trace, err != nil}
				if c.Progress != nil {
					c.Progress()
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	r := Round{Clients: clients, Stages: map[string]Quantiles{}}
	var whole, decision []float64
	stages := map[string][]float64{}
	for _, s := range samples {
		if s.whole == 0 {
			continue // cut off by ctx
		}
		r.Calls++
		if s.failed {
			r.Failed++
			continue
		}
		whole = append(whole, float64(s.whole)/1e6)
		decision = append(decision, s.decision)
		sum := map[string]float64{} // a stage may run twice
		for _, t := range s.trace {
			sum[t.Stage.String()] += t.DurationMS
		}
		for name, ms := range sum {
			stages[name] = append(stages[name], ms)
		}
	}
	r.PerSecond = float64(r.Calls) / took.Seconds()
	r.Whole, r.Decision = QuantilesOf(whole), QuantilesOf(decision)
	for name, v := range stages {
		r.Stages[name] = QuantilesOf(v)
	}
	calls := float64(max(r.Calls, 1))
	r.Allocations = float64(after.Mallocs-before.Mallocs) / calls
	r.Bytes = float64(after.TotalAlloc-before.TotalAlloc) / calls
	return r
}

// QuantilesOf sorts v, which holds milliseconds.
func QuantilesOf(v []float64) Quantiles {
	if len(v) == 0 {
		return Quantiles{}
	}
	slices.Sort(v)
	at := func(q float64) float64 { return v[min(len(v)-1, int(q*float64(len(v))))] }
	return Quantiles{P50: at(.50), P95: at(.95), P99: at(.99), Max: v[len(v)-1]}
}

// Mixed makes flows like those that agents cause: short and long, from the web
// into the context, and tool calls. No two are equal, so no cache answers.
func Mixed(n int) *schema.Flow {
	id := fmt.Sprintf("%08d", n)
	f := &schema.Flow{Source: schema.Source{Kind: schema.SourceWeb, ID: "https://docs.example.com/page", Trust: schema.Untrusted},
		Sink: schema.Sink{Kind: schema.SinkReasoning}, Session: schema.Session{Agent: "bench", ID: "bench"}}
	const text = "The maintainers describe how the build caches its results and when a cached result is thrown away. "
	switch n % 4 {
	case 0:
		f.Payload = "Page " + id + ". " + strings.Repeat(text, 2)
	case 1:
		f.Payload = "Page " + id + ". " + strings.Repeat(text, 10)
	case 2:
		f.Payload = "go test ./pkg" + id
		f.Source = schema.Source{Kind: schema.SourceAgent, Trust: schema.Derived}
		f.Sink = schema.Sink{Kind: schema.SinkExec, Tool: "bash"}
	default:
		f.Payload = `{"path":"notes/` + id + `.md","content":"- read the page about caches"}`
		f.Source = schema.Source{Kind: schema.SourceAgent, Trust: schema.Derived}
		f.Sink = schema.Sink{Kind: schema.SinkFile, Tool: "write_file", ID: "notes/" + id + ".md"}
	}
	return f
}
