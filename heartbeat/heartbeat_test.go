package heartbeat

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAlive(t *testing.T) {
	now := time.Unix(1000, 0)
	b := New(func() time.Time { return now })
	if b.Alive("openclaw") {
		t.Error("nobody has reported, and yet it lives")
	}
	r := Report{Host: "openclaw", Instance: "1", Plugin: "0.1.0", Protocol: Protocol}
	b.Note(&r)
	if !b.Alive("openclaw") || b.Alive("other") {
		t.Error("a report was not taken for what it is")
	}
	for name, change := range map[string]func(*Report){
		"problems": func(r *Report) { r.Problems = []string{"x"} },
		"protocol": func(r *Report) { r.Protocol++ },
		"ends":     func(r *Report) { r.Ends = true },
	} {
		bad := r
		change(&bad)
		b.Note(&bad)
		if b.Alive("openclaw") {
			t.Errorf("%s: it counts as alive", name)
		}
	}
	b.Note(&r)
	now = now.Add(Lost)
	if b.Alive("openclaw") {
		t.Error("a silent plugin counts as alive")
	}
}

func TestBounds(t *testing.T) {
	now := time.Unix(1000, 0)
	b := New(func() time.Time { now = now.Add(time.Second); return now })
	for i := range maxHosts + 10 {
		b.Note(&Report{Host: "h", Instance: fmt.Sprint(i), Plugin: "1"})
	}
	if s := b.Seen(); len(s) != maxHosts || s[0].Instance != fmt.Sprint(maxHosts+9) || s[maxHosts-1].Instance != "10" {
		t.Errorf("%d are kept, from %s to %s", len(s), s[len(s)-1].Instance, s[0].Instance)
	}
	long := strings.Repeat("x", maxText+1)
	for field, r := range map[string]Report{
		"host": {Instance: "1", Plugin: "1"}, "instance": {Host: "h", Plugin: "1"}, "plugin": {Host: "h", Instance: "1"},
		"host_version": {Host: "h", Instance: "1", Plugin: "1", HostVersion: long},
		"problems":     {Host: "h", Instance: "1", Plugin: "1", Problems: []string{long}},
	} {
		if got, problem := r.Check(); got != field || problem == "" {
			t.Errorf("%s: %q %q", field, got, problem)
		}
	}
	if f, _ := (&Report{Host: "h", Instance: "1", Plugin: "1", Problems: make([]string, maxProblems+1)}).Check(); f != "problems" {
		t.Error("too many problems were taken")
	}
	if f, p := (&Report{Host: "h", Instance: "1", Plugin: "1"}).Check(); f != "" || p != "" {
		t.Error(f, p)
	}
}
