package modelproxy

import (
	"fmt"
	"strings"
)

// ollama is Ollama's chat API.
type ollama struct{}

func (ollama) lines() bool { return true }

var ollamaFields = map[string]bool{"messages": true, "tools": true, "format": true, "options": true}

func (ollama) read(root *node) (*request, error) {
	if root.kind != '{' {
		return nil, badRequest("the request is not an object")
	}
	// Without the field an answer is streamed.
	r := &request{root: root, calls: map[string]call{}, model: root.str("model"), stream: root.get("stream") == nil || root.get("stream").isTrue()}
	for i, name := range root.names {
		if !ollamaFields[name] && !root.kids[i].inert() {
			return nil, badRequest("the field %s is not known here and may hold content", quoteName(name))
		}
	}
	if v := root.get("format"); v != nil && !v.inert() {
		if v.kind != '{' {
			return nil, badRequest("format: is neither a word nor a schema")
		}
		r.add(&place{kind: kindDefinition, at: "format", node: v})
	}
	if o := root.get("options"); !o.isNull() {
		if err := rest("options", o, "stop"); err != nil || len(o.encode()) > 8192 {
			return nil, badRequest("options: may hold content")
		}
	}
	if err := functionTools(r, root.get("tools"), "function"); err != nil {
		return nil, err
	}
	messages := root.get("messages")
	if messages == nil || messages.kind != '[' {
		return nil, badRequest("messages: is missing or no list")
	}
	var last []string // the calls that have no result yet
	for i, m := range messages.kids {
		at := fmt.Sprintf("messages.%d", i)
		if err := rest(at, m, "content", "thinking", "tool_calls", "images"); err != nil {
			return nil, err
		}
		content := m.get("content")
		if !content.isNull() && content.kind != '"' {
			return nil, badRequest("%s.content: is no text", at)
		}
		if err := ollamaImages(at, m.get("images")); err != nil {
			return nil, err
		}
		role := m.str("role")
		k, known := map[string]kind{"system": kindSystem, "user": kindPrompt, "assistant": kindSaid, "tool": kindResult}[role]
		if !known {
			return nil, badRequest("%s.role: is not known", at)
		}
		p := &place{kind: k, at: at + ".content", node: content}
		if k == kindResult {
			// A result names its tool, or goes by its place.
			if p.callID = m.str("tool_call_id"); p.callID == "" && len(last) > 0 {
				p.callID, last = last[0], last[1:]
			}
			if p.tool = m.str("tool_name"); p.tool == "" {
				p.tool = r.calls[p.callID].tool
			}
		}
		if !content.isNull() {
			r.add(p)
		}
		if role != "assistant" {
			if m.get("tool_calls") != nil || m.get("thinking") != nil {
				return nil, badRequest("%s: is no message of the model's", at)
			}
			continue
		}
		if v := m.get("thinking"); !v.isNull() {
			if v.kind != '"' {
				return nil, badRequest("%s.thinking: is no text", at)
			}
			r.add(&place{kind: kindSaid, at: at + ".thinking", node: v})
		}
		var err error
		if last, err = ollamaCalls(r, at, m.get("tool_calls")); err != nil {
			return nil, err
		}
	}
	r.attach = func(text string) {
		messages.kids = append([]*node{obj("role", str("system"), "content", str(text))}, messages.kids...)
	}
	return r, nil
}

func ollamaImages(at string, images *node) error {
	if images.isNull() {
		return nil
	}
	if images.kind != '[' {
		return badRequest("%s.images: is no list", at)
	}
	for _, i := range images.kids {
		if i.kind != '"' || !base64Only(i.text) {
			return badRequest("%s.images: holds what is no image", at)
		}
	}
	return nil
}

