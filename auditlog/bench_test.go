package auditlog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/auditd/auditlog"
)

// BenchmarkAppend reports how long a caller waits for its record to be durable.
func BenchmarkAppend(b *testing.B) {
	for _, clients := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			cfg := auditlog.Config{Dir: benchDir(b), Now: time.Now, Redact: func(s string) string { return s }}
			l := open(b, cfg)
			took := make([]time.Duration, b.N)
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range clients {
				wg.Go(func() {
					for {
						i := int(next.Add(1)) - 1
						if i >= b.N {
							return
						}
						e := entry(i)
						start := time.Now()
						if _, err := l.Append(context.Background(), e); err != nil {
							b.Error(err)
							return
						}
						took[i] = time.Since(start)
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			slices.Sort(took)
			for _, p := range []int{50, 95, 99} {
				b.ReportMetric(float64(took[len(took)*p/100].Microseconds()), fmt.Sprintf("p%d-µs", p))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkAppendNoSync is what Append costs besides waiting for the disk.
func BenchmarkAppendNoSync(b *testing.B) {
	cfg := auditlog.Config{Dir: benchDir(b), Now: time.Now, Redact: func(s string) string { return s }}
	l, err := auditlog.OpenUnsynced(cfg, func(*os.File) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	e := entry(1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Append(context.Background(), e); err != nil {
			b.Fatal(err)
		}
	}
}

// benchDir is on the disk of the repository: a temporary directory may be in
// memory, where a sync costs nothing.
func benchDir(b *testing.B) string {
	wd, err := os.Getwd()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(wd, "..", ".cache"), 0o755); err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp(filepath.Join(wd, "..", ".cache"), "bench-auditlog-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// bigLog makes a log of n records without syncing each.
func bigLog(b *testing.B, n int) auditlog.Config {
	cfg := auditlog.Config{Dir: benchDir(b), Now: time.Now, Redact: func(s string) string { return s }}
	none := func(*os.File) error { return nil }
	l, err := auditlog.OpenUnsynced(cfg, none)
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	for c := range 64 {
		wg.Go(func() {
			for i := c; i < n; i += 64 {
				if _, err := l.Append(context.Background(), entry(i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	l.Close()
	return cfg
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			cfg := bigLog(b, n)
			b.ReportAllocs()
			for b.Loop() {
				l, err := auditlog.Open(cfg)
				if err != nil {
					b.Fatal(err)
				}
				if l.Size() != int64(n) {
					b.Fatal(l.Size())
				}
				l.Close()
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	cfg := bigLog(b, 20_000)
	b.ReportAllocs()
	for b.Loop() {
		sum, err := auditlog.Verify(cfg.Dir)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(sum.Bytes)
	}
}

func BenchmarkRead(b *testing.B) {
	const n = 100_000
	l := open(b, bigLog(b, n))
	i := 0
	b.Run("Get", func(b *testing.B) {
		for b.Loop() {
			i = (i + 7919) % n
			if _, err := l.Get(int64(i)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Find", func(b *testing.B) {
		for b.Loop() {
			i = (i + 7919) % n
			if _, err := l.Find(fmt.Sprintf("d-%06d", i)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Prove", func(b *testing.B) {
		for b.Loop() {
			i = (i + 7919) % n
			if _, err := l.Prove(int64(i)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
