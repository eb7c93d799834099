package main

import (
	"context"
	"encoding/json"
	"flag"
	"os/exec"
	"strings"
	"testing"
	"time"

	"example.org/auditd/auditlog"
	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/entry"
	"example.org/auditd/bench/quality"
	"example.org/auditd/schema"
)

// allCases: without it every seventh case is enough for a test that runs often.
var allCases = flag.Bool("all-cases", false, "send every case through every entry point")

var oneCase = flag.String("case", "", "send this case alone")

// recorded is a decision as the log has it, and its flow as far as the log
// keeps it.
type recorded struct {
	*auditlog.Record
	*auditlog.Value
}

func (h *home) recordsFrom(t *testing.T, index int64) []recorded {
	t.Helper()
	var out []recorded
	for line, err := range auditlog.Lines(h.state, index) {
		if err != nil {
			t.Fatal(err)
		}
		r, v, err := readLine(h.state, line)
		if err != nil {
			t.Fatal(err)
		}
		if r.Decision != nil && v != nil {
			out = append(out, recorded{r, v})
		}
	}
	return out
}

// flow is the recorded flow once more. The log replaces secrets by placeholders;
// what stood there is a part of payload with which the redaction comes out the
// same.
func (r *recorded) flow(redact func(string) string, payload string) (*schema.Flow, bool) {
	f, v := r.Record.Flow, r.Value
	text, ok := v.Payload, len(v.Payload) == f.Payload.Bytes
	before, rest, masked := strings.Cut(v.Payload, "⟦")
	_, after, _ := strings.Cut(rest, "⟧")
	n := f.Payload.Bytes - len(before) - len(after)
	for at := 0; masked && !ok && n > 0 && at+n <= len(payload); at++ {
		text = before + payload[at:at+n] + after
		if strings.Contains(after, "⟦") { // one secret more than once
			text = strings.ReplaceAll(v.Payload, v.Payload[len(before):len(v.Payload)-len(after)], payload[at:at+n])
		}
		ok = len(text) == f.Payload.Bytes && redact(text) == v.Payload
	}
	if !ok {
		return nil, false
	}
	return &schema.Flow{Payload: text, Surface: f.Surface, Boundary: f.Boundary, Intent: v.Intent,
		Source:  schema.Source{Kind: f.SourceKind, ID: v.Source, Trust: f.SourceTrust},
		Sink:    schema.Sink{Kind: f.SinkKind, ID: v.Sink, Tool: v.Tool, Action: v.ToolAction, Destination: v.Destination, Permissions: v.Permissions},
		Session: schema.Session{Agent: v.Agent, Workspace: v.Workspace}}, true
}

// withNames adds to a payload what stands in a flow of a document's parts: each
// text with the name of the next part in the line below.
func withNames(payload string) string {
	var doc map[string]json.RawMessage
	if json.Unmarshal([]byte(payload), &doc) != nil {
		return payload
	}
	all := payload
	for _, part := range strings.Split(cases.Leaves([]byte(payload)), "\n") {
		for name := range doc {
			all += "\n" + part + "\n" + name
		}
	}
	return all
}

