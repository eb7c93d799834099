package firewall

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// maxLeaves bounds the values of one document of a host.
const maxLeaves = 1 << 16

// Why a document is refused.
var (
	errNotJSON = errors.New("it is not one valid JSON document")
	errTooDeep = errors.New("it is nested too deep")
	errTooMany = errors.New("it holds too many values")
	errNoPlace = errors.New("the rewrite cannot be put back in the place that it was taken from")
)

// document is a host's parameters or result: JSON of whatever shape, of which
// the string values are content, and can be replaced without changing the
// shape.
type document struct {
	raw    []byte
	leaves []leaf
	// types has the value of "type" of each object, by the object's number.
	types map[int]string
}

// leaf is one value of a document.
type leaf struct {
	index  int    // which string value of the document it is; -1 for a number or truth value
	top    string // the outermost name above it
	key    string // the nearest name above it
	object int    // the number of the object that holds it
	text   string
}

// readDocument walks raw without recursion.
func readDocument(raw []byte) (*document, error) {
	d := &document{raw: raw, types: map[int]string{}}
	if len(bytes.TrimSpace(raw)) == 0 {
		return d, nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	type level struct {
		object int // 0 for an array
		key    string
	}
	var stack []level
	objects, strings := 0, 0
	for first := true; first || len(stack) > 0; first = false {
		// A name is a string token too; the decoder's position tells them apart.
		named := false
		if n := len(stack); n > 0 && stack[n-1].object > 0 {
			_, length := dec.StackIndex(dec.StackDepth())
			named = length%2 == 0
		}
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, errNotJSON
		}
		at := level{}
		if n := len(stack); n > 0 {
			at = stack[n-1]
		}
		l := leaf{index: -1, key: at.key, object: at.object}
		if len(stack) > 0 {
			l.top = stack[0].key
		}
		switch tok.Kind() {
		case '{', '[':
			if len(stack) >= schema.MaxDepth {
				return nil, errTooDeep
			}
			next := level{key: at.key} // a list's items go by the list's name
			if tok.Kind() == '{' {
				objects++
				next.object = objects
			}
			stack = append(stack, next)
			continue
		case '}', ']':
			stack = stack[:len(stack)-1]
			continue
		case '"':
			if named {
				stack[len(stack)-1].key = tok.String()
				continue
			}
			l.index, l.text = strings, tok.String()
			strings++
			if l.key == "type" {
				d.types[l.object] = l.text
			}
		case 'n':
			continue
		default:
			l.text = tok.String()
		}
		if len(d.leaves) >= maxLeaves {
			return nil, errTooMany
		}
		d.leaves = append(d.leaves, l)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return nil, errNotJSON
	}
	return d, nil
}

// value returns the text of the first leaf under one of the outermost names,
// in the order of names.
func (d *document) value(names ...string) string {
	for _, name := range names {
		for _, l := range d.leaves {
			if l.top == name && l.text != "" {
				return l.text
			}
		}
	}
	return ""
}

// selection is a payload made of some leaves of a document.
type selection struct {
	payload string
	places  []place // ascending
}

// place is where a leaf stands in a payload.
type place struct {
	leaf       *leaf
	start, end int
}

// pick makes a payload of the leaves that keep accepts. One leaf alone is the
// payload as it is. Several are set below one another, each with its name in
// front where names is set.
func (d *document) pick(names bool, keep func(*leaf) bool) selection {
	var kept []*leaf
	for i := range d.leaves {
		if l := &d.leaves[i]; l.text != "" && keep(l) {
			kept = append(kept, l)
		}
	}
	if len(kept) == 1 {
		return selection{kept[0].text, []place{{kept[0], 0, len(kept[0].text)}}}
	}
	var b strings.Builder
	var s selection
	for i, l := range kept {
		if i > 0 {
			b.WriteByte('\n')
		}
		if names && l.key != "" {
			b.WriteString(l.key)
			b.WriteString(": ")
		}
		start := b.Len()
		b.WriteString(l.text)
		s.places = append(s.places, place{l, start, b.Len()})
	}
	s.payload = b.String()
	return s
}

