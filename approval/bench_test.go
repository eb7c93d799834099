package approval_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"example.org/auditd/approval"
)

// onDisk keeps the database on the disk of the repository: a temporary
// directory may be in memory, where a commit costs nothing.
func onDisk(b *testing.B) *fixture {
	wd, err := os.Getwd()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(wd, "..", ".cache"), 0o755); err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp(filepath.Join(wd, "..", ".cache"), "bench-approval-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	c := newClock()
	db, q := openQueue(b, filepath.Join(dir, "x.db"), c, func(c *approval.Config) { c.MaxPending, c.MaxPerAgent = 1<<30, 1<<30 })
	return &fixture{q, c, db, dir}
}

func BenchmarkAsk(b *testing.B) {
	f := onDisk(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ask(b, f.Queue, fmt.Sprint("payload ", i))
	}
}

func BenchmarkAskAgain(b *testing.B) {
	f := onDisk(b)
	b.ReportAllocs()
	for b.Loop() {
		ask(b, f.Queue, "payload")
	}
}

func BenchmarkRedeem(b *testing.B) {
	f := onDisk(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		a := ask(b, f.Queue, fmt.Sprint("payload ", i))
		answer(b, f.Queue, a.ID, true)
		b.StartTimer()
		if !redeem(b, f.Queue, a.Ticket, a.Binding) {
			b.Fatal("not redeemed")
		}
	}
}

func BenchmarkAllowed(b *testing.B) {
	f := onDisk(b)
	flow := question(b, "git push").Flow
	b.Run("none", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok, err := f.Allowed(b.Context(), flow, false); ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
}
