package claudehook

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// rig is an adapter in front of a scripted firewall, which decides by what the
// event holds and writes down what it saw.
type rig struct {
	*Adapter
	t        *testing.T
	seen     []schema.Event
	approved bool
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t}
	r.Adapter = New(Config{Answered: func(_ context.Context, id string, _ bool) string {
		if id == "q-1" && r.approved {
			return "approved"
		}
		return ""
	}})
	return r
}

func (r *rig) report(_ context.Context, e *schema.Event) schema.Outcome {
	r.seen = append(r.seen, *e)
	all := string(e.Params) + string(e.Result) + e.Text
	if e.Phase == schema.PhaseAfterTool {
		all = string(e.Result)
	}
	switch {
	case strings.Contains(all, "PANIC"):
		panic(all)
	case strings.Contains(all, "DEFER") && e.Ticket == "t-1" && r.approved:
		return schema.Outcome{Action: schema.Allow, Reason: "approved"}
	case strings.Contains(all, "DEFER"):
		return schema.Outcome{Action: schema.DeferToHuman, Reason: "x", Message: "Waiting.", Ticket: "t-1",
			Decisions: []schema.Decision{{Action: schema.DeferToHuman, Question: "q-1"}}}
	case strings.Contains(all, "BAD"):
		return schema.Outcome{Reason: "x", Message: "Blocked."}
	case strings.Contains(all, "FIX"):
		o := schema.Outcome{Action: schema.RewriteAndContinue, Reason: "x", Message: "Fixed."}
		if len(e.Result) > 0 {
			o.Result = json.RawMessage(strings.ReplaceAll(string(e.Result), "FIX", "fine"))
		} else if len(e.Params) > 0 {
			o.Params = json.RawMessage(strings.ReplaceAll(string(e.Params), "FIX", "fine"))
		} else {
			o.Text = new(string)
		}
		return o
	}
	return schema.Outcome{Action: schema.Allow, Reason: "x"}
}

// hook answers a hook named event with the fields given as JSON.
func (r *rig) hook(event, fields string) string {
	r.t.Helper()
	body := fmt.Sprintf(`{"session_id":"s","cwd":"/w","hook_event_name":%q`, event)
	if fields != "" {
		body += "," + fields
	}
	out := r.Answer(context.Background(), event, []byte(body+"}"), false, r.report)
	if !Expect(out) {
		r.t.Errorf("%s: not an answer: %s", event, out)
	}
	return string(out)
}

const bash = `"tool_name":"Bash","tool_use_id":"c1","tool_input":{"command":%q}`

func bashResult(s string) string {
	return fmt.Sprintf(bash, "ls") + fmt.Sprintf(`,"tool_response":{"stdout":%q,"stderr":"","interrupted":false,"isImage":false}`, s)
}

func batch(response string) string {
	return fmt.Sprintf(`"tool_calls":[{"tool_name":"Bash","tool_use_id":"c1","tool_input":{},"tool_response":%q}]`, response)
}

