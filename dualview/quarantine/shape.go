package quarantine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"example.org/auditd/dualview/policy"
	"example.org/auditd/schema"
)

// Limits of the answer's form, which the deciding model chooses.
const (
	maxSchema     = 8 << 10 // bytes of JSON
	maxShapeDepth = 4
	maxShapes     = 32    // fields in all
	maxWords      = 64    // of an enum
	maxWord       = 64    // bytes of one
	maxLength     = 16000 // characters of a text
	defaultLength = 4000
	maxElements   = 100 // of an array
	exact         = 1 << 53
)

// shape is the form of an answer: the part of JSON Schema that is understood
// here. Everything that it allows is bounded.
type shape struct {
	kind     string // object, array, string, integer, number, boolean
	names    []string
	members  map[string]*shape
	element  *shape
	words    []string // string: one of these
	length   int      // string: characters; array: elements
	low, top float64
	bounded  bool // integer: both ends were given
}

// source is what a schema may hold. A word that is not here is refused: it
// would be ignored, and the caller would rely on it.
type source struct {
	Type        string             `json:"type"`
	Description string             `json:"description"`
	Title       string             `json:"title"`
	Properties  map[string]*source `json:"properties"`
	Required    []string           `json:"required"`
	Additional  *bool              `json:"additionalProperties"`
	Items       *source            `json:"items"`
	Enum        []string           `json:"enum"`
	MinLength   *int               `json:"minLength"`
	MaxLength   *int               `json:"maxLength"`
	MaxItems    *int               `json:"maxItems"`
	Minimum     *float64           `json:"minimum"`
	Maximum     *float64           `json:"maximum"`
}

