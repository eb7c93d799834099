package modelproxy

import (
	"fmt"
	"strings"
)

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) lines() bool { return false }

// Top-level fields of a request that hold what is looked at, or configure.
var anthropicFields = map[string]bool{"messages": true, "system": true, "tools": true, "metadata": true, "stop_sequences": true, "output_config": true, "output_format": true}

// clientTools are tools of Anthropic's that the runtime itself carries out.
// Others run at the provider: their results reach the model unseen.
var clientTools = []string{"bash_", "text_editor_", "computer_", "memory_"}

// read finds the places of a request.
func (anthropic) read(root *node) (*request, error) {
	if root.kind != '{' {
		return nil, badRequest("the request is not an object")
	}
	r := &request{root: root, calls: map[string]call{}, model: root.str("model"), stream: root.get("stream").isTrue()}
	for i, name := range root.names {
		if !anthropicFields[name] && !root.kids[i].inert() {
			return nil, badRequest("the field %s is not known here and may hold content", quoteName(name))
		}
	}
	r.session = anthropicSession(root.get("metadata"))
	if err := r.texts(kindSystem, "system", root.get("system")); err != nil {
		return nil, err
	}
	for _, name := range []string{"mcp_servers", "container"} {
		if root.get(name) != nil {
			return nil, badRequest("%s: what it names runs at the provider, where nothing can be looked at", name)
		}
	}
	for _, name := range []string{"output_config", "output_format"} {
		// A schema for the answer is read by the model as well.
		if v := root.get(name); v != nil && !v.inert() {
			r.add(&place{kind: kindDefinition, at: name, node: v})
		}
	}
	if v := root.get("stop_sequences"); v != nil && len(v.encode()) > 4096 {
		return nil, badRequest("stop_sequences: is over 4096 bytes")
	}
	if err := anthropicTools(r, root.get("tools")); err != nil {
		return nil, err
	}
	messages := root.get("messages")
	if messages == nil || messages.kind != '[' {
		return nil, badRequest("messages: is missing or no list")
	}
	for i, m := range messages.kids {
		if err := anthropicMessage(r, fmt.Sprintf("messages.%d", i), m); err != nil {
			return nil, err
		}
	}
	r.attach = func(text string) {
		block := obj("type", str("text"), "text", str(text))
		switch s := root.get("system"); {
		case s == nil || s.isNull():
			root.set("system", arr(block))
		case s.kind == '"':
			root.set("system", arr(obj("type", str("text"), "text", s), block))
		default:
			s.kids = append(s.kids, block)
		}
	}
	return r, nil
}

// anthropicSession is the session that Claude Code names in its metadata.
func anthropicSession(meta *node) string {
	id := meta.str("user_id")
	if len(id) > 1024 {
		return ""
	}
	if n, err := parse([]byte(id)); err == nil {
		id = n.str("session_id")
	} else if _, after, ok := strings.Cut(id, "_session_"); ok {
		id = after
	} else {
		return ""
	}
	if id == "" || !word(id) {
		return ""
	}
	return id
}

// quoteName makes a field's name safe to repeat.
func quoteName(s string) string {
	if word(s) && len(s) <= 60 {
		return s
	}
	return "(a name that is no word)"
}

// texts adds a text, or a list of blocks of text.
func (r *request) texts(k kind, at string, v *node) error {
	switch {
	case v.isNull():
	case v.kind == '"':
		r.add(&place{kind: k, at: at, node: v})
	case v.kind == '[':
		for i, b := range v.kids {
			at := fmt.Sprintf("%s.%d", at, i)
			text := b.get("text")
			if b.str("type") != "text" || text == nil || text.kind != '"' {
				return badRequest("%s: is no text", at)
			}
			if err := rest(at, b, "text", "citations"); err != nil {
				return err
			}
			r.add(&place{kind: k, at: at, node: text})
		}
	default:
		return badRequest("%s: is neither a text nor a list of texts", at)
	}
	return nil
}

// rest refuses a block that holds more than the fields that were looked at.
func rest(at string, b *node, looked ...string) error {
	if b == nil || b.kind != '{' {
		return badRequest("%s: is no object", at)
	}
next:
	for i, name := range b.names {
		for _, l := range looked {
			if name == l {
				continue next
			}
		}
		if !b.kids[i].inert() {
			return badRequest("%s.%s: is not known here and may hold content", at, quoteName(name))
		}
	}
	return nil
}

