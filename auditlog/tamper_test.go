package auditlog_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.org/auditd/auditlog"
	"example.org/auditd/schema"
)

// smallLog makes a log of several segments and returns its directory.
func smallLog(t *testing.T, n int) string {
	t.Helper()
	cfg := config(t, t.TempDir())
	cfg.SegmentBytes = 9000
	l := open(t, cfg)
	fill(t, l, 0, n)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return cfg.Dir
}

// evidence lists the files that Verify answers for; the others are caches and
// the lock.
func evidence(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"log/*.jsonl", "values/*.jsonl", "log/head", "log.pub"} {
		m, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(m) == 0 {
			t.Fatalf("%s: %v, %v", pattern, m, err)
		}
		files = append(files, m...)
	}
	return files
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func segments(t testing.TB, dir string) []string {
	t.Helper()
	m, err := filepath.Glob(filepath.Join(dir, "log", "*.jsonl"))
	if err != nil || len(m) == 0 {
		t.Fatal(m, err)
	}
	slices.Sort(m)
	return m
}

// TestFlipEachByte changes each byte of each file, once by its lowest bit and
// once to a blank, and expects Verify to notice every time.
func TestFlipEachByte(t *testing.T) {
	cfg := config(t, t.TempDir())
	cfg.SegmentBytes = 100 // a segment for each record
	l := open(t, cfg)
	fill(t, l, 0, 1)
	zero := auditlog.Entry{Flow: &schema.Flow{}, Decision: &schema.Decision{ID: "zero"}, RedactedPayload: "x"}
	for range 2 {
		if _, err := l.Append(t.Context(), zero); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	dir := cfg.Dir
	verify(t, dir, 3)
	for _, path := range evidence(t, dir) {
		good := read(t, path)
		for i, c := range good {
			if strings.HasSuffix(path, "log.pub") && i == len(good)-1 {
				continue // the newline after the key
			}
			for _, other := range []byte{c ^ 1, ' '} {
				if other == c || other == ' ' && filepath.Base(filepath.Dir(path)) != "values" {
					continue // blanks mean something in values alone
				}
				bad := bytes.Clone(good)
				bad[i] = other
				write(t, path, bad)
				if _, err := auditlog.Verify(dir); err == nil {
					t.Fatalf("%s: byte %d of %d changed from %q to %q, and Verify found nothing", filepath.Base(path), i, len(good), c, other)
				} else if strings.Contains(err.Error(), canary) {
					t.Fatalf("the error quotes the log: %v", err)
				}
			}
		}
		write(t, path, good)
	}
	verify(t, dir, 3)
}

// TestCutAtEachLength cuts the last segment and the head at every length.
func TestCutAtEachLength(t *testing.T) {
	dir := smallLog(t, 5)
	last := segments(t, dir)[len(segments(t, dir))-1]
	for _, path := range []string{last, filepath.Join(dir, "log", "head")} {
		good := read(t, path)
		for n := range good {
			write(t, path, good[:n])
			if _, err := auditlog.Verify(dir); err == nil {
				t.Fatalf("%s: cut to %d of %d bytes, and Verify found nothing", filepath.Base(path), n, len(good))
			}
			if n%97 == 0 || n == len(good)-1 {
				refused(t, dir)
			}
		}
		write(t, path, good)
	}
	verify(t, dir, 5)
}

// refused checks that a damaged log is not opened, nor changed by the attempt.
func refused(t *testing.T, dir string) {
	t.Helper()
	if l, err := auditlog.Open(config(t, dir)); err == nil {
		l.Close()
		t.Fatal("a damaged log was opened")
	}
}

func TestTampering(t *testing.T) {
	lines := func(b []byte) [][]byte { return bytes.SplitAfter(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) }
	join := func(l [][]byte) []byte {
		b := bytes.Join(l, nil)
		if !bytes.HasSuffix(b, []byte("\n")) {
			b = append(b, '\n')
		}
		return b
	}
	edit := func(f func(l [][]byte) [][]byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := segments(t, dir)[1]
			write(t, path, join(f(lines(read(t, path)))))
		}
	}
	for name, c := range map[string]struct {
		tamper func(t *testing.T, dir string)
		want   string
	}{
		"swapped":                   {edit(func(l [][]byte) [][]byte { l[0], l[1] = l[1], l[0]; return l }), "stands where record"},
		"missing":                   {edit(func(l [][]byte) [][]byte { return slices.Delete(l, 0, 1) }), "stands where record"},
		"doubled":                   {edit(func(l [][]byte) [][]byte { return slices.Insert(l, 1, l[0]) }), "stands where record"},
		"last of a segment missing": {edit(func(l [][]byte) [][]byte { return l[:len(l)-1] }), "is missing"},
		"changed": {edit(func(l [][]byte) [][]byte {
			l[0] = bytes.Replace(l[0], []byte(`"action":"rewrite_and_continue"`), []byte(`"action":"allow"`), 1)
			return l
		}), "does not name the hash"},
		"segment missing":       {func(t *testing.T, dir string) { os.Remove(segments(t, dir)[1]) }, "is missing"},
		"first segment missing": {func(t *testing.T, dir string) { os.Remove(segments(t, dir)[0]) }, "is missing"},
		"last segment missing": {func(t *testing.T, dir string) {
			s := segments(t, dir)
			os.Remove(s[len(s)-1])
		}, "are missing at the end"},
		"all segments missing": {func(t *testing.T, dir string) {
			for _, s := range segments(t, dir) {
				os.Remove(s)
			}
		}, "are missing at the end"},
		"segment renamed": {func(t *testing.T, dir string) {
			os.Rename(segments(t, dir)[1], filepath.Join(dir, "log", "00000000000000000099.jsonl"))
		}, "is missing"},
		"garbage in a segment": {func(t *testing.T, dir string) {
			path := segments(t, dir)[1]
			write(t, path, append(read(t, path), "garbage\n"...))
		}, "does not begin as records do"},
		"torn line in a finished segment": {func(t *testing.T, dir string) {
			path := segments(t, dir)[1]
			write(t, path, append(read(t, path), `{"v":1`...))
		}, "not finished"},
		"head missing": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "log", "head")) }, "head"},
		"head of another log": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "log", "head"), read(t, filepath.Join(smallLog(t, 12), "log", "head")))
		}, "not signed by this log's key"},
		"verifier key missing": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "log.pub")) }, "log.pub"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallLog(t, 12)
			if len(segments(t, dir)) < 3 {
				t.Fatalf("only %d segments: the test proves nothing", len(segments(t, dir)))
			}
			c.tamper(t, dir)
			_, err := auditlog.Verify(dir)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("Verify: %v, want %q", err, c.want)
			}
			if name == "changed" { // within a finished segment: the owner's verify finds it, Open need not
				return
			}
			refused(t, dir)
		})
	}
}

