package dualview

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
)

// prose returns n words that no other seed gives.
func prose(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 2))
	var b strings.Builder
	for i := range n {
		for range 2 + r.IntN(8) {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
		if i%9 == 8 {
			b.WriteString(".\n")
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func utf16le(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		b.WriteByte(byte(u))
		b.WriteByte(byte(u >> 8))
	}
	return b.String()
}

func TestProperty03ContentIsRecognised(t *testing.T) {
	table := testTable(t, t.TempDir())
	value := prose(1, 400) + "Grüße aus Köln & «Überall» — " + prose(2, 40)
	mustSymbolise(t, table, value)
	part := value[300:700]
	jsonPart, err := json.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	latin := strings.Map(func(r rune) rune { return r }, value[len(value)-420:])
	var latin1 []byte
	for _, r := range latin {
		if r < 256 {
			latin1 = append(latin1, byte(r))
		}
	}
	for name, text := range map[string]string{
		"whole":      value,
		"part":       part,
		"crlf":       strings.ReplaceAll(part, "\n", "\r\n"),
		"rewrapped":  strings.Join(strings.Fields(part), "\n"),
		"no spaces":  strings.Join(strings.Fields(part), ""),
		"upper case": strings.ToUpper(part),
		"quoted":     "> " + strings.ReplaceAll(part, "\n", "\n> "),
		"json":       string(jsonPart),
		"html":       html.EscapeString(value[len(value)-420:]),
		"url":        url.QueryEscape(part),
		"url path":   url.PathEscape(value[len(value)-420:]),
		"base64":     base64.StdEncoding.EncodeToString([]byte(part)),
		"base64 url": base64.URLEncoding.EncodeToString([]byte(part)),
		"base64 off": "xy" + base64.StdEncoding.EncodeToString([]byte(part)),
		"hex":        hex.EncodeToString([]byte(part)),
		"hex upper":  strings.ToUpper(hex.EncodeToString([]byte(part))),
		"utf-16":     utf16le(part),
		"latin-1":    string(latin1),
		"zero width": strings.ReplaceAll(part, "a", "a\u200b"),
		"full width": strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r - 'a' + 'ａ'
			}
			return r
		}, part),
	} {
		before, after := prose(77, 60), prose(78, 60)
		known, err := table.Known(t.Context(), []byte(before+text+after))
		if err != nil {
			t.Fatal(err)
		}
		if len(known) == 0 {
			t.Errorf("%s: not recognised", name)
			continue
		}
		start, end := known[0].Start, known[len(known)-1].End
		if start > len(before)+4 || end < len(before)+len(strings.TrimRight(text, " .\n=>\""))-4 {
			t.Errorf("%s: [%d,%d) of [%d,%d)", name, start, end, len(before), len(before)+len(text))
		}
		if start < len(before)-80 || end > len(before)+len(text)+80 {
			t.Errorf("%s: too much: [%d,%d) of [%d,%d)", name, start, end, len(before), len(before)+len(text))
		}
	}
	if known, err := table.Known(t.Context(), []byte(prose(99, 5000))); err != nil || len(known) > 0 {
		t.Errorf("an unrelated text is known: %v %v", known, err)
	}
}

// TestProperty03EveryStretchIsRecognised tries many stretches of exactly
// MinMatch folded bytes, glued between other text.
func TestProperty03EveryStretchIsRecognised(t *testing.T) {
	table := testTable(t, t.TempDir())
	value := strings.Join(strings.Fields(prose(3, 2000)), "")
	value = strings.ReplaceAll(value, ".", "")
	mustSymbolise(t, table, value)
	for at := 0; at+MinMatch <= len(value); at += 7 {
		text := strings.ReplaceAll(prose(uint64(1000+at), 12), ".", "") + "|" + value[at:at+MinMatch] + "|" + prose(uint64(5000+at), 12)
		known, err := table.Known(t.Context(), []byte(text))
		if err != nil || len(known) != 1 {
			t.Fatalf("stretch at %d: %v %v", at, known, err)
		}
		if got := text[known[0].Start:known[0].End]; !strings.Contains(got, value[at:at+MinMatch]) {
			t.Fatalf("stretch at %d: found %q", at, got)
		}
	}
}

