package firewall

import (
	"path"
	"slices"
	"strings"

	"example.org/auditd/schema"
)

// field of an event that a flow's payload came from, and a rewrite goes back to.
type field uint8

const (
	fieldText field = iota
	fieldParams
	fieldResult
)

// part is one flow of an event, and the way back from its rewrite.
type part struct {
	flow   *schema.Flow
	from   field
	doc    *document // nil for text
	chosen selection
	screen bool // audited only if the precheck finds something
}

// plan is what an event comes to.
type plan struct {
	parts []part
	doc   *document // of the field that a rewrite goes back to
	note  string    // why there is nothing to audit
}

// scene is what every flow of one event has in common.
type scene struct {
	event  *schema.Event
	terms  Terms
	key    string       // of the session
	agent  string       // "host:agent", as the policy's modes name it
	label  schema.Trust // the worst that the session has read
	intent string
}

// plan makes the flows of an event, and notes in the session what the event
// brings into it.
func (fw *Firewall) plan(s *scene) (plan, error) {
	e := s.event
	switch e.Phase {
	case schema.PhaseSessionStart:
		fw.sessions.start(s.key)
		return plan{note: "session_started"}, nil
	case schema.PhaseSessionEnd:
		return plan{note: "session_ended"}, nil
	case schema.PhasePrompt:
		if e.Sender == "owner" {
			fw.sessions.prompt(s.key, e.Text)
			return plan{note: "owner_prompt"}, nil
		}
		return fw.inbound(s, schema.Source{Kind: schema.SourceUser, ID: e.Sender, Trust: schema.Untrusted})
	case schema.PhaseBootstrap:
		return fw.inbound(s, fw.source(sourceOfPath(e.Origin), e.Origin))
	case schema.PhaseWebhook:
		return fw.inbound(s, fw.source(schema.SourceWebhook, e.Origin))
	case schema.PhaseInspect:
		if len(e.Result) > 0 {
			return fw.afterTool(s)
		}
		return fw.inbound(s, fw.source(schema.SourceOther, e.Origin))
	case schema.PhaseMemory:
		return fw.outbound(s, schema.Sink{Kind: schema.SinkMemory, ID: shortID(e.Origin), Tool: e.Tool, Action: "write"})
	case schema.PhaseMessageOut:
		return fw.outbound(s, schema.Sink{Kind: schema.SinkMessage, ID: shortID(e.Origin), Tool: e.Tool, Action: "send", Destination: shortID(e.Origin)})
	case schema.PhaseBeforeTool:
		return fw.beforeTool(s)
	case schema.PhaseAfterTool:
		return fw.afterTool(s)
	default:
		return plan{}, errPhase
	}
}

// source gives a source the trust of its kind and the policy.
func (fw *Firewall) source(kind schema.SourceKind, id string) schema.Source {
	src := schema.Source{Kind: kind, ID: shortID(id)}
	if fw.cfg.Policy != nil {
		if p := fw.cfg.Policy(); p != nil {
			src.Trust = p.Ceiling(src)
		}
	}
	return src
}

// agentSource is the source of what the agent itself writes: derived at best,
// and never better than the worst that its session has read.
func (s *scene) agentSource() schema.Source {
	if src := s.terms.Source; src != nil {
		return schema.Source{Kind: src.Kind, ID: shortID(src.ID), Trust: min(src.Trust, s.label, schema.Derived)}
	}
	return schema.Source{Kind: schema.SourceAgent, ID: shortID(s.agent), Trust: min(s.label, schema.Derived)}
}

func (s *scene) flow(payload string, src schema.Source, sink schema.Sink) *schema.Flow {
	f := &schema.Flow{
		Payload: payload, Source: src, Sink: sink, Intent: s.intent, Ticket: s.event.Ticket,
		Session: schema.Session{Agent: s.agent, ID: s.event.Session, CallID: s.event.CallID},
	}
	if path.IsAbs(s.event.Workspace) {
		f.Session.Workspace = s.event.Workspace
	}
	return f
}

// resolve makes a file's path absolute where the workspace is known.
func (s *scene) resolve(file string) string {
	if file == "" || path.IsAbs(file) || strings.HasPrefix(file, "~") || strings.Contains(file, "://") || !path.IsAbs(s.event.Workspace) {
		return file
	}
	return path.Join(s.event.Workspace, file)
}

// inbound is text on its way into the model's context.
func (fw *Firewall) inbound(s *scene, src schema.Source) (plan, error) {
	fw.sessions.read(s.key, src.Trust)
	if s.event.Text == "" {
		return plan{note: "no_content"}, nil
	}
	return plan{parts: []part{{flow: s.flow(s.event.Text, src, schema.Sink{Kind: schema.SinkReasoning})}}}, nil
}

// outbound is text that the agent wrote, on its way somewhere.
func (fw *Firewall) outbound(s *scene, sink schema.Sink) (plan, error) {
	if s.event.Text == "" {
		return plan{note: "no_content"}, nil
	}
	return plan{parts: []part{{flow: s.flow(s.event.Text, s.agentSource(), sink)}}}, nil
}

