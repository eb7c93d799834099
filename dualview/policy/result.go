package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.org/auditd/dualview"
	"example.org/auditd/schema"
)

// Call is what is known about the call that a result belongs to. All of it
// comes from the host and from the caller, nothing from the result.
type Call struct {
	Owner     string
	Host      string
	Agent     string
	Session   string
	CallID    string
	Tool      string
	Params    json.RawMessage
	Workspace string
	IsError   bool
	// Attested says that the runner itself ran the call in the agent's view. No
	// parameter of the call can say so.
	Attested bool
	// Distrusted says that nothing of it is to be shown in clear that a type
	// does not bound, whatever the rules say.
	Distrusted bool
	// Secrets finds credentials in a text; nil finds none.
	Secrets func(text string) [][2]int
}

// Limits of one result.
const (
	maxSymbols = 2000 // beyond these, everything that is left becomes one
	// DefaultBits bounds what the trusted fields of one result may tell.
	DefaultBits = 4096
)

// otherMember is the name under which everything is put that the rule of an
// object does not spell.
const otherMember = "_other"

// Result is a result as the deciding model may see it.
type Result struct {
	JSON    json.RawMessage
	Symbols []dualview.Symbol
	// Bits is an upper bound of what the fields that stayed can tell the reader
	// about untrusted content.
	Bits float64
	// Shown is the text that stayed in clear and that no type bounds.
	Shown string
	// Listed says that the tool has a rule. The shape that a host wants back
	// for another one is not known, so a host that ignores a result of the
	// wrong shape must not run the tool.
	Listed bool
}

// SymboliseResult replaces everything untrusted in a result by symbols, in the
// same shape. On an error nothing of the result may be shown.
func (p *Policy) SymboliseResult(ctx context.Context, table *dualview.Table, call Call, result []byte) (*Result, error) {
	tool, listed := p.Tool(call.Tool)
	w := &walk{ctx: ctx, policy: p, table: table, call: call, tool: tool, bitsLeft: DefaultBits}
	var err error
	if len(call.Params) > 0 {
		// Arguments that cannot be read echo nothing and name no origin.
		w.params, _ = parseTree(call.Params)
	}
	root, err := parseTree(result)
	if err != nil {
		// Not one JSON value that can be walked: all of it is one value.
		root, err = w.symbol(string(result), ""), nil
	} else {
		w.root = root
		w.trust = p.originTrust(w.origin())
		if call.Distrusted {
			w.trust = "untrusted"
		}
		rule := tool.Result
		if rule == nil {
			rule = unlistedRule(root)
		}
		rule = rule.content(root, tool.View)
		root = w.visit(root, rule, "")
	}
	if w.err != nil {
		return nil, fmt.Errorf("symbolise a result of %s: %w", call.Tool, w.err)
	}
	symbols, err := table.SymboliseAll(ctx, call.Owner, w.items)
	if err != nil {
		return nil, fmt.Errorf("symbolise a result of %s: %w", call.Tool, err)
	}
	for _, n := range w.pending {
		n.text = string(symbols[n.item-1])
	}
	for _, later := range append(w.rebuild, w.rewrites...) {
		if err := later(); err != nil {
			return nil, fmt.Errorf("symbolise a result of %s: %w", call.Tool, err)
		}
	}
	out, err := root.encode()
	if err != nil {
		return nil, fmt.Errorf("encode a result of %s: %w", call.Tool, err)
	}
	return &Result{JSON: out, Symbols: append(symbols, w.recognised...), Bits: w.bits, Shown: strings.TrimSpace(w.shown.String()), Listed: listed}, nil
}

// SymboliseText replaces a whole text (a message, a prompt's attachment, a
// webhook's body that is no JSON) by a symbol, unless its origin is trusted.
func (p *Policy) SymboliseText(ctx context.Context, table *dualview.Table, call Call, kind, from, text string) (string, error) {
	w := &walk{ctx: ctx, policy: p, table: table, call: call, tool: Tool{Source: SourceKind{sourceOf(kind)}}}
	w.from = &origin{kind, from, call.Workspace}
	w.trust = p.originTrust(*w.from)
	if call.Distrusted {
		w.trust = "untrusted"
	}
	return w.finish(str(text), "text")
}

// finish returns the text that may be shown in place of a text.
func (w *walk) finish(n *node, field string) (string, error) {
	out, err := w.resolve(n, field)
	if err != nil {
		return "", err
	}
	return out.text, nil
}