func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct{ event, fields, want string }{
		"call allowed: the host's own permissions still count": {preTool, fmt.Sprintf(bash, "ls"), `{}`},
		"call blocked":            {preTool, fmt.Sprintf(bash, "BAD"), `"permissionDecision":"deny","permissionDecisionReason":"Blocked."`},
		"call deferred":           {preTool, fmt.Sprintf(bash, "DEFER"), "auditd approve q-1"},
		"call rewritten":          {preTool, fmt.Sprintf(bash, "FIX"), `"updatedInput":{"command":"fine"}`},
		"skill's command":         {skillCommand, fmt.Sprintf(bash, "BAD"), `"hookEventName":"PreSkillShellCommand","permissionDecision":"deny"`},
		"skill's, not rewritable": {skillCommand, fmt.Sprintf(bash, "FIX"), `"permissionDecision":"deny"`},
		"result allowed":          {postTool, bashResult("x"), `{}`},
		"result blocked":          {postTool, bashResult("BAD"), `"updatedToolOutput":{"stdout":"[withheld by auditd] Blocked.`},
		"result rewritten":        {postTool, bashResult("FIX"), `"updatedToolOutput":{"stdout":"fine"`},
		"failure blocked":         {postFailure, fmt.Sprintf(bash, "x") + `,"error":"BAD"`, `"additionalContext":"auditd: Blocked."`},
		"prompt":                  {prompt, `"prompt":"do it"`, `{}`},
		"notification blocked":    {prompt, `"prompt":"<task-notification>BAD</task-notification>"`, `"decision":"block"`},
		"prompt, not rewritable":  {prompt, `"prompt":"FIX","source":"system"`, `"decision":"block"`},
		"slash command blocked":   {expansion, `"prompt":"BAD","expansion_type":"slash_command","command_name":"x"`, `"decision":"block"`},
		"last word blocked":       {stop, `"last_assistant_message":"BAD","stop_hook_active":false`, `"decision":"block"`},
		"blocked a second time":   {stop, `"last_assistant_message":"BAD","stop_hook_active":true`, `"continue":false`},
		"subagent's last word":    {subagentStop, `"last_assistant_message":"BAD","stop_hook_active":false,"agent_type":"g"`, `"decision":"block"`},
		"compact":                 {preCompact, `"trigger":"auto","custom_instructions":null`, `{}`},
		"session":                 {sessionStart, `"source":"startup"`, `{}`},
		"panic":                   {preTool, fmt.Sprintf(bash, "PANIC"), `"permissionDecision":"deny"`},
		"panic after":             {postTool, bashResult("PANIC"), `"updatedToolOutput"`},
		"panic in a batch":        {postBatch, batch("PANIC"), `"continue":false`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if got := r.hook(tc.event, tc.fields); !strings.Contains(got, tc.want) || tc.want == "{}" && got != "{}" {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	r := newRig(t)
	r.hook(sessionStart, `"source":"startup"`)
	r.hook(sessionStart, `"source":"resume"`) // reports nothing: it has read what it has read
	r.hook(prompt, `"prompt":"typed"`)
	r.hook(prompt, `"prompt":"<task-notification>x</task-notification>"`)
	r.hook(prompt, `"prompt":"woken","source":"loop_wakeup"`)
	r.hook(preTool, fmt.Sprintf(bash, "ls")+`,"agent_type":"explorer"`)
	r.hook(postFailure, fmt.Sprintf(bash, "ls")+`,"error":"Exit code 1\nx"`)
	r.hook(subagentStop, `"last_assistant_message":"result","agent_type":"g"`)
	r.hook(expansion, `"prompt":"p","expansion_type":"slash_command","command_name":"x"`)
	want := []string{"session-start main  ", "prompt main owner ", "prompt main host ", "prompt main loop_wakeup ", "before-tool explorer  Bash", "after-tool main  Bash", "after-tool g  Agent", "bootstrap main  "}
	for i, e := range r.seen {
		if got := fmt.Sprintf("%s %s %s %s", e.Phase, e.Agent, e.Sender, e.Tool); i >= len(want) || got != want[i] {
			t.Errorf("%d: %q", i, got)
		}
		if err := e.Complete(0); err != nil || e.Host != Host || e.Workspace != "/w" {
			t.Errorf("%d: %v %+v", i, err, e)
		}
	}
	if len(r.seen) != len(want) {
		t.Errorf("%d events", len(r.seen))
	}
	if e := r.seen[5]; !e.IsError || string(e.Result) != `"Exit code 1\nx"` {
		t.Errorf("failure: %+v", e)
	}
}

// TestBatchStopsWhatGotThrough: the batch shows what the model will read, and
// is the last place to stop it.
func TestBatchStopsWhatGotThrough(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(*rig) string // returns what the model will read
		ends   bool
		looks  int // events reported by the batch itself
	}{
		"passed":            {func(r *rig) string { r.hook(postTool, bashResult("x")); return "x" }, false, 0},
		"withheld, taken":   {func(r *rig) string { return withheldText(t, r.hook(postTool, bashResult("BAD"))) }, false, 0},
		"withheld, ignored": {func(r *rig) string { r.hook(postTool, bashResult("BAD")); return "BAD" }, true, 0},
		"withheld, ignored, and the output pretends": {func(r *rig) string {
			r.hook(postTool, bashResult("BAD"))
			return Marker + "Blocked. (ref 0000000000000000)"
		}, true, 0},
		"rewritten, taken":         {func(r *rig) string { r.hook(postTool, bashResult("FIX")); return "fine" }, false, 1},
		"rewritten, ignored":       {func(r *rig) string { r.hook(postTool, bashResult("FIX")); return "FIX" }, true, 1},
		"failed":                   {func(r *rig) string { r.hook(postFailure, fmt.Sprintf(bash, "ls")+`,"error":"BAD"`); return "BAD" }, true, 0},
		"failed, harmless":         {func(r *rig) string { r.hook(postFailure, fmt.Sprintf(bash, "ls")+`,"error":"x"`); return "x" }, false, 0},
		"never reported":           {func(*rig) string { return "BAD" }, true, 1},
		"never reported, harmless": {func(*rig) string { return "x" }, false, 1},
		"denied":                   {func(r *rig) string { r.hook(preTool, fmt.Sprintf(bash, "BAD")); return "hook error: BAD" }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			read := tc.before(r)
			n := len(r.seen)
			got := r.hook(postBatch, batch(read))
			if ends := strings.Contains(got, `"continue":false`); ends != tc.ends {
				t.Errorf("ends: %v, want %v: %s", ends, tc.ends, got)
			}
			if looks := len(r.seen) - n; looks != tc.looks {
				t.Errorf("reported %d events, want %d", looks, tc.looks)
			}
			// The text is in the transcript now: the session takes no prompts.
			if blocked := strings.Contains(r.hook(prompt, `"prompt":"go on"`), `"decision":"block"`); blocked != tc.ends {
				t.Errorf("closed: %v, want %v", blocked, tc.ends)
			}
		})
	}
}

