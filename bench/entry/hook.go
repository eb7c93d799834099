package entry

import (
	"context"
	"encoding/json"
	"strings"

	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/quality"
	"example.org/auditd/claudehook"
	"example.org/auditd/schema"
)

// Hook reports a case as Claude Code would, and judges the hook command's answer.
// setup takes the hooks that come before: the session's beginning, the owner's
// wish, and the reading of something untrusted where the case's source is.
//
// Claude Code's hooks carry no source: what a call's arguments come from is the
// agent, with the trust of the worst that its session has read. Memories,
// messages, payments and the like go through an MCP server's tools there.
func (p *Program) Hook(ctx context.Context, k *cases.Case, setup func(context.Context, []byte) ([]byte, error)) quality.Verdict {
	before, final := p.hooks(k)
	for _, b := range before {
		if _, err := setup(ctx, encode(b)); err != nil {
			return failed("setup_failed")
		}
	}
	out, code, err := p.run(ctx, encode(final), "hook", "claude-code")
	if err != nil || code != exitAllowed {
		return failed("not_decided")
	}
	return judgeHook(k, final["hook_event_name"] == "PreToolUse", out)
}

// Session is the session that a case is reported under.
func Session(k *cases.Case) string { return "case-" + k.ID }

// hooks are the inputs of a case's hooks, the one that matters last.
func (p *Program) hooks(k *cases.Case) (before []map[string]any, final map[string]any) {
	hook := func(event string, pairs ...any) map[string]any {
		m := object(pairs...)
		m["hook_event_name"], m["session_id"], m["cwd"] = event, Session(k), p.Dir
		return m
	}
	f := &k.Flow
	before = append(before, hook("SessionStart", "source", "startup"))
	if f.Intent != "" {
		before = append(before, hook("UserPromptSubmit", "prompt", f.Intent))
	}
	tool, input, response := claudeCall(f)
	if response != nil {
		return before, hook("PostToolUse", "tool_name", tool, "tool_use_id", "final", "tool_input", input, "tool_response", response)
	}
	if f.Source.Trust <= schema.Untrusted {
		before = append(before, hook("PostToolUse", "tool_name", "WebFetch", "tool_use_id", "read", "tool_input", object("url", "https://news.example/"), "tool_response", webPage("https://news.example/", "")))
	}
	return before, hook("PreToolUse", "tool_name", tool, "tool_use_id", "final", "tool_input", input)
}

func webPage(url, text string) map[string]any {
	return object("bytes", len(text), "code", 200, "codeText", "OK", "result", text, "durationMs", 1, "url", url)
}

// claudeCall is a flow as a tool call of Claude Code; response is nil where the
// flow is the call itself.
func claudeCall(f *schema.Flow) (tool string, input map[string]any, response any) {
	switch f.Sink.Kind {
	case schema.SinkReasoning:
		switch f.Source.Kind {
		case schema.SourceWeb:
			return "WebFetch", object("url", f.Source.ID, "prompt", "Read it."), webPage(f.Source.ID, f.Payload)
		case schema.SourceFile:
			lines := strings.Count(f.Payload, "\n") + 1
			return "Read", object("file_path", f.Source.ID), object("type", "text", "file",
				object("filePath", f.Source.ID, "content", f.Payload, "numLines", lines, "startLine", 1, "totalLines", lines))
		}
		return "mcp__bench__" + toolName(f), object(), []any{object("type", "text", "text", f.Payload)}
	case schema.SinkExec:
		if f.Sink.Tool == "bash" {
			return "Bash", object("command", f.Payload), nil
		}
	case schema.SinkFile:
		return "Write", object("file_path", f.Sink.ID, "content", f.Payload), nil
	case schema.SinkWeb:
		switch f.Sink.Tool {
		case "web_fetch":
			return "WebFetch", object("url", f.Payload, "prompt", "Read it."), nil
		case "web_search":
			return "WebSearch", object("query", f.Payload), nil
		}
	}
	return "mcp__bench__" + toolName(f), callArguments(f), nil
}

// judgeHook reads an answer of the hook. Whatever it does not know stops.
func judgeHook(k *cases.Case, before bool, out []byte) quality.Verdict {
	var a struct {
		Continue *bool  `json:"continue"`
		Why      string `json:"stopReason"`
		Decision string `json:"decision"`
		Specific *struct {
			Permission string          `json:"permissionDecision"`
			Reason     string          `json:"permissionDecisionReason"`
			Input      json.RawMessage `json:"updatedInput"`
			Output     json.RawMessage `json:"updatedToolOutput"`
			Context    string          `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	if !claudehook.Expect(out) || json.Unmarshal(out, &a) != nil {
		return failed("no_answer")
	}
	s := a.Specific
	switch {
	case a.Continue != nil && !*a.Continue || a.Decision != "":
		return verdict(k, stopped(a.Why), "", "stopped")
	case s == nil:
		return verdict(k, schema.Allow, k.Flow.Payload, "no_objection")
	case before && s.Permission == "deny":
		return verdict(k, stopped(s.Reason), "", "denied")
	case before && s.Permission == "" && len(s.Input) > 0:
		return verdict(k, schema.RewriteAndContinue, cases.Leaves(s.Input), "arguments_changed")
	case !before && strings.Contains(string(s.Output), claudehook.Marker):
		return verdict(k, stopped(s.Context), "", "withheld")
	case !before && len(s.Output) > 0:
		return verdict(k, schema.RewriteAndContinue, cases.Leaves(s.Output), "result_changed")
	}
	return failed("no_answer")
}
