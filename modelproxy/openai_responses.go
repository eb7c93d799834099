package modelproxy

import (
	"fmt"
	"strconv"
	"strings"
)

// responses is OpenAI's responses API.
type responses struct{}

func (responses) lines() bool { return false }

var responsesFields = map[string]bool{"input": true, "instructions": true, "tools": true, "text": true, "metadata": true}

func (responses) read(root *node) (*request, error) {
	if root.kind != '{' {
		return nil, badRequest("the request is not an object")
	}
	r := &request{root: root, calls: map[string]call{}, model: root.str("model"), stream: root.get("stream").isTrue()}
	for i, name := range root.names {
		if !responsesFields[name] && !root.kids[i].inert() {
			return nil, badRequest("the field %s is not known here and may hold content", quoteName(name))
		}
	}
	// A conversation or a prompt that lies at the provider, and an answer that is
	// fetched later, would not be seen here.
	for _, name := range []string{"conversation", "prompt"} {
		if !root.get(name).isNull() {
			return nil, badRequest("%s: what lies at the provider cannot be looked at", name)
		}
	}
	if root.get("background").isTrue() {
		return nil, badRequest("background: an answer that is fetched later cannot be looked at")
	}
	r.previous, r.session = root.str("previous_response_id"), sessionField(root)
	if v := root.get("text"); v != nil && !v.inert() {
		r.add(&place{kind: kindDefinition, at: "text", node: v})
	}
	if v := root.get("instructions"); !v.isNull() {
		if v.kind != '"' {
			return nil, badRequest("instructions: is no text")
		}
		r.add(&place{kind: kindSystem, at: "instructions", node: v})
	}
	if err := functionTools(r, root.get("tools"), ""); err != nil {
		return nil, err
	}
	switch in := root.get("input"); {
	case in.isNull():
	case in.kind == '"':
		r.add(&place{kind: kindPrompt, at: "input", node: in})
	case in.kind == '[':
		for i, item := range in.kids {
			if err := responsesItem(r, fmt.Sprintf("input.%d", i), item); err != nil {
				return nil, err
			}
		}
	default:
		return nil, badRequest("input: is neither a text nor a list")
	}
	r.attach = func(text string) {
		if v := root.get("instructions"); !v.isNull() {
			v.text += "\n\n" + text
			return
		}
		root.set("instructions", str(text))
	}
	return r, nil
}

func responsesItem(r *request, at string, item *node) error {
	kind := item.str("type")
	if kind == "" && item.str("role") != "" {
		kind = "message"
	}
	switch kind {
	case "message":
		if err := rest(at, item, "content"); err != nil {
			return err
		}
		k, known := map[string]kindOf{"system": kindSystem, "developer": kindSystem, "user": kindPrompt, "assistant": kindSaid}[item.str("role")]
		if !known {
			return badRequest("%s.role: is not known", at)
		}
		content := item.get("content")
		if content.isNull() {
			return badRequest("%s.content: is missing", at)
		}
		if content.kind == '"' {
			r.add(&place{kind: k, at: at, node: content})
			return nil
		}
		return responsesParts(at, content, func(text *node) { r.add(&place{kind: k, at: at, node: text}) })
	case "function_call", "custom_tool_call":
		field := "arguments"
		if kind == "custom_tool_call" {
			field = "input"
		}
		args, name := item.get(field), item.str("name")
		if args == nil || args.kind != '"' || name == "" || !word(name) {
			return badRequest("%s: is no tool call of the model's", at)
		}
		r.calls[item.str("call_id")] = call{name, argumentsOf(args.text)}
		r.add(&place{kind: kindCalled, at: at, node: args, tool: name, callID: item.str("call_id"), embedded: true})
		return rest(at, item, field)
	case "function_call_output", "custom_tool_call_output":
		id, out := item.str("call_id"), item.get("output")
		switch {
		case out.isNull():
			return badRequest("%s.output: is missing", at)
		case out.kind != '"':
			if err := responsesParts(at, out, nil); err != nil {
				return err
			}
		}
		r.add(&place{kind: kindResult, at: at, node: out, tool: r.calls[id].tool, callID: id})
		return rest(at, item, "output")
	case "reasoning":
		for _, name := range []string{"summary", "content"} {
			list := item.get(name)
			if list.isNull() {
				continue
			}
			if list.kind != '[' {
				return badRequest("%s.%s: is no list", at, name)
			}
			for _, p := range list.kids {
				text := p.get("text")
				if text == nil || text.kind != '"' {
					return badRequest("%s.%s: holds what is no text", at, name)
				}
				r.add(&place{kind: kindSaid, at: at, node: text})
				if err := rest(at, p, "text"); err != nil {
					return err
				}
			}
		}
		if !base64Only(item.str("encrypted_content")) {
			return badRequest("%s.encrypted_content: is not", at)
		}
		return rest(at, item, "summary", "content", "encrypted_content")
	default:
		return badRequest("%s: an item of the type %s is not known here", at, quoteName(kind))
	}
}

