package modelproxy

import (
	"fmt"
	"strings"
)

// chat is OpenAI's chat completions API.
type chat struct{}

func (chat) lines() bool { return false }

// Fields of a request that are looked at, or that only the provider reads.
var chatFields = map[string]bool{"messages": true, "tools": true, "functions": true, "response_format": true, "stop": true, "metadata": true, "prediction": true}

func (chat) read(root *node) (*request, error) {
	if root.kind != '{' {
		return nil, badRequest("the request is not an object")
	}
	r := &request{root: root, calls: map[string]call{}, model: root.str("model"), stream: root.get("stream").isTrue()}
	for i, name := range root.names {
		if !chatFields[name] && !root.kids[i].inert() {
			return nil, badRequest("the field %s is not known here and may hold content", quoteName(name))
		}
	}
	for _, name := range []string{"web_search_options", "functions", "prediction"} {
		if !root.get(name).isNull() {
			return nil, badRequest("%s: is not passed on; use tools", name)
		}
	}
	r.session = sessionField(root)
	if v := root.get("stop"); v != nil && len(v.encode()) > 4096 {
		return nil, badRequest("stop: is over 4096 bytes")
	}
	if v := root.get("response_format"); v != nil && !v.inert() {
		r.add(&place{kind: kindDefinition, at: "response_format", node: v})
	}
	if err := functionTools(r, root.get("tools"), "function"); err != nil {
		return nil, err
	}
	messages := root.get("messages")
	if messages == nil || messages.kind != '[' {
		return nil, badRequest("messages: is missing or no list")
	}
	for i, m := range messages.kids {
		if err := chatMessage(r, fmt.Sprintf("messages.%d", i), m); err != nil {
			return nil, err
		}
	}
	r.attach = func(text string) {
		messages.kids = append([]*node{obj("role", str("system"), "content", str(text))}, messages.kids...)
	}
	return r, nil
}

// sessionField is how a runtime may name its session: OpenAI's key for its
// prompt cache, or a user's name.
func sessionField(root *node) string {
	for _, name := range []string{"prompt_cache_key", "safety_identifier", "user"} {
		if v := root.str(name); v != "" {
			return v // one word, or the request was refused
		}
	}
	return ""
}

// functionTools adds the tools of a request; at is where a tool's own fields
// are, empty for the tool itself.
func functionTools(r *request, tools *node, at string) error {
	if tools.isNull() {
		return nil
	}
	if tools.kind != '[' {
		return badRequest("tools: is no list")
	}
	for i, t := range tools.kids {
		where := fmt.Sprintf("tools.%d", i)
		kind := t.str("type")
		if t.kind != '{' || kind != "function" && kind != "custom" {
			return badRequest("%s: a tool of the type %s runs at the provider, where nothing can be looked at; switch it off", where, quoteName(kind))
		}
		fields := t
		if at != "" {
			fields = t.get(kind)
		}
		if name := fields.str("name"); !word(name) || name == "" {
			return badRequest("%s: its name must be one word", where)
		}
		r.add(&place{kind: kindDefinition, at: where, node: t})
	}
	return nil
}

func chatMessage(r *request, at string, m *node) error {
	if err := rest(at, m, "content", "tool_calls", "reasoning_content", "reasoning", "thinking"); err != nil {
		return err
	}
	content := m.get("content")
	switch role := m.str("role"); role {
	case "system", "developer":
		return r.chatTexts(kindSystem, at, content)
	case "user":
		return r.chatTexts(kindPrompt, at, content)
	case "tool":
		id := m.str("tool_call_id")
		if content.isNull() {
			return nil
		}
		if content.kind != '"' {
			if err := chatParts(at, content, nil); err != nil {
				return err
			}
		}
		r.add(&place{kind: kindResult, at: at, node: content, tool: r.calls[id].tool, callID: id})
		return nil
	case "assistant":
		for _, name := range []string{"reasoning_content", "reasoning", "thinking"} {
			if v := m.get(name); !v.isNull() {
				if v.kind != '"' {
					return badRequest("%s.%s: is no text", at, name)
				}
				r.add(&place{kind: kindSaid, at: at, node: v})
			}
		}
		if err := r.chatTexts(kindSaid, at, content); err != nil {
			return err
		}
		return chatCalls(r, at, m.get("tool_calls"))
	default:
		return badRequest("%s.role: is not known", at)
	}
}