func TestProperty03RepetitiveValues(t *testing.T) {
	table := testTable(t, t.TempDir())
	decoy := strings.Join(strings.Fields(prose(8, 20)), "")[:56]
	// The same passage many times with different ends: whichever of them comes
	// back, it is recognised, also when only shingles of the passage are kept.
	var b strings.Builder
	ends := make([]string, 400)
	for i := range ends {
		ends[i] = strings.Join(strings.Fields(prose(uint64(100+i), 9)), "")[:12]
		fmt.Fprintf(&b, "%s%s %s ", decoy, ends[i], prose(uint64(1000+i), 5))
	}
	b.WriteString(strings.Repeat("abcdefgh", 20000))
	mustSymbolise(t, table, b.String())
	for i, end := range ends {
		text := prose(1, 30) + decoy + end + prose(2, 30)
		if known, err := table.Known(t.Context(), []byte(text)); err != nil || len(known) == 0 {
			t.Errorf("end %d: %v %v", i, known, err)
		}
	}
	if known, err := table.Known(t.Context(), []byte(strings.Repeat("abcdefgh", 10))); err != nil || len(known) == 0 {
		t.Errorf("periodic text: %v %v", known, err)
	}
}

func TestTrustedEarlierStaysTrusted(t *testing.T) {
	table := testTable(t, t.TempDir())
	readme := prose(4, 600)
	table.Trust([]byte(readme))
	page := prose(5, 300) + readme + prose(6, 300)
	mustSymbolise(t, table, page)
	if known, err := table.Known(t.Context(), []byte(readme)); err != nil || len(known) > 0 {
		t.Errorf("a quoted README became untrusted: %v %v", known, err)
	}
	edited := readme[:1000] + " EDITED BY THE OWNER " + readme[1040:]
	if known, err := table.Known(t.Context(), []byte(edited)); err != nil || len(known) > 0 {
		t.Errorf("an edited README became untrusted: %v %v", known, err)
	}
	for at := 20; at+60 < len(readme); at += 37 {
		edited := readme[:at] + "xyz" + readme[at+at%9:]
		if known, err := table.Known(t.Context(), []byte(edited)); err != nil || len(known) > 0 {
			t.Errorf("a README edited at %d became untrusted: %v %v", at, known, err)
		}
	}
	known, err := table.Known(t.Context(), []byte(page))
	if err != nil || len(known) < 2 {
		t.Fatalf("the page around the quotation is not recognised: %v %v", known, err)
	}
	// The other order: what was untrusted first cannot be trusted by naming it.
	attack := prose(7, 300)
	mustSymbolise(t, table, attack)
	table.Trust([]byte(attack))
	if known, err := table.Known(t.Context(), []byte(attack)); err != nil || len(known) != 1 {
		t.Errorf("an untrusted text was laundered: %v %v", known, err)
	}
	// Attack text between two trusted passages is found.
	mixed := readme[:900] + attack[:400] + readme[900:]
	if known, err := table.Known(t.Context(), []byte(mixed)); err != nil || len(known) == 0 {
		t.Errorf("attack text inside a trusted text: %v %v", known, err)
	}
}

