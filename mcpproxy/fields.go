package mcpproxy

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// strict returns v if it is one JSON document that everybody reads in the same
// way: no doubled names, no invalid text, bounded depth. Nothing stays nothing.
func strict(v []byte) (jsontext.Value, error) {
	if len(bytes.TrimSpace(v)) == 0 {
		return nil, nil
	}
	var out jsontext.Value
	if err := schema.Decode(v, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// fields are an object's names and values in their order.
type fields []field

type field struct {
	name  string
	value jsontext.Value
}

func fieldsOf(v jsontext.Value) (fields, error) {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil, errShape
	}
	var out fields
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, errShape
		}
		f := field{name: name.String()}
		value, err := d.ReadValue()
		if err != nil {
			return nil, errShape
		}
		f.value = value.Clone()
		out = append(out, f)
	}
	return out, nil
}

func (f fields) get(name string) jsontext.Value {
	for _, x := range f {
		if x.name == name {
			return x.value
		}
	}
	return nil
}

// with returns a copy in which name has the value v; nil takes it out.
func (f fields) with(name string, v jsontext.Value) fields {
	var out fields
	done := v == nil
	for _, x := range f {
		if x.name == name {
			if v == nil {
				continue
			}
			x.value, done = v, true
		}
		out = append(out, x)
	}
	if !done {
		out = append(out, field{name, v})
	}
	return out
}

// only returns the fields under names.
func (f fields) only(names ...string) fields {
	var out fields
	for _, n := range names {
		if v := f.get(n); v != nil {
			out = append(out, field{n, v})
		}
	}
	return out
}

func (f fields) value() jsontext.Value {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, x := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := jsontext.AppendQuote(nil, x.name)
		b.Write(name)
		b.WriteByte(':')
		b.Write(x.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
