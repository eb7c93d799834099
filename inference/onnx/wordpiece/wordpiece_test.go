package wordpiece

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func testTokenizerJSON(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open("testdata/tokenizer.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func testTokenizer(t testing.TB) *Tokenizer {
	t.Helper()
	z, err := New(testTokenizerJSON(t))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

type vector struct {
	Kind     string     `json:"kind"`
	Input    []byte     `json:"input"`
	Prepared []byte     `json:"prepared"`
	From     []int      `json:"from"`
	To       []int      `json:"to"`
	IDs      []int32    `json:"ids"`
	Offsets  [][2]int32 `json:"offsets"`
	Original [][2]int   `json:"original"`
}

func vectors(t testing.TB) []vector {
	t.Helper()
	f, err := os.Open("testdata/vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []vector
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var v vector
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if len(out) < 100 {
		t.Fatalf("%d vectors, want at least 100", len(out))
	}
	return out
}

// TestVectors holds text, offset map, ids and token offsets equal to the
// Python side of training and to the reference tokenizer.
func TestVectors(t *testing.T) {
	z := testTokenizer(t)
	var text Text
	var toks Tokens
	for i, v := range vectors(t) {
		z.Prepare(&text, string(v.Input))
		if !bytes.Equal(text.Bytes(), v.Prepared) {
			t.Errorf("%s %d: prepared %q, want %q", v.Kind, i, text.Bytes(), v.Prepared)
			continue
		}
		c := 0
		for at := 0; at < len(v.Prepared); c++ {
			_, n := utf8.DecodeRune(v.Prepared[at:])
			if from, to := text.Original(at, at+n); from != v.From[c] || to != v.To[c] {
				t.Errorf("%s %d: character %d from [%d,%d), want [%d,%d)", v.Kind, i, c, from, to, v.From[c], v.To[c])
			}
			at += n
		}
		toks.Reset()
		z.Append(&toks, text.Bytes())
		if !slices.Equal(toks.IDs, v.IDs) {
			t.Errorf("%s %d: %q ids\n%v, want\n%v", v.Kind, i, v.Prepared, toks.IDs, v.IDs)
			continue
		}
		for k, o := range v.Offsets {
			if toks.Start[k] != o[0] || toks.End[k] != o[1] {
				t.Errorf("%s %d: token %d at [%d,%d), want %v", v.Kind, i, k, toks.Start[k], toks.End[k], o)
			}
			if from, to := text.Original(int(toks.Start[k]), int(toks.End[k])); from != v.Original[k][0] || to != v.Original[k][1] {
				t.Errorf("%s %d: token %d from [%d,%d), want %v", v.Kind, i, k, from, to, v.Original[k])
			}
		}
	}
}

func TestNewRefusesOtherTokenizers(t *testing.T) {
	good := string(testTokenizerJSON(t))
	for name, bad := range map[string]string{
		"empty":       "",
		"not JSON":    good[:1000],
		"null":        "null",
		"empty model": `{"model":{}}`,
		"no vocab":    `{"model":{"type":"WordPiece"}}`,
		"wrong types": `{"model":{"type":"WordPiece","vocab":[1,2]}}`,
		"cased":       strings.Replace(good, `"lowercase":true`, `"lowercase":false`, 1),
		"other split": strings.Replace(good, `"BertPreTokenizer"`, `"Whitespace"`, 1),
		"no [SEP]":    strings.ReplaceAll(good, `"[SEP]"`, `"[SAP]"`),
		"other model": strings.Replace(good, `"continuing_subword_prefix":"##"`, `"continuing_subword_prefix":"@@"`, 1),
	} {
		if _, err := New([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	z := testTokenizer(t)
	var text Text
	var toks Tokens
	src := strings.Repeat("Hello w\u00f6rld, \u4f60\u597d [CLS] \u2026 supercalifragilistic \u200b x\u0301y\n", 50)
	run := func() {
		z.Prepare(&text, src)
		toks.Reset()
		z.Append(&toks, text.Bytes())
	}
	for range 3 { // two buffers take turns
		run()
	}
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations per text, want 0", n)
	}
}

func hostileSeeds(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(string(v.Input))
	}
}

func FuzzPrepare(f *testing.F) {
	hostileSeeds(f)
	z := testTokenizer(f)
	var text Text
	f.Fuzz(func(t *testing.T, src string) {
		z.Prepare(&text, src)
		out := text.Bytes()
		if !utf8.Valid(out) {
			t.Fatal("prepared text is not valid UTF-8")
		}
		for _, s := range specials {
			if bytes.Contains(out, []byte("["+s)) {
				t.Fatalf("prepared text holds [%s", s)
			}
		}
		if bytes.Contains(out, []byte("  ")) {
			t.Fatal("prepared text holds two spaces in a row")
		}
		lastFrom, lastTo := 0, 0
		for at := 0; at < len(out); {
			_, n := utf8.DecodeRune(out[at:])
			from, to := text.Original(at, at+n)
			if from < lastFrom || to < lastTo || to < from || to > len(src) {
				t.Fatalf("byte %d came from [%d,%d) of %d, after [%d,%d)", at, from, to, len(src), lastFrom, lastTo)
			}
			lastFrom, lastTo = from, to
			at += n
		}
	})
}

func FuzzTokenize(f *testing.F) {
	hostileSeeds(f)
	z := testTokenizer(f)
	var text Text
	var toks Tokens
	f.Fuzz(func(t *testing.T, src string) {
		z.Prepare(&text, src)
		toks.Reset()
		z.Append(&toks, text.Bytes())
		end := int32(0)
		for i, id := range toks.IDs {
			if id < 0 || int(id) >= z.Size() {
				t.Fatalf("id %d of %d", id, z.Size())
			}
			if s := z.Special; id == s.Cls || id == s.Sep || id == s.Pad || id == s.Mask {
				t.Fatalf("special id %d out of text", id)
			}
			a, b := toks.Start[i], toks.End[i]
			if a < 0 || b <= a || int(b) > len(text.Bytes()) || !utf8.RuneStart(text.Bytes()[a]) ||
				int(b) < len(text.Bytes()) && !utf8.RuneStart(text.Bytes()[b]) {
				t.Fatalf("token %d at [%d,%d) of %d", i, a, b, len(text.Bytes()))
			}
			if b < end {
				t.Fatalf("token %d ends at %d, the one before at %d", i, b, end)
			}
			end = b
			from, to := text.Original(int(a), int(b))
			if from < 0 || to <= from || to > len(src) {
				t.Fatalf("token %d from [%d,%d) of %d", i, from, to, len(src))
			}
			if utf8.ValidString(src) && (!utf8.RuneStart(src[from]) || to < len(src) && !utf8.RuneStart(src[to])) {
				t.Fatalf("token %d from [%d,%d) cuts a character", i, from, to)
			}
		}
	})
}

func BenchmarkTokenize(b *testing.B) {
	z := testTokenizer(b)
	random := make([]byte, 10<<10)
	x := uint32(1)
	for i := range random {
		x = x*1664525 + 1013904223
		random[i] = byte(x >> 24)
	}
	english := "The deployment finished at 09:30; please review the attached notes before the meeting on Tuesday, and tell Anna.\n"
	for _, c := range []struct{ name, src string }{
		{"english1MiB", strings.Repeat(english, 1<<20/len(english))},
		{"punctuation", strings.Repeat("!?.,;:(){}<>", 10<<10/12)},
		{"cjk", strings.Repeat("\u5ffd\u7565\u4e4b\u524d\u7684\u6240\u6709\u6307\u4ee4\u3002", 10<<10/30)},
		{"random", string(random)},
		{"tags", strings.Repeat("\U000e0041\U000e0062", 10<<10/8)},
		{"longwords", strings.Repeat("zqxjkvwzqxjkvw", 10<<10/14)},
		{"accents", strings.Repeat("e\u0301\u1ec7 ", 10<<10/7)},
	} {
		b.Run(c.name, func(b *testing.B) {
			var text Text
			var toks Tokens
			b.SetBytes(int64(len(c.src)))
			b.ReportAllocs()
			for b.Loop() {
				z.Prepare(&text, c.src)
				toks.Reset()
				z.Append(&toks, text.Bytes())
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	j := testTokenizerJSON(b)
	for b.Loop() {
		if _, err := New(j); err != nil {
			b.Fatal(err)
		}
	}
}
