package auditlog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"example.org/auditd/auditlog"
	"example.org/auditd/schema"
)

// FuzzRecord: whatever a line holds, reading it ends, and what is accepted
// means the same when it is written again.
func FuzzRecord(f *testing.F) {
	dir := seedLog(f)
	for _, line := range bytes.Split(bytes.TrimSpace(read(f, segments(f, dir)[0])), []byte("\n")) {
		f.Add(line)
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"v":1,"index":0,"prev":"","kind":"decision"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := auditlog.ParseRecord(line)
		if err != nil {
			return
		}
		again, err := schema.Encode(r)
		if err != nil {
			t.Fatalf("accepted, but cannot be encoded: %v", err)
		}
		r2, err := auditlog.ParseRecord(again)
		if err != nil {
			t.Fatalf("its own encoding is not accepted: %v", err)
		}
		if third, err := schema.Encode(r2); err != nil || !bytes.Equal(again, third) {
			t.Fatalf("reads differently: %v", err)
		}
	})
}

// FuzzSegment puts arbitrary bytes in place of a segment. Neither Verify nor
// Open may panic or accept anything but the segment as it was, with at most
// unacknowledged bytes after it.
func FuzzSegment(f *testing.F) {
	dir := seedLog(f)
	path := segments(f, dir)[0]
	good := read(f, path)
	head := read(f, filepath.Join(dir, "log", "head"))
	f.Add(good)
	f.Add(append(bytes.Clone(good), `{"v":1`...))
	f.Add(good[:len(good)-10])
	f.Add([]byte("\n\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		write(t, path, data)
		write(t, filepath.Join(dir, "log", "head"), head)
		keeps := bytes.HasPrefix(data, good)
		if _, err := auditlog.Verify(dir); (err == nil) != keeps {
			t.Fatalf("Verify: %v, the acknowledged records are there: %v", err, keeps)
		}
		l, err := auditlog.Open(config(t, dir))
		if (err == nil) != keeps {
			t.Fatalf("Open: %v, the acknowledged records are there: %v", err, keeps)
		}
		if err == nil {
			l.Close()
			if !bytes.HasPrefix(read(t, path), good) {
				t.Fatal("Open changed acknowledged records")
			}
		} else if got := read(t, path); !bytes.Equal(got, data) {
			t.Fatal("Open changed a log that it refused")
		}
	})
}

func seedLog(f *testing.F) string {
	dir, err := os.MkdirTemp("", "auditlog")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { os.RemoveAll(dir) })
	l, err := auditlog.Open(config(f, dir))
	if err != nil {
		f.Fatal(err)
	}
	fill(f, l, 0, 2)
	if err := l.EraseValue(f.Context(), 0, "x"); err != nil {
		f.Fatal(err)
	}
	l.Close()
	return dir
}
