package modelproxy

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of one document.
const (
	maxDepth = 64
	maxNodes = 1 << 19
)

// node is one value of a document: the tree keeps the order of names and the
// spelling of numbers, so that what nobody changed goes on as it came.
type node struct {
	kind  byte // '{', '[', '"', '0', or 'v' for true, false and null
	raw   jsontext.Value
	text  string // of a string
	names []string
	kids  []*node
}

// Why a document is not taken. None quotes it.
var (
	errJSON  = errors.New("is not one valid JSON document without doubled names")
	errDepth = errors.New("is nested too deep")
	errNodes = errors.New("holds too many values")
)

// parse reads exactly one document, without recursion.
func parse(data []byte) (*node, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data)) // doubled names and invalid UTF-8 are errors
	var root *node
	var stack []*node
	for count := 0; ; count++ {
		tok, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF) && root != nil && len(stack) == 0:
			return root, nil
		case err != nil || root != nil && len(stack) == 0:
			return nil, errJSON
		case count > maxNodes:
			return nil, errNodes
		}
		n := &node{kind: byte(tok.Kind())}
		switch n.kind {
		case '}', ']':
			stack = stack[:len(stack)-1]
			continue
		case '{', '[':
			if len(stack) >= maxDepth {
				return nil, errDepth
			}
		case '"':
			n.text = tok.String()
			if len(stack) > 0 {
				if top := stack[len(stack)-1]; top.kind == '{' && len(top.names) == len(top.kids) {
					top.names = append(top.names, n.text)
					continue
				}
			}
		case '0':
			n.raw = jsontext.Value(tok.String())
		default:
			n.kind, n.raw = 'v', jsontext.Value(tok.String())
		}
		if len(stack) > 0 {
			top := stack[len(stack)-1]
			top.kids = append(top.kids, n)
		} else {
			root = n
		}
		if n.kind == '{' || n.kind == '[' {
			stack = append(stack, n)
		}
	}
}

// encode writes the tree.
func (n *node) encode() []byte { return n.append(nil) }

func (n *node) append(b []byte) []byte {
	switch n.kind {
	case '"':
		return appendQuoted(b, n.text)
	case '{', '[':
		b = append(b, n.kind)
		for i, k := range n.kids {
			if i > 0 {
				b = append(b, ',')
			}
			if n.kind == '{' {
				b = append(appendQuoted(b, n.names[i]), ':')
			}
			b = k.append(b)
		}
		return append(b, n.kind+2) // '}' and ']' stand two after their beginnings
	default:
		return append(b, n.raw...)
	}
}

func appendQuoted(b []byte, s string) []byte {
	out, err := jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		return append(b, `""`...) // cannot happen: s is valid UTF-8
	}
	return out
}

// Constructors for what is put into a tree.
func str(s string) *node { return &node{kind: '"', text: s} }
func number(s string) *node {
	return &node{kind: '0', raw: jsontext.Value(s)}
}
func null() *node { return &node{kind: 'v', raw: jsontext.Value("null")} }

func arr(kids ...*node) *node { return &node{kind: '[', kids: kids} }

// obj makes an object of names and values in turn.
func obj(pairs ...any) *node {
	n := &node{kind: '{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		n.names = append(n.names, pairs[i].(string))
		n.kids = append(n.kids, pairs[i+1].(*node))
	}
	return n
}

// get returns the value under name; nil when there is none, or n is no object.
func (n *node) get(name string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	if i := slices.Index(n.names, name); i >= 0 {
		return n.kids[i]
	}
	return nil
}

// str returns the string under name, or nothing.
func (n *node) str(name string) string {
	if v := n.get(name); v != nil && v.kind == '"' {
		return v.text
	}
	return ""
}

func (n *node) set(name string, v *node) {
	if i := slices.Index(n.names, name); i >= 0 {
		n.kids[i] = v
		return
	}
	n.names, n.kids = append(n.names, name), append(n.kids, v)
}

func (n *node) drop(name string) {
	if i := slices.Index(n.names, name); i >= 0 {
		n.names, n.kids = slices.Delete(n.names, i, i+1), slices.Delete(n.kids, i, i+1)
	}
}

func (n *node) isNull() bool { return n == nil || n.kind == 'v' && string(n.raw) == "null" }
func (n *node) isTrue() bool { return n != nil && n.kind == 'v' && string(n.raw) == "true" }

// copy returns a tree of its own.
func (n *node) copy() *node {
	c := *n
	c.names, c.kids = slices.Clone(n.names), make([]*node, len(n.kids))
	for i, k := range n.kids {
		c.kids[i] = k.copy()
	}
	return &c
}

// inert reports whether a value cannot hold content: no string in it, and no
// name, is more than one word.
func (n *node) inert() bool {
	if n == nil {
		return true
	}
	if n.kind == '"' {
		return word(n.text)
	}
	for i, k := range n.kids {
		if n.kind == '{' && !word(n.names[i]) || !k.inert() {
			return false
		}
	}
	// Many words are a text again.
	return len(n.kids) <= 64
}

// word: one name, number or identifier.
func word(s string) bool {
	return len(s) <= 128 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/@+=") == ""
}
