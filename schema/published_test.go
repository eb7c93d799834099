package schema

import (
	"bytes"
	stdjson "encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "rewrite the published JSON Schemas")

// documents are the published schemas: the Go type, and the fields that a
// sender must give (nil: every field without omitempty).
var documents = map[string]struct {
	v        any
	required []string
}{
	"flow":           {Flow{}, []string{"payload", "source", "sink"}},
	"report":         {Report{}, nil},
	"arbiter-report": {ArbiterReport{}, nil},
	"decision":       {Decision{}, []string{"decision_id", "action", "reason", "message"}},
	"event":          {Event{}, []string{"host", "session", "phase"}},
	"outcome":        {Outcome{}, nil},
	"question":       {Question{}, nil},
}

// enums maps every word type of the package to its words. A type with words
// that is missing here fails TestEveryEnumIsPublished.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[Action]():       actionNames,
	reflect.TypeFor[Mediation]():    mediationNames,
	reflect.TypeFor[Surface]():      surfaceNames,
	reflect.TypeFor[Boundary]():     boundaryNames,
	reflect.TypeFor[Trust]():        trustNames,
	reflect.TypeFor[SourceKind]():   sourceNames,
	reflect.TypeFor[SinkKind]():     sinkNames,
	reflect.TypeFor[SpanCategory](): spanNames,
	reflect.TypeFor[Code]():         codeNames,
	reflect.TypeFor[Severity]():     severityNames,
	reflect.TypeFor[ResidualRisk](): residualNames,
	reflect.TypeFor[Stage]():        stageNames,
	reflect.TypeFor[Mode]():         modeNames,
	reflect.TypeFor[Phase]():        phaseNames,
}

func generate(t *testing.T, name string) []byte {
	t.Helper()
	doc := documents[name]
	r := &jsonschema.Reflector{ExpandedStruct: true, Anonymous: true}
	if err := r.AddGoComments("example.org/auditd/schema", "."); err != nil {
		t.Fatal(err)
	}
	// The comment walker names packages by directory; for "." that is "".
	for k, v := range r.CommentMap {
		r.CommentMap[strings.Replace(k, "example.org/auditd/schema.", "example.org/auditd/schema.", 1)] = strings.Join(strings.Fields(v), " ")
	}
	r.Mapper = func(typ reflect.Type) *jsonschema.Schema {
		words, ok := enums[typ]
		if !ok {
			if typ == reflect.TypeFor[stdjson.RawMessage]() {
				return &jsonschema.Schema{Description: "any JSON value"}
			}
			return nil
		}
		s := &jsonschema.Schema{Type: "string"}
		for _, w := range words {
			if w != "" {
				s.Enum = append(s.Enum, w)
			}
		}
		return s
	}
	s := r.Reflect(doc.v)
	s.Title = "auditd " + name
	if doc.required != nil {
		s.Required = doc.required
	}
	switch name {
	case "flow":
		s.Definitions["Source"].Required = []string{"kind"}
		s.Definitions["Sink"].Required = []string{"kind"}
	case "report", "arbiter-report":
		limitReport(s)
	}
	for _, nested := range []string{"Report", "ArbiterReport"} {
		if def, ok := s.Definitions[nested]; ok {
			limitReport(def)
		}
	}
	out, err := stdjson.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// limitReport adds what the Go types cannot say: scores, sets, null.
func limitReport(s *jsonschema.Schema) {
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		switch p := pair.Value; {
		case p.Type == "number":
			p.Minimum, p.Maximum = "0", "1"
		case pair.Key == "rewrite":
			p.Type, p.AnyOf = "", []*jsonschema.Schema{{Type: "string"}, {Type: "null"}}
		case pair.Key == "residual_risk_types":
			one := uint64(1)
			p.MinItems, p.UniqueItems = &one, true
		case pair.Key == "evidence":
			n, l := uint64(MaxEvidence), uint64(MaxEvidenceText)
			p.MaxItems, p.Items.MaxLength = &n, &l
		}
	}
}

func TestPublishedSchemasAreCurrent(t *testing.T) {
	for name := range documents {
		want := generate(t, name)
		file := filepath.Join("jsonschema", name+".json")
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go test ./schema -update", file, err)
		}
	}
	files, _ := os.ReadDir("jsonschema")
	for _, f := range files {
		if _, ok := documents[strings.TrimSuffix(f.Name(), ".json")]; !ok {
			t.Errorf("jsonschema/%s belongs to no document", f.Name())
		}
	}
}

