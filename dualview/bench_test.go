package dualview

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.org/auditd/sqlite"
)

// symbolCount is a size of the table for BenchmarkLookup; the promise is about
// -symbols 10000000, which takes some minutes and 4 GB to fill.
var symbolCount = flag.Int("symbols", 0, "an additional table size for BenchmarkLookup")

// indexed is how many MiB BenchmarkIndexCheck indexes first.
var indexed = flag.Int("indexed", 8, "MiB of indexed text for BenchmarkIndexCheck")

// reportCPU reports the processor time of an operation beside its wall time: on
// a machine that others use too it is the figure that can be compared.
func reportCPU(b *testing.B) func() {
	used := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	start := used()
	return func() { b.ReportMetric(float64((used()-start).Microseconds())/1000/float64(b.N), "cpu-ms/op") }
}

func BenchmarkSymbolise1MiB(b *testing.B) {
	table := testTable(b, b.TempDir())
	values := make([][]byte, 64)
	for i := range values {
		values[i] = []byte(prose(uint64(i), 200000)[:1<<20])
	}
	b.SetBytes(1 << 20)
	i := 0
	var indexed time.Duration
	defer reportCPU(b)()
	for b.Loop() {
		// Every value is new, as results are: an equal one would cost less.
		v := values[i%len(values)]
		copy(v, fmt.Sprintf("%020d", i))
		for at := 0; at+8 < len(v); at += 4096 {
			copy(v[at:], fmt.Sprintf("%08x", i))
		}
		if _, err := table.Symbolise(b.Context(), "ann", v, web); err != nil {
			b.Fatal(err)
		}
		i++
		// What the caller does not wait for, and the next look for known text does.
		b.StopTimer()
		start := time.Now()
		if err := table.index.settle(b.Context()); err != nil {
			b.Fatal(err)
		}
		indexed += time.Since(start)
		b.StartTimer()
	}
	b.ReportMetric(float64(indexed.Microseconds())/1000/float64(b.N), "index-ms/op")
}

func BenchmarkSymboliseField(b *testing.B) {
	table := testTable(b, b.TempDir())
	i := 0
	for b.Loop() {
		if _, err := table.Symbolise(b.Context(), "ann", fmt.Appendf(nil, "a title of a page, number %d", i), web); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkResolve100In1MiB(b *testing.B) {
	table := testTable(b, b.TempDir())
	var text strings.Builder
	filler := prose(1, 200000)
	for i := range 100 {
		text.WriteString(filler[i*10000 : i*10000+10000])
		text.WriteString(string(mustSymbolise(b, table, prose(uint64(i), 20))))
	}
	b.SetBytes(int64(text.Len()))
	for _, c := range []Context{Raw, JSON} {
		b.Run(map[Context]string{Raw: "raw", JSON: "json"}[c], func(b *testing.B) {
			defer reportCPU(b)()
			for b.Loop() {
				if _, err := table.Resolve(b.Context(), text.String(), c, person("ann")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkIndexCheck1MiB(b *testing.B) {
	table := testTable(b, b.TempDir())
	for i := range *indexed {
		mustSymbolise(b, table, prose(uint64(10000+i), 200000)[:1<<20])
	}
	if err := table.index.settle(b.Context()); err != nil {
		b.Fatal(err)
	}
	table.index.mu.RLock()
	b.ReportMetric(float64(len(table.index.filter.words)*8)/(1<<20), "filter-MiB")
	b.ReportMetric(float64(len(table.index.segments)), "segments")
	table.index.mu.RUnlock()
	for _, c := range []struct{ name, text string }{
		{"unknown", prose(5, 200000)[:1<<20]},
		{"known", prose(10000, 200000)[:1<<20]},
		{"mixed", prose(6, 100000)[:1<<19] + prose(10001, 200000)[1<<18:1<<18+1<<19]},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(1 << 20)
			defer reportCPU(b)()
			for b.Loop() {
				known, err := table.Known(b.Context(), []byte(c.text))
				if err != nil || (len(known) > 0) != (c.name != "unknown") {
					b.Fatal(known, err)
				}
			}
		})
	}
}

// BenchmarkLookup shows that the time to resolve one symbol stays flat as the
// table grows.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1e3, 1e4, 1e5, 1e6, *symbolCount} {
		if n == 0 {
			continue
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			table := testTable(b, b.TempDir())
			some := fillTable(b, table, n)
			r := rand.New(rand.NewPCG(1, 1))
			g := person("ann")
			defer reportCPU(b)()
			for b.Loop() {
				if _, err := table.Resolve(b.Context(), string(some[r.IntN(len(some))]), Raw, g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fillTable makes n symbols and returns a thousand of them. The others are rows
// that the database makes up, a thousand times as fast: a lookup does not know
// the difference.
func fillTable(b *testing.B, table *Table, n int) []Symbol {
	const real, batch = 1000, 500_000
	var some []Symbol
	add := func(k int) {
		items := make([]Item, k)
		for i := range items {
			items[i] = Item{Value: fmt.Appendf(nil, "value %d", len(some)+i), Provenance: web}
		}
		symbols, err := table.SymboliseAll(b.Context(), "ann", items)
		if err != nil {
			b.Fatal(err)
		}
		some = append(some, symbols...)
	}
	add(real / 2)
	for left := n - real; left > 0; left -= batch {
		for _, q := range []string{
			`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < ?)
				INSERT INTO dualview_content (hash, size, data) SELECT randomblob(32), 12, randomblob(12) FROM c`,
			`INSERT INTO dualview_symbol (id, owner, content, start, size, created, provenance)
				SELECT randomblob(12), 'ann', c.id, 0, 12, s.created, s.provenance FROM dualview_content c, dualview_symbol s
				WHERE s.n = 1 ORDER BY c.id DESC LIMIT ?`,
		} {
			if _, err := table.write.ExecContext(b.Context(), q, min(left, batch)); err != nil {
				b.Fatal(err)
			}
		}
	}
	add(real / 2)
	return some
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	table := testTable(b, dir)
	for i := range *indexed {
		mustSymbolise(b, table, prose(uint64(i), 200000)[:1<<20])
	}
	if err := table.Close(); err != nil {
		b.Fatal(err)
	}
	db, err := sqlite.Open(filepath.Join(dir, "auditd.db"), Migrations())
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for b.Loop() {
		t, err := New(b.Context(), Config{DB: db, Dir: filepath.Join(dir, "dualview")})
		if err != nil {
			b.Fatal(err)
		}
		if err := t.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFold(b *testing.B) {
	x := &index{folder: newFolder(), shingler: newShingler([]byte("k"))}
	text := []byte(prose(5, 200000)[:1<<20])
	b.Run("fold", func(b *testing.B) {
		b.SetBytes(1 << 20)
		dst := make([]byte, 0, 1<<21)
		for b.Loop() {
			dst = x.fold(dst[:0], text, nil)
		}
	})
	folded := x.fold(nil, text, nil)
	b.Run("keep", func(b *testing.B) {
		b.SetBytes(1 << 20)
		dst := make([]shingle, 0, 1<<17)
		for b.Loop() {
			dst = x.keep(dst[:0], folded)
		}
	})
	b.Run("cjk", func(b *testing.B) {
		text := bytes.Repeat([]byte("漢字仮名交じり文を一つ。Кириллица тоже."), 20000)[:1<<20]
		b.SetBytes(1 << 20)
		dst := make([]byte, 0, 1<<21)
		for b.Loop() {
			dst = x.fold(dst[:0], text, nil)
		}
	})
}