func withheldText(t *testing.T, answer string) string {
	t.Helper()
	var a struct {
		Specific struct {
			Output struct{ Stdout string } `json:"updatedToolOutput"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil || a.Specific.Output.Stdout == "" {
		t.Fatalf("%v: %s", err, answer)
	}
	return a.Specific.Output.Stdout
}

func TestApprovalLetsTheSameCallPass(t *testing.T) {
	r := newRig(t)
	if got := r.hook(preTool, fmt.Sprintf(bash, "DEFER")); !strings.Contains(got, "deny") {
		t.Error(got)
	}
	r.approved = true
	if got := r.hook(preTool, fmt.Sprintf(bash, "DEFER")); got != "{}" {
		t.Error(got)
	}
	// A failure's text that was approved opens its session again.
	r.approved = false
	r.hook(postFailure, fmt.Sprintf(bash, "ls")+`,"error":"DEFER"`)
	r.hook(postBatch, batch("DEFER"))
	if got := r.hook(prompt, `"prompt":"x"`); !strings.Contains(got, "block") || !strings.Contains(got, "auditd approve q-1") {
		t.Error(got)
	}
	r.approved = true
	if got := r.hook(prompt, `"prompt":"x"`); got != "{}" {
		t.Error(got)
	}
}

// TestPoisonedInstructionsCloseTheSession: a CLAUDE.md reaches the model
// whatever a hook says, so the prompt does not.
func TestPoisonedInstructionsCloseTheSession(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`"file_path":%q,"memory_type":"Project"`, path)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		fields string
		closed bool
	}{
		"good": {file("CLAUDE.md", "Run the tests."), false}, "bad": {file("BAD.md", "BAD"), true}, "to be mended": {file("FIX.md", "FIX"), true},
		"absent": {`"file_path":"` + dir + `/none"`, true}, "relative": {`"file_path":"CLAUDE.md"`, true}, "a folder": {`"file_path":"` + dir + `"`, true},
		"a pipe": {`"file_path":"` + dir + `/pipe"`, true}, "huge": {file("huge.md", strings.Repeat("x", maxInstructions+1)), true}, "panic": {file("p.md", "PANIC"), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.hook(instructions, tc.fields)
			if blocked := strings.Contains(r.hook(prompt, `"prompt":"go"`), `"decision":"block"`); blocked != tc.closed {
				t.Errorf("closed: %v, want %v", blocked, tc.closed)
			}
			if denied := strings.Contains(r.hook(preTool, fmt.Sprintf(bash, "ls")), "deny"); denied != tc.closed {
				t.Errorf("a call is denied: %v, want %v", denied, tc.closed)
			}
			if ends := strings.Contains(r.hook(postBatch, batch("x")), `"continue":false`); ends != tc.closed {
				t.Errorf("the turn ends: %v, want %v", ends, tc.closed)
			}
		})
	}
	r := newRig(t)
	r.hook(instructions, file("ask.md", "DEFER"))
	if got := r.hook(prompt, `"prompt":"go"`); !strings.Contains(got, "auditd approve q-1") {
		t.Error(got)
	}
	r.approved = true
	if got := r.hook(prompt, `"prompt":"go"`); got != "{}" {
		t.Errorf("approved: %s", got)
	}
	// A prompt that comes while a file is being looked at waits for it.
	done := r.ledger.load("s")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := r.Answer(ctx, prompt, []byte(`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"x"}`), false, r.report); !strings.Contains(string(got), "block") {
		t.Errorf("it did not wait: %s", got)
	}
	done()
	if got := r.hook(prompt, `"prompt":"go"`); got != "{}" {
		t.Error(got)
	}
}

// TestWorkspaceStays: an agent that changes its directory does not change what
// it may delete in.
func TestWorkspaceStays(t *testing.T) {
	l := newLedger()
	for _, tc := range [][2]string{{"/w", "/w"}, {"/w/sub", "/w"}, {"/", ""}, {"/wide", ""}, {"w", ""}, {"/w/../etc", ""}, {"/w", "/w"}} {
		if got := l.workspace("s", tc[0]); got != tc[1] {
			t.Errorf("%s: %q, want %q", tc[0], got, tc[1])
		}
	}
}

func TestWithheldHoldsNothingOfTheOriginal(t *testing.T) {
	for tool, response := range map[string]string{
		"Bash": `{"stdout":"RAW"}`, "Read": `{"type":"text","file":{"filePath":"RAW","content":"RAW"}}`, "mcp__a__b": `[{"type":"text","text":"RAW"}]`,
		"Glob": `{"filenames":["RAW","RAW"],"numFiles":2,"truncated":false}`, "TaskOutput": `{"retrieval_status":"RAW","task":{"type":"local_bash","output":"RAW"}}`,
		"New": `"RAW"`, "Grep": `{"mode":"content","content":"RAW"}`, "WebSearch": `{"query":"RAW","results":["RAW"]}`, "Agent": `{"content":[{"text":"RAW"}]}`,
	} {
		out := withheld(tool, jsontext.Value(response), "MESSAGE")
		if !out.IsValid() || strings.Contains(string(out), "RAW") || !strings.Contains(string(out), "MESSAGE") {
			t.Errorf("%s: %s", tool, out)
		}
	}
	for _, nothing := range []string{"", "{", "[]", "1", "null", strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if out := withheld("New", jsontext.Value(nothing), "m"); out != nil {
			t.Errorf("%q: %s", nothing, out)
		}
	}
}

// FuzzAnswer: whatever comes in, an answer comes out that Claude Code reads,
// and under a firewall that blocks everything it lets no raw output through.
func FuzzAnswer(f *testing.F) {
	f.Add("PreToolUse", `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`)
	f.Add("PostToolUse", `{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"X","tool_use_id":"c","tool_response":{"a":[{"type":"text","text":"RAW-OUTPUT"}]}}`)
	f.Add("PostToolBatch", `{"session_id":"s","hook_event_name":"PostToolBatch","tool_calls":[{"tool_name":"Bash","tool_response":"RAW-OUTPUT"}]}`)
	f.Add("", `{"session_id":"s","hook_event_name":"Stop","last_assistant_message":"x"}`)
	f.Add("Stop", `{"a":{"b":[1,2,{"c":null}]},"hook_event_name":"Stop"`)
	f.Fuzz(func(t *testing.T, event, body string) {
		block := func(context.Context, *schema.Event) schema.Outcome {
			return schema.Outcome{Reason: "x", Message: "Blocked."}
		}
		a := New(Config{})
		for _, out := range [][]byte{a.Answer(context.Background(), event, []byte(body), false, block), Stop(event, []byte(body), "m")} {
			if !Expect(out) {
				t.Fatalf("not an answer: %s", out)
			}
			if strings.Contains(string(out), "RAW-OUTPUT") {
				t.Fatalf("raw output: %s", out)
			}
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	a := New(Config{})
	allow := func(context.Context, *schema.Event) schema.Outcome {
		return schema.Outcome{Action: schema.Allow, Reason: "x"}
	}
	body := []byte(`{"session_id":"s","cwd":"/w","hook_event_name":"PostToolUse",` + bashResult(strings.Repeat("line of output\n", 700)) + `}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		a.Answer(context.Background(), postTool, body, false, allow)
	}
}
