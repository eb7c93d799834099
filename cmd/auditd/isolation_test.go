package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.org/auditd/dualview/canary"
	"example.org/auditd/schema"
)

// isolatedHost is an agent host that speaks HTTP to a daemon of a process of its own:
// it reports every event, and applies what the outcome says and nothing else.
type isolatedHost struct {
	t       *testing.T
	home    *home
	root    string // the person's project
	session string
	calls   int
	corpus  *canary.Corpus
	heard   []string // everything that the agent's side received
}

func newIsolatedHost(t *testing.T, mode string) *isolatedHost {
	t.Helper()
	h := newHome(t, noModel)
	h.write(t, "policy.yaml", "version: 1\nmodes: [{agent: \"openclaw:*\", mode: "+mode+"}]\n")
	x := &isolatedHost{t: t, home: h, root: filepath.Join(h.dir, "project"), session: "s1", corpus: canary.New(7)}
	if err := os.MkdirAll(filepath.Join(x.root, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	return x
}

// write puts a file beside the configuration.
func (h *home) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, "c", "auditd", name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// event reports an event, and checks what the agent's side gets of the answer.
func (x *isolatedHost) event(e schema.Event) schema.Outcome {
	x.t.Helper()
	e.Host, e.Agent, e.Session, e.Workspace = "openclaw", "main", x.session, x.root
	out, err := x.home.client().Event(x.t.Context(), &e)
	if err != nil {
		x.t.Fatal(err)
	}
	// A tool's arguments and the message for the person are not the agent's to
	// read.
	seen := out
	seen.Params = nil
	if e.Phase == schema.PhaseMessageOut {
		seen.Text = nil
	}
	data, err := schema.Encode(seen)
	if err != nil {
		x.t.Fatal(err)
	}
	x.hear(string(data))
	if len(out.Decisions) == 0 || out.Decisions[0].LogIndex < 0 {
		x.t.Errorf("%s %s is not in the log: %+v", e.Phase, e.Tool, out)
	}
	return out
}

func (x *isolatedHost) hear(text string) {
	x.t.Helper()
	if mark := x.corpus.Find(text); mark != "" {
		x.t.Errorf("the agent's side received %s in %s", mark, text)
	}
	x.heard = append(x.heard, text)
}

// call runs a tool as a host does, and returns what the model reads.
func (x *isolatedHost) call(tool string, params map[string]any, run func(params map[string]any) any) string {
	x.t.Helper()
	x.calls++
	id := fmt.Sprintf("%s-%d", x.session, x.calls)
	enc := x.json(params)
	out := x.event(schema.Event{Phase: schema.PhaseBeforeTool, Tool: tool, CallID: id, Params: enc})
	if out.Action.Stops() {
		return out.Message
	}
	if len(out.Params) > 0 {
		enc = out.Params
	}
	var with map[string]any
	if err := json.Unmarshal(enc, &with); err != nil {
		x.t.Fatal(err)
	}
	out = x.event(schema.Event{Phase: schema.PhaseAfterTool, Tool: tool, CallID: id, Params: enc, Result: x.json(run(with))})
	if out.Action == schema.Allow {
		x.t.Errorf("%s: a result went on as it was", tool)
	}
	return string(out.Result)
}

func (x *isolatedHost) json(v any) json.RawMessage {
	x.t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		x.t.Fatal(err)
	}
	return data
}

type object = map[string]any

func textBlocks(text string) []any { return []any{object{"type": "text", "text": text}} }

// fetch is web_fetch with a page that says text.
func (x *isolatedHost) fetch(url, text string) string {
	x.t.Helper()
	return x.call("web_fetch", object{"url": url}, func(p object) any {
		return object{"content": textBlocks(text), "details": object{"url": p["url"], "finalUrl": p["url"], "status": 200, "title": text, "text": text}}
	})
}

func (x *isolatedHost) read(path string) string {
	x.t.Helper()
	return x.call("read", object{"path": path}, func(p object) any {
		data, err := os.ReadFile(p["path"].(string))
		if err != nil {
			return object{"content": textBlocks(err.Error()), "isError": true}
		}
		return object{"content": textBlocks(string(data)), "details": object{"kind": "text", "content": string(data)}}
	})
}

func (x *isolatedHost) save(path, content string) string {
	x.t.Helper()
	return x.call("write", object{"path": path, "content": content}, func(p object) any {
		file := p["path"].(string)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			x.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(p["content"].(string)), 0o644); err != nil {
			x.t.Fatal(err)
		}
		return object{"content": textBlocks("wrote " + file), "details": object{"changed": true, "created": true}}
	})
}