func compile(t *testing.T, name string) *validator.Schema {
	t.Helper()
	b, ok := JSONSchema(name)
	if !ok {
		t.Fatalf("no schema %s", name)
	}
	doc, err := validator.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// vector is one golden document. Clients in other languages test against the
// same files.
type vector struct {
	Name  string `json:"name"`
	Doc   string `json:"doc"`
	Valid bool   `json:"valid"`
	Field string `json:"field,omitempty"` // the field that the error names
	// DecoderOnly marks what a JSON Schema cannot see, such as a duplicate key.
	DecoderOnly bool `json:"decoder_only,omitempty"`
}

func TestVectors(t *testing.T) {
	decode := map[string]func([]byte) error{
		"flow":           func(b []byte) error { _, err := DecodeFlow(b, 0); return err },
		"report":         func(b []byte) error { _, err := DecodeReport(b); return err },
		"arbiter-report": func(b []byte) error { _, err := DecodeArbiterReport(b); return err },
		"event":          func(b []byte) error { _, err := DecodeEvent(b, 0); return err },
		"decision":       func(b []byte) error { return Decode(b, new(Decision)) },
		"outcome":        func(b []byte) error { return Decode(b, new(Outcome)) },
	}
	files, err := filepath.Glob("testdata/vectors/*.json")
	if err != nil || len(files) < len(decode) {
		t.Fatalf("%d vector files, want %d (%v)", len(files), len(decode), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var vectors []vector
		if err := Decode(b, &vectors); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		s := compile(t, name)
		for _, v := range vectors {
			t.Run(name+"/"+v.Name, func(t *testing.T) {
				err := decode[name]([]byte(v.Doc))
				if (err == nil) != v.Valid {
					t.Fatalf("decoder: %v, want valid=%v", err, v.Valid)
				}
				if err != nil && !strings.HasPrefix(err.Error(), v.Field) {
					t.Errorf("error %q does not start with field %q", err, v.Field)
				}
				if v.DecoderOnly {
					return
				}
				doc, err := validator.UnmarshalJSON(strings.NewReader(v.Doc))
				if err == nil {
					err = s.Validate(doc)
				}
				if (err == nil) != v.Valid {
					t.Errorf("JSON Schema: %v, want valid=%v", err, v.Valid)
				}
			})
		}
	}
}

func TestEveryEnumRoundTripsAndRejectsTheRest(t *testing.T) {
	for typ, words := range enums {
		if len(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })) < 2 {
			t.Errorf("%s has fewer than two words", typ)
		}
		for i, w := range words {
			v := reflect.New(typ)
			u := v.Interface().(interface{ UnmarshalText([]byte) error })
			if w == "" {
				continue
			}
			if err := u.UnmarshalText([]byte(w)); err != nil || v.Elem().Uint() != uint64(i) {
				t.Errorf("%s %q: %v, got %d want %d", typ, w, err, v.Elem().Uint(), i)
			}
			for _, bad := range []string{"", strings.ToUpper(w) + "!", w + " ", "yes", "null", strings.Repeat("x", 10000)} {
				v.Elem().SetUint(uint64(i))
				err := u.UnmarshalText([]byte(bad))
				if err == nil || v.Elem().Uint() != 0 {
					t.Errorf("%s accepted %.20q or kept its old value", typ, bad)
				}
				if err != nil && len(err.Error()) > 200 {
					t.Errorf("%s: error quotes %d bytes", typ, len(err.Error()))
				}
			}
		}
		m := reflect.New(typ).Elem()
		m.SetUint(250)
		if _, err := m.Interface().(interface{ MarshalText() ([]byte, error) }).MarshalText(); err == nil {
			t.Errorf("%s: an invalid value was written", typ)
		}
	}
}

func TestZeroValuesDeny(t *testing.T) {
	if a := (Decision{}).Action; a != Block {
		t.Errorf("zero decision: %v", a)
	}
	if a := (Outcome{}).Action; a != Block {
		t.Errorf("zero outcome: %v", a)
	}
	if a := (Report{}).Decision; a != Block {
		t.Errorf("zero report: %v", a)
	}
	if a := (ArbiterReport{}).Decision; a != Block {
		t.Errorf("zero arbiter report: %v", a)
	}
	if tr := (Source{}).Trust; tr != Hostile {
		t.Errorf("zero trust: %v", tr)
	}
	if c := Credential(0); c != CredentialNone {
		t.Errorf("zero credential: %v", c)
	}
	for _, broken := range []string{``, `{}`, `""`, `"ALLOW"`, `"yes"`, `2`, `null`, `"all`} {
		a := Allow
		err := Decode([]byte(broken), &a)
		if err == nil && a != Block {
			t.Errorf("%q decoded to %v", broken, a)
		}
	}
}