var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,31}$`)

// parseShape reads the schema of a request; none means one text.
func parseShape(data []byte) (*shape, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return &shape{kind: "string", length: defaultLength}, nil
	}
	if len(data) > maxSchema {
		return nil, refused("schema", "is %d bytes, the limit is %d", len(data), maxSchema)
	}
	src := new(source)
	if err := schema.Decode(data, src); err != nil {
		return nil, refused("schema", "is not understood: %s", schema.Error(err))
	}
	left := maxShapes
	return src.shape("schema", 1, &left)
}

func (src *source) shape(field string, depth int, left *int) (*shape, error) {
	if *left--; src == nil || depth > maxShapeDepth || *left < 0 {
		return nil, refused(field, "is null, deeper than %d or more than %d fields", maxShapeDepth, maxShapes)
	}
	s := &shape{kind: src.Type}
	wrong := func(of ...bool) bool { return slices.Contains(of, true) }
	isText, isNumber := src.Type == "string", src.Type == "integer" || src.Type == "number"
	if wrong(src.Type != "object" && (src.Properties != nil || src.Required != nil || src.Additional != nil), src.Type != "array" && (src.Items != nil || src.MaxItems != nil),
		!isText && (src.Enum != nil || src.MaxLength != nil || src.MinLength != nil), !isNumber && (src.Minimum != nil || src.Maximum != nil)) {
		return nil, refused(field, "has a word that does not go with its type")
	}
	switch src.Type {
	case "object":
		if len(src.Properties) == 0 || src.Additional != nil && *src.Additional {
			return nil, refused(field, "must list its properties and allow no others")
		}
		s.members = map[string]*shape{}
		for name, m := range src.Properties {
			if !nameForm.MatchString(name) {
				return nil, refused(field, "has a property whose name is not 1 to 32 letters, digits and underscores")
			}
			sub, err := m.shape(field+"."+name, depth+1, left)
			if err != nil {
				return nil, err
			}
			s.names, s.members[name] = append(s.names, name), sub
		}
		slices.Sort(s.names)
	case "array":
		s.length = maxElements
		if err := limit(field+".maxItems", src.MaxItems, maxElements, &s.length); err != nil {
			return nil, err
		}
		var err error
		if s.element, err = src.Items.shape(field+".items", depth+1, left); err != nil {
			return nil, err
		}
	case "string":
		s.length = defaultLength
		if err := limit(field+".maxLength", src.MaxLength, maxLength, &s.length); err != nil {
			return nil, err
		}
		if src.Enum == nil {
			return s, nil
		}
		if len(src.Enum) == 0 || len(src.Enum) > maxWords {
			return nil, refused(field, "has %d words in its enum, it must be 1 to %d", len(src.Enum), maxWords)
		}
		for i, w := range src.Enum {
			if w == "" || len(w) > maxWord || slices.Contains(src.Enum[:i], w) {
				return nil, refused(field, "has a word in its enum that is empty, twice there or over %d bytes", maxWord)
			}
		}
		s.words = src.Enum
	case "integer", "number":
		s.low, s.top = -exact, exact
		if src.Minimum != nil {
			s.low = max(s.low, *src.Minimum)
		}
		if src.Maximum != nil {
			s.top = min(s.top, *src.Maximum)
		}
		if src.Type == "integer" {
			s.low, s.top = math.Ceil(s.low), math.Floor(s.top)
		}
		if !(s.low <= s.top) {
			return nil, refused(field, "has a minimum over its maximum")
		}
		s.bounded = src.Type == "integer" && src.Minimum != nil && src.Maximum != nil
	case "boolean":
	default:
		return nil, refused(field, "must have a type: object, array, string, integer, number or boolean")
	}
	return s, nil
}

func limit(field string, given *int, most int, to *int) error {
	if given == nil {
		return nil
	}
	if *given < 1 || *given > most {
		return refused(field, "is %d, it must be 1 to %d", *given, most)
	}
	*to = *given
	return nil
}

// document is the shape as a JSON Schema in one form: all properties required
// and no others, so that which of them are there tells nothing.
func (s *shape) document() map[string]any {
	d := map[string]any{"type": s.kind}
	switch s.kind {
	case "object":
		props, names := map[string]any{}, []any{}
		for _, n := range s.names {
			props[n] = s.members[n].document()
			names = append(names, n)
		}
		d["properties"], d["required"], d["additionalProperties"] = props, names, false
	case "array":
		d["items"], d["maxItems"] = s.element.document(), float64(s.length)
	case "string":
		if s.words == nil {
			d["maxLength"] = float64(s.length)
			break
		}
		words := []any{}
		for _, w := range s.words {
			words = append(words, w)
		}
		d["enum"] = words
	case "integer", "number":
		d["minimum"], d["maximum"] = s.low, s.top
	}
	return d
}

// form is a shape, wrapped as the one member of an object, made ready for
// checking answers.
type form struct {
	shape  *shape
	text   []byte // the schema that the model is told
	check  *jsonschema.Schema
	tokens int // of the longest answer that is likely
}

func newForm(s *shape) (*form, error) {
	root := &shape{kind: "object", names: []string{"result"}, members: map[string]*shape{"result": s}}
	doc := root.document()
	text, err := json.Marshal(doc) // sorts the names
	if err != nil {
		return nil, fmt.Errorf("encode the answer's schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("answer.json", doc); err != nil {
		return nil, fmt.Errorf("read the answer's schema: %w", err)
	}
	check, err := c.Compile("answer.json")
	if err != nil {
		return nil, fmt.Errorf("read the answer's schema: %w", err)
	}
	return &form{shape: root, text: text, check: check, tokens: 16 + s.size()/3}, nil
}

// size is how many bytes an answer is likely to have at most.
func (s *shape) size() int {
	switch s.kind {
	case "object":
		n := 2
		for _, name := range s.names {
			n += len(name) + 4 + s.members[name].size()
		}
		return n
	case "array":
		return s.length * (s.element.size() + 1)
	case "string":
		n := s.length
		if s.words != nil {
			n = maxWord
		}
		return n + 2
	}
	return 24
}

// answer is a checked answer.
type answer map[string]any

var errAnswer = fmt.Errorf("the answer is not of the form that was asked for")

// parse reads what a model wrote. It is strict: one JSON document, no member
// twice, nothing behind it, and everything as the schema says. The error quotes
// nothing of it.
func (f *form) parse(text []byte) (answer, error) {
	if len(text) > 4*maxElements*maxLength || !utf8.Valid(text) {
		return nil, errAnswer
	}
	var doc any
	if err := schema.Decode(bytes.TrimSpace(text), &doc); err != nil {
		return nil, errAnswer
	}
	if err := f.check.Validate(doc); err != nil {
		return nil, errAnswer
	}
	a, ok := doc.(map[string]any)
	if !ok {
		return nil, errAnswer
	}
	return a, nil
}

// clearBits is what a field of this shape tells in clear. Text, arrays and
// numbers without both ends are never given in clear.
func (s *shape) clearBits() (float64, bool) {
	switch {
	case s.kind == "boolean":
		return 1, true
	case s.kind == "string" && s.words != nil:
		return policy.WordBits(len(s.words)), true
	case s.kind == "integer" && s.bounded:
		return policy.RangeBits(s.low, s.top), true
	}
	return 0, false
}

// plan chooses the fields that are given in clear, in the order of their names
// as long as budget lasts. The choice goes by the shape alone.
func (s *shape) plan(budget float64) (clear map[*shape]bool, bits float64) {
	clear = map[*shape]bool{}
	var walk func(*shape)
	walk = func(s *shape) {
		for _, n := range s.names {
			walk(s.members[n])
		}
		if b, ok := s.clearBits(); ok && bits+b <= budget {
			clear[s] = true
			bits += b
		}
	}
	walk(s)
	return clear, bits
}

// encodeClear writes a value of the shape in the one form that it has, so that
// how a model spelled it tells nothing.
func (s *shape) encodeClear(v any) ([]byte, error) {
	switch x := v.(type) {
	case bool:
		if s.kind == "boolean" {
			return strconv.AppendBool(nil, x), nil
		}
	case string:
		if s.words != nil && slices.Contains(s.words, x) {
			return schema.Encode(x)
		}
	case float64:
		if s.bounded && x == math.Trunc(x) && x >= s.low && x <= s.top {
			return strconv.AppendInt(nil, int64(x), 10), nil
		}
	}
	return nil, errAnswer
}

// leaves returns the fields of an answer that become one value each.
func (s *shape) leaves(field string, v any, visit func(field string, s *shape, v any) ([]byte, error)) ([]byte, error) {
	if s.kind != "object" {
		return visit(field, s, v)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errAnswer
	}
	var out bytes.Buffer
	for i, n := range s.names {
		out.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		enc, err := s.members[n].leaves(strings.TrimPrefix(field+"."+n, "."), m[n], visit)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%q:%s", n, enc) // names are letters and digits
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
