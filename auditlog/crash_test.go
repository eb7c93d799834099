package auditlog_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.org/auditd/auditlog"
)

// TestMain lets the test binary be the process that TestKill kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDITLOG_TEST_APPEND"); dir != "" {
		appendUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// appendUntilKilled appends from many goroutines and prints each acknowledged
// index and id.
func appendUntilKilled(dir string) {
	l, err := auditlog.Open(auditlog.Config{Dir: dir, Now: time.Now, SegmentBytes: 100_000,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	var mu sync.Mutex
	n := int(l.Size())
	for range 8 {
		go func() {
			for {
				mu.Lock()
				n++
				e := entry(n)
				mu.Unlock()
				index, err := l.Append(context.Background(), e)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				mu.Lock()
				fmt.Printf("%d %s\n", index, e.Decision.ID)
				mu.Unlock()
			}
		}()
	}
	select {}
}

// TestKill kills a process that appends under load, at moments all over its
// life, and expects every decision that it acknowledged.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := map[int64]string{}
	repairs := 0
	for round := range 25 {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "AUDITLOG_TEST_APPEND="+dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		// The moment is a number of acknowledgements and a little more, so that it
		// falls anywhere between two of them.
		stop, extra := rand.IntN(60), time.Duration(rand.IntN(2000))*time.Microsecond
		for i := 0; lines.Scan(); i++ {
			note(t, acknowledged, lines.Text())
			if i == stop {
				time.Sleep(extra)
				cmd.Process.Kill()
			}
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("round %d: the process ended by itself: %v\n%s", round, err, &stderr)
		}
		repairs += strings.Count(stderr.String(), "was repaired")
		if _, err := auditlog.Verify(dir); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	l := open(t, config(t, dir))
	for index, id := range acknowledged {
		r, err := l.Get(index)
		if err != nil || r.ID != id {
			t.Fatalf("the acknowledged decision %s is not record %d: %v, %v", id, index, r, err)
		}
		if found, err := l.Find(id); err != nil || found.ID != id {
			t.Fatalf("the acknowledged decision %s is not found: %v", id, err)
		}
	}
	sum := verify(t, dir, l.Size())
	t.Logf("%d acknowledged, %d recorded, %d segments, repaired after %d kills", len(acknowledged), l.Size(), sum.Segments, repairs)
}

func note(t *testing.T, acknowledged map[int64]string, line string) {
	var index int64
	var id string
	if _, err := fmt.Sscanf(line, "%d %s", &index, &id); err != nil {
		return // "ready", or a line that the kill cut
	}
	if before, ok := acknowledged[index]; ok && before != id {
		t.Fatalf("record %d was acknowledged for %s and for %s", index, before, id)
	}
	acknowledged[index] = id
}

// crashed makes a log of n records as a crash would leave it: acknowledged is
// how many of them its head counts.
func crashed(t *testing.T, n, acknowledged int) string {
	t.Helper()
	cfg := config(t, t.TempDir())
	l := open(t, cfg)
	head := filepath.Join(cfg.Dir, "log", "head")
	fill(t, l, 0, acknowledged)
	old := read(t, head)
	fill(t, l, acknowledged, n-acknowledged)
	l.Close()
	write(t, head, old)
	return cfg.Dir
}

func TestCrashWindow(t *testing.T) {
	whole := func(f func(b []byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := segments(t, dir)[0]
			write(t, path, f(read(t, path)))
		}
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		kept   int64
		cut    bool
	}{
		"before the head was written": {func(*testing.T, string) {}, 2, false},
		"in the middle of a record":   {whole(func(b []byte) []byte { return b[:len(b)-100] }), 1, true},
		"before the newline":          {whole(func(b []byte) []byte { return b[:len(b)-1] }), 1, true},
		"zeros where a record was to be": {whole(func(b []byte) []byte {
			clear(b[len(b)-500:])
			return b
		}), 1, true},
		"garbage": {whole(func(b []byte) []byte { return append(b, "garbage\n{}\n"...) }), 2, true},
		"values torn": {func(t *testing.T, dir string) {
			m, _ := filepath.Glob(filepath.Join(dir, "values", "*"))
			b := read(t, m[0])
			write(t, m[0], append(b, b[:100]...))
		}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashed(t, 5, 3)
			c.damage(t, dir)
			sum, err := auditlog.Verify(dir)
			if err != nil || sum.Records != 3 || sum.Pending != c.kept || (sum.TornBytes > 0) != c.cut {
				t.Fatalf("Verify: %+v, %v", sum, err)
			}
			l := open(t, config(t, dir))
			if r := l.Repaired(); r.Kept != c.kept || (r.CutBytes > 0) != c.cut {
				t.Errorf("repaired: %+v", r)
			}
			size := 3 + c.kept
			if r, err := l.Get(size); err != nil || r.Kind != auditlog.KindRepaired || r.Repaired.Kept != c.kept {
				t.Errorf("the repair is not recorded: %+v, %v", r, err)
			}
			for i := range size {
				r, err := l.Get(i)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := l.Value(r); err != nil {
					t.Errorf("value of record %d: %v", i, err)
				}
			}
			fill(t, l, int(size)+1, 3)
			sum = verify(t, dir, size+4)
			if sum.Pending != 0 || sum.TornBytes != 0 {
				t.Errorf("after the repair: %+v", sum)
			}
		})
	}
}

// TestAcknowledgedIsNotRepaired: the same damage to what the head counts is
// refused, and the files stay as they were for whoever investigates.
func TestAcknowledgedIsNotRepaired(t *testing.T) {
	dir := crashed(t, 5, 5)
	path := segments(t, dir)[0]
	good := read(t, path)
	for _, n := range []int{1, 2, 100, len(good) / 2, len(good)} {
		bad := good[:len(good)-n]
		write(t, path, bad)
		refused(t, dir)
		if !bytes.Equal(read(t, path), bad) {
			t.Fatalf("cut by %d: the refused log was changed", n)
		}
	}
}

// TestFailure makes each write and each sync fail once. The appender is told,
// nobody is served after that, and opening again finds everything that had been
// acknowledged.
func TestFailure(t *testing.T) {
	boom := errors.New("no space left on device")
	for _, file := range []string{"head", "00000000000000000000.jsonl"} {
		for _, dirName := range []string{"log", "values"} {
			for _, kind := range []string{"write", "sync"} {
				if dirName == "values" && file == "head" {
					continue
				}
				t.Run(dirName+" "+file+" "+kind, func(t *testing.T) {
					failing := false
					hook := func(want string) func(f *os.File) error {
						return func(f *os.File) error {
							if failing && kind == want && filepath.Base(f.Name()) == file && filepath.Base(filepath.Dir(f.Name())) == dirName {
								return boom
							}
							return nil
						}
					}
					cfg := config(t, t.TempDir())
					l, err := auditlog.OpenWithDisk(cfg, hook("write"), hook("sync"))
					if err != nil {
						t.Fatal(err)
					}
					fill(t, l, 0, 3)
					failing = true
					if _, err := l.Append(t.Context(), entry(3)); !errors.Is(err, auditlog.ErrFailed) || !errors.Is(err, boom) {
						t.Fatalf("append on a failing disk: %v", err)
					}
					failing = false // a second sync would succeed: nothing may be built on that
					if _, err := l.Append(t.Context(), entry(4)); !errors.Is(err, auditlog.ErrFailed) {
						t.Fatalf("append after a failure: %v", err)
					}
					if l.Err() == nil || l.Size() != 3 {
						t.Errorf("err %v, size %d", l.Err(), l.Size())
					}
					if _, err := l.Get(2); err != nil {
						t.Errorf("what was acknowledged cannot be read: %v", err)
					}
					l.Close()
					l = open(t, cfg)
					for i := range int64(3) {
						if r, err := l.Get(i); err != nil || r.ID != fmt.Sprintf("d-%06d", i) {
							t.Errorf("record %d: %v, %v", i, r, err)
						}
					}
					if _, err := l.Append(t.Context(), entry(9)); err != nil {
						t.Error(err)
					}
					verify(t, cfg.Dir, l.Size())
				})
			}
		}
	}
}

// TestFailureUnderLoad: whoever was in the failed batch or came later gets an
// error, and whoever got none is in the log.
func TestFailureUnderLoad(t *testing.T) {
	var mu sync.Mutex
	syncs := 0
	cfg := config(t, t.TempDir())
	l, err := auditlog.OpenWithDisk(cfg, func(*os.File) error { return nil }, func(*os.File) error {
		mu.Lock()
		defer mu.Unlock()
		if syncs++; syncs > 40 {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := map[int64]string{}
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 100 {
				e := entry(c*100 + i)
				index, err := l.Append(context.Background(), e)
				if err != nil {
					return
				}
				mu.Lock()
				acknowledged[index] = e.Decision.ID
				mu.Unlock()
			}
			t.Error("never failed")
		})
	}
	wg.Wait()
	l.Close()
	l = open(t, cfg)
	for index, id := range acknowledged {
		if r, err := l.Get(index); err != nil || r.ID != id {
			t.Errorf("record %d: %v, %v; want %s", index, r, err, id)
		}
	}
	verify(t, cfg.Dir, l.Size())
}