// TestEveryCaseThroughEveryEntryPoint sends every case over HTTP, with the command
// line, with Claude Code's hook command and through the MCP proxy, each of them a
// process of its own, to real daemons with the encoder that ships.
//
// HTTP and the command line carry the whole flow, so their decisions must be
// equal. Hooks carry less (no source but the session's, no wish of the owner over
// MCP), so there the proof is on the record that the hook built: sent over HTTP
// to another daemon, which has no cache of it, it must be decided the same; and
// what the agent is shown must be what was decided.
func TestEveryCaseThroughEveryEntryPoint(t *testing.T) {
	set, err := cases.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	exe, err := exec.LookPath("auditd")
	if err != nil {
		t.Fatal(err)
	}
	const config = "version: 1\nlisten: 127.0.0.1:0\nlog_level: error\n"
	a, b := newHome(t, config), newHome(t, config)
	for _, h := range []*home{a, b} {
		h.start(t, "serve")
		waitReady(t, h)
	}
	at := func(h *home) *entry.Program { return &entry.Program{Exe: exe, Env: h.env(), Dir: h.dir} }
	mcp, err := at(a).StartMCP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer mcp.Close()
	index := int64(0)
	same, records := map[string]int{}, map[string]int{}
	cfg := defaultConfig(a.getenv)
	checker, err := benchChecker(&cfg, a.getenv)
	if err != nil {
		t.Fatal(err)
	}
	step := 7
	if *allCases {
		step = 1
	}
	sent := 0
	for i := 0; i < len(set); i += step {
		k := &set[i]
		if *oneCase != "" && k.ID != *oneCase {
			continue
		}
		sent++
		ready, err := a.client().Audit(t.Context(), &k.Flow)
		if err != nil {
			t.Fatal(err)
		}
		cli, err := at(b).CLI(t.Context(), &k.Flow)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := decided(&cli), decided(&ready); got != want || cli.Cached || ready.Cached {
			t.Errorf("%s: the command line says %s, HTTP %s", k.ID, got, want)
		}
		index = ready.LogIndex + 1
		for _, way := range []struct {
			name string
			send func(context.Context, *cases.Case) quality.Verdict
		}{
			{"hook", func(ctx context.Context, k *cases.Case) quality.Verdict {
				return at(a).Hook(ctx, k, a.client().ClaudeHook)
			}},
			{"mcp", mcp.Send},
		} {
			shown := way.send(t.Context(), k)
			worst := schema.Allow // nothing was recorded: nothing was to be audited
			for _, r := range a.recordsFrom(t, index) {
				index = r.Index + 1
				if way.name == "hook" && r.Call != "final" {
					continue // what led up to it
				}
				if way.name == "mcp" && (r.Record.Flow.SinkKind == schema.SinkReasoning) != (k.Flow.Sink.Kind == schema.SinkReasoning) {
					continue // the other half of the call
				}
				worst = min(worst, r.Decision.Action)
				if r.Decision.Reason == "rewrite_not_applicable" {
					continue // of the whole event; the flow that was rewritten came before
				}
				f, ok := r.flow(func(s string) string { out, _ := checker.Redact(s); return out }, withNames(k.Flow.Payload))
				if !ok {
					t.Errorf("%s, %s: a record's text cannot be restored (%d bytes): %s", k.ID, way.name, r.Record.Flow.Payload.Bytes, r.Value.Payload)
					continue
				}
				again, err := b.client().Audit(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				records[way.name]++
				if again.Action != r.Decision.Action || again.Reason != r.Decision.Reason || again.Stage != r.Decision.Stage {
					t.Errorf("%s, %s: recorded %v at %v (%s), over HTTP %v at %v (%s)", k.ID, way.name, r.Decision.Action, r.Decision.Stage, r.Decision.Reason, again.Action, again.Stage, again.Reason)
				}
			}
			if shown.Action != worst {
				t.Errorf("%s, %s: the agent is shown %v (%s), decided was %v", k.ID, way.name, shown.Action, shown.Reason, worst)
			}
			if shown.Action == ready.Action {
				same[way.name]++
			}
		}
	}
	for _, name := range []string{"hook", "mcp"} {
		if records[name] < sent*9/10 {
			t.Errorf("%s: %d records for %d cases", name, records[name], sent)
		}
		t.Logf("%s: %d records decided again; %d of %d cases end as the ready flow does", name, records[name], same[name], sent)
	}
}

// decided is everything of a decision that must not depend on how it was asked.
func decided(d *schema.Decision) string {
	c := *d
	c.ID, c.Time, c.LatencyMS, c.LogIndex, c.Ticket, c.Question, c.Expires = "", time.Time{}, 0, 0, "", "", nil
	c.Trace, c.Usage = nil, nil
	data, err := schema.Encode(c)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