func anthropicTools(r *request, tools *node) error {
	if tools.isNull() {
		return nil
	}
	if tools.kind != '[' {
		return badRequest("tools: is no list")
	}
	for i, t := range tools.kids {
		at := fmt.Sprintf("tools.%d", i)
		kind := t.str("type")
		ours := kind == "" || kind == "custom"
		for _, prefix := range clientTools {
			ours = ours || strings.HasPrefix(kind, prefix)
		}
		if t.kind != '{' || !ours {
			return badRequest("%s: a tool of the type %s runs at the provider, where nothing can be looked at; switch it off", at, quoteName(kind))
		}
		if !word(t.str("name")) {
			return badRequest("%s.name: must be one word", at)
		}
		r.add(&place{kind: kindDefinition, at: at, node: t})
	}
	return nil
}

func anthropicMessage(r *request, at string, m *node) error {
	if err := rest(at, m, "content"); err != nil {
		return err
	}
	said := kindPrompt
	switch m.str("role") {
	case "user":
	case "assistant":
		said = kindSaid
	case "system":
		said = kindSystem
	default:
		return badRequest("%s.role: is not known", at)
	}
	content := m.get("content")
	switch {
	case content == nil:
		return badRequest("%s.content: is missing", at)
	case content.kind == '"':
		r.add(&place{kind: said, at: at + ".content", node: content})
		return nil
	case content.kind != '[':
		return badRequest("%s.content: is neither a text nor a list", at)
	}
	for i, b := range content.kids {
		if err := anthropicBlock(r, fmt.Sprintf("%s.content.%d", at, i), said, b); err != nil {
			return err
		}
	}
	return nil
}

func anthropicBlock(r *request, at string, said kind, b *node) error {
	switch b.str("type") {
	case "text":
		text := b.get("text")
		if text == nil || text.kind != '"' {
			return badRequest("%s.text: is no text", at)
		}
		r.add(&place{kind: said, at: at, node: text})
		return rest(at, b, "text")
	case "image":
		return image(at, b)
	case "tool_use":
		input, name := b.get("input"), b.str("name")
		if input == nil || input.kind != '{' || !word(name) || said != kindSaid {
			return badRequest("%s: is no tool call of the model's", at)
		}
		r.calls[b.str("id")] = call{name, input.encode()}
		r.add(&place{kind: kindCalled, at: at, node: input, tool: name, callID: b.str("id")})
		return rest(at, b, "input")
	case "tool_result":
		if said != kindPrompt {
			return badRequest("%s: a result stands where the model speaks", at)
		}
		id := b.str("tool_use_id")
		content := b.get("content")
		if !content.isNull() {
			if err := anthropicResult(at, content); err != nil {
				return err
			}
			r.add(&place{kind: kindResult, at: at, node: content, tool: r.calls[id].tool, callID: id, failed: b.get("is_error").isTrue()})
		}
		return rest(at, b, "content")
	case "thinking":
		// The provider's signature holds it to what its model thought; another
		// text than the one that came through here is looked at.
		thought := b.get("thinking")
		if thought == nil || thought.kind != '"' || said != kindSaid {
			return badRequest("%s: is no thought of the model's", at)
		}
		r.add(&place{kind: kindSaid, at: at, node: thought})
		return rest(at, b, "thinking", "signature")
	case "redacted_thinking":
		if said != kindSaid || !base64Only(b.str("data")) {
			return badRequest("%s: is no thought of the model's", at)
		}
		return rest(at, b, "data")
	default:
		return badRequest("%s: a block of the type %s is not known here", at, quoteName(b.str("type")))
	}
}

// anthropicResult refuses what a tool's result cannot be looked at in.
func anthropicResult(at string, content *node) error {
	if content.kind == '"' {
		return nil
	}
	if content.kind != '[' {
		return badRequest("%s.content: is neither a text nor a list", at)
	}
	for i, b := range content.kids {
		at := fmt.Sprintf("%s.content.%d", at, i)
		switch b.str("type") {
		case "text", "tool_reference":
			// Everything in it is a text of the result.
		case "search_result":
			// Its title, source and texts are as well.
		case "image":
			if err := image(at, b); err != nil {
				return err
			}
		default:
			return badRequest("%s: a block of the type %s is not known here", at, quoteName(b.str("type")))
		}
	}
	return nil
}

// image checks that an image is one and nothing else. What is to be read in it
// nobody here can read.
func image(at string, b *node) error {
	src := b.get("source")
	if src.str("type") != "base64" || !base64Only(src.str("data")) {
		return badRequest("%s.source: only images in the request itself are passed on", at)
	}
	if err := rest(at+".source", src, "data"); err != nil {
		return err
	}
	return rest(at, b, "source")
}

func base64Only(s string) bool {
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_") == ""
}

