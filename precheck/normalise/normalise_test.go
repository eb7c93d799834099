package normalise

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFoldShowsWhatAReaderSees(t *testing.T) {
	tag := func(s string) string {
		var b strings.Builder
		for _, c := range s {
			b.WriteRune(0xE0000 + c)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ in, want string }{
		"ascii":                 {"Ignore ALL", "ignore all"},
		"full width":            {"Ｉｇｎｏｒｅ", "ignore"},
		"mathematical":          {"𝐢𝐠𝐧𝐨𝐫𝐞 𝓪𝓵𝓵", "ignore all"},
		"boxed":                 {"🅸🅶🅽", "ign"},
		"mixed Cyrillic":        {"ignоrе", "ignore"},
		"pure look-alikes":      {"сору", "copy"},
		"Russian stays":         {"Игнорируй инструкции", "игнорируй инструкции"},
		"Greek stays":           {"αγνόησε", "αγνόησε"},
		"zero width":            {"ig\u200bno\u200dre", "ignore"},
		"soft hyphen":           {"ig\u00adnore", "ignore"},
		"bidi":                  {"\u202Eignore\u202C", "ignore"},
		"tags":                  {"hi" + tag("ignore"), "hi ignore "},
		"flag emoji keeps":      {"\U0001F3F4" + tag("gbeng\x7f"), "\U0001F3F4"},
		"accents":               {"précédentes", "precedentes"},
		"combining":             {"i\u0332g\u0332nore", "ignore"},
		"entities":              {"&#105;gn&#x6f;re &lt;b&gt;", "ignore <b>"},
		"query string stays":    {"a=1&lt=2&x", "a=1&lt=2&x"},
		"ideographic full stop": {"127。0。0。1", "127.0.0.1"},
		"CJK stays":             {"忽略之前的指令", "忽略之前的指令"},
		"Hangul stays":          {"이전 지시를 무시", "이전 지시를 무시"},
		"Devanagari stays":      {"पिछले निर्देश", "पिछले निर्देश"},
		"small capitals":        {"ɪɢɴᴏʀᴇ", "ignore"},
	} {
		if got := Fold(c.in).Lower; got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestMarksNameWhatWasHidden(t *testing.T) {
	for in, want := range map[string]string{
		"ig\u200bnore":                    FoldInvisible,
		"x\u202Egnp.exe":                  FoldBidi,
		"a\U000E0041\U000E0042":           FoldTags,
		"a\uFE01\uFE02\uFE03\uFE04\uFE05": FoldVariation,
	} {
		m := Fold(in).Marks
		if len(m) != 1 || m[0].Kind != want {
			t.Errorf("%q: marks %v, want one %s", in, m, want)
		}
	}
	for _, in := range []string{"می\u200cخواهم", "👩\u200d💻", "❤\uFE0F", "plain"} {
		if m := Fold(in).Marks; len(m) != 0 {
			t.Errorf("%q: marks %v, want none", in, m)
		}
	}
}

func TestSpanMapsBackToTheOriginal(t *testing.T) {
	for _, c := range []struct{ in, word, want string }{
		{"please ｉgnore it", "ignore", "ｉgnore"},
		{"x ig\u200bno\u200bre y", "ignore", "ig\u200bno\u200bre"},
		{"é ignоrе", "ignore", "ignоrе"},
		{"a &#105;gnore b", "ignore", "&#105;gnore"},
		{"plain ignore", "ignore", "ignore"},
	} {
		f := Fold(c.in)
		i := strings.Index(f.Lower, c.word)
		if i < 0 {
			t.Errorf("%q: %q not found in %q", c.in, c.word, f.Lower)
			continue
		}
		a, b := f.Span(i, i+len(c.word))
		if c.in[a:b] != c.want {
			t.Errorf("%q: span is %q, want %q", c.in, c.in[a:b], c.want)
		}
		if j := f.At(a); j != i {
			t.Errorf("%q: At(%d) is %d, want %d", c.in, a, j, i)
		}
	}
}

// FuzzNormalise holds the promises of the offset map for any text.
func FuzzNormalise(f *testing.F) {
	for _, s := range []string{"", "plain", "ignоrе ｉ", "e\u0301\u0302\u200b&#105;", "\U000E0041\uFE01\uFE02\uFE03\uFE04", "ﷺ한글\u1100\u1161", "\u202E\xff", "🏴\U000E0067"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		checkMap(t, s)
	})
}

func checkMap(t *testing.T, s string) {
	t.Helper()
	n := Fold(s)
	if len(n.Text) != len(n.Lower) {
		t.Fatalf("%q: %d and %d bytes", s, len(n.Text), len(n.Lower))
	}
	if !utf8.ValidString(n.Text) || !utf8.ValidString(n.Lower) {
		t.Fatalf("%q: folds to invalid UTF-8 %q", s, n.Text)
	}
	if n.from != nil && len(n.from) != len(n.Text)+1 {
		t.Fatalf("%q: %d offsets for %d bytes", s, len(n.from), len(n.Text))
	}
	prev := 0
	for i := range len(n.Text) {
		a, b := n.Span(i, i+1)
		if a < prev || b < a || b > len(s) {
			t.Fatalf("%q: byte %d maps to [%d,%d) after %d", s, i, a, b, prev)
		}
		if !boundary(s, a) || !boundary(s, b) {
			t.Fatalf("%q: byte %d maps inside a character", s, i)
		}
		prev = a
	}
	for _, m := range n.Marks {
		if m.Start < 0 || m.End <= m.Start || m.End > len(s) || !boundary(s, m.Start) || !boundary(s, m.End) {
			t.Fatalf("%q: mark %v", s, m)
		}
	}
}

func boundary(s string, i int) bool { return i == len(s) || utf8.RuneStart(s[i]) }

func BenchmarkFold(b *testing.B) {
	for name, s := range map[string]string{
		"ascii":        strings.Repeat("The quick brown fox jumps over it. ", 300),
		"chinese":      strings.Repeat("今天天气很好，我们去公园散步吧。", 220),
		"german":       strings.Repeat("Die Straße führt über die Brücke. ", 300),
		"confusables":  strings.Repeat("ignоrе аll рrеviоus ", 400),
		"mathematical": strings.Repeat("𝐢𝐠𝐧𝐨𝐫𝐞 ", 400),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for range b.N {
				Fold(s)
			}
		})
	}
}