// kindOf is kind under a name that a local variable does not hide.
type kindOf = kind

// responsesParts checks a list of parts, and hands on their texts.
func responsesParts(at string, content *node, add func(*node)) error {
	if content.kind != '[' {
		return badRequest("%s.content: is neither a text nor a list", at)
	}
	for i, b := range content.kids {
		at := fmt.Sprintf("%s.content.%d", at, i)
		field := "text"
		switch b.str("type") {
		case "input_text", "output_text", "summary_text", "text":
		case "refusal":
			field = "refusal"
		case "input_image":
			if err := firstError(dataImage(at, b.str("image_url")), rest(at, b, "image_url")); err != nil {
				return err
			}
			continue
		default:
			return badRequest("%s: a part of the type %s is not known here", at, quoteName(b.str("type")))
		}
		text := b.get(field)
		if text == nil || text.kind != '"' {
			return badRequest("%s: is no text", at)
		}
		if add != nil {
			add(text)
		}
		if a := b.get("annotations"); a != nil && len(a.kids) > 0 {
			b.drop("annotations")
		}
		b.drop("logprobs")
		if err := rest(at, b, field); err != nil {
			return err
		}
	}
	return nil
}

// answer looks at a complete answer.
func (responses) answer(g *gate, root *node) error {
	if root.str("object") != "response" {
		return badAnswer("is no response")
	}
	s := &responsesStream{g: g, items: map[int]*responsesOut{}}
	out := root.get("output")
	if out == nil || out.kind != '[' {
		return badAnswer("holds no output")
	}
	for i, item := range out.kids {
		n, err := s.item(item)
		if err != nil {
			return err
		}
		out.kids[i] = n
	}
	if err := s.echo(root); err != nil {
		return err
	}
	g.answered(root.str("id"))
	return nil
}

// Fields of a response that repeat the request: nobody needs them, and the
// provider could put anything into them.
var echoed = []string{"instructions", "tools", "text", "metadata", "prompt", "user", "conversation", "output_text", "tool_choice"}

func (s *responsesStream) echo(root *node) error {
	for _, name := range echoed {
		if v := root.get(name); v != nil && !v.inert() {
			root.set(name, null())
			if name == "tools" {
				root.set(name, arr())
			}
		}
	}
	if e := root.get("error"); !e.isNull() {
		return streamError(e.str("type"))
	}
	return answerRest("the answer", root, "output")
}

func (responses) stream(g *gate) filter {
	return &responsesStream{g: g, items: map[int]*responsesOut{}}
}

// responsesStream is one answer in events. The items of its output come one
// after the other, and the end repeats all of them.
type responsesStream struct {
	g       *gate
	begun   bool
	end     bool
	ended   bool // by an error
	seq     int
	items   map[int]*responsesOut
	current int
}

// responsesOut is one item of the output.
type responsesOut struct {
	kind   string
	done   *node // as it went on
	texts  map[string]*speech
	parts  map[string]*strings.Builder // what was shown of each part
	closed bool
}

func (s *responsesStream) done() bool { return s.end }