// resolve visits a tree without a rule, and makes the symbols in it.
func (w *walk) resolve(root *node, field string) (*node, error) {
	n := w.visit(root, &Rule{}, field)
	if w.err != nil {
		return nil, fmt.Errorf("symbolise a text: %w", w.err)
	}
	symbols, err := w.table.SymboliseAll(w.ctx, w.call.Owner, w.items)
	if err != nil {
		return nil, fmt.Errorf("symbolise a text: %w", err)
	}
	for _, n := range w.pending {
		n.text = string(symbols[n.item-1])
	}
	for _, later := range w.rebuild {
		if err := later(); err != nil {
			return nil, fmt.Errorf("symbolise a text: %w", err)
		}
	}
	return n, nil
}

// SymboliseWebhook does the same for the payload that came in at a port.
func (p *Policy) SymboliseWebhook(ctx context.Context, table *dualview.Table, call Call, port string, payload []byte) (*Result, error) {
	rule, ok := p.webhooks[port]
	if !ok {
		rule = &Rule{}
	}
	q := *p
	q.tools = map[string]*Tool{"webhook": {Source: SourceKind{schema.SourceWebhook}, Result: rule}}
	call.Tool, call.Params = "webhook", nil
	r, err := q.SymboliseResult(ctx, table, call, payload)
	if err == nil {
		r.Listed = ok
	}
	return r, err
}

func sourceOf(kind string) schema.SourceKind {
	switch kind {
	case "url":
		return schema.SourceWeb
	case "file":
		return schema.SourceFile
	case "agent":
		return schema.SourceAgent
	case "sender":
		return schema.SourceEmail
	case "webhook":
		return schema.SourceWebhook
	}
	return schema.SourceOther
}

// unlistedRule is the shape that most hosts and all MCP servers use for tools
// that nothing is known about.
func unlistedRule(root *node) *Rule {
	if c := root.member("content"); c != nil && c.kind == '[' {
		members := map[string]*Rule{"content": {kind: blocks}, "isError": {kind: boolean}}
		if root.member("details") != nil {
			members["details"] = &Rule{}
		}
		return &Rule{kind: object, members: members}
	}
	if root.kind == '[' {
		return &Rule{kind: blocks}
	}
	return &Rule{}
}

// content returns the rule for what the model reads of a result, where that is
// all that a proxy sees of it: content blocks or a text in place of the object
// that a tool returned.
func (r *Rule) content(root *node, at View) *Rule {
	if r.kind != object || root.kind == '{' {
		return r
	}
	c := r.members["content"]
	switch {
	case c == nil || c.kind != blocks:
		return r
	case root.kind == '[':
		return &Rule{kind: blocks}
	case root.kind == '"' && at == AgentView && c.param == "":
		return &Rule{kind: view}
	}
	return r
}

// walk makes one result's new tree. Values that become symbols are collected, so
// that all of them are made in one transaction.
type walk struct {
	ctx        context.Context
	policy     *Policy
	table      *dualview.Table
	call       Call
	tool       Tool
	params     *node
	root       *node
	from       *origin // set where the origin is not a parameter
	trust      string  // what the origin rules say
	items      []dualview.Item
	pending    []*node
	rebuild    []func() error // once the symbols are known
	rewrites   []func() error // after those
	recognised []dualview.Symbol
	shown      strings.Builder
	bits       float64
	bitsLeft   float64
	err        error
}

// origin says where the result came from. A final address that is missing or
// that no rule trusts makes the address count for nothing.
func (w *walk) origin() origin {
	o := w.tool.Origin
	if o == nil {
		return origin{}
	}
	n := at(w.params, o.Param)
	if n == nil || n.kind != '"' {
		return origin{}
	}
	from := origin{o.Kind, n.text, w.call.Workspace}
	w.from = &from
	if o.Final != "" {
		f := at(w.root, o.Final)
		if f == nil || f.kind != '"' {
			return origin{}
		}
		final := origin{o.Kind, f.text, w.call.Workspace}
		if w.policy.originTrust(final) != w.policy.originTrust(from) {
			return origin{}
		}
	}
	return from
}

// at returns the node at a dotted path.
func at(n *node, path string) *node {
	for name := range strings.SplitSeq(path, ".") {
		n = n.member(name)
	}
	return n
}

