package claudehook

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// Host is the host's name in events.
const Host = "claude-code"

// Names of the hook events that are understood.
const (
	preTool      = "PreToolUse"
	postTool     = "PostToolUse"
	postFailure  = "PostToolUseFailure"
	postBatch    = "PostToolBatch"
	skillCommand = "PreSkillShellCommand"
	prompt       = "UserPromptSubmit"
	expansion    = "UserPromptExpansion"
	stop         = "Stop"
	subagentStop = "SubagentStop"
	preCompact   = "PreCompact"
	sessionStart = "SessionStart"
	sessionEnd   = "SessionEnd"
	instructions = "InstructionsLoaded"
)

// Events are the hook events that are understood, those that can stop
// something first. Installing means hooking each of them.
func Events() []string {
	return []string{preTool, postTool, postFailure, postBatch, skillCommand, prompt, expansion, stop, subagentStop, preCompact, sessionStart, sessionEnd, instructions}
}

// hook is what Claude Code sends: one object for all events, of which it may
// send more than is listed here.
type hook struct {
	Event     string         `json:"hook_event_name"`
	Session   string         `json:"session_id"`
	Cwd       string         `json:"cwd"`
	AgentType string         `json:"agent_type"`
	Tool      string         `json:"tool_name"`
	Input     jsontext.Value `json:"tool_input"`
	CallID    string         `json:"tool_use_id"`
	Response  jsontext.Value `json:"tool_response"`
	Error     string         `json:"error"`
	Calls     []hook         `json:"tool_calls"`
	Prompt    string         `json:"prompt"`
	Source    string         `json:"source"`
	Expansion string         `json:"expansion_type"`
	Command   string         `json:"command_name"`
	Active    bool           `json:"stop_hook_active"`
	Last      string         `json:"last_assistant_message"`
	File      string         `json:"file_path"`
}

// What is wrong with an input. The decoder's own errors name fields, and the
// names in a tool's output are not ours.
var (
	errInput   = errors.New("it is not one JSON document of the expected shape")
	errNoEvent = errors.New("hook_event_name or session_id is missing")
)

// parse reads a hook's input. Its error never quotes it.
func parse(body []byte) (*hook, error) {
	var document jsontext.Value
	if err := schema.Decode(body, &document); err != nil { // depth, doubled names, trailing data
		return nil, errInput
	}
	h := new(hook)
	if err := json.Unmarshal(document, h); err != nil {
		return nil, errInput
	}
	if h.Event == "" || h.Session == "" {
		return nil, errNoEvent
	}
	return h, nil
}

// glance finds the event, the tool and the tool's response in what may be half
// a document or no JSON at all, as well as it can: it serves to choose the
// shape of an answer that stops, and nothing else.
func glance(body []byte) hook {
	var h hook
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '{' {
		return h
	}
	for {
		tok, err := d.ReadToken()
		if err != nil || tok.Kind() != '"' {
			return h
		}
		name := tok.String()
		v, err := d.ReadValue()
		if err != nil {
			return h
		}
		switch name {
		case "hook_event_name":
			h.Event = word(v)
		case "tool_name":
			h.Tool = word(v)
		case "tool_response":
			h.Response = v.Clone()
		case "stop_hook_active":
			h.Active = string(v) == "true"
		}
	}
}

func word(v jsontext.Value) string {
	var s string
	if json.Unmarshal(v, &s) != nil || len(s) > 200 {
		return ""
	}
	return s
}

// base is what every event of a hook has.
func (h *hook) base(phase schema.Phase, workspace string) *schema.Event {
	agent := h.AgentType
	if agent == "" {
		agent = "main"
	}
	return &schema.Event{Host: Host, Agent: agent, Session: h.Session, CallID: h.CallID, Tool: h.Tool, Phase: phase, Workspace: workspace}
}

// event returns what a hook reports; nil when it carries nothing to decide.
func (h *hook) event(workspace string) *schema.Event {
	switch h.Event {
	case sessionStart:
		// A session that goes on has read what it has read.
		if h.Source == "startup" || h.Source == "clear" {
			return h.base(schema.PhaseSessionStart, workspace)
		}
		return nil
	case sessionEnd:
		return h.base(schema.PhaseSessionEnd, workspace)
	case prompt:
		e := h.base(schema.PhasePrompt, workspace)
		e.Text, e.Sender = h.Prompt, h.sender()
		return e
	case expansion:
		e := h.base(schema.PhaseInspect, workspace)
		e.Text, e.Origin = h.Prompt, h.Command
		if h.Expansion == "slash_command" {
			e.Phase, e.Origin = schema.PhaseBootstrap, ".claude/commands/"+h.Command
		}
		return e
	case preTool:
		e := h.base(schema.PhaseBeforeTool, workspace)
		e.Params = []byte(h.Input)
		return e
	case skillCommand:
		// A skill's text runs it without a tool call: it is the shell tool's all the same.
		e := h.base(schema.PhaseBeforeTool, workspace)
		e.Params = []byte(h.Input)
		return e
	case postTool:
		return h.after(workspace, h.Response, false)
	case postFailure:
		return h.after(workspace, text(h.Error), true)
	case stop:
		e := h.base(schema.PhaseMessageOut, workspace)
		e.Text = h.Last
		return e
	case subagentStop:
		// What it says goes to the agent that started it.
		e := h.base(schema.PhaseAfterTool, workspace)
		e.Tool, e.Result = "Agent", []byte(text(h.Last))
		return e
	default:
		return nil
	}
}

func (h *hook) after(workspace string, result jsontext.Value, failed bool) *schema.Event {
	e := h.base(schema.PhaseAfterTool, workspace)
	e.Params, e.Result, e.IsError = []byte(h.Input), []byte(result), failed
	return e
}

// sender is who wrote a prompt. Claude Code submits task notifications as
// prompts, with the words of sub-agents in them. Version 2.1.332 does not say
// so yet (the field is being rolled out), but they all begin with a tag of the
// host's; an owner who begins with one is audited like a stranger, no worse.
func (h *hook) sender() string {
	switch h.Source {
	case "user", "sdk":
		return "owner"
	case "":
		if t := strings.TrimSpace(h.Prompt); !strings.HasPrefix(t, "<") && !strings.HasPrefix(t, "[SYSTEM") {
			return "owner"
		}
		return "host"
	default:
		return h.Source
	}
}

// text is s as a JSON string.
func text(s string) jsontext.Value {
	v, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		return jsontext.Value(`""`) // cannot happen: s is valid UTF-8
	}
	return v
}
