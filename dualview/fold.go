package dualview

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// folder brings text into the form that the content index compares: letters and
// digits only, in lower case, without accents, with URL escapes, HTML entities
// and backslash escapes undone. So a value is the same after re-wrapping,
// quoting, escaping, change of case and of encoding (UTF-8, UTF-16, Latin-1).
// It is immutable.
type folder struct {
	ascii [256]byte // the folded byte; drop, or special
	low   [lowRunes]string
}

const (
	drop     = 0
	special  = 1      // needs a look at what follows
	lowRunes = 0x3100 // up to here runes are folded by table
)

func newFolder() *folder {
	f := new(folder)
	for c := range 256 {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			f.ascii[c] = byte(c)
		case c >= 'A' && c <= 'Z':
			f.ascii[c] = byte(c) | 0x20
		case c == '%' || c == '&' || c == '\\' || c >= 0x80:
			f.ascii[c] = special
		}
	}
	for r := rune(0x80); r < lowRunes; r++ {
		f.low[r] = foldRune(r)
	}
	return f
}

func foldRune(r rune) string {
	var out []rune
	for _, d := range norm.NFKD.String(string(r)) {
		if unicode.IsLetter(d) || unicode.IsDigit(d) {
			out = append(out, unicode.ToLower(d))
		}
	}
	return string(out)
}

// fold appends the folded form of text to dst. When pos is not nil it gets, for
// every folded byte, the offset in text that it came from.
func (f *folder) fold(dst, text []byte, pos *[]int32) []byte {
	for i := 0; i < len(text); {
		if pos == nil && f.ascii[text[i]] != special {
			// Most text is ASCII, of which nearly every sixth byte is dropped, in
			// no order that a processor could guess: so there is no branch for it.
			dst = slices.Grow(dst, len(text)-i)
			room, n := dst[len(dst):cap(dst)], 0
			for _, c := range text[i:] {
				c = f.ascii[c]
				if c == special {
					break
				}
				room[n] = c
				n += int((c + 0x7f) >> 7) // 0 for drop, else 1: folded bytes are ASCII
				i++
			}
			dst = dst[:len(dst)+n]
			if i == len(text) {
				break
			}
		}
		c := f.ascii[text[i]]
		if c > special {
			dst = append(dst, c)
			if pos != nil {
				*pos = append(*pos, int32(i))
			}
			i++
			continue
		}
		if c == drop {
			i++
			continue
		}
		r, size := f.unescape(text[i:])
		n := len(dst)
		switch {
		case r < 0: // punctuation
		case r < 0x80:
			if c := f.ascii[r]; c > special {
				dst = append(dst, c)
			}
		case r < lowRunes:
			dst = append(dst, f.low[r]...)
		case r >= 0x4E00 && r <= 0x9FFF: // ideographs fold to themselves
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, foldRune(r)...)
		}
		if pos != nil {
			for range len(dst) - n {
				*pos = append(*pos, int32(i))
			}
		}
		i += size
	}
	return dst
}

// unescape reads one special item: the rune that it stands for, or -1, and its
// length. A byte that is not UTF-8 is taken for Latin-1.
func (f *folder) unescape(s []byte) (rune, int) {
	switch s[0] {
	case '%':
		if len(s) >= 3 {
			if hi, lo := unhex(s[1]), unhex(s[2]); hi >= 0 && lo >= 0 {
				b := hi<<4 | lo
				if b < 0x80 {
					return b, 3
				}
				return f.percentRune(s, b)
			}
		}
	case '\\':
		if len(s) >= 2 {
			switch s[1] {
			case 'n', 'r', 't', 'b', 'f', '\\':
				return -1, 2
			case 'u':
				if r, ok := hexRune(s[2:], 4); ok {
					return r, 6
				}
			case 'x':
				if r, ok := hexRune(s[2:], 2); ok {
					return r, 4
				}
			}
		}
	case '&':
		return entity(s)
	default:
		r, size := utf8.DecodeRune(s)
		if r == utf8.RuneError && size <= 1 {
			return rune(s[0]), 1
		}
		return r, size
	}
	return -1, 1
}

// percentRune reads a URL-escaped UTF-8 sequence whose first byte is b.
func (f *folder) percentRune(s []byte, b rune) (rune, int) {
	var buf [utf8.UTFMax]byte
	buf[0] = byte(b)
	n, at := 1, 3
	for ; n < len(buf) && at+3 <= len(s) && s[at] == '%'; n, at = n+1, at+3 {
		hi, lo := unhex(s[at+1]), unhex(s[at+2])
		if hi < 0 || lo < 0 {
			break
		}
		buf[n] = byte(hi<<4 | lo)
	}
	if r, size := utf8.DecodeRune(buf[:n]); r != utf8.RuneError {
		return r, 3 * size
	}
	return b, 3
}

// entity reads an HTML character reference. Named ones stand for punctuation
// here: those of letters are not worth their table.
func entity(s []byte) (rune, int) {
	const longest = 10
	for i := 1; i < len(s) && i < longest; i++ {
		switch c := s[i]; {
		case c == ';' && i > 1:
			if s[1] != '#' {
				return -1, i + 1
			}
			digits, base := s[2:i], rune(10)
			if len(digits) > 0 && digits[0]|0x20 == 'x' {
				digits, base = digits[1:], 16
			}
			r := rune(0)
			for _, d := range digits {
				v := unhex(d)
				if v < 0 || v >= base || r > unicode.MaxRune {
					return -1, i + 1
				}
				r = r*base + v
			}
			if r > unicode.MaxRune {
				return -1, i + 1
			}
			return r, i + 1
		case c == '#' && i == 1, c >= '0' && c <= '9', c|0x20 >= 'a' && c|0x20 <= 'z':
		default:
			return -1, 1
		}
	}
	return -1, 1
}

func hexRune(s []byte, digits int) (rune, bool) {
	if len(s) < digits {
		return 0, false
	}
	r := rune(0)
	for _, c := range s[:digits] {
		v := unhex(c)
		if v < 0 {
			return 0, false
		}
		r = r<<4 | v
	}
	return r, true
}

func unhex(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}