func ollamaCalls(r *request, at string, calls *node) (ids []string, err error) {
	if calls.isNull() {
		return nil, nil
	}
	if calls.kind != '[' {
		return nil, badRequest("%s.tool_calls: is no list", at)
	}
	for i, c := range calls.kids {
		f := c.get("function")
		args, name := f.get("arguments"), f.str("name")
		if args == nil || args.kind != '{' || name == "" || !word(name) {
			return nil, badRequest("%s.tool_calls.%d: is no tool call of the model's", at, i)
		}
		if err := firstError(rest(at, f, "arguments"), rest(at, c, "function")); err != nil {
			return nil, err
		}
		id := c.str("id")
		if id == "" {
			id = fmt.Sprintf("%s.%d", at, i)
		}
		ids = append(ids, id)
		r.calls[id] = call{name, args.encode()}
		r.add(&place{kind: kindCalled, at: at, node: args, tool: name, callID: id})
	}
	return ids, nil
}

// answer looks at a complete answer.
func (ollama) answer(g *gate, root *node) error {
	s := &ollamaStream{g: g, said: g.speech(), thought: g.speech()}
	if !root.get("done").isTrue() {
		return badAnswer("is not at its end")
	}
	_, err := s.take(root)
	return err
}

func (ollama) stream(g *gate) filter {
	return &ollamaStream{g: g, said: g.speech(), thought: g.speech()}
}

// ollamaStream is one answer in lines.
type ollamaStream struct {
	g             *gate
	end           bool
	said, thought *speech
	shown         strings.Builder
	blocked       bool
}

func (s *ollamaStream) done() bool { return s.end }

func (s *ollamaStream) fail(r *refusal) event {
	return event{data: string(errorBody("ollama", r).encode())}
}

func (s *ollamaStream) next(e event) ([]event, error) {
	n, err := parse([]byte(e.data))
	if err != nil || n.kind != '{' {
		return nil, badAnswer("holds a line that is not one JSON object without doubled names")
	}
	if n.get("error") != nil {
		return nil, streamError("")
	}
	show, err := s.take(n)
	if err != nil || !show {
		return nil, err
	}
	return []event{{data: string(n.encode())}}, nil
}

// take looks at a part of an answer, or a whole one, and changes it. show is
// false when nothing of it is left to be shown by now.
func (s *ollamaStream) take(n *node) (show bool, err error) {
	m := n.get("message")
	if m == nil || m.kind != '{' || m.str("role") != "" && m.str("role") != "assistant" {
		return false, badAnswer("holds no message of the model's")
	}
	if err := firstError(answerRest("the answer", n, "message", "logprobs"), answerRest("a message", m, "content", "thinking", "tool_calls")); err != nil {
		return false, err
	}
	n.drop("logprobs")
	for _, name := range []string{"content", "thinking"} {
		if v := m.get(name); !v.isNull() && v.kind != '"' {
			return false, badAnswer("holds a text that is none")
		}
	}
	s.thought.keep(m.str("thinking"))
	had := m.str("content") != ""
	text := s.said.add(m.str("content"))
	s.end = n.get("done").isTrue()
	if s.end {
		text += s.said.end()
	}
	kept := 0
	if calls := m.get("tool_calls"); !calls.isNull() {
		if calls.kind != '[' || len(calls.kids) > maxCalls {
			return false, badAnswer("holds calls that are none")
		}
		var list []*node
		for _, c := range calls.kids {
			f := c.get("function")
			args := f.get("arguments")
			if args == nil {
				return false, badAnswer("holds a call without arguments")
			}
			if err := firstError(answerRest("a call", c, "function"), answerRest("a call", f, "arguments")); err != nil {
				return false, err
			}
			out, instead := s.g.call(c.str("id"), f.str("name"), string(args.encode()))
			if instead != "" {
				if s.blocked = true; s.shown.Len()+len(text) > 0 {
					instead = "\n\n" + instead
				}
				text += instead
				continue
			}
			a, err := parse([]byte(out))
			if err != nil {
				return false, badAnswer("holds a call that cannot be put back")
			}
			f.set("arguments", a)
			list = append(list, c)
		}
		if calls.kids, kept = list, len(list); kept == 0 {
			m.drop("tool_calls")
		}
	}
	if s.shown.Len()+len(text) <= maxSaid {
		s.shown.WriteString(text)
	}
	if m.get("content") != nil || text != "" {
		m.set("content", str(text))
	}
	if s.end {
		s.thought.note()
		if s.blocked {
			s.g.said(s.shown.String())
		}
	}
	return s.end || kept > 0 || text != "" || !had || m.str("thinking") != "", nil
}