func (s *responsesStream) fail(r *refusal) event {
	e := errorBody("openai", r).get("error")
	n := obj("type", str("error"), "code", str(r.kind), "message", e.get("message"), "param", null(), "sequence_number", number(strconv.Itoa(s.seq)))
	return event{"error", string(n.encode())}
}

// emit numbers an event anew: some are left out, and others take their place.
func (s *responsesStream) emit(n *node) event {
	n.set("sequence_number", number(strconv.Itoa(s.seq)))
	s.seq++
	return event{n.str("type"), string(n.encode())}
}

func (s *responsesStream) next(e event) ([]event, error) {
	if strings.TrimSpace(e.data) == "[DONE]" { // of servers that speak both APIs
		return nil, badAnswer("ends without its end")
	}
	n, err := parse([]byte(e.data))
	if err != nil || n.kind != '{' {
		return nil, badAnswer("holds an event that is not one JSON object without doubled names")
	}
	kind := n.str("type")
	if e.name != "" && e.name != kind {
		return nil, badAnswer("holds an event under another's name")
	}
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		root := n.get("response")
		if out := root.get("output"); root == nil || out != nil && len(out.kids) > 0 {
			return nil, badAnswer("begins with content")
		}
		s.begun = true
		if err := firstError(s.echo(root), answerRest("the beginning", n, "response")); err != nil {
			return nil, err
		}
		return []event{s.emit(n)}, nil
	case "error":
		return nil, streamError(n.str("code"))
	case "response.failed":
		return nil, streamError(n.get("response").get("error").str("code"))
	}
	if !s.begun {
		return nil, badAnswer("does not begin with its beginning")
	}
	switch kind {
	case "response.completed", "response.incomplete":
		return s.complete(n)
	case "response.output_item.added":
		return s.added(n)
	case "response.output_item.done":
		return s.itemDone(n)
	}
	i := responsesIndex(n)
	item := s.items[i]
	if item == nil || item.closed {
		if n.inert() {
			return nil, nil
		}
		return nil, badAnswer("goes on with an item that is not open")
	}
	if item.kind == "function_call" || item.kind == "custom_tool_call" {
		return nil, nil // the whole comes at its end, and is decided about then
	}
	return s.part(n, item, kind)
}

func responsesIndex(n *node) int {
	v := n.get("output_index")
	if v == nil {
		return -1
	}
	return index(obj("index", v))
}

func (s *responsesStream) added(n *node) ([]event, error) {
	i, item := responsesIndex(n), n.get("item")
	if i < 0 || i > maxCalls || s.items[i] != nil || item == nil {
		return nil, badAnswer("holds items in an order that is none")
	}
	if err := answerRest("an item", n, "item"); err != nil {
		return nil, err
	}
	x := &responsesOut{kind: item.str("type"), texts: map[string]*speech{}, parts: map[string]*strings.Builder{}}
	s.items[i] = x
	switch x.kind {
	case "function_call", "custom_tool_call":
		return nil, nil
	case "message", "reasoning":
		for _, name := range []string{"content", "summary"} {
			if v := item.get(name); !v.isNull() && len(v.kids) > 0 {
				return nil, badAnswer("holds an item that begins with content")
			}
		}
		if err := answerRest("an item", item, "encrypted_content"); err != nil {
			return nil, err
		}
		return []event{s.emit(n)}, nil
	default:
		return nil, badAnswer("holds an item of the type %s", quoteName(x.kind))
	}
}

