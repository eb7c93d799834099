package auditlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.org/auditd/auditlog"
)

func TestOffline(t *testing.T) {
	dir := smallLog(t, 12)
	for _, from := range []int64{-1, 0, 1, 5, 11, 12, 100} {
		want := max(0, from)
		for l, err := range auditlog.Lines(dir, from) {
			if err != nil {
				t.Fatal(err)
			}
			r, err := l.Record()
			if err != nil || r.Index != want || l.Index != want {
				t.Fatalf("from %d: record %v, %v; want %d", from, r, err, want)
			}
			v, err := l.Value(dir)
			if err != nil || v.ID != r.ID {
				t.Fatalf("value: %v, %v", v, err)
			}
			want++
		}
		if want != max(12, from) {
			t.Errorf("from %d: ended at %d", from, want)
		}
	}
	for l := range auditlog.Lines(dir, 3) {
		if l.Index == 4 {
			break // an early end is no error
		}
	}
	if l, err := auditlog.Lookup(dir, 7, ""); err != nil || l.Index != 7 {
		t.Errorf("Lookup(7): %v, %v", l, err)
	}
	if l, err := auditlog.Lookup(dir, 0, "d-000009"); err != nil || l.Index != 9 {
		t.Errorf("Lookup(id): %v, %v", l, err)
	}
	for _, err := range []error{second(auditlog.Lookup(dir, 0, "nobody")), second(auditlog.Lookup(dir, 12, ""))} {
		if !errors.Is(err, auditlog.ErrNotFound) {
			t.Errorf("Lookup: %v", err)
		}
	}
	if err := second(auditlog.Lookup(t.TempDir(), 0, "")); err == nil || errors.Is(err, auditlog.ErrNotFound) {
		t.Errorf("no log: %v", err)
	}
}

func second(_ *auditlog.Line, err error) error { return err }

// TestFollow reads the files and the open log while it grows.
func TestFollow(t *testing.T) {
	cfg := config(t, t.TempDir())
	cfg.SegmentBytes = 9000
	l := open(t, cfg)
	fill(t, l, 0, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan int64, 100)
	go func() {
		for r, err := range l.Tail(ctx, 1) {
			if err != nil {
				t.Error(err)
				return
			}
			got <- r.Index
		}
		close(got)
	}()
	offline := make(chan int64, 100)
	go func() {
		for l, err := range auditlog.Follow(ctx, cfg.Dir, 1, time.Millisecond) {
			if err != nil {
				t.Error(err)
				return
			}
			offline <- l.Index
		}
		close(offline)
	}()
	fill(t, l, 3, 17)
	for _, c := range []chan int64{got, offline} {
		for want := int64(1); want < 20; want++ {
			if i := <-c; i != want {
				t.Fatalf("got record %d, want %d", i, want)
			}
		}
	}
	l.Close() // ends Tail
	if _, ok := <-got; ok {
		t.Error("a record too many")
	}
	cancel() // ends Follow
	if _, ok := <-offline; ok {
		t.Error("a record too many")
	}
}

func TestExport(t *testing.T) {
	cfg := config(t, t.TempDir())
	l := open(t, cfg)
	fill(t, l, 0, 2)
	nasty := entry(2)
	nasty.Decision.Reason = `a]b"c\d|e=f` + "\n<1>1 forged"
	if _, err := l.Append(t.Context(), nasty); err != nil {
		t.Fatal(err)
	}
	if err := l.EraseValue(t.Context(), 1, "x"); err != nil {
		t.Fatal(err)
	}
	export := func(opt auditlog.ExportOptions) []string {
		t.Helper()
		var b bytes.Buffer
		n, err := auditlog.Export(&b, cfg.Dir, opt)
		if err != nil {
			t.Fatal(err)
		}
		out := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if int(n) != len(out) {
			t.Fatalf("%v: %d records in %d lines", opt.Format, n, len(out))
		}
		return out
	}
	for _, line := range export(auditlog.ExportOptions{Format: auditlog.FormatJSONL}) {
		if _, err := auditlog.ParseRecord([]byte(line)); err != nil || strings.Contains(line, canary) {
			t.Errorf("%v: %s", err, line)
		}
	}
	with := export(auditlog.ExportOptions{Format: auditlog.FormatJSONL, Values: true})
	for i, want := range []bool{true, false, true, false} {
		var x struct{ Record, Value map[string]any }
		if err := json.Unmarshal([]byte(with[i]), &x); err != nil || x.Record == nil || (x.Value != nil) != want {
			t.Errorf("record %d: %v, %s", i, err, with[i])
		}
	}
	syslog := regexp.MustCompile(`^<\d+>1 \S+Z box auditd - (decision|erased) \[auditd@32473( [a-z_]+="([^"\\\]]|\\["\\\]])*")+\] [a-z _]+$`)
	for _, line := range export(auditlog.ExportOptions{Format: auditlog.FormatSyslog, Host: "bo\nx"}) {
		if !syslog.MatchString(line) || strings.Contains(line, canary) {
			t.Errorf("no syslog message: %s", line)
		}
	}
	cef := regexp.MustCompile(`^CEF:0\|auditd\|auditd\|1\\\|0\|([^|\\]|\\[|\\])+\|[a-z _]+\|\d\|rt=\d+( [A-Za-z0-9_]+=([^=\\]|\\[=\\])*)+$`)
	for _, line := range export(auditlog.ExportOptions{Format: auditlog.FormatCEF, Version: "1|0"}) {
		if !cef.MatchString(line) || strings.Contains(line, canary) {
			t.Errorf("no CEF event: %s", line)
		}
	}
	if out := export(auditlog.ExportOptions{Format: auditlog.FormatCEF, From: 1, To: 2}); len(out) != 1 {
		t.Errorf("%d lines of one", len(out))
	}
	if _, err := auditlog.Export(&bytes.Buffer{}, cfg.Dir, auditlog.ExportOptions{}); err == nil {
		t.Error("exported in no format")
	}
	var f auditlog.Format
	if err := f.UnmarshalText([]byte("xml")); err == nil || f != auditlog.FormatUnset {
		t.Error("xml is a format")
	}
}
