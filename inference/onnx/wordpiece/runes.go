package wordpiece

import (
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// What Prepare does with one character.
const (
	prepKeep = iota // or map to another character, or to several
	prepDrop
)

// What the tokenizer does with one prepared character.
const (
	foldWord  = iota // part of a word
	foldDrop         // removed
	foldSpace        // ends a word
	foldAlone        // a word of its own: punctuation, ideographs
)

const (
	asciiOther = iota
	asciiAlnum
	asciiPunct
	asciiSpace // U+0020 alone
)

var asciiKind = func() (k [256]uint8) {
	for c := range 128 {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
			k[c] = asciiAlnum
		case c == ' ':
			k[c] = asciiSpace
		case c > ' ' && c < 0x7f:
			k[c] = asciiPunct
		}
	}
	return k
}()

// planes is how many characters have pages: the first two planes, all that
// text consists of apart from rare ideographs and tag characters.
const planes = 1 << 17

// table remembers what Prepare and the tokenizer do with each character, page
// by page as text needs them: all pages together take 140 ms to compute, and
// most texts need three.
type table struct {
	pages [planes >> 8]atomic.Pointer[page]
}

// An entry of a page: bits 0-20 the character that it becomes, or an index
// into more; bits 24-27 the kind; bit 31 says "index".
type page struct {
	prep, fold [256]uint32
	more       [][]rune
}

const (
	entryMore  = 1 << 31
	entryRune  = 1<<21 - 1
	entryShift = 24
)

func (t *table) page(r rune) *page {
	at := &t.pages[r>>8]
	if p := at.Load(); p != nil {
		return p
	}
	p := new(page)
	buf := make([]rune, 0, 32) // NFKC makes at most 18 of one
	for i := range rune(256) {
		k, rs := prepareRune(r&^0xff+i, buf)
		p.prep[i] = p.pack(k, rs)
		k, rs = foldRune(r&^0xff+i, buf)
		p.fold[i] = p.pack(k, rs)
	}
	at.Store(p) // a race computes the same page twice
	return p
}

func (p *page) pack(kind int, rs []rune) uint32 {
	e := uint32(kind) << entryShift
	switch len(rs) {
	case 0:
		return e
	case 1:
		return e | uint32(rs[0])
	}
	p.more = append(p.more, append([]rune(nil), rs...))
	return e | entryMore | uint32(len(p.more)-1)
}

func (p *page) entry(e uint32) (kind int, r rune, more []rune) {
	kind = int(e>>entryShift) & 0xf
	if e&entryMore != 0 {
		return kind, 0, p.more[e&entryRune]
	}
	return kind, rune(e & entryRune), nil
}

// prepared returns whether r is dropped, and else what it becomes: one
// character, or several.
func (t *table) prepared(r rune) (kind int, to rune, more []rune) {
	if r < planes {
		p := t.page(r)
		return p.entry(p.prep[r&0xff])
	}
	if r >= 0xE0020 && r <= 0xE007E {
		return prepKeep, r - 0xE0000, nil
	}
	return single(prepareRune(r, nil))
}

// folded returns the kind of r and what it becomes: one character, or several.
func (t *table) folded(r rune) (kind int, to rune, more []rune) {
	if r < planes {
		p := t.page(r)
		return p.entry(p.fold[r&0xff])
	}
	return single(foldRune(r, nil))
}

func single(kind int, rs []rune) (int, rune, []rune) {
	switch len(rs) {
	case 0:
		return kind, 0, nil
	case 1:
		return kind, rs[0], nil
	}
	return kind, 0, rs
}

// prepareRune says what becomes of r in prepared text, before runs are
// collapsed.
func prepareRune(r rune, buf []rune) (int, []rune) {
	switch {
	case r >= 0xE0020 && r <= 0xE007E: // tag characters spell hidden ASCII
		return prepKeep, append(buf, r-0xE0000)
	case r >= 0xE0000 && r <= 0xE007F, r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF:
		return prepDrop, nil
	case r == '\t' || r == '\n' || r == '\r':
		return prepKeep, append(buf, ' ')
	case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co, unicode.Cs):
		return prepDrop, nil
	case r < utf8.RuneSelf:
		return prepKeep, append(buf, r)
	}
	var in [utf8.UTFMax]byte
	p := norm.NFKC.Properties(in[:utf8.EncodeRune(in[:], r)])
	if p.Decomposition() == nil && !unicode.Is(unicode.Z, r) && r >= planes {
		return prepKeep, append(buf, r)
	}
	for _, x := range string(norm.NFKC.AppendString(nil, string(r))) {
		if x == '\t' || x == '\n' || x == '\r' || unicode.Is(unicode.Z, x) {
			x = ' '
		}
		buf = append(buf, x)
	}
	return prepKeep, buf
}

// isAlnum reports whether runs of r are left alone.
func isAlnum(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiKind[r] == asciiAlnum
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// foldRune says what BERT's uncased normaliser and splitter make of r: clean,
// put ideographs apart, decompose and drop accents, lower the case, put
// punctuation apart.
func foldRune(r rune, buf []rune) (int, []rune) {
	if kind, ok := exception(r); ok {
		if kind == foldDrop {
			return foldDrop, nil
		}
		return kind, append(buf, r)
	}
	switch {
	case r == 0 || r == utf8.RuneError || isOther(r):
		return foldDrop, nil
	case r == ' ' || r == '\t' || r == '\n' || r == '\r' || unicode.Is(unicode.White_Space, r):
		return foldSpace, nil
	}
	kind := foldWord
	if ideograph(r) {
		kind = foldAlone
	}
	if r < utf8.RuneSelf {
		buf = append(buf, unicode.ToLower(r))
	} else {
		for _, x := range string(norm.NFD.AppendString(nil, string(r))) {
			if !unicode.Is(unicode.Mn, x) {
				buf = append(buf, unicode.ToLower(x))
			}
		}
	}
	if len(buf) == 0 {
		return foldDrop, nil
	}
	if len(buf) == 1 && punctuation(buf[0]) {
		kind = foldAlone
	}
	return kind, buf
}

func isOther(r rune) bool {
	return r != '\t' && r != '\n' && r != '\r' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

func punctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiKind[r] == asciiPunct
	}
	return unicode.IsPunct(r)
}

// ideograph reports whether r is in a block that BERT puts apart: the unified
// ideographs and their extensions, not kana and not Hangul.
func ideograph(r rune) bool {
	switch {
	case r >= 0x4E00 && r <= 0x9FFF, r >= 0x3400 && r <= 0x4DBF, r >= 0x20000 && r <= 0x2A6DF,
		r >= 0x2A700 && r <= 0x2B73F, r >= 0x2B740 && r <= 0x2B81F, r >= 0x2B920 && r <= 0x2CEAF,
		r >= 0xF900 && r <= 0xFAFF, r >= 0x2F800 && r <= 0x2FA1F:
		return true
	}
	return false
}