// TestOlderHead puts an old head back and cuts the log to it. Nothing on the
// machine shows that; a checkpoint that was kept elsewhere does.
func TestOlderHead(t *testing.T) {
	cfg := config(t, t.TempDir())
	l := open(t, cfg)
	fill(t, l, 0, 2)
	seg, head := read(t, segments(t, cfg.Dir)[0]), read(t, filepath.Join(cfg.Dir, "log", "head"))
	early := l.Checkpoint()
	fill(t, l, 2, 2)
	kept, key := l.Checkpoint(), l.VerifierKey()
	l.Close()
	for _, c := range [][]byte{early, kept, nil} {
		if _, err := auditlog.VerifyAgainst(cfg.Dir, key, c); err != nil {
			t.Errorf("untouched: %v", err)
		}
	}
	write(t, segments(t, cfg.Dir)[0], seg)
	write(t, filepath.Join(cfg.Dir, "log", "head"), head)
	if _, err := auditlog.VerifyAgainst(cfg.Dir, key, kept); err == nil || !strings.Contains(err.Error(), "was cut") {
		t.Errorf("rolled back: %v", err)
	}
	// A whole new log in its place has another key.
	other := open(t, config(t, t.TempDir()))
	if _, err := auditlog.VerifyAgainst(cfg.Dir, other.VerifierKey(), nil); err == nil {
		t.Error("another key was accepted")
	}
	// The same key, another history.
	cfg.Dir = t.TempDir()
	fork := config(t, cfg.Dir)
	fork.Keys = &auditlog.Keys{}
	if _, err := auditlog.Open(fork); err == nil {
		t.Error("empty keys were accepted")
	}
}