// answer looks at a complete answer.
func (anthropic) answer(g *gate, root *node) error {
	content := root.get("content")
	if root.str("type") != "message" || content == nil || content.kind != '[' {
		return badAnswer("is no message")
	}
	if err := answerRest("the answer", root, "content"); err != nil {
		return err
	}
	for _, b := range content.kids {
		switch b.str("type") {
		case "text":
			if err := answerRest("a text", b, "text"); err != nil {
				return err
			}
			b.set("text", str(g.whole(b.str("text"))))
		case "thinking":
			g.said(b.str("thinking"))
			if err := answerRest("a thought", b, "thinking", "signature"); err != nil {
				return err
			}
		case "redacted_thinking":
			if err := answerRest("a thought", b, "data"); err != nil {
				return err
			}
		case "tool_use":
			if err := answerRest("a call", b, "input"); err != nil {
				return err
			}
			in := b.get("input")
			if in == nil {
				in = obj()
			}
			out, instead := g.call(b.str("id"), b.str("name"), string(in.encode()))
			if instead != "" {
				*b = *obj("type", str("text"), "text", str(instead))
				continue
			}
			n, err := parse([]byte(out))
			if err != nil {
				return badAnswer("holds a call that cannot be put back")
			}
			b.set("input", n)
		default:
			return badAnswer("holds a block of the type %s", quoteName(b.str("type")))
		}
	}
	if root.str("stop_reason") == "tool_use" && g.left == 0 {
		root.set("stop_reason", str("end_turn"))
	}
	return nil
}

// answerRest refuses an answer with content outside the fields that were
// looked at. Usage figures and the like are inert.
func answerRest(what string, b *node, looked ...string) error {
	if err := rest("", b, append(looked, "stop_sequence")...); err != nil {
		return badAnswer("has a field in %s that is not known here and may hold content", what)
	}
	return nil
}

func (anthropic) stream(g *gate) filter { return &anthropicStream{g: g, open: -1} }

// anthropicStream is one answer in events. Blocks come one after the other.
type anthropicStream struct {
	g      *gate
	begun  bool
	end    bool
	open   int    // the index of the open block; -1 for none
	kind   string // of the open block
	last   int    // the highest index so far, plus one
	speech *speech
	// Of a call that is being collected.
	start *node
	args  strings.Builder
}

func (s *anthropicStream) done() bool { return s.end }

func (s *anthropicStream) fail(r *refusal) event {
	return named("error", errorBody("anthropic", r))
}

// named is an event of the Messages API, whose name is its type.
func named(name string, n *node) event { return event{name, string(n.encode())} }

