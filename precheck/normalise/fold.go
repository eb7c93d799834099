package normalise

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

type foldBit uint16

const (
	bitNFKC foldBit = 1 << iota
	bitConfusables
	bitDiacritics
	bitInvisible
	bitBidi
	bitTags
	bitVariation
	bitEntities
)

// foldNames gives the names of the bits above, in their order.
var foldNames = [...]string{FoldNFKC, FoldConfusables, FoldDiacritics, FoldInvisible, FoldBidi, FoldTags, FoldVariation, FoldEntities}

// folder is one run over one text.
type folder struct {
	src         string
	text, lower []byte
	from        []int32
	folds       foldBit
	marks       []Mark

	// The word being written, for look-alikes: they are folded only in a word
	// that mixes scripts or holds nothing but look-alikes, so that Russian and
	// Greek text stays what it is.
	wordStart   int // in text; -1 outside a word
	wordLatin   bool
	wordStrong  bool // holds a letter that looks like a Latin one in any word
	wordWeak    bool // holds one that does so only beside Latin letters
	wordForeign bool // holds a letter that looks like no Latin one
	wordLooks   int  // how many look-alikes it holds
}

func (f *folder) run() {
	f.wordStart = -1
	s := f.src
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c == '&' {
				if r, n := entity(s[i:]); n > 0 {
					f.folds |= bitEntities
					f.rune(r, i)
					i += n
					continue
				}
			}
			f.ascii(c, i)
			i++
			continue
		}
		i += f.wide(i)
	}
	f.endWord()
}

func (f *folder) ascii(c byte, at int) {
	low := c
	if 'A' <= c && c <= 'Z' {
		low = c + 'a' - 'A'
	}
	if 'a' <= low && low <= 'z' {
		f.inWord()
		f.wordLatin = true
	} else if f.wordStart >= 0 {
		f.endWord()
	}
	f.text = append(f.text, c)
	f.lower = append(f.lower, low)
	f.from = append(f.from, int32(at))
}

// wide folds the non-ASCII character at i, and what combines with it, and
// returns how many bytes it took.
func (f *folder) wide(i int) int {
	r, size := utf8.DecodeRuneInString(f.src[i:])
	switch {
	case r >= 0xE0000 && r <= 0xE007F:
		return f.tags(i)
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF:
		return f.variation(i)
	case bidiControl(r):
		f.folds |= bitBidi
		if r == 0x202D || r == 0x202E { // overrides: they reorder what is shown
			f.mark(FoldBidi, i, i+size, "")
		}
		return size
	case invisible(r):
		f.folds |= bitInvisible
		if f.insideLatin(i, size) {
			f.mark(FoldInvisible, i, i+size, "")
		}
		return size
	case r >= 0x0300 && r <= 0x036F, r >= 0x20D0 && r <= 0x20FF, r >= 0x1AB0 && r <= 0x1AFF, r >= 0x1DC0 && r <= 0x1DFF:
		f.folds |= bitDiacritics // marks stacked on letters
		return size
	case stable(r):
		f.rune(r, i)
		return size
	}
	if base := baseLetter(r); base != "" {
		f.folds |= bitDiacritics
		for j := 0; j < len(base); j++ {
			f.ascii(base[j], i)
		}
		return size
	}
	p := norm.NFKC.PropertiesString(f.src[i:])
	if p.Decomposition() == nil && p.CCC() == 0 {
		f.rune(r, i)
		return size
	}
	// NextBoundary is bounded: the library splits after 30 combining marks.
	n := norm.NFKC.NextBoundaryInString(f.src[i:], true)
	if n < size {
		n = size
	}
	out := norm.NFKC.String(f.src[i : i+n])
	if out != f.src[i:i+n] {
		f.folds |= bitNFKC
	}
	for _, r := range out {
		switch base := baseLetter(r); {
		case r < utf8.RuneSelf:
			f.ascii(byte(r), i)
		case base != "":
			for j := 0; j < len(base); j++ {
				f.ascii(base[j], i)
			}
		case r >= 0x0300 && r <= 0x036F:
		default:
			f.rune(r, i)
		}
	}
	return n
}

// stable reports the ranges that NFKC leaves alone and that make up most
// non-ASCII text, so that it need not be asked for each letter.
func stable(r rune) bool {
	switch {
	case r >= 0x0400 && r <= 0x045F, r >= 0x3041 && r <= 0x3096, r >= 0x30A1 && r <= 0x30FA, r >= 0x4E00 && r <= 0x9FFF,
		r >= 0xAC00 && r <= 0xD7A3, r >= 0x05D0 && r <= 0x05EA, r >= 0x0621 && r <= 0x064A, r >= 0x2500 && r <= 0x27BF,
		r >= 0x1F300 && r <= 0x1FAFF, r == 0x2013, r == 0x2014, r == 0x2018, r == 0x2019, r == 0x201C, r == 0x201D, r == 0x2022:
		return true
	}
	return false
}