// prefix puts text of ours in front of the payload. It is part of no leaf.
func (s *selection) prefix(text string) {
	if s.payload == "" {
		return
	}
	s.payload = text + s.payload
	for i := range s.places {
		s.places[i].start += len(text)
		s.places[i].end += len(text)
	}
}

// content reports whether a leaf of a result is something that a model reads,
// and not a word of the host's protocol or the bytes of an image.
func (d *document) content(l *leaf) bool {
	if l.index < 0 {
		return false
	}
	switch l.key {
	case "type", "mimeType", "mime_type", "media_type", "kind", "role", "status", "encoding":
		return !protocolWord(l.text)
	case "data", "base64":
		switch d.types[l.object] {
		case "image", "audio", "base64":
			return strings.Trim(l.text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_\n") != ""
		}
	}
	return true
}

// protocolWord: one short word, too short to instruct anybody.
func protocolWord(s string) bool {
	return len(s) <= 24 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-") == ""
}

// replacements collects new texts for string values, by their index.
type replacements map[int]string

// apply puts the edits of a selection's payload back into its leaves. An edit
// that touches what is not a leaf's text, such as a name, cannot be put back.
func (s selection) apply(edits []schema.Edit, into replacements) error {
	perLeaf := map[int][]schema.Edit{}
	for _, e := range edits {
		if e.Start == e.End { // the marker, in front of everything
			i := slices.IndexFunc(s.places, func(p place) bool { return p.leaf.index >= 0 })
			if e.Start != 0 || i < 0 {
				return errNoPlace
			}
			perLeaf[i] = append(perLeaf[i], schema.Edit{Mask: e.Mask})
			continue
		}
		covered := 0
		for i, p := range s.places {
			if start, end := max(e.Start, p.start), min(e.End, p.end); start < end {
				if p.leaf.index < 0 {
					return errNoPlace
				}
				perLeaf[i] = append(perLeaf[i], schema.Edit{Start: start - p.start, End: end - p.start, Mask: e.Mask})
				covered += end - start
			}
			// The line feed between two leaves is ours, and goes with them.
			if i+1 < len(s.places) && s.places[i+1].start == p.end+1 && e.Start <= p.end && e.End > p.end {
				covered++
			}
		}
		if covered != e.End-e.Start {
			return errNoPlace
		}
	}
	for i, list := range perLeaf {
		l := s.places[i].leaf
		into[l.index] = schema.ApplyEdits(l.text, list)
	}
	return nil
}

// encode writes the document with the replaced string values. Nothing else
// about it changes but white space between values.
func (d *document) encode(with replacements) ([]byte, error) {
	var out bytes.Buffer
	dec := jsontext.NewDecoder(bytes.NewReader(d.raw))
	enc := jsontext.NewEncoder(&out)
	strings := 0
	for {
		named := false
		if depth := dec.StackDepth(); depth > 0 {
			if kind, length := dec.StackIndex(depth); kind == '{' {
				named = length%2 == 0
			}
		}
		tok, err := dec.ReadToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, errNotJSON
		}
		if tok.Kind() == '"' && !named {
			if text, ok := with[strings]; ok {
				tok = jsontext.String(text)
			}
			strings++
		}
		if err := enc.WriteToken(tok); err != nil {
			return nil, errNoPlace
		}
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// withhold returns the document with all its content taken out and one
// sentence in its place: for hosts that cannot be kept from showing a result,
// but take another one in its shape.
func (d *document) withhold(message string) ([]byte, error) {
	with := replacements{}
	for i := range d.leaves {
		l := &d.leaves[i]
		if l.index < 0 || l.key != "data" && l.key != "base64" && !d.content(l) {
			continue
		}
		with[l.index] = ""
	}
	for i := range d.leaves { // where the host's model will look first
		if l := &d.leaves[i]; l.index >= 0 && with[l.index] == "" && d.content(l) {
			with[l.index] = message
			break
		}
	}
	return d.encode(with)
}