func TestProperty03SegmentsAndRestart(t *testing.T) {
	dir := t.TempDir()
	table := testTable(t, dir)
	values := make([]string, 30)
	for i := range values {
		values[i] = prose(uint64(200+i), 400)
		mustSymbolise(t, table, values[i])
		if i%3 == 2 { // write a segment
			if err := table.index.settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			table.index.mu.Lock()
			table.index.freeze()
			done := table.index.flushed
			table.index.mu.Unlock()
			<-done
		}
	}
	check := func(table *Table) {
		t.Helper()
		for i, v := range values {
			if known, err := table.Known(t.Context(), []byte(v[500:900])); err != nil || len(known) != 1 {
				t.Errorf("value %d: %v %v", i, known, err)
			}
		}
	}
	check(table)
	if n := len(table.index.segments); n >= mergeAt {
		t.Errorf("%d segments, they were not merged", n)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	table = testTable(t, dir)
	check(table)
	if _, err := os.Stat(filepath.Join(dir, "dualview", "index", snapshotName)); err == nil {
		t.Error("filters that can become wrong lie beside an open index")
	}
	// Values of a session that is killed after a clean one are found too.
	values = append(values, prose(999, 400))
	mustSymbolise(t, table, values[len(values)-1])
	check(testTable(t, dir))
	// A damaged segment is not believed, and everything is indexed again.
	segments, err := filepath.Glob(filepath.Join(dir, "dualview", "index", "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	for _, s := range segments {
		if err := os.Truncate(s, 1000); err != nil {
			t.Fatal(err)
		}
	}
	check(testTable(t, dir))
}

func TestRecogniseMakesSymbolsWithParents(t *testing.T) {
	table := testTable(t, t.TempDir())
	value := prose(9, 200)
	s := mustSymbolise(t, table, value)
	text := "mine: " + strings.ToUpper(value[:300]) + " :mine"
	pieces, err := table.Recognise(t.Context(), "ann", []byte(text), web)
	if err != nil || len(pieces) != 1 {
		t.Fatal(pieces, err)
	}
	p := pieces[0]
	if got := mustResolve(t, table, string(p.Symbol), Raw); got != text[p.Start:p.End] {
		t.Errorf("resolved %q", got)
	}
	info, err := table.Info(t.Context(), "ann", p.Symbol)
	if err != nil || len(info.Provenance.Parents) != 1 || info.Provenance.Parents[0] != s {
		t.Errorf("parents %v %v", info.Provenance.Parents, err)
	}
	// Another owner's text is recognised too, and says nothing about ann.
	pieces, err = table.Recognise(t.Context(), "bob", []byte(text), web)
	if err != nil || len(pieces) != 1 {
		t.Fatal(pieces, err)
	}
	if info, err = table.Info(t.Context(), "bob", pieces[0].Symbol); err != nil || len(info.Provenance.Parents) != 0 {
		t.Errorf("parents %v %v", info.Provenance.Parents, err)
	}
}

func FuzzKnown(f *testing.F) {
	table := testTable(f, f.TempDir())
	value := prose(11, 100)
	mustSymbolise(f, table, value)
	f.Add([]byte("a%4"), []byte("b\\u12"))
	f.Add([]byte("&#x110000;&#99999999999;&"), []byte("\xff\xfe\x00"))
	f.Add([]byte("%e4%f"), []byte("\\"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		text := append(append(bytes.Clone(a), '|', ' '), value[:200]...)
		text = append(append(text, ' ', '|'), b...)
		known, err := table.Known(t.Context(), text)
		if err != nil || len(known) == 0 {
			t.Fatalf("%v %v", known, err)
		}
		last := 0
		for _, s := range known {
			if s.Start < last || s.End <= s.Start || s.End > len(text) {
				t.Fatalf("spans %v of %d bytes", known, len(text))
			}
			last = s.End
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	table := testTable(t, t.TempDir())
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 30 {
				value := prose(uint64(g*1000+i), 200)
				s, err := table.Symbolise(t.Context(), "ann", []byte(value), web)
				if err != nil {
					t.Error(err)
					return
				}
				if o, err := table.Resolve(t.Context(), string(s), Raw, person("ann")); err != nil || o.Reveal() != value {
					t.Error(err)
				}
				if known, err := table.Known(t.Context(), []byte(value[100:600])); err != nil || len(known) != 1 {
					t.Errorf("%v %v", known, err)
				}
				table.Trust([]byte(prose(uint64(50000+g*1000+i), 50)))
				if i%10 == 9 {
					table.index.mu.Lock()
					table.index.freeze()
					table.index.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for g := range 4 {
		for i := range 30 {
			if known, err := table.Known(t.Context(), []byte(prose(uint64(g*1000+i), 200)[100:600])); err != nil || len(known) != 1 {
				t.Errorf("%d %d: %v %v", g, i, known, err)
			}
		}
	}
}

// Property 03: a value is recognised in the very next text, although it is indexed
// behind the caller's back; and with an index that is broken no text passes.
func TestProperty03RecognisedAtOnce(t *testing.T) {
	table := testTable(t, t.TempDir())
	for i := range 3 {
		value := []byte(prose(uint64(500+i), 600000))
		s := mustSymbolise(t, table, string(value))
		quote := value[len(value)-4000 : len(value)-3000]
		table.Trust(quote) // too late: it was untrusted first
		if known, err := table.Known(t.Context(), append([]byte("it says "), quote...)); err != nil || len(known) != 1 {
			t.Errorf("value %d, %s: %v %v", i, s, known, err)
		}
	}
	// The caller may use its memory for something else at once.
	value := []byte(prose(600, 100000))
	if _, err := table.Symbolise(t.Context(), "ann", value, web); err != nil {
		t.Fatal(err)
	}
	quote := append([]byte("it says "), value[len(value)-400:]...)
	clear(value)
	if known, err := table.Known(t.Context(), quote); err != nil || len(known) == 0 {
		t.Errorf("a buffer that was used again: %v %v", known, err)
	}

	late, cancel := context.WithCancel(t.Context())
	cancel()
	mustSymbolise(t, table, prose(700, 600000))
	if _, err := table.Known(late, []byte(prose(700, 100))); err == nil {
		t.Error("a caller that cannot wait is let through")
	}
	b := &table.index.backlog
	if err := table.index.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.failed = errIndex
	b.mu.Unlock()
	if _, err := table.Known(t.Context(), []byte("a text")); err == nil {
		t.Error("a text passes an index that is broken")
	}
	if s, err := table.Symbolise(t.Context(), "ann", []byte("a value"), web); err == nil {
		t.Errorf("a value that cannot be recognised gets the symbol %s", s)
	}
}