// part is an event within a message or a thought.
func (s *responsesStream) part(n *node, item *responsesOut, kind string) ([]event, error) {
	key := string(n.get("content_index").orNull().encode()) + "/" + string(n.get("summary_index").orNull().encode())
	if len(key) > 20 || len(item.texts) > maxCalls {
		return nil, badAnswer("holds a part that is none")
	}
	text := item.texts[key]
	if text == nil {
		text = s.g.speech()
		item.texts[key], item.parts[key] = text, new(strings.Builder)
	}
	switch {
	case kind == "response.content_part.added" || kind == "response.reasoning_summary_part.added":
		p := n.get("part")
		if p.str("text") != "" || p.str("refusal") != "" {
			return nil, badAnswer("holds a part that begins with content")
		}
		p.drop("logprobs")
		if err := firstError(answerRest("a part", p, "annotations"), answerRest("a part", n, "part")); err != nil {
			return nil, err
		}
		return []event{s.emit(n)}, nil
	case strings.HasSuffix(kind, ".delta"):
		d := n.get("delta")
		if d == nil || d.kind != '"' {
			return nil, badAnswer("holds a part that is no text")
		}
		n.drop("logprobs")
		n.drop("obfuscation")
		if err := answerRest("a part", n, "delta"); err != nil {
			return nil, err
		}
		d.text = text.add(d.text)
		item.parts[key].WriteString(d.text)
		if d.text == "" {
			return nil, nil
		}
		return []event{s.emit(n)}, nil
	case strings.HasSuffix(kind, ".done"):
		n.drop("logprobs")
		var before []event
		if tail := text.end(); tail != "" && n.get("text") != nil {
			item.parts[key].WriteString(tail)
			d := n.copy()
			d.drop("text")
			d.set("type", str(strings.TrimSuffix(kind, ".done")+".delta"))
			d.set("delta", str(tail))
			before = append(before, s.emit(d))
		}
		shown := item.parts[key].String()
		for _, at := range []*node{n, n.get("part")} {
			for _, name := range []string{"text", "refusal"} {
				if v := at.get(name); v != nil {
					at.set(name, str(shown)) // what was shown, and not what the end says it was
				}
			}
		}
		if p := n.get("part"); p != nil {
			p.drop("logprobs")
			p.drop("annotations")
			p.set("annotations", arr())
			if err := answerRest("a part", p, "text", "refusal"); err != nil {
				return nil, err
			}
		}
		if err := answerRest("a part", n, "text", "refusal", "part"); err != nil {
			return nil, err
		}
		return append(before, s.emit(n)), nil
	case kind == "response.output_text.annotation.added":
		return nil, nil
	}
	if n.inert() {
		return nil, nil
	}
	return nil, badAnswer("holds an event of the type %s", quoteName(kind))
}

func (n *node) orNull() *node {
	if n == nil {
		return null()
	}
	return n
}

func (s *responsesStream) itemDone(n *node) ([]event, error) {
	i := responsesIndex(n)
	x, item := s.items[i], n.get("item")
	if x == nil || x.closed || item.str("type") != x.kind {
		return nil, badAnswer("ends an item that is not open")
	}
	if err := answerRest("an item", n, "item"); err != nil {
		return nil, err
	}
	x.closed = true
	isCall := x.kind != "message" && x.kind != "reasoning"
	if !isCall {
		// The end repeats what was shown. A text that was not shown is none.
		if err := x.repeat(item); err != nil {
			return nil, err
		}
	}
	out, err := s.item(item)
	if err != nil {
		return nil, err
	}
	x.done = out
	at := number(strconv.Itoa(i))
	done := func() event {
		return s.emit(obj("type", str("response.output_item.done"), "output_index", at, "item", out))
	}
	if !isCall {
		return []event{done()}, nil
	}
	if out.str("type") != "message" {
		field, word := "arguments", "function_call_arguments"
		if x.kind == "custom_tool_call" {
			field, word = "input", "custom_tool_call_input"
		}
		begin := out.copy()
		begin.set(field, str(""))
		begin.set("status", str("in_progress"))
		id := str(out.str("id"))
		return []event{
			s.emit(obj("type", str("response.output_item.added"), "output_index", at, "item", begin)),
			s.emit(obj("type", str("response."+word+".delta"), "item_id", id, "output_index", at, "delta", str(out.str(field)))),
			s.emit(obj("type", str("response."+word+".done"), "item_id", id, "output_index", at, field, str(out.str(field)))),
			done(),
		}, nil
	}
	begin := out.copy()
	part := begin.get("content").kids[0].copy()
	text := str(part.str("text"))
	part.set("text", str(""))
	begin.set("content", arr())
	begin.set("status", str("in_progress"))
	id, zero := str(out.str("id")), number("0")
	return []event{
		s.emit(obj("type", str("response.output_item.added"), "output_index", at, "item", begin)),
		s.emit(obj("type", str("response.content_part.added"), "item_id", id, "output_index", at, "content_index", zero, "part", part)),
		s.emit(obj("type", str("response.output_text.delta"), "item_id", id, "output_index", at, "content_index", zero, "delta", text)),
		s.emit(obj("type", str("response.output_text.done"), "item_id", id, "output_index", at, "content_index", zero, "text", text)),
		s.emit(obj("type", str("response.content_part.done"), "item_id", id, "output_index", at, "content_index", zero, "part", out.get("content").kids[0].copy())),
		done(),
	}, nil
}