// TestCachesAreOnlyCaches removes and damages what can be made again.
func TestCachesAreOnlyCaches(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"removed": os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"cut":     func(path string) error { return os.Truncate(path, 65) },
		"zeroed":  func(path string) error { return os.WriteFile(path, make([]byte, 4000), 0o600) },
		"longer":  func(path string) error { b, _ := os.ReadFile(path); return os.WriteFile(path, append(b, b...), 0o600) },
		"one byte": func(path string) error {
			b, _ := os.ReadFile(path)
			b[len(b)-1] ^= 1
			return os.WriteFile(path, b, 0o600)
		},
		"first byte": func(path string) error { b, _ := os.ReadFile(path); b[0] ^= 1; return os.WriteFile(path, b, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallLog(t, 12)
			for _, pattern := range []string{"log/*.idx", "log/tree"} {
				m, _ := filepath.Glob(filepath.Join(dir, pattern))
				if len(m) == 0 {
					t.Fatalf("no %s", pattern)
				}
				for _, path := range m {
					if err := damage(path); err != nil {
						t.Fatal(err)
					}
				}
			}
			verify(t, dir, 12)
			l := open(t, config(t, dir))
			if l.Repaired() != (auditlog.Repaired{}) {
				t.Errorf("repaired: %+v", l.Repaired())
			}
			fill(t, l, 12, 3)
			for i := range int64(15) {
				r, err := l.Get(i)
				if err != nil {
					t.Fatal(err)
				}
				if found, err := l.Find(r.ID); err != nil || found.Index != i {
					t.Fatalf("Find: %v", err)
				}
				if _, err := l.Prove(i); err != nil && name != "one byte" && name != "first byte" {
					t.Errorf("Prove(%d): %v", i, err)
				}
			}
			verify(t, dir, 15)
		})
	}
}

// TestLostKeys: a log without its key or head is not quietly begun anew.
func TestLostKeys(t *testing.T) {
	for name, files := range map[string][]string{
		"key": {"log.key"}, "mac": {"log.mac"}, "pub": {"log.pub"}, "head": {"log/head"}, "key and head": {"log.key", "log/head"},
		"all of log": {"log"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallLog(t, 2)
			for _, f := range files {
				if err := os.RemoveAll(filepath.Join(dir, f)); err != nil {
					t.Fatal(err)
				}
			}
			refused(t, dir)
		})
	}
	dir := smallLog(t, 1)
	if err := os.Chmod(filepath.Join(dir, "log.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, dir)
}

// TestInterruptedCreation: a crash before log.key was written leaves no log.
func TestInterruptedCreation(t *testing.T) {
	cfg := config(t, t.TempDir())
	l := open(t, cfg)
	l.Close()
	for _, f := range []string{"log.key", "log/00000000000000000000.jsonl"} {
		if err := os.Remove(filepath.Join(cfg.Dir, f)); err != nil {
			t.Fatal(err)
		}
	}
	l = open(t, cfg)
	if _, err := l.Append(context.Background(), entry(0)); err != nil {
		t.Fatal(err)
	}
	verify(t, cfg.Dir, 1)
}