func (x *isolatedHost) exec(command string) string {
	x.t.Helper()
	return x.call("exec", object{"command": command}, func(p object) any {
		cmd := exec.Command("bash", "-c", p["command"].(string))
		cmd.Dir = x.root
		out, _ := cmd.CombinedOutput()
		return object{"content": textBlocks(string(out)), "details": object{"status": "completed", "exitCode": cmd.ProcessState.ExitCode(), "aggregated": string(out)}}
	})
}

// detail returns a field of a result's details.
func (x *isolatedHost) detail(result, field string) string {
	x.t.Helper()
	var m struct {
		Details map[string]any `json:"details"`
	}
	if err := json.Unmarshal([]byte(result), &m); err != nil {
		x.t.Fatalf("%s: %v", result, err)
	}
	s, _ := m.Details[field].(string)
	return s
}

func (x *isolatedHost) symbol(result, field string) string {
	x.t.Helper()
	s := x.detail(result, field)
	if len(s) != 37 || !strings.HasPrefix(s, "symu") {
		x.t.Fatalf("%s is %q in %s", field, s, result)
	}
	return s
}

func (x *isolatedHost) human(path string) string {
	x.t.Helper()
	data, err := os.ReadFile(filepath.Join(x.root, path))
	if err != nil {
		x.t.Fatal(err)
	}
	return string(data)
}

// TestPaperFiguresOverHTTP is the paper's figures 4, 5 and 6 as one session.
func TestPaperFiguresOverHTTP(t *testing.T) {
	x := newIsolatedHost(t, "isolate")
	x.home.write(t, "isolation.yaml", "version: 1\nwebhooks:\n  daily-stock: {ticker: word SOLAR, price: number, headline: untrusted}\n")
	x.home.start(t, "serve")
	attack := x.corpus.Text(300)

	out := x.event(schema.Event{Phase: schema.PhaseSessionStart})
	if out.Text == nil || !strings.Contains(*out.Text, "symu") {
		t.Errorf("session start: %+v", out)
	}
	if out = x.event(schema.Event{Phase: schema.PhasePrompt, Sender: "owner", Text: "summarise the thread"}); out.Action != schema.Allow {
		t.Errorf("the owner's prompt: %+v", out)
	}
	if out = x.event(schema.Event{Phase: schema.PhasePrompt, Sender: "stranger", Text: attack}); out.Text == nil {
		t.Errorf("a stranger's prompt: %+v", out)
	}

	// Figure 4: network tools and webhooks.
	s := x.symbol(x.fetch("https://forum.test/thread123", attack), "text")
	out = x.event(schema.Event{Phase: schema.PhaseWebhook, Origin: "daily-stock", Text: string(x.json(object{"ticker": "SOLAR", "price": 52.1, "headline": attack}))})
	if out.Text == nil || !strings.Contains(*out.Text, `"SOLAR"`) || !strings.Contains(*out.Text, "52.1") {
		t.Errorf("webhook: %+v", out)
	}

	// Figure 5: files.
	if got := x.save("notes/summary.md", "# Article Summary\n"+s+"\n"); strings.Contains(got, "views") {
		t.Errorf("the model reads %s", got)
	}
	if got := x.human("notes/summary.md"); got != "# Article Summary\n"+attack+"\n" {
		t.Errorf("the person reads %q", got)
	}
	if got := x.detail(x.read("notes/summary.md"), "content"); got != "# Article Summary\n"+s+"\n" {
		t.Errorf("the model reads %q", got)
	}

	// Figure 6: both shells.
	got := x.exec("RESTRICTED=1 grep -rn Summary notes; exit 3")
	if !strings.Contains(got, "notes/summary.md:1:# Article Summary") || !strings.Contains(got, `"exitCode":3`) {
		t.Errorf("AgentShell: %s", got)
	}
	got = x.exec("cat notes/summary.md; printf got > got.txt; exit 2")
	if strings.Contains(got, "Article") || !strings.Contains(got, `"exitCode":2`) {
		t.Errorf("HumanShell: %s", got)
	}
	if got := x.detail(x.read("got.txt"), "content"); strings.Contains(got, "got") {
		t.Errorf("what a shell wrote is read as %s", got)
	}
	// A symbol in executable position waits for a person.
	if out = x.event(schema.Event{Phase: schema.PhaseBeforeTool, Tool: "exec", CallID: "code", Params: x.json(object{"command": "bash -c " + s})}); out.Action != schema.DeferToHuman || out.Ticket == "" || out.Decisions[0].Question == "" {
		t.Errorf("a symbol as code: %+v", out)
	}
	list, err := x.home.client().Pending(t.Context())
	if err != nil || len(list) != 1 || list[0].Flow.Payload != "" {
		t.Errorf("the hook credential sees %+v %v", list, err)
	}
	// The answer, for the person alone.
	if out = x.event(schema.Event{Phase: schema.PhaseMessageOut, Text: "It says: " + s + "."}); out.Text == nil || *out.Text != "It says: "+attack+"." {
		t.Errorf("message: %+v", out)
	}
	out = x.event(schema.Event{Phase: schema.PhaseBootstrap, Origin: filepath.Join(x.root, "notes/summary.md"), Text: x.human("notes/summary.md")})
	if out.Text == nil || *out.Text != "# Article Summary\n"+s+"\n" {
		t.Errorf("bootstrap: %+v", out)
	}
	if out = x.event(schema.Event{Phase: schema.PhaseMemory, Origin: "recall", Text: attack}); out.Text == nil {
		t.Errorf("memory: %+v", out)
	}
}