// repeat puts what was shown of an item into the item as its end tells it.
func (x *responsesOut) repeat(item *node) error {
	for field, index := range map[string]func(int) string{"content": func(i int) string { return fmt.Sprintf("%d/null", i) }, "summary": func(i int) string { return fmt.Sprintf("null/%d", i) }} {
		list := item.get(field)
		if list.isNull() {
			continue
		}
		for i, p := range list.kids {
			shown := x.parts[index(i)]
			for _, name := range []string{"text", "refusal"} {
				if v := p.get(name); v != nil {
					if shown == nil {
						return badAnswer("ends with a text that did not come")
					}
					p.set(name, str(shown.String()))
				}
			}
		}
	}
	return nil
}

// item looks at one whole item of the output and returns what takes its place.
func (s *responsesStream) item(item *node) (*node, error) {
	switch kind := item.str("type"); kind {
	case "message", "reasoning":
		for _, name := range []string{"content", "summary"} {
			list := item.get(name)
			if list.isNull() {
				continue
			}
			if err := responsesParts("", list, func(text *node) {
				if kind == "reasoning" {
					s.g.said(text.text)
				} else if s.begun { // it has been through the gate
					s.g.noteShown(text.text)
				} else {
					text.text = s.g.whole(text.text)
				}
			}); err != nil && !(kind == "reasoning" && name == "content") {
				return nil, badAnswer("holds a part that is not known here")
			}
		}
		return item, answerRest("an item", item, "content", "summary", "encrypted_content")
	case "function_call", "custom_tool_call":
		field := "arguments"
		if kind == "custom_tool_call" {
			field = "input"
		}
		if err := answerRest("a call", item, field); err != nil {
			return nil, err
		}
		args := item.str(field)
		if kind == "custom_tool_call" { // its input is any text
			args = string(obj("input", str(args)).encode())
		}
		out, instead := s.g.call(item.str("call_id"), item.str("name"), args)
		if instead == "" {
			if kind == "custom_tool_call" {
				n, err := parse([]byte(out))
				if err != nil {
					return nil, badAnswer("holds a call that cannot be put back")
				}
				out = n.str("input")
				s.g.p.cfg.Memory.pass(kindCalled, s.g.s, item.str("name"), canonical(argumentsOf(out)))
			}
			item.set(field, str(out))
			return item, nil
		}
		return obj("id", str("msg_auditd_"+strconv.Itoa(s.g.blocked)), "type", str("message"), "role", str("assistant"), "status", str("completed"),
			"content", arr(obj("type", str("output_text"), "text", str(instead), "annotations", arr()))), nil
	default:
		return nil, badAnswer("holds an item of the type %s", quoteName(kind))
	}
}

// complete is the end of an answer, which repeats it: what it says is what was
// shown.
func (s *responsesStream) complete(n *node) ([]event, error) {
	root := n.get("response")
	if root == nil || root.kind != '{' {
		return nil, badAnswer("ends without its end")
	}
	out := arr()
	for i := range len(s.items) {
		x := s.items[i]
		if x == nil || !x.closed {
			return nil, badAnswer("ends before an item of it does")
		}
		out.kids = append(out.kids, x.done)
	}
	root.set("output", out)
	if err := firstError(s.echo(root), answerRest("the end", n, "response")); err != nil {
		return nil, err
	}
	s.end = true
	s.g.answered(root.str("id"))
	return []event{s.emit(n)}, nil
}