func (w *walk) provenance(field string) dualview.Provenance {
	p := dualview.Provenance{Kind: w.tool.Source.SourceKind, Tool: cut(w.call.Tool), Field: cut(field), Agent: cut(w.call.Agent), Session: cut(w.call.Session),
		CallID: cut(w.call.CallID), Trust: schema.Untrusted}
	if w.from != nil {
		p.Origin = cut(w.from.value)
	}
	return p
}

func cut(s string) string {
	if len(s) > 512 {
		s = s[:512]
	}
	return strings.ToValidUTF8(s, "")
}

// symbol returns a node that will hold the symbol of value.
func (w *walk) symbol(value, field string) *node {
	if len(w.items) >= maxSymbols {
		w.fail(fmt.Errorf("more than %d untrusted values", maxSymbols))
		return &node{kind: 'n'}
	}
	p := w.provenance(field)
	// What a value was made from is known where it names it.
	p.Parents = w.owned(w.table.Symbols(value))
	w.items = append(w.items, dualview.Item{Value: []byte(value), Provenance: p})
	n := &node{kind: '"', item: len(w.items)}
	w.pending = append(w.pending, n)
	return n
}

func (w *walk) owned(found []dualview.Symbol) []dualview.Symbol {
	slices.Sort(found)
	found = slices.Compact(found)
	return slices.DeleteFunc(found[:min(len(found), 64)], func(s dualview.Symbol) bool {
		_, err := w.table.Info(w.ctx, w.call.Owner, s)
		return err != nil
	})
}

func (w *walk) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// hide makes one symbol of a whole subtree. Nothing and the empty text stay.
func (w *walk) hide(n *node, field string) *node {
	switch n.kind {
	case 'n':
		w.bits++
		return n
	case '"':
		if n.text == "" {
			w.bits++
			return n
		}
		return w.cover(n.text, field)
	}
	enc, err := n.encode()
	if err != nil {
		w.fail(err)
		return &node{kind: 'n'}
	}
	return w.symbol(string(enc), field)
}

// visit returns what may be shown in place of n.
func (w *walk) visit(n *node, r *Rule, field string) *node {
	if w.err != nil {
		return &node{kind: 'n'}
	}
	if n.kind == 'n' {
		w.bits++
		return n
	}
	switch r.kind {
	case object:
		if n.kind == '{' {
			return w.visitObject(n, r, field)
		}
	case array:
		if n.kind == '[' {
			return w.visitArray(n, r, field)
		}
	case blocks:
		if n.kind == '[' {
			return w.visitBlocks(n, r, field)
		}
	case stdout:
		if n.kind == '"' {
			return w.visitOutput(n, r, field)
		}
	case view, local:
		return w.visitText(n, r, field)
	case untrusted:
		if w.trust == "trusted" {
			return w.show(n, field)
		}
	default:
		if w.fits(n, r) {
			return n
		}
	}
	return w.hide(n, field)
}

func (w *walk) visitObject(n *node, r *Rule, field string) *node {
	out := &node{kind: '{'}
	rest := &node{kind: '{'}
	for _, m := range n.members {
		mr, ok := r.members[m.name]
		switch {
		case !ok:
			rest.members = append(rest.members, m)
		case mr.kind == dropped:
		case mr.kind == blocks && mr.param != "":
			out.members = append(out.members, named{m.name, w.rewrite(out, mr.param, n)})
		default:
			out.members = append(out.members, named{m.name, w.visit(m.value, mr, join(field, m.name))})
		}
	}
	if len(rest.members) > 0 {
		out.members = append(out.members, named{otherMember, w.hide(rest, join(field, otherMember))})
	}
	return out
}

// rewrite makes content blocks that say the same as the member called name of
// the same object, once that is known.
func (w *walk) rewrite(out *node, name string, n *node) *node {
	if n.member(name) == nil {
		return w.visitBlocks(n.member("content"), &Rule{kind: blocks}, "content")
	}
	text := str("")
	w.rewrites = append(w.rewrites, func() error {
		enc, err := out.member(name).encode()
		text.text = string(enc)
		return err
	})
	return &node{kind: '[', elements: []*node{{kind: '{', members: []named{{"type", str("text")}, {"text", text}}}}}
}

func (w *walk) visitArray(n *node, r *Rule, field string) *node {
	w.bits += math.Log2(float64(len(n.elements) + 1))
	out := &node{kind: '['}
	for i, e := range n.elements {
		// The last symbols are kept for what is left over, here and further out.
		if len(w.items) > maxSymbols/2 {
			out.elements = append(out.elements, w.hide(&node{kind: '[', elements: n.elements[i:]}, join(field, otherMember)))
			break
		}
		out.elements = append(out.elements, w.visit(e, r.element, field+"[]"))
	}
	return out
}