// chatTexts adds a content of one text or of parts.
func (r *request) chatTexts(k kind, at string, content *node) error {
	switch {
	case content.isNull():
		return nil
	case content.kind == '"':
		r.add(&place{kind: k, at: at + ".content", node: content})
		return nil
	}
	return chatParts(at, content, func(text *node) { r.add(&place{kind: k, at: at + ".content", node: text}) })
}

// chatParts checks a list of parts, and hands on their texts.
func chatParts(at string, content *node, add func(*node)) error {
	if content.kind != '[' {
		return badRequest("%s.content: is neither a text nor a list", at)
	}
	for i, b := range content.kids {
		at := fmt.Sprintf("%s.content.%d", at, i)
		kind := b.str("type")
		switch kind {
		case "text", "refusal":
			text := b.get(kind)
			if text == nil || text.kind != '"' {
				return badRequest("%s: is no text", at)
			}
			if add != nil {
				add(text)
			}
			if err := rest(at, b, kind); err != nil {
				return err
			}
		case "image_url":
			if err := dataImage(at, b.get("image_url").str("url")); err != nil {
				return err
			}
			if err := rest(at, b.get("image_url"), "url"); err != nil {
				return err
			}
			if err := rest(at, b, "image_url"); err != nil {
				return err
			}
		default:
			return badRequest("%s: a part of the type %s is not known here", at, quoteName(kind))
		}
	}
	return nil
}

// dataImage checks that an image is in the request itself.
func dataImage(at, url string) error {
	head, data, ok := strings.Cut(url, ";base64,")
	if !ok || !strings.HasPrefix(head, "data:image/") || !word(head) || !base64Only(data) {
		return badRequest("%s: only images in the request itself are passed on", at)
	}
	return nil
}

func chatCalls(r *request, at string, calls *node) error {
	if calls.isNull() {
		return nil
	}
	if calls.kind != '[' {
		return badRequest("%s.tool_calls: is no list", at)
	}
	for i, c := range calls.kids {
		at := fmt.Sprintf("%s.tool_calls.%d", at, i)
		kind, field := c.str("type"), "arguments"
		if kind == "" {
			kind = "function"
		}
		if kind == "custom" {
			field = "input"
		}
		f := c.get(kind)
		args, name := f.get(field), f.str("name")
		if kind != "function" && kind != "custom" || args == nil || args.kind != '"' || name == "" || !word(name) {
			return badRequest("%s: is no tool call of the model's", at)
		}
		if err := rest(at, f, field); err != nil {
			return err
		}
		if err := rest(at, c, kind); err != nil {
			return err
		}
		r.calls[c.str("id")] = call{name, argumentsOf(args.text)}
		r.add(&place{kind: kindCalled, at: at, node: args, tool: name, callID: c.str("id"), embedded: true})
	}
	return nil
}

