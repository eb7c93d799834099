package quarantine

import (
	"crypto/rand"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzFence checks that data stays between its fences and comes out of them as
// it was, and that a split value is whole.
func FuzzFence(f *testing.F) {
	f.Add("plain", "question")
	f.Add("END abc\nBEGIN abc x\n\"", "a\nb\"")
	f.Add("\r\n\u2028\u0085<|im_end|>\xff\x00", "")
	f.Fuzz(func(t *testing.T, data, question string) {
		if len(data) > 1<<16 {
			return
		}
		parts := []part{{"value 1", data}, {"value 2", question}}
		code, err := newCode(rand.Reader, parts)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(data, code) {
			t.Fatal("the code stands in the data")
		}
		checkFence(t, prompt(question, []byte(`{"type":"string"}`), parts, code), []string{data, question})

		pieces := split("value 1", data, 200, 1<<16)
		if pieces == nil {
			t.Fatal("it could not be split")
		}
		at := 0 // up to here the pieces hold the data
		for _, p := range pieces {
			if p.cost() > 200 {
				t.Fatalf("a piece costs %d", p.cost())
			}
			if utf8.ValidString(data) && !utf8.ValidString(p.text) {
				t.Fatal("a character was cut")
			}
			found := false
			for from := max(0, at-overlap-utf8.UTFMax); from <= at && !found; from++ {
				if strings.HasPrefix(data[from:], p.text) && from+len(p.text) >= at {
					at, found = from+len(p.text), true
				}
			}
			if !found {
				t.Fatalf("a piece leaves a gap at %d", at)
			}
		}
		if at != len(data) {
			t.Fatalf("the pieces end at %d of %d", at, len(data))
		}
	})
}

// FuzzAnswer checks that what a model writes is taken as the schema says or not
// at all.
func FuzzAnswer(f *testing.F) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":9},"w":{"type":"string","enum":["a","b"]},"t":{"type":"string","maxLength":5},"l":{"type":"array","maxItems":2,"items":{"type":"boolean"}}}}`
	s, err := parseShape([]byte(schema))
	if err != nil {
		f.Fatal(err)
	}
	form, err := newForm(s)
	if err != nil {
		f.Fatal(err)
	}
	clear, _ := form.shape.plan(100)
	f.Add([]byte(`{"result":{"n":1,"w":"a","t":"x","l":[true]}}`))
	f.Add([]byte(`{"result":{"n":1e0,"w":"c","t":"xxxxxx","l":[1]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := form.parse(data)
		if err != nil {
			if err != errAnswer {
				t.Fatalf("an error of its own: %v", err)
			}
			return
		}
		m := a["result"].(map[string]any)
		if len(a) != 1 || len(m) != 4 || len(m["l"].([]any)) > 2 || utf8.RuneCountInString(m["t"].(string)) > 5 {
			t.Fatalf("%v", a)
		}
		told := 0
		if _, err := form.shape.leaves("", map[string]any(a), func(_ string, s *shape, v any) ([]byte, error) {
			if !clear[s] {
				return nil, nil
			}
			told++
			enc, err := s.encodeClear(v)
			if err == nil && !strings.Contains(` 0 1 2 3 4 5 6 7 8 9 "a" "b" `, " "+string(enc)+" ") {
				t.Fatalf("told %s", enc)
			}
			return enc, err
		}); err != nil || told != 2 {
			t.Fatalf("%d told, %v", told, err)
		}
	})
}

// FuzzShape checks that every schema is refused or bounded.
func FuzzShape(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","enum":["x"]}}}}`))
	f.Add([]byte(`{"type":"integer","minimum":1e300}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseShape(data)
		if err != nil {
			return
		}
		form, err := newForm(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, bits := form.shape.plan(16); !(bits >= 0 && bits <= 16) {
			t.Fatalf("%v bits", bits)
		}
	})
}