// beforeTool is a tool's arguments on their way into the tool.
func (fw *Firewall) beforeTool(s *scene) (plan, error) {
	e := s.event
	in := toolFor(fw.tools, e.Host, e.Tool).in
	if in == nil {
		return plan{note: "no_effect"}, nil
	}
	doc, err := readDocument(e.Params)
	if err != nil {
		return plan{}, err
	}
	action := doc.value(in.action...)
	if action != "" && slices.Contains(in.reads, action) {
		return plan{doc: doc, note: "no_effect"}, nil
	}
	id := doc.value(in.id...)
	if in.path {
		id = s.resolve(id)
	}
	sink := schema.Sink{Kind: in.kind, Tool: e.Tool, Action: shortID(action), ID: shortID(id), Destination: shortID(doc.value(in.dest...))}
	for _, flag := range in.flags {
		if doc.value(flag) == "true" {
			sink.Permissions = append(sink.Permissions, flag)
		}
	}
	isPayload := func(l *leaf) bool { return in.payload == nil || slices.Contains(in.payload, l.top) }
	ignored := func(l *leaf) bool { return slices.Contains(in.ignore, l.top) }
	content := doc.pick(in.payload == nil, func(l *leaf) bool { return isPayload(l) && !ignored(l) && (in.payload == nil || l.index >= 0) })
	switch {
	case in.path:
		sink.Kind = sinkOfPath(id)
	case in.patch:
		file := worstPath(patchPaths(content.payload))
		sink.ID, sink.Kind = shortID(s.resolve(file)), sinkOfPath(file)
	}
	if dir := doc.value(in.workdir...); dir != "" && path.Clean(dir) != path.Clean(e.Workspace) {
		// The command says what happens only together with where it runs.
		content.prefix("cd " + shellQuote(dir) + " && ")
	}
	p := plan{doc: doc}
	if content.payload != "" {
		p.parts = append(p.parts, part{flow: s.flow(content.payload, s.agentSource(), sink), from: fieldParams, doc: doc, chosen: content, screen: in.screen})
	}
	if in.payload != nil {
		// What the table does not know may matter to the tool: an environment,
		// a second body.
		named := slices.Concat(in.id, in.dest, in.action, in.flags, in.workdir)
		rest := doc.pick(true, func(l *leaf) bool {
			return !isPayload(l) && !ignored(l) && l.index >= 0 && !slices.Contains(named, l.top) && !plainWord(l.text)
		})
		if rest.payload != "" {
			sink.Kind = schema.SinkTool
			p.parts = append(p.parts, part{flow: s.flow(rest.payload, s.agentSource(), sink), from: fieldParams, doc: doc, chosen: rest, screen: in.screen})
		}
	}
	if len(p.parts) == 0 {
		p.note = "no_content"
	}
	return p, nil
}

// afterTool is a tool's result on its way into the model's context.
func (fw *Firewall) afterTool(s *scene) (plan, error) {
	e := s.event
	out := toolFor(fw.tools, e.Host, e.Tool).out
	if out == nil && e.Phase != schema.PhaseInspect {
		return plan{note: "no_content"}, nil
	}
	if out == nil {
		out = &output{kind: schema.SourceOther}
	}
	doc, err := readDocument(e.Result)
	if err != nil {
		return plan{}, err
	}
	id := e.Tool
	if len(out.id) > 0 && len(e.Params) > 0 {
		params, err := readDocument(e.Params)
		if err != nil {
			return plan{doc: doc}, err
		}
		id = params.value(out.id...)
	}
	kind := out.kind
	if out.path {
		id = s.resolve(id)
		kind = sourceOfPath(id)
	}
	src := fw.source(kind, id)
	if kind == schema.SourceWeb {
		// A redirect ends somewhere else than it began: the worse end counts.
		for i := range doc.leaves {
			if l := &doc.leaves[i]; l.key == "finalUrl" || l.key == "final_url" {
				src.Trust = min(src.Trust, fw.source(kind, l.text).Trust)
			}
		}
	}
	fw.sessions.read(s.key, src.Trust)
	content := doc.pick(false, doc.content)
	if content.payload == "" {
		return plan{doc: doc, note: "no_content"}, nil
	}
	return plan{doc: doc, parts: []part{{
		flow: s.flow(content.payload, src, schema.Sink{Kind: schema.SinkReasoning, Tool: e.Tool}), from: fieldResult, doc: doc, chosen: content,
	}}}, nil
}

// shortID bounds an identifier to what a flow may carry. Of a longer one only
// the host is kept, if it has one: a rest that was cut off could lead anywhere.
func shortID(id string) string {
	id = strings.ToValidUTF8(id, "\uFFFD")
	if len(id) <= schema.MaxName {
		return id
	}
	if i := strings.Index(id, "://"); i > 0 && i < 16 {
		host := id[i+3:]
		if n := strings.IndexAny(host, "/?#\\"); n > 0 && n < 256 {
			return id[:i+3] + host[:n]
		}
	}
	return ""
}

// plainWord: one word that configures, such as "python" or "2".
func plainWord(s string) bool {
	return len(s) <= 24 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// shellQuote makes one word of s for a POSIX shell.
func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