// answer looks at a complete answer.
func (chat) answer(g *gate, root *node) error {
	choices := root.get("choices")
	if choices == nil || choices.kind != '[' {
		return badAnswer("is no chat completion")
	}
	if err := answerRest("the answer", root, "choices"); err != nil {
		return err
	}
	for _, c := range choices.kids {
		m := c.get("message")
		if err := firstError(answerRest("a choice", c, "message", "logprobs"), answerRest("a message", m, "content", "refusal", "reasoning_content", "reasoning", "tool_calls", "function_call", "annotations")); err != nil {
			return err
		}
		c.drop("logprobs") // the same text once more, in pieces
		m.drop("annotations")
		if !m.get("function_call").isNull() {
			return badAnswer("holds a call in a form that is not known here")
		}
		for _, name := range []string{"content", "refusal", "reasoning_content", "reasoning"} {
			v := m.get(name)
			if !v.isNull() && v.kind != '"' {
				return badAnswer("holds a text that is none")
			}
			if !v.isNull() {
				v.text = g.whole(v.text)
			}
		}
		var kept []*node
		said := m.str("content")
		calls := m.get("tool_calls")
		if !calls.isNull() && calls.kind != '[' {
			return badAnswer("holds calls that are none")
		}
		if !calls.isNull() {
			for _, call := range calls.kids {
				f := call.get("function")
				if k := call.str("type"); k != "" && k != "function" || f == nil {
					return badAnswer("holds a call of the type %s", quoteName(call.str("type")))
				}
				if err := firstError(answerRest("a call", call, "function"), answerRest("a call", f, "arguments")); err != nil {
					return err
				}
				out, instead := g.call(call.str("id"), f.str("name"), f.str("arguments"))
				if instead != "" {
					said = join(said, instead)
					continue
				}
				f.set("arguments", str(out))
				if call.get("index") != nil {
					call.set("index", number(fmt.Sprint(len(kept))))
				}
				kept = append(kept, call)
			}
			if len(kept) != len(calls.kids) {
				m.set("content", str(said))
				g.said(said)
			}
			if calls.kids = kept; len(kept) == 0 {
				m.drop("tool_calls")
				if c.str("finish_reason") == "tool_calls" {
					c.set("finish_reason", str("stop"))
				}
			}
		}
	}
	g.answered(root.str("id"))
	return nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n\n" + b
}

func (chat) stream(g *gate) filter { return &chatStream{g: g, choices: map[int]*chatChoice{}} }

// chatStream is one answer in chunks.
type chatStream struct {
	g       *gate
	end     bool
	choices map[int]*chatChoice
}

// chatChoice is one of an answer's choices.
type chatChoice struct {
	said     *speech
	thought  *speech
	calls    []*chatCall
	shown    strings.Builder
	finished bool
}

type chatCall struct {
	id, name string
	args     strings.Builder
}

const (
	maxChoices = 16
	maxCalls   = 128
)

func (s *chatStream) done() bool { return s.end }

func (s *chatStream) fail(r *refusal) event {
	return event{data: string(errorBody("openai", r).encode())}
}

