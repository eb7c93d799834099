package auditlog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/auditd/auditlog"
)

func values(t *testing.T, dir string) []string {
	t.Helper()
	m, err := filepath.Glob(filepath.Join(dir, "values", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestErasure: what must be forgotten can be, the log still verifies and says
// how much is gone and whether that is on record.
func TestErasure(t *testing.T) {
	cfg := config(t, t.TempDir())
	cfg.SegmentBytes = 9000
	l := open(t, cfg)
	fill(t, l, 0, 12)
	if err := l.EraseValue(t.Context(), 1, "owner-request"); err != nil {
		t.Fatal(err)
	}
	r, err := l.Get(1)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := l.Value(r); v != nil || err != nil {
		t.Errorf("erased, but: %+v, %v", v, err)
	}
	if sum := verify(t, cfg.Dir, 13); sum.Erased != 1 || sum.ErasedUnlogged != 0 || sum.Values != 12 {
		t.Errorf("after erasing one: %+v", sum)
	}
	// Somebody removes a file by hand: the log verifies, and says so.
	path := values(t, cfg.Dir)[1]
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	sum := verify(t, cfg.Dir, 13)
	if sum.Erased < 2 || sum.ErasedUnlogged != sum.Erased-1 {
		t.Errorf("after removing a file: %+v", sum)
	}
	l.Close()
	l = open(t, cfg)
	fill(t, l, 13, 2)
	verify(t, cfg.Dir, 15)
	if got := grep(t, cfg.Dir, "log", "owner-request"); got == 0 {
		t.Error("the reason is not recorded")
	}
}

// TestEraseActive removes the file that is being written to while the log is
// closed: later values must not come to lie where a record expects older ones.
func TestEraseActive(t *testing.T) {
	cfg := config(t, t.TempDir())
	l := open(t, cfg)
	fill(t, l, 0, 3)
	l.Close()
	if err := os.Remove(values(t, cfg.Dir)[0]); err != nil {
		t.Fatal(err)
	}
	l = open(t, cfg)
	fill(t, l, 3, 3)
	if sum := verify(t, cfg.Dir, 6); sum.Erased != 3 {
		t.Errorf("%+v", sum)
	}
	r, err := l.Get(4)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := l.Value(r); err != nil || v == nil || v.ID != "d-000004" {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestChangedValue(t *testing.T) {
	dir := smallLog(t, 3)
	path := values(t, dir)[0]
	good := read(t, path)
	for name, bad := range map[string][]byte{
		"another word":  bytes.Replace(good, []byte("redacted payload"), []byte("replaced payload"), 1),
		"half cut":      good[:len(good)/2],
		"half blanked":  append(bytes.Repeat([]byte{' '}, 50), good[50:]...),
		"newline blank": bytes.Replace(good, []byte("\n"), []byte(" "), 1),
	} {
		write(t, path, bad)
		_, err := auditlog.Verify(dir)
		if err == nil || !strings.Contains(err.Error(), "values/") {
			t.Errorf("%s: %v", name, err)
		}
	}
	write(t, path, good)
	verify(t, dir, 3)
}

func TestExpireValues(t *testing.T) {
	cfg := config(t, t.TempDir())
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg.Now = func() time.Time { return now }
	l := open(t, cfg)
	fill(t, l, 0, 3)
	now = now.Add(25 * time.Hour) // a new segment
	fill(t, l, 3, 3)
	erase := func(before time.Time, want int64) {
		t.Helper()
		if n, err := l.ExpireValues(t.Context(), before, "retention"); err != nil || n != want {
			t.Fatalf("expired %d, %v; want %d", n, err, want)
		}
	}
	erase(now.Add(-26*time.Hour), 0)
	erase(now.Add(-time.Hour), 3)
	erase(now.Add(-time.Hour), 0)
	if sum := verify(t, cfg.Dir, 7); sum.Erased != 3 || sum.ErasedUnlogged != 0 {
		t.Errorf("%+v", sum)
	}
	// Nothing happens for months: the segment that is being written goes too.
	now = now.Add(100 * 24 * time.Hour)
	erase(now.Add(-time.Hour), 4)
	if sum := verify(t, cfg.Dir, 8); sum.Erased != 6 || sum.ErasedUnlogged != 0 {
		t.Errorf("%+v", sum)
	}
	if _, err := l.Append(t.Context(), entry(9)); err != nil {
		t.Fatal(err)
	}
	erase(now.Add(-time.Hour), 0)
	if grep(t, cfg.Dir, "values", "redacted payload") != 1 {
		t.Error("the wrong texts are left")
	}
	l.Close()
	open(t, cfg)
}

// grep counts a text in the files of a directory.
func grep(t *testing.T, dir, sub, text string) int {
	t.Helper()
	m, err := filepath.Glob(filepath.Join(dir, sub, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range m {
		n += strings.Count(string(read(t, path)), text)
	}
	return n
}