// visitBlocks handles the content blocks of hosts and MCP servers: the kind of
// a block may be seen, everything in it is untrusted.
func (w *walk) visitBlocks(n *node, r *Rule, field string) *node {
	if n == nil || n.kind != '[' {
		w.fail(fmt.Errorf("content is not a list"))
		return &node{kind: 'n'}
	}
	text := &Rule{}
	if r.param == "" && w.tool.View == AgentView {
		text = &Rule{kind: view}
	}
	block := &Rule{kind: object, members: map[string]*Rule{"type": {kind: word, words: []string{"text", "image", "audio", "resource", "resource_link", "document"}},
		"text": text, "data": {}, "source": {}, "resource": {}, "mimeType": {kind: word, words: mediaTypes}}}
	return w.visitArray(n, &Rule{kind: array, element: block}, field)
}

var mediaTypes = []string{"text/plain", "text/html", "text/markdown", "application/json", "application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/mpeg"}

// visitText shows text of the agent's view and of the local runtime.
func (w *walk) visitText(n *node, r *Rule, field string) *node {
	switch {
	case n.kind != '"' && r.kind == local, w.trust == "untrusted":
		return w.hide(n, field)
	case r.kind == view && !w.call.Attested, r.kind == local && (w.call.IsError || len(n.text) > maxLocal):
		return w.hide(n, field)
	}
	return w.show(n, field)
}

// show lets a value through, apart from what is known to be untrusted in it.
// Only text can be searched, so anything else that is let through is bounded by
// its type.
func (w *walk) show(n *node, field string) *node {
	switch n.kind {
	case '"':
		pieces, err := w.table.Recognise(w.ctx, w.call.Owner, []byte(n.text), w.provenance(field))
		if err != nil {
			w.fail(err)
			return &node{kind: 'n'}
		}
		return w.reveal(n.text, field, pieces)
	case '{':
		out := &node{kind: '{'}
		for _, m := range n.members {
			name, i := w.show(str(m.name), field), len(out.members)
			out.members = append(out.members, named{"", w.show(m.value, field)})
			w.rebuild = append(w.rebuild, func() error { out.members[i].name = name.text; return nil })
		}
		return out
	case '[':
		out := &node{kind: '['}
		for _, e := range n.elements {
			out.elements = append(out.elements, w.show(e, field))
		}
		return out
	}
	return n
}

// fits reports whether a value is what its rule says, and charges what it
// tells. A result that has told too much tells no more.
func (w *walk) fits(n *node, r *Rule) bool {
	ok := false
	switch r.kind {
	case boolean:
		ok = n.kind == 't' || n.kind == 'f'
	case integer:
		f, err := strconv.ParseFloat(n.text, 64)
		ok = n.kind == '0' && err == nil && f == math.Trunc(f) && f >= r.min && f <= r.max && len(n.text) <= 20
	case number:
		f, err := strconv.ParseFloat(n.text, 64)
		ok = n.kind == '0' && err == nil && !math.IsInf(f, 0) && len(n.text) <= 24
	case timestamp:
		ok = isTime(n)
	case hexadecimal:
		ok = n.kind == '"' && hexForm.MatchString(n.text)
	case identifier:
		ok = n.kind == '"' && idForm.MatchString(n.text) && !w.call.IsError
	case word:
		ok = n.kind == '"' && slices.Contains(r.words, n.text)
	case echo:
		p := at(w.params, r.param)
		ok = p != nil && p.kind == n.kind && (n.kind == '"' || n.kind == '0') && p.text == n.text || p != nil && p.kind == n.kind && (n.kind == 't' || n.kind == 'f')
	}
	if !ok {
		return false
	}
	b := r.bits(n.text)
	if b > w.bitsLeft {
		return false
	}
	w.bitsLeft -= b
	w.bits += b
	return true
}

func isTime(n *node) bool {
	switch n.kind {
	case '"':
		_, err := time.Parse(time.RFC3339Nano, n.text)
		return err == nil && len(n.text) <= 35
	case '0':
		ms, err := strconv.ParseInt(n.text, 10, 64)
		return err == nil && ms >= 0 && ms < 1<<42
	}
	return false
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}