func (s *anthropicStream) next(e event) ([]event, error) {
	n, err := parse([]byte(e.data))
	if err != nil || n.kind != '{' {
		return nil, badAnswer("holds an event that is not one JSON object without doubled names")
	}
	kind := n.str("type")
	if e.name != "" && e.name != kind {
		return nil, badAnswer("holds an event under another's name")
	}
	if !s.begun && kind != "message_start" && kind != "ping" && kind != "error" {
		return nil, badAnswer("does not begin with its beginning")
	}
	switch kind {
	case "ping":
		return []event{named(kind, obj("type", str("ping")))}, nil
	case "error":
		return nil, streamError(n.get("error").str("type"))
	case "message_start":
		m := n.get("message")
		if c := m.get("content"); s.begun || m == nil || c == nil || c.kind != '[' || len(c.kids) > 0 {
			return nil, badAnswer("begins twice, or with content")
		}
		s.begun = true
		if err := firstError(answerRest("the beginning", n, "message"), answerRest("the message", m)); err != nil {
			return nil, err
		}
		return []event{named(kind, n)}, nil
	case "content_block_start":
		return s.startBlock(n)
	case "content_block_delta":
		return s.delta(n)
	case "content_block_stop":
		return s.stopBlock(n)
	case "message_delta":
		if s.open >= 0 {
			return nil, badAnswer("ends before a block of it does")
		}
		if err := firstError(answerRest("the end", n, "delta"), answerRest("the end", n.get("delta"))); err != nil {
			return nil, err
		}
		if d := n.get("delta"); d.str("stop_reason") == "tool_use" && s.g.left == 0 {
			d.set("stop_reason", str("end_turn"))
		}
		return []event{named(kind, n)}, nil
	case "message_stop":
		if s.open >= 0 {
			return nil, badAnswer("ends before a block of it does")
		}
		s.end = true
		return []event{named(kind, obj("type", str(kind)))}, nil
	default:
		if !n.inert() {
			return nil, badAnswer("holds an event of the type %s", quoteName(kind))
		}
		return nil, nil // news of a kind that no runtime of today waits for
	}
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// streamError is a provider's error in the middle of an answer.
func streamError(kind string) *refusal {
	status := map[string]int{"overloaded_error": 529, "rate_limit_error": 429, "invalid_request_error": 400, "authentication_error": 401, "permission_error": 403,
		"not_found_error": 404, "request_too_large": 413, "timeout_error": 504, "billing_error": 402}[kind]
	if status == 0 {
		status, kind = 502, "api_error"
	}
	return refuse(status, kind, "the provider ended its answer with an error")
}

func index(n *node) int {
	v := n.get("index")
	if v == nil || v.kind != '0' || len(v.raw) > 4 {
		return -1
	}
	i := 0
	for _, c := range v.raw {
		if c < '0' || c > '9' {
			return -1
		}
		i = i*10 + int(c-'0')
	}
	return i
}

func (s *anthropicStream) startBlock(n *node) ([]event, error) {
	i, b := index(n), n.get("content_block")
	if s.open >= 0 || i != s.last || b == nil {
		return nil, badAnswer("holds blocks in an order that is none")
	}
	if err := answerRest("a block", n, "content_block"); err != nil {
		return nil, err
	}
	s.open, s.last, s.kind = i, i+1, b.str("type")
	switch s.kind {
	case "text", "thinking":
		s.speech = s.g.speech()
		if b.str(s.kind) != "" {
			return nil, badAnswer("holds a block that begins with content")
		}
		if c := b.get("citations"); c != nil && !(c.kind == '[' && len(c.kids) == 0) && !c.isNull() {
			return nil, badAnswer("holds a block that begins with content")
		}
		return []event{named("content_block_start", n)}, answerRest("a block", b, s.kind, "citations", "signature")
	case "redacted_thinking":
		return []event{named("content_block_start", n)}, answerRest("a block", b, "data")
	case "tool_use":
		if in := b.get("input"); in != nil && (in.kind != '{' || len(in.kids) > 0) {
			return nil, badAnswer("holds a call that begins with arguments")
		}
		s.start = n
		s.args.Reset()
		return nil, answerRest("a call", b, "input")
	default:
		return nil, badAnswer("holds a block of the type %s", quoteName(s.kind))
	}
}

func (s *anthropicStream) delta(n *node) ([]event, error) {
	d := n.get("delta")
	if index(n) != s.open || s.open < 0 || d == nil {
		return nil, badAnswer("goes on with a block that is not open")
	}
	if err := answerRest("a part", n, "delta"); err != nil {
		return nil, err
	}
	kind := d.str("type")
	if err := answerRest("a part", d, "text", "partial_json", "thinking", "signature"); err != nil {
		return nil, err
	}
	field := map[string]string{"text_delta": "text", "input_json_delta": "partial_json", "thinking_delta": "thinking", "signature_delta": "signature"}[kind]
	for i, name := range d.names {
		if name != "type" && (name != field || d.kids[i].kind != '"') {
			return nil, badAnswer("holds a part of a type that is not known here")
		}
	}
	switch {
	case kind == "text_delta" && s.kind == "text":
		if d.set("text", str(s.speech.add(d.str("text")))); d.str("text") == "" {
			return nil, nil
		}
	case kind == "thinking_delta" && s.kind == "thinking":
		s.speech.keep(d.str("thinking"))
	case kind == "signature_delta" && s.kind == "thinking":
	case kind == "input_json_delta" && s.kind == "tool_use":
		if s.args.Len()+len(d.str("partial_json")) > maxEvent {
			return nil, badAnswer("holds a call that is too large")
		}
		s.args.WriteString(d.str("partial_json"))
		return nil, nil
	default:
		return nil, badAnswer("holds a part that does not fit its block")
	}
	return []event{named("content_block_delta", n)}, nil
}

func (s *anthropicStream) stopBlock(n *node) ([]event, error) {
	i := index(n)
	if i != s.open || s.open < 0 {
		return nil, badAnswer("ends a block that is not open")
	}
	at := number(fmt.Sprint(i))
	stop := named("content_block_stop", obj("type", str("content_block_stop"), "index", at))
	part := func(d *node) event {
		return named("content_block_delta", obj("type", str("content_block_delta"), "index", at, "delta", d))
	}
	text := func(t string) event { return part(obj("type", str("text_delta"), "text", str(t))) }
	s.open = -1
	switch s.kind {
	case "text":
		if tail := s.speech.end(); tail != "" {
			return []event{text(tail), stop}, nil
		}
	case "thinking":
		s.speech.note()
	case "tool_use":
		b := s.start.get("content_block")
		args, instead := s.g.call(b.str("id"), b.str("name"), s.args.String())
		if instead != "" {
			begin := obj("type", str("content_block_start"), "index", at, "content_block", obj("type", str("text"), "text", str("")))
			return []event{named("content_block_start", begin), text(instead), stop}, nil
		}
		return []event{named("content_block_start", s.start), part(obj("type", str("input_json_delta"), "partial_json", str(args))), stop}, nil
	}
	return []event{stop}, nil
}
