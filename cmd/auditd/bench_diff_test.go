package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/quality"
	"example.org/auditd/bench/report"
	"example.org/auditd/schema"
)

// TestDiffWatchesAllocations: more allocations than the margin allows are a
// regression, fewer are none, and a run that did not count them is one.
func TestDiffWatchesAllocations(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, allocs map[string]float64) string {
		run := &report.Run{Allocations: allocs, Results: []quality.Result{{Case: "a", Kind: cases.Attack, Surface: schema.Context, Verdict: quality.Verdict{Action: schema.Block}}}}
		path := filepath.Join(dir, name)
		if err := writeBaseline(path, run); err != nil {
			t.Fatal(err)
		}
		return path
	}
	before := write("before", map[string]float64{"a page": 400})
	p := &program{getenv: func(string) string { return "" }, stdout: new(bytes.Buffer), stderr: new(bytes.Buffer)}
	for name, x := range map[string]struct {
		allocs map[string]float64
		fails  bool
	}{
		"the same": {map[string]float64{"a page": 400}, false}, "within the margin": {map[string]float64{"a page": 420}, false}, "fewer": {map[string]float64{"a page": 100}, false},
		"more": {map[string]float64{"a page": 424}, true}, "not counted": {nil, true},
	} {
		err := p.benchDiff(before, write("after", x.allocs), 0, 5)
		if (err != nil) != x.fails || err != nil && !strings.Contains(err.Error(), "allocations") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAllocations: the count is that of the whole decision, the same twice.
func TestAllocations(t *testing.T) {
	home := t.TempDir()
	p := &program{getenv: func(name string) string { return map[string]string{"HOME": home}[name] }}
	cfg, err := p.config()
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.allocations(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.allocations(t.Context(), cfg)
	if err != nil || len(a) != 2 {
		t.Fatal(a, err)
	}
	for name, n := range a {
		if n < 50 || b[name] > n*1.03+allocSlack || n > b[name]*1.03+allocSlack {
			t.Errorf("%s: %.1f and %.1f allocations", name, n, b[name])
		}
	}
	t.Log(a, b)
}
