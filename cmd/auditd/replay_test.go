package main

import (
	"strings"
	"testing"
	"time"

	"example.org/auditd/httpapi"
	"example.org/auditd/schema"
)

// TestDaemonReplays: the daemon says what a change of its policy would have
// done, and neither asks anybody nor writes to its log for it.
func TestDaemonReplays(t *testing.T) {
	d, _ := inProcess(t, "audit")
	for _, text := range []string{"a plain note", "another note", "ASKOWNER about this"} {
		f := &schema.Flow{Payload: text, Source: schema.Source{Kind: schema.SourceWeb, ID: "https://a.test/", Trust: schema.Untrusted}, Sink: schema.Sink{Kind: schema.SinkReasoning}}
		if err := f.Complete(0); err != nil {
			t.Fatal(err)
		}
		d.firewall.Audit(t.Context(), f, schema.CredentialHook)
	}
	size := d.log.Size()
	waiting, err := d.queue.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	ask := func(policy string, since time.Duration) (added, lost, same, flows int) {
		t.Helper()
		r, err := d.replay(t.Context(), &httpapi.ReplayRequest{Since: time.Now().Add(-since), Policy: policy, Limit: 10}, func(int, int) { steps++ })
		if err != nil {
			t.Fatal(err)
		}
		return r.Added, r.Lost, r.Same, r.Flows
	}
	if added, lost, same, flows := ask("", time.Hour); added != 0 || lost != 0 || same != 3 || flows != 3 || steps != 3 {
		t.Errorf("as things are: %d added, %d lost, %d the same of %d in %d steps", added, lost, same, flows, steps)
	}
	stricter := "version: 1\nrules:\n  - {name: no-web, when: 'source.kind == \"web\"', then: block, reason: mine}\n"
	if added, _, _, flows := ask(stricter, time.Hour); added != 2 || flows != 3 {
		t.Errorf("stricter: %d added of %d", added, flows)
	}
	if _, _, _, flows := ask("", time.Nanosecond); flows != 0 {
		t.Errorf("none is so young: %d", flows)
	}
	if _, err := d.replay(t.Context(), &httpapi.ReplayRequest{Policy: "rulez: 1", Limit: 10}, func(int, int) {}); err == nil || !strings.Contains(err.Error(), "rulez") {
		t.Errorf("a bad policy: %v", err)
	}
	if d.log.Size() != size {
		t.Errorf("it wrote %d records", d.log.Size()-size)
	}
	if now, err := d.queue.Pending(t.Context()); err != nil || len(now) != len(waiting) {
		t.Errorf("it asked: %d questions, %d before, %v", len(now), len(waiting), err)
	}
}
