package schema

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads exactly one JSON document from data into v: unknown fields,
// duplicate keys, wrong types, trailing data, invalid UTF-8 and nesting deeper
// than MaxDepth are errors that name the field. On an error *v must not be used.
func Decode(data []byte, v any) error {
	if err := checkDepth(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return describe(err)
	}
	return nil
}

// Encode writes v as compact JSON, deterministically.
func Encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.EscapeForHTML(true))
}

// checkDepth bounds nesting before anything recursive sees the document.
func checkDepth(data []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return fieldErrorf("", "JSON is nested deeper than %d", MaxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// describe turns a decoder's error into one that names the field and does not
// quote values, which may be payload.
func describe(err error) error {
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		field := fieldName(sem.JSONPointer)
		switch {
		case errors.Is(sem.Err, json.ErrUnknownName):
			return fieldErrorf(field, "is not a known field")
		case sem.Err != nil && isFieldError(sem.Err):
			return fieldErrorf(field, "%s", sem.Err.Error())
		case sem.GoType != nil && sem.GoType.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
			if sem.JSONKind != '"' {
				return fieldErrorf(field, "must be a string, not a JSON %s", kindName(sem.JSONKind))
			}
			if sem.Err != nil {
				return fieldErrorf(field, "%s", sem.Err.Error())
			}
			return fieldErrorf(field, "is not a known word")
		case sem.GoType != nil:
			return fieldErrorf(field, "must be a %s, not a JSON %s", typeName(sem.GoType), kindName(sem.JSONKind))
		}
		return fieldErrorf(field, "has the wrong type")
	}
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		field := fieldName(syn.JSONPointer)
		if errors.Is(syn.Err, jsontext.ErrDuplicateName) {
			return fieldErrorf(field, "stands there twice")
		}
		return fieldErrorf(field, "is not valid JSON at byte %d", syn.ByteOffset)
	}
	return &FieldError{Problem: "is not one valid JSON document"}
}

func isFieldError(err error) bool {
	var fe *FieldError
	return errors.As(err, &fe)
}

// fieldName turns /source/kind into source.kind, bounded: the names in it are
// the caller's.
func fieldName(p jsontext.Pointer) string {
	name := strings.ReplaceAll(strings.TrimPrefix(string(p), "/"), "/", ".")
	if len(name) > 80 {
		name = name[:80] + "…"
	}
	if name == "" {
		return "document"
	}
	return strings.ToValidUTF8(name, "?")
}

func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Float64, reflect.Float32:
		return "number"
	default:
		return "whole number"
	}
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '{':
		return "object"
	case '[':
		return "array"
	default:
		return "value"
	}
}

// DecodeFlow reads a flow, fills the least trusting defaults and validates it.
// The smallest valid document has a payload, a source kind and a sink kind.
func DecodeFlow(data []byte, maxPayload int) (*Flow, error) {
	f := &Flow{Source: Source{Trust: Untrusted}}
	if err := Decode(data, f); err != nil {
		return nil, err
	}
	if err := requireFields(data, "payload", "source.kind", "sink.kind"); err != nil {
		return nil, err
	}
	if err := f.Complete(maxPayload); err != nil {
		return nil, err
	}
	return f, nil
}

// DecodeEvent reads and validates an event.
func DecodeEvent(data []byte, maxBody int) (*Event, error) {
	e := new(Event)
	if err := Decode(data, e); err != nil {
		return nil, err
	}
	if err := e.Complete(maxBody); err != nil {
		return nil, err
	}
	return e, nil
}

// DecodeReport reads an auditor's report. Every field must be there.
func DecodeReport(data []byte) (*Report, error) {
	r := new(Report)
	if err := Decode(data, r); err != nil {
		return nil, err
	}
	if err := requireFields(data, "decision", "rewrite", "risk", "uncertainty", "exploitability", "impact",
		"residual_risk_types", "rewrite_completeness", "needs_large_review", "evidence"); err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return r, nil
}

// DecodeArbiterReport reads an arbiter's report. Every field must be there.
func DecodeArbiterReport(data []byte) (*ArbiterReport, error) {
	r := new(ArbiterReport)
	if err := Decode(data, r); err != nil {
		return nil, err
	}
	if err := requireFields(data, "decision", "rewrite", "risk", "residual_risk_types", "evidence"); err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return r, nil
}

// requireFields checks that the document names every field: a decoder cannot
// tell a missing field from a zero one, and a model's report with a field
// missing is malformed.
func requireFields(data []byte, fields ...string) error {
	var top map[string]jsontext.Value
	if err := json.Unmarshal(data, &top); err != nil {
		return describe(err)
	}
	for _, field := range fields {
		m, name := top, field
		if outer, inner, ok := strings.Cut(field, "."); ok {
			m, name = nil, inner
			if raw, ok := top[outer]; ok && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
				if err := json.Unmarshal(raw, &m); err != nil {
					return describe(err)
				}
			}
		}
		v, ok := m[name]
		if !ok {
			return fieldErrorf(field, "is missing")
		}
		// A null would decode to zero, and a risk of zero is the answer that
		// an attacker wants.
		if v.Kind() == 'n' && field != "rewrite" {
			return fieldErrorf(field, "is null")
		}
	}
	return nil
}

// Error makes a sentence for a caller out of any error of this package.
func Error(err error) string {
	var fe *FieldError
	if errors.As(err, &fe) {
		return fe.Error()
	}
	return fmt.Sprintf("internal error (%T)", err)
}