// rune writes one folded character that came from the original offset at.
func (f *folder) rune(r rune, at int) {
	if p, ok := punctuation(r); ok {
		r = p
	}
	if r < utf8.RuneSelf {
		if r == 0 {
			r = ' '
		}
		f.ascii(byte(r), at)
		return
	}
	if l, ok := letterLike(r); ok {
		f.folds |= bitNFKC
		f.ascii(l, at)
		return
	}
	switch c, strong := confusable(r); {
	case c != 0 && strong:
		f.inWord()
		f.wordStrong = true
		f.wordLooks++
	case c != 0:
		f.inWord()
		f.wordWeak = true
	case unicode.IsLetter(r):
		f.inWord()
		f.wordForeign = true
	case f.wordStart >= 0:
		f.endWord()
	}
	n := len(f.text)
	f.text = utf8.AppendRune(f.text, r)
	low := unicode.ToLower(r)
	if utf8.RuneLen(low) != len(f.text)-n {
		low = r // both texts keep one length
	}
	f.lower = utf8.AppendRune(f.lower, low)
	for range len(f.text) - n {
		f.from = append(f.from, int32(at))
	}
}

func (f *folder) inWord() {
	if f.wordStart < 0 {
		f.wordStart = len(f.text)
		f.wordLatin, f.wordStrong, f.wordWeak, f.wordForeign, f.wordLooks = false, false, false, false, 0
	}
}

// endWord replaces the look-alikes of the word just written when the word
// gives itself away.
func (f *folder) endWord() {
	start := f.wordStart
	f.wordStart = -1
	if start < 0 || !f.wordStrong && !f.wordWeak {
		return
	}
	mixed := f.wordLatin
	// Short words of nothing but look-alikes are words of their language: не, то, а.
	pure := !f.wordLatin && f.wordLooks >= 4 && !f.wordWeak && !f.wordForeign
	if !mixed && !pure {
		return
	}
	f.folds |= bitConfusables
	w := start
	for i := start; i < len(f.text); {
		r, size := utf8.DecodeRune(f.text[i:])
		if c, _ := confusable(r); c != 0 {
			f.text[w], f.lower[w], f.from[w] = c, c|0x20, f.from[i]
			w++
		} else {
			copy(f.text[w:], f.text[i:i+size])
			copy(f.lower[w:], f.lower[i:i+size])
			copy(f.from[w:], f.from[i:i+size])
			w += size
		}
		i += size
	}
	f.text, f.lower, f.from = f.text[:w], f.lower[:w], f.from[:w]
}

// tags decodes a run of tag characters, which no screen shows and which spell
// ASCII. Those behind a black flag are an emoji.
func (f *folder) tags(i int) int {
	flag := strings.HasSuffix(f.src[:i], "\U0001F3F4")
	f.folds |= bitTags
	start, from := i, len(f.text)
	if !flag {
		f.ascii(' ', start)
	}
	for i < len(f.src) {
		r, size := utf8.DecodeRuneInString(f.src[i:])
		if r < 0xE0000 || r > 0xE007F {
			break
		}
		if c := byte(r - 0xE0000); c >= ' ' && c < 0x7f && !flag {
			f.ascii(c, i)
		}
		i += size
	}
	if flag {
		return i - start
	}
	decoded := strings.TrimSpace(string(f.text[min(from, len(f.text)):]))
	f.ascii(' ', start+len(f.src[start:i])-4)
	f.mark(FoldTags, start, i, decoded)
	return i - start
}

// variation drops variation selectors. One behind a character chooses its
// look; a run of them can carry bytes.
func (f *folder) variation(i int) int {
	start := i
	var hidden []byte
	for i < len(f.src) {
		r, size := utf8.DecodeRuneInString(f.src[i:])
		switch {
		case r >= 0xFE00 && r <= 0xFE0F:
			hidden = append(hidden, byte(r-0xFE00))
		case r >= 0xE0100 && r <= 0xE01EF:
			hidden = append(hidden, byte(r-0xE0100+16))
		default:
			size = 0
		}
		if size == 0 {
			break
		}
		i += size
	}
	if len(hidden) >= 4 {
		f.folds |= bitVariation
		f.mark(FoldVariation, start, i, strings.ToValidUTF8(string(hidden), "?"))
	}
	return i - start
}

// insideLatin reports whether the invisible character at i stands between
// Latin letters, where no script needs one.
func (f *folder) insideLatin(i, size int) bool {
	letter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
	return len(f.text) > 0 && letter(f.text[len(f.text)-1]) && i+size < len(f.src) &&
		(letter(f.src[i+size]) || f.src[i+size] >= utf8.RuneSelf)
}

func (f *folder) mark(kind string, start, end int, decoded string) {
	if n := len(f.marks); n > 0 && f.marks[n-1].Kind == kind && f.marks[n-1].End == start {
		f.marks[n-1].End = end
		return
	}
	if len(f.marks) < maxMarks {
		f.marks = append(f.marks, Mark{Kind: kind, Start: start, End: end, Decoded: decoded})
	}
}