// TestStoredInjectionOverHTTP: fetch, save, kill the daemon, and another session
// reads: it sees symbols, which still resolve.
func TestStoredInjectionOverHTTP(t *testing.T) {
	x := newIsolatedHost(t, "isolate")
	cmd := x.home.start(t, "serve")
	attack := x.corpus.Text(2000)
	s := x.symbol(x.fetch("https://evil.test/", attack), "text")
	x.save("NOTES.md", "# Notes\n\nQuote: "+s+"\nend\n")
	x.exec("cp NOTES.md copy.md; gzip -k copy.md; (cat copy.md; echo more) > both.md")
	// In the middle of a call.
	before := schema.Event{Phase: schema.PhaseBeforeTool, Tool: "read", CallID: "cut", Params: x.json(object{"path": "NOTES.md"})}
	first := x.event(before)
	again := x.event(before)
	if string(first.Params) != string(again.Params) || first.Decisions[0].ID != again.Decisions[0].ID {
		t.Errorf("a call that is reported twice is answered %s and %s", first.Params, again.Params)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	x.home.start(t, "serve")
	out := x.event(schema.Event{Phase: schema.PhaseAfterTool, Tool: "read", CallID: "cut", Params: first.Params, Result: x.json(object{"content": textBlocks(attack), "details": object{"kind": "text", "content": attack}})})
	if out.Action.Stops() && strings.Contains(out.Message, "ignore") {
		t.Errorf("%+v", out)
	}
	x.session = "s2"
	x.event(schema.Event{Phase: schema.PhaseSessionStart})
	for _, path := range []string{"NOTES.md", "copy.md", "copy.md.gz", "both.md"} {
		if got := x.read(path); !strings.Contains(got, "symu") {
			t.Errorf("%s is read as %s", path, got)
		}
	}
	if got := x.detail(x.read("NOTES.md"), "content"); got != "# Notes\n\nQuote: "+s+"\nend\n" {
		t.Errorf("the other session reads %q", got)
	}
	x.exec("RESTRICTED=1 cat NOTES.md copy.md both.md | base64; rev NOTES.md; grep -c . *")
	if out := x.event(schema.Event{Phase: schema.PhaseMessageOut, Text: s}); out.Text == nil || *out.Text != attack {
		t.Errorf("after a restart the symbol is %+v", out)
	}
	if len(x.heard) < 20 {
		t.Errorf("only %d answers were looked at", len(x.heard))
	}
}