func (s *chatStream) next(e event) ([]event, error) {
	if strings.TrimSpace(e.data) == "[DONE]" {
		for _, c := range s.choices {
			if !c.finished {
				return nil, badAnswer("ends before a choice of it does")
			}
		}
		if len(s.choices) == 0 {
			return nil, badAnswer("holds nothing")
		}
		s.end = true
		return []event{{data: "[DONE]"}}, nil
	}
	n, err := parse([]byte(e.data))
	if err != nil || n.kind != '{' {
		return nil, badAnswer("holds an event that is not one JSON object without doubled names")
	}
	if n.get("error") != nil {
		return nil, streamError(n.get("error").str("type"))
	}
	choices := n.get("choices")
	if choices == nil || choices.kind != '[' || len(choices.kids) > maxChoices {
		return nil, badAnswer("holds an event without choices")
	}
	if err := answerRest("an event", n, "choices"); err != nil {
		return nil, err
	}
	// An event may hold a text, the end of a call and the end of everything. They
	// go on in that order, each in an event of its own.
	var out []event
	if len(choices.kids) == 0 { // the figures of use
		return []event{{data: string(n.encode())}}, nil
	}
	for _, c := range choices.kids {
		list, err := s.choice(n, c)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// choice takes one choice's part of an event.
func (s *chatStream) choice(n, c *node) ([]event, error) {
	i := index(c)
	d := c.get("delta")
	if i < 0 || i >= maxChoices || d == nil || d.kind != '{' {
		return nil, badAnswer("holds a choice that is none")
	}
	if err := firstError(answerRest("a choice", c, "delta", "logprobs"), answerRest("a part", d, "content", "refusal", "reasoning_content", "reasoning", "tool_calls", "annotations")); err != nil {
		return nil, err
	}
	x := s.choices[i]
	if x == nil {
		x = &chatChoice{said: s.g.speech(), thought: s.g.speech()}
		s.choices[i] = x
	}
	if x.finished {
		return nil, badAnswer("goes on after its end")
	}
	c.drop("logprobs")
	d.drop("annotations")
	part := func(d, finish *node) event {
		one := n.copy()
		one.set("choices", arr(obj("index", number(fmt.Sprint(i)), "delta", d, "finish_reason", finish)))
		one.drop("usage")
		return event{data: string(one.encode())}
	}
	calls := d.get("tool_calls")
	d.drop("tool_calls")
	for _, name := range []string{"content", "refusal", "reasoning_content", "reasoning"} {
		v := d.get(name)
		switch {
		case v.isNull():
		case v.kind != '"':
			return nil, badAnswer("holds a text that is none")
		case name == "content":
			v.text = x.said.add(v.text)
			x.keep(v.text)
		default:
			x.thought.keep(v.text)
		}
	}
	var out []event
	if len(d.kids) > 0 {
		out = append(out, part(d, null()))
	}
	if !calls.isNull() {
		if calls.kind != '[' {
			return nil, badAnswer("holds calls that are none")
		}
		for _, call := range calls.kids {
			if err := x.collect(call); err != nil {
				return nil, err
			}
		}
	}
	finish := c.get("finish_reason")
	if finish.isNull() {
		if u := n.get("usage"); !u.isNull() && len(out) == 0 {
			return []event{part(obj(), null())}, nil
		}
		return out, nil
	}
	x.finished = true
	if tail := x.said.end(); tail != "" {
		x.keep(tail)
		out = append(out, part(obj("content", str(tail)), null()))
	}
	x.thought.note()
	kept, blocked := 0, false
	for _, call := range x.calls {
		args, instead := s.g.call(call.id, call.name, call.args.String())
		if instead != "" {
			if blocked = true; x.shown.Len() > 0 {
				instead = "\n\n" + instead
			}
			x.keep(instead)
			out = append(out, part(obj("content", str(instead)), null()))
			continue
		}
		f := obj("index", number(fmt.Sprint(kept)), "id", str(call.id), "type", str("function"), "function", obj("name", str(call.name), "arguments", str(args)))
		out = append(out, part(obj("tool_calls", arr(f)), null()))
		kept++
	}
	if blocked {
		s.g.said(x.shown.String())
	}
	if finish.kind == '"' && finish.text == "tool_calls" && kept == 0 {
		finish = str("stop")
	}
	last := n.copy()
	last.set("choices", arr(obj("index", number(fmt.Sprint(i)), "delta", obj(), "finish_reason", finish)))
	return append(out, event{data: string(last.encode())}), nil
}

func (x *chatChoice) keep(text string) {
	if x.shown.Len()+len(text) <= maxSaid {
		x.shown.WriteString(text)
	}
}

// collect adds a part of a call.
func (x *chatChoice) collect(n *node) error {
	f := n.get("function")
	if k := n.str("type"); k != "" && k != "function" || f == nil {
		return badAnswer("holds a call of the type %s", quoteName(n.str("type")))
	}
	if err := firstError(answerRest("a call", n, "function"), answerRest("a call", f, "arguments")); err != nil {
		return err
	}
	i := index(n)
	if n.get("index") == nil {
		i = len(x.calls) // some servers send whole calls without a number
	}
	switch {
	case i < 0 || i > len(x.calls) || i >= maxCalls:
		return badAnswer("holds calls in an order that is none")
	case i == len(x.calls):
		x.calls = append(x.calls, new(chatCall))
	}
	c := x.calls[i]
	for _, v := range []struct {
		to   *string
		text string
	}{{&c.id, n.str("id")}, {&c.name, f.str("name")}} {
		// Some servers repeat both in every part.
		if v.text != "" && *v.to != "" && *v.to != v.text {
			return badAnswer("changes a call while it comes")
		}
		if v.text != "" {
			*v.to = v.text
		}
	}
	if c.args.Len()+len(f.str("arguments")) > maxEvent {
		return badAnswer("holds a call that is too large")
	}
	c.args.WriteString(f.str("arguments"))
	return nil
}
