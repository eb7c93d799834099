package main

import (
	"bytes"
	"testing"
)

// TestBenchLoad: every call is counted, log and symbol table have the sizes that
// were asked for, and each of them is measured.
func TestBenchLoad(t *testing.T) {
	home := t.TempDir()
	p := &program{getenv: func(name string) string { return map[string]string{"HOME": home}[name] }, stdout: new(bytes.Buffer), stderr: new(bytes.Buffer)}
	o := &loadOptions{rates: []int{30}, seconds: 1, bytes: []int{5000}, sizes: []int{300, 1500}}
	r, err := p.measureLoad(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Cold.Calls != 30 || len(r.Rates) != 1 || r.Rates[0].Calls != 30 || r.Sizes[0].Calls != 30 || r.Rates[0].Failed != 0 || r.Rates[0].Response.P50 < r.Rates[0].Service.P50 {
		t.Errorf("%+v", r)
	}
	for i, g := range r.Growth {
		if n := o.sizes[i]; g.Symbols != n || g.Records < n || g.Decision.P50 <= 0 || g.Isolated.P50 <= 0 || g.Allocations <= 0 || g.RSSMiB <= 0 {
			t.Errorf("size %d: %+v", n, g)
		}
	}
	for name, bad := range map[string]loadOptions{
		"falling sizes": {rates: []int{1}, seconds: 1, bytes: []int{1}, sizes: []int{2000, 1000}},
		"no rate":       {seconds: 1, bytes: []int{1}, sizes: []int{1000}},
		"too large":     {rates: []int{1}, seconds: 1, bytes: []int{1 << 20}, sizes: []int{1000}},
		"too many":      {rates: []int{1}, seconds: 1, bytes: []int{1}, sizes: []int{20_000_000}},
		"no time":       {rates: []int{1}, bytes: []int{1}, sizes: []int{1000}},
	} {
		if bad.check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
