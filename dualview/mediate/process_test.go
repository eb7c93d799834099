package mediate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.org/auditd/dualview/canary"
	"example.org/auditd/schema"
)

// children tells what other processes this one has had: those that live, and the
// work of those that have ended.
func children(t *testing.T) string {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(files) == 0 {
		t.Fatal("the children cannot be listed", err)
	}
	var b strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if os.IsNotExist(err) {
			continue // a thread that has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
	}
	return fmt.Sprintf("alive %s, page faults of others %d", strings.Join(strings.Fields(b.String()), " "), r.Minflt)
}

// Property 09: what comes in becomes symbols in this process, in the call that
// brings it; nothing else has to succeed for it to stay hidden.
func TestProperty09SymbolisedWhereItEnters(t *testing.T) {
	e := newEnv(t, "version: 1\n")
	corpus := canary.New(9)
	// A change that a sync would need git for: nothing here may wait for one.
	if err := os.WriteFile(filepath.Join(e.root, "new.txt"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	result := func(text string) json.RawMessage {
		enc, err := json.Marshal(map[string]any{"content": blocks(text), "details": map[string]any{"text": text, "more": []any{text}}})
		if err != nil {
			t.Fatal(err)
		}
		return enc
	}
	before := children(t)
	for name, send := range map[string]func(text string) schema.Outcome{
		"a result": func(text string) schema.Outcome {
			return e.event(schema.PhaseAfterTool, "web_fetch", func(ev *schema.Event) { ev.CallID, ev.Result = "1", result(text) })
		},
		"a result of an unlisted tool": func(text string) schema.Outcome {
			return e.event(schema.PhaseAfterTool, "something", func(ev *schema.Event) { ev.CallID, ev.Result = "2", result(text) })
		},
		"an error": func(text string) schema.Outcome {
			return e.event(schema.PhaseAfterTool, "web_fetch", func(ev *schema.Event) { ev.CallID, ev.Result, ev.IsError = "3", result(text), true })
		},
		"a webhook": func(text string) schema.Outcome {
			return e.event(schema.PhaseWebhook, "", func(ev *schema.Event) { ev.Origin, ev.Text = "port", text })
		},
		"a stranger's prompt": func(text string) schema.Outcome {
			return e.event(schema.PhasePrompt, "", func(ev *schema.Event) { ev.Sender, ev.Text = "mallory", text })
		},
		"a memory that a page was copied into": func(text string) schema.Outcome {
			e.event(schema.PhaseAfterTool, "web_fetch", func(ev *schema.Event) { ev.CallID, ev.Result = "4", result(text) })
			return e.event(schema.PhaseMemory, "", func(ev *schema.Event) { ev.Origin, ev.Text = "search", text })
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := send(corpus.Text(400))
			enc, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			if out.Action != schema.RewriteAndContinue || len(e.table.Symbols(string(enc))) == 0 {
				t.Errorf("%s", enc)
			}
			if m := corpus.Find(string(enc)); m != "" {
				t.Errorf("%q is in clear", m)
			}
		})
	}
	if after := children(t); after != before {
		t.Errorf("other processes took part: %q, then %q", before, after)
	}
}
