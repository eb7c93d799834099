package firewall

import (
	"strings"
	"unicode"

	"example.org/auditd/schema"
)

// tool says what a host's tool does with content: where its arguments go, and
// where its result comes from. A part that is nil is of no interest: the
// arguments reach nothing, or the result is the host's own words.
type tool struct {
	in  *input
	out *output
}

// input describes a tool's arguments by the names of its outermost parameters.
type input struct {
	kind    schema.SinkKind
	payload []string // what is audited as the content; nil takes everything
	id      []string // what names the target; the first that is set counts
	dest    []string // what names an external destination
	action  []string // what names the action
	flags   []string // truth values that widen what the tool may do, and become permissions when true
	ignore  []string // what says nothing to the target
	reads   []string // actions that change nothing and disclose nothing
	workdir []string // where a command runs, when it is not the workspace
	path    bool     // the id is a file, which decides the kind
	patch   bool     // the payload is a patch, which names its files
	// screen: the arguments only name what is read, so a model need not look
	// at them unless the precheck finds something.
	screen bool
}

// output describes a tool's result.
type output struct {
	kind schema.SourceKind
	id   []string // parameters that name the source; none means the tool
	path bool     // the id is a file, which decides the kind
}

// toolTable maps "host tool" to what the tool does. Parameter names are those
// of OpenClaw 2026.9 and Claude Code 2.1, as of 2026-11-30.
func toolTable() map[string]tool {
	fromFile := &output{kind: schema.SourceFile, id: []string{"path", "file_path", "notebook_path"}, path: true}
	fromWeb := &output{kind: schema.SourceWeb, id: []string{"url"}}
	fromTool, fromAgent := &output{kind: schema.SourceTool}, &output{kind: schema.SourceAgent}
	fromMemory, fromSkill := &output{kind: schema.SourceMemory, id: []string{"path"}}, &output{kind: schema.SourceSkill, id: []string{"skill", "skill_name", "name"}}
	look := func(names ...string) *input {
		return &input{kind: schema.SinkTool, payload: names, id: names, screen: true}
	}
	all := func(kind schema.SinkKind, reads ...string) *input {
		return &input{kind: kind, action: []string{"action"}, reads: reads, id: []string{"id", "name", "path", "skill_name", "pluginId", "sessionKey", "nodeId", "node"}}
	}
	message := &input{
		kind: schema.SinkMessage, dest: []string{"target", "targets", "to", "recipient", "conversationRef", "sessionKey", "label", "agentId", "channel"},
		action: []string{"action"}, ignore: []string{"dryRun", "timeoutMs", "timeoutSeconds", "silent", "watch", "mode", "final", "gifPlayback", "forceDocument", "asDocument", "asVoice"},
	}
	tell := *message
	tell.kind = schema.SinkTool

	t := map[string]tool{}
	add := func(host string, in *input, out *output, names ...string) {
		for _, n := range names {
			t[host+" "+n] = tool{in, out}
		}
	}

	const oc = "openclaw"
	add(oc, &input{kind: schema.SinkExec, payload: []string{"command"}, flags: []string{"elevated"}, action: []string{"host"},
		workdir: []string{"workdir"},
		ignore:  []string{"title", "yieldMs", "background", "timeoutSeconds", "pty", "ask", "node"}}, fromTool, "exec", "bash")
	add(oc, &input{kind: schema.SinkExec, payload: []string{"data", "text", "literal", "keys", "hex"}, action: []string{"action"}, id: []string{"sessionId"},
		reads: []string{"list", "poll", "log", "kill", "clear", "remove", "read", "resize", "close"}, ignore: []string{"bracketed", "eof", "offset", "limit", "timeout", "cols", "rows"}},
		fromTool, "process", "terminal")
	add(oc, look("path"), fromFile, "read", "ls")
	add(oc, &input{kind: schema.SinkFile, payload: []string{"content", "edits", "newText", "new_string"}, id: []string{"path"}, path: true, ignore: []string{"oldText", "old_string"}}, nil, "write", "edit")
	add(oc, &input{kind: schema.SinkFile, payload: []string{"input"}, patch: true}, nil, "apply_patch")
	add(oc, &input{kind: schema.SinkWeb, payload: []string{"url"}, dest: []string{"url"}, ignore: []string{"extractMode", "maxChars"}}, fromWeb, "web_fetch")
	add(oc, &input{kind: schema.SinkWeb, payload: []string{"query"}, ignore: []string{"count", "country", "language", "freshness", "date_after", "date_before", "search_lang", "ui_lang", "max_tokens", "max_tokens_per_page"}},
		fromWeb, "web_search", "x_search")
	add(oc, message, nil, "message", "tts")
	add(oc, message, fromAgent, "conversations_send", "conversations_turn")
	add(oc, &tell, fromAgent, "sessions_send", "sessions_spawn", "openclaw")
	add(oc, all(schema.SinkPlan, "status", "list", "get", "runs", "next_check"), fromTool, "automations", "cron", "intent")
	add(oc, all(schema.SinkPlan), nil, "create_goal")
	add(oc, look("path", "query"), fromMemory, "memory_get", "memory_search")
	add(oc, all(schema.SinkConfig, "config.get", "config.schema.lookup"), fromTool, "gateway")
	add(oc, all(schema.SinkSkill, "list", "inspect", "search"), fromSkill, "plugins")
	add(oc, all(schema.SinkSkill, "read", "list", "inspect", "history"), fromSkill, "skill_workshop")
	add(oc, all(schema.SinkPolicy, "list"), nil, "secrets")
	add(oc, all(schema.SinkIdentity, "cloud_profiles", "group_list"), nil, "sessions")
	add(oc, all(schema.SinkTool, "status", "describe", "pending"), fromTool, "nodes")
	add(oc, nil, fromAgent, "sessions_history", "sessions_search", "agents_wait", "subagents", "transcripts", "conversations_list")
	add(oc, nil, nil, "agents_list", "sessions_list", "session_status", "sessions_yield", "get_goal", "update_goal", "progress_card", "ask_user")

	const cc = "claude-code"
	add(cc, &input{kind: schema.SinkExec, payload: []string{"command"}, flags: []string{"dangerouslyDisableSandbox"}, ignore: []string{"description", "timeout", "run_in_background"}},
		fromTool, "Bash", "Monitor")
	add(cc, nil, fromTool, "BashOutput", "TaskOutput")
	add(cc, nil, nil, "KillShell", "KillBash", "TaskStop", "TodoWrite", "EnterPlanMode", "ExitPlanMode", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList",
		"AskUserQuestion", "ToolSearch", "CronList", "CronDelete", "EnterWorktree", "ExitWorktree")
	add(cc, look("file_path", "notebook_path"), fromFile, "Read", "NotebookRead")
	add(cc, look("path", "pattern", "glob"), fromFile, "Glob", "Grep", "LS")
	add(cc, &input{kind: schema.SinkFile, payload: []string{"content", "new_string", "edits", "new_source"}, id: []string{"file_path", "notebook_path"}, path: true,
		ignore: []string{"old_string", "replace_all", "cell_id", "cell_type", "edit_mode"}}, nil, "Write", "Edit", "MultiEdit", "NotebookEdit")
	add(cc, &input{kind: schema.SinkWeb, payload: []string{"url"}, dest: []string{"url"}, ignore: []string{"prompt"}}, fromWeb, "WebFetch")
	add(cc, &input{kind: schema.SinkWeb, payload: []string{"query"}, ignore: []string{"allowed_domains", "blocked_domains"}}, fromWeb, "WebSearch")
	add(cc, &input{kind: schema.SinkTool, payload: []string{"prompt", "description"}, id: []string{"subagent_type"}, ignore: []string{"model", "run_in_background", "isolation", "name"}}, fromAgent, "Task", "Agent")
	add(cc, message, fromAgent, "SendMessage")
	add(cc, all(schema.SinkPlan), nil, "CronCreate", "ScheduleWakeup", "RemoteTrigger")
	add(cc, look("skill", "command", "args"), fromSkill, "Skill", "SlashCommand")
	add(cc, nil, fromTool, "ListMcpResourcesTool")
	add(cc, look("server", "uri"), fromTool, "ReadMcpResourceTool")
	return t
}

