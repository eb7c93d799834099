// Package normalise folds a text to what a reader or a model would take it
// for, and keeps the way back: every byte of the folded text knows which bytes
// of the original it came from. Attackers write what a rule does not expect
// (full-width letters, Cyrillic look-alikes, zero-width characters, invisible
// tag letters); folding before matching makes one rule see them all.
package normalise

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// Kinds of folds and marks.
const (
	FoldNFKC        = "nfkc"
	FoldConfusables = "confusables"
	FoldDiacritics  = "diacritics"
	FoldInvisible   = "zero-width"
	FoldBidi        = "bidi"
	FoldTags        = "tags"
	FoldVariation   = "variation-selectors"
	FoldEntities    = "entities"
)

// maxMarks bounds the marks kept of one text: the first ones tell the story,
// and an attacker could write a million.
const maxMarks = 64

// Mark is a place in the original text where something was hidden: invisible
// characters inside a Latin word, a bidirectional override, tag letters.
type Mark struct {
	Kind       string
	Start, End int    // in the original
	Decoded    string // what tag letters or variation selectors spelled
}

// Text is a folded text. Text and Lower have the same length and the same
// offsets.
type Text struct {
	Original string
	Text     string // folded, case kept
	Lower    string // folded, lower case
	Folds    []string
	Marks    []Mark
	// from[i] is where the original unit that byte i came from starts;
	// from[len] is len(Original). nil means that nothing moved.
	from []int32
}

// Fold folds s. It runs in linear time; plain ASCII costs one pass.
func Fold(s string) *Text {
	t := &Text{Original: s}
	if plain(s) {
		t.Text = s
		t.Lower = strings.ToLower(s)
		return t
	}
	f := folder{src: s, text: make([]byte, 0, len(s)+16), lower: make([]byte, 0, len(s)+16), from: make([]int32, 0, len(s)+17)}
	f.run()
	t.Text, t.Lower = string(f.text), string(f.lower)
	t.from = append(f.from, int32(len(s)))
	t.Marks = f.marks
	for i, name := range foldNames {
		if f.folds&(1<<i) != 0 {
			t.Folds = append(t.Folds, name)
		}
	}
	return t
}

// plain reports whether folding s is nothing but lower-casing: ASCII without
// an HTML entity.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	for i := 0; ; {
		j := strings.IndexByte(s[i:], '&')
		if j < 0 {
			return true
		}
		if _, n := entity(s[i+j:]); n > 0 {
			return false
		}
		i += j + 1
	}
}

// Span maps the folded bytes [start,end) to the smallest part of the original,
// on character boundaries, that they came from.
func (t *Text) Span(start, end int) (int, int) {
	if t.from == nil {
		return start, end
	}
	if end <= start {
		return int(t.from[start]), int(t.from[start])
	}
	// A unit may have become several bytes, and several units may have
	// vanished behind it: the end is where the next unit that left a byte starts.
	last := t.from[end-1]
	for end < len(t.from)-1 && t.from[end] == last {
		end++
	}
	return int(t.from[start]), int(t.from[end])
}

// Changed reports whether the folded bytes [start,end) differ from the
// original by more than case.
func (t *Text) Changed(start, end int) bool {
	if t.from == nil {
		return false
	}
	a, b := t.Span(start, end)
	return !strings.EqualFold(t.Original[a:b], t.Text[start:end])
}

// At returns the folded offset of the first byte that comes from the original
// offset pos or later.
func (t *Text) At(pos int) int {
	if t.from == nil {
		return pos
	}
	return sort.Search(len(t.from)-1, func(i int) bool { return int(t.from[i]) >= pos })
}
