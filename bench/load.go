package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"example.org/auditd/schema"
)

// OpenConfig says what an open loop asks.
type OpenConfig struct {
	// Call asks for one decision. It is called concurrently.
	Call func(context.Context, *schema.Flow) (schema.Decision, error)
	// Flow makes the nth flow.
	Flow  func(n int) *schema.Flow
	Rate  float64 // calls that begin in a second
	Calls int
	// Progress is called after each call; it may be nil.
	Progress func()
}

// Load is what an open loop measured.
type Load struct {
	Rate     float64 `json:"rate"` // asked for
	Calls    int     `json:"calls"`
	Failed   int     `json:"failed"`
	Achieved float64 `json:"achieved"` // answers in a second, until the last came
	// Response is from the moment at which a call was due, which a slow answer
	// does not put off: what a user waits. Service is from when it was sent.
	Response Quantiles `json:"response"`
	Service  Quantiles `json:"service"`
	Waiting  int       `json:"waiting"` // calls without an answer at once, at most
}

// Open sends calls at a fixed rate whether or not the earlier ones have been
// answered. A client that waits for an answer before it asks again would leave
// out just the calls that a slow moment makes slow.
func Open(ctx context.Context, c OpenConfig) (Load, error) {
	if c.Call == nil || c.Flow == nil || c.Rate <= 0 || c.Calls <= 0 {
		return Load{}, errors.New("bench: Call, Flow, Rate and Calls must be set")
	}
	l := Load{Rate: c.Rate}
	var (
		wg                sync.WaitGroup
		mu                sync.Mutex
		response, service []float64
		waiting           int
		last              time.Time
	)
	every := time.Duration(float64(time.Second) / c.Rate)
	start := time.Now()
	for i := range c.Calls {
		due := start.Add(time.Duration(i) * every)
		if wait := time.Until(due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			break
		}
		f := c.Flow(i)
		mu.Lock()
		waiting++
		l.Waiting = max(l.Waiting, waiting)
		mu.Unlock()
		wg.Go(func() {
			sent := time.Now()
			_, err := c.Call(ctx, f)
			end := time.Now()
			mu.Lock()
			defer mu.Unlock()
			waiting--
			l.Calls++
			last = end
			if err != nil {
				l.Failed++
			} else {
				response = append(response, float64(end.Sub(due))/1e6)
				service = append(service, float64(end.Sub(sent))/1e6)
			}
			if c.Progress != nil {
				c.Progress()
			}
		})
	}
	wg.Wait()
	if s := last.Sub(start).Seconds(); s > 0 {
		l.Achieved = float64(l.Calls-l.Failed) / s
	}
	l.Response, l.Service = QuantilesOf(response), QuantilesOf(service)
	return l, ctx.Err()
}

// Sized makes flows with payloads of about n bytes, no two of them equal.
func Sized(bytes int) func(n int) *schema.Flow {
	const text = "The maintainers describe how the build caches its results and when a cached result is thrown away. "
	body := strings.Repeat(text, bytes/len(text)+1)[:bytes]
	return func(n int) *schema.Flow {
		return &schema.Flow{Payload: fmt.Sprintf("Page %08d of %d. ", n, bytes) + body,
			Source: schema.Source{Kind: schema.SourceWeb, ID: "https://docs.example.com/page", Trust: schema.Untrusted},
			Sink:   schema.Sink{Kind: schema.SinkReasoning}, Session: schema.Session{Agent: "bench", ID: "bench"}}
	}
}

// Allocations returns how many allocations a call of do makes: the least of some
// rounds, because whatever else the process does only adds to it.
func Allocations(do func()) float64 {
	const rounds, calls = 3, 100
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	best := 0.0
	for round := range rounds {
		do() // fills what is filled once
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			do()
		}
		runtime.ReadMemStats(&after)
		if n := float64(after.Mallocs-before.Mallocs) / calls; round == 0 || n < best {
			best = n
		}
	}
	return best
}