// toolFor returns what a tool does. A tool that the table lacks is judged by
// the words of its name, and whatever those say, its arguments are audited and
// its result is untrusted.
func toolFor(table map[string]tool, host, name string) tool {
	if t, ok := table[host+" "+name]; ok {
		return t
	}
	in := &input{
		kind: schema.SinkTool, action: []string{"action", "method"},
		id:   []string{"id", "path", "file_path", "name", "key", "resource"},
		dest: []string{"to", "recipient", "recipients", "email", "target", "channel", "url", "webhook", "destination", "address", "endpoint"},
	}
	out := &output{kind: schema.SourceTool}
	has := nameWords(name)
	any := func(words ...string) bool {
		for _, w := range words {
			if has[w] {
				return true
			}
		}
		return false
	}
	switch {
	case any("pay", "payment", "refund", "purchase", "invoice", "checkout", "withdraw", "funds", "money"):
		in.kind = schema.SinkPayment
	case any("exec", "execute", "shell", "bash", "terminal", "command", "cmd", "eval", "python", "script"):
		in.kind, in.payload = schema.SinkExec, []string{"command", "cmd", "code", "script", "source", "input"}
		in.workdir = []string{"workdir", "cwd", "working_directory"}
	case any("memory", "memories", "remember", "knowledge"):
		in.kind = schema.SinkMemory
		out.kind = schema.SourceMemory
	case any("schedule", "cron", "reminder", "automation"):
		in.kind = schema.SinkPlan
	case any("skill", "plugin", "extension"):
		in.kind = schema.SinkSkill
		out.kind = schema.SourceSkill
	case any("config", "settings", "configure"):
		in.kind = schema.SinkConfig
	case any("mail", "email", "message", "send", "post", "reply", "sms", "notify", "slack", "telegram"):
		in.kind = schema.SinkMessage
		if any("mail", "email", "inbox") {
			out.kind = schema.SourceEmail
		}
	case any("write", "edit", "file", "patch", "save"):
		in.kind, in.path = schema.SinkFile, true
		in.id = []string{"path", "file_path", "filename", "file", "uri"}
	case any("fetch", "http", "web", "url", "browse", "browser", "navigate", "search", "download", "upload"):
		in.kind = schema.SinkWeb
		out.kind, out.id = schema.SourceWeb, []string{"url", "uri"}
	}
	return tool{in, out}
}

// nameWords splits a tool's name at marks and at capitals.
func nameWords(name string) map[string]bool {
	words := map[string]bool{}
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			words[b.String()] = true
			b.Reset()
		}
	}
	lower := false
	for _, r := range name {
		if !unicode.IsLetter(r) {
			flush()
			continue
		}
		if unicode.IsUpper(r) && lower {
			flush()
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	flush()
	return words
}
