package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// node is a JSON value in the order in which it was written.
type node struct {
	kind     jsontext.Kind
	text     string  // of a string; of a number, as it was written
	members  []named // of an object
	elements []*node // of an array
	// item is one more than the index of the value that a symbol of this node's
	// will stand for; 0 for a node that stays.
	item int
}

type named struct {
	name  string
	value *node
}

var (
	errDeep = errors.New("is nested too deep")
	errLong = errors.New("has too many values")
)

// maxNodes bounds what one result may be made of.
const maxNodes = 200_000

// parseTree reads exactly one JSON value, bounded in depth and number of values.
func parseTree(data []byte) (*node, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(false))
	left := maxNodes
	n, err := readNode(dec, 0, &left)
	if err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return nil, errors.New("is followed by more data")
	}
	return n, nil
}

func readNode(dec *jsontext.Decoder, depth int, left *int) (*node, error) {
	if depth > schema.MaxDepth {
		return nil, errDeep
	}
	if *left--; *left < 0 {
		return nil, errLong
	}
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	n := &node{kind: tok.Kind()}
	switch n.kind {
	case '"', '0':
		n.text = tok.String()
	case '{':
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			text := name.String() // the token is void after the next read
			v, err := readNode(dec, depth+1, left)
			if err != nil {
				return nil, err
			}
			n.members = append(n.members, named{text, v})
		}
		_, err = dec.ReadToken()
	case '[':
		for dec.PeekKind() != ']' {
			v, err := readNode(dec, depth+1, left)
			if err != nil {
				return nil, err
			}
			n.elements = append(n.elements, v)
		}
		_, err = dec.ReadToken()
	}
	return n, err
}

func (n *node) write(enc *jsontext.Encoder) error {
	switch n.kind {
	case '{':
		if err := enc.WriteToken(jsontext.BeginObject); err != nil {
			return err
		}
		for _, m := range n.members {
			if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
				return err
			}
			if err := m.value.write(enc); err != nil {
				return err
			}
		}
		return enc.WriteToken(jsontext.EndObject)
	case '[':
		if err := enc.WriteToken(jsontext.BeginArray); err != nil {
			return err
		}
		for _, e := range n.elements {
			if err := e.write(enc); err != nil {
				return err
			}
		}
		return enc.WriteToken(jsontext.EndArray)
	case '"':
		return enc.WriteToken(jsontext.String(n.text))
	case '0':
		return enc.WriteValue(jsontext.Value(n.text))
	case 't':
		return enc.WriteToken(jsontext.True)
	case 'f':
		return enc.WriteToken(jsontext.False)
	case 'n':
		return enc.WriteToken(jsontext.Null)
	}
	return fmt.Errorf("internal error: node of kind %q", rune(n.kind))
}

// encode returns the JSON of n.
func (n *node) encode() ([]byte, error) {
	var buf bytes.Buffer
	enc := jsontext.NewEncoder(&buf)
	if err := n.write(enc); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func (n *node) member(name string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func str(text string) *node { return &node{kind: '"', text: text} }
