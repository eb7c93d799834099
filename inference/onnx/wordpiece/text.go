package wordpiece

import (
	"bytes"
	"unicode/utf8"
)

// maxRun is how many equal characters that are neither letters nor digits are
// kept of a longer run: rulers of "=====" would fill windows with nothing.
const maxRun = 3

// Text is prepared text with the way back to the bytes it was made from. Its
// buffers are reused by the next Prepare.
//
// Prepared text is valid UTF-8 without control, format, private-use or
// variation characters; tag characters are decoded to the ASCII that they
// hide, compatibility forms folded (NFKC, character by character), white space
// and runs collapsed, and "[CLS]" and its like broken up.
type Text struct {
	out  []byte
	segs []segment
	tmpB []byte
	tmpS []segment
	// The last character written and how often in a row, for collapsing.
	last rune
	run  int
}

// segment says where out[out:out+outLen] came from. When ident is set the
// bytes were copied one by one; otherwise they are one character that stands
// for the whole range.
type segment struct {
	out, outLen int32
	in, inLen   int32
	ident       bool
}

// Bytes returns the prepared text. It is valid until the next Prepare.
func (t *Text) Bytes() []byte { return t.out }

// Prepare replaces the text by the prepared form of src, which need not be
// valid UTF-8.
func (z *Tokenizer) Prepare(t *Text, src string) {
	t.out, t.segs, t.last, t.run = t.out[:0], t.segs[:0], -1, 0
	for i := 0; i < len(src); {
		if n := plainRun(src[i:], t.last, t.run); n > 0 {
			t.copy(src[i:i+n], i)
			t.last, t.run = rune(src[i+n-1]), 1
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(src[i:])
		if r == utf8.RuneError && n <= 1 {
			t.put(' ', i, n, false)
			i += n
			continue
		}
		kind, to, more := z.table.prepared(r)
		switch {
		case kind == prepDrop:
		case more != nil:
			for _, x := range more {
				t.put(x, i, n, false)
			}
		default:
			t.put(to, i, n, to == r)
		}
		i += n
	}
	if bytes.IndexByte(t.out, '[') >= 0 {
		t.breakSpecials()
	}
}

// plainRun returns how many bytes at the start of s can be copied as they are:
// ASCII letters and digits, and single other printable characters between
// them. It is the fast path; put decides everything else.
func plainRun(s string, last rune, run int) int {
	prev := byte(0)
	if last >= 0 && last < utf8.RuneSelf {
		prev = byte(last)
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch asciiKind[c] {
		case asciiAlnum:
		case asciiPunct, asciiSpace:
			if c == prev {
				return i // a run starts: put counts it
			}
		default:
			return i
		}
		prev = c
	}
	return len(s)
}

// copy appends src, found at byte pos of the original, unchanged.
func (t *Text) copy(src string, pos int) {
	at := len(t.out)
	t.out = append(t.out, src...)
	if k := len(t.segs) - 1; k >= 0 {
		if s := &t.segs[k]; s.ident && int(s.in+s.inLen) == pos {
			s.outLen += int32(len(src))
			s.inLen += int32(len(src))
			return
		}
	}
	t.segs = append(t.segs, segment{out: int32(at), outLen: int32(len(src)), in: int32(pos), inLen: int32(len(src)), ident: true})
}

// put appends one character that stands for n bytes at pos, or, where it only
// prolongs a run, adds these bytes to the character before.
func (t *Text) put(r rune, pos, n int, ident bool) {
	if r == t.last {
		limit := maxRun
		if r == ' ' {
			limit = 1
		}
		if t.run >= limit && (r == ' ' || !isAlnum(r)) {
			t.extend(pos + n)
			return
		}
		t.run++
	} else {
		t.last, t.run = r, 1
	}
	at := len(t.out)
	t.out = utf8.AppendRune(t.out, r)
	size := len(t.out) - at
	if ident && size == n {
		if k := len(t.segs) - 1; k >= 0 {
			if s := &t.segs[k]; s.ident && int(s.in+s.inLen) == pos {
				s.outLen += int32(n)
				s.inLen += int32(n)
				return
			}
		}
	}
	t.segs = append(t.segs, segment{out: int32(at), outLen: int32(size), in: int32(pos), inLen: int32(n), ident: ident && size == n})
}

// extend lets the last character reach to original byte end.
func (t *Text) extend(end int) {
	s := &t.segs[len(t.segs)-1]
	size := int32(utf8.RuneLen(t.last))
	if s.ident && s.outLen > size {
		s.outLen -= size
		s.inLen -= size
		in := s.in + s.inLen
		t.segs = append(t.segs, segment{out: s.out + s.outLen, outLen: size, in: in, inLen: int32(end) - in})
		return
	}
	s.ident = false
	s.inLen = int32(end) - s.in
}

// specials are the names that must not be read as special tokens.
var specials = [...]string{"CLS]", "SEP]", "PAD]", "UNK]", "MASK]"}

func specialAt(b []byte) bool {
	for _, s := range specials {
		if len(b) >= len(s) && string(b[:len(s)]) == s {
			return true
		}
	}
	return false
}

// breakSpecials puts a space behind the bracket of every literal special
// token. The space stands for no bytes of the original.
func (t *Text) breakSpecials() {
	first := -1
	for i := 0; ; i++ {
		j := bytes.IndexByte(t.out[i:], '[')
		if j < 0 {
			return
		}
		if i += j; specialAt(t.out[i+1:]) {
			first = i
			break
		}
	}
	out, segs := append(t.tmpB[:0], t.out[:first]...), t.tmpS[:0]
	done, k := first, 0 // bytes of t.out copied, segments copied
	shift := int32(0)
	for i := first; i < len(t.out); i++ {
		if t.out[i] != '[' || !specialAt(t.out[i+1:]) {
			continue
		}
		out = append(append(out, t.out[done:i+1]...), ' ')
		done = i + 1
		for ; k < len(t.segs) && int(t.segs[k].out+t.segs[k].outLen) <= done; k++ {
			s := t.segs[k]
			s.out += shift
			segs = append(segs, s)
		}
		var at int32 // original byte behind the bracket
		if k < len(t.segs) && int(t.segs[k].out) < done {
			s := &t.segs[k] // longer than a character, so it is identical: cut it
			n := int32(done) - s.out
			segs = append(segs, segment{out: s.out + shift, outLen: n, in: s.in, inLen: n, ident: true})
			*s = segment{out: s.out + n, outLen: s.outLen - n, in: s.in + n, inLen: s.inLen - n, ident: true}
			at = s.in
		} else {
			e := segs[len(segs)-1]
			at = e.in + e.inLen
		}
		segs = append(segs, segment{out: int32(done) + shift, outLen: 1, in: at})
		shift++
	}
	out = append(out, t.out[done:]...)
	for ; k < len(t.segs); k++ {
		s := t.segs[k]
		s.out += shift
		segs = append(segs, s)
	}
	t.out, t.tmpB = out, t.out
	t.segs, t.tmpS = segs, t.segs
}

// Original returns the range of original bytes that prepared bytes
// [start,end) came from. Both must be character bounds, start < end.
func (t *Text) Original(start, end int) (int, int) {
	a := t.at(start)
	b := t.at(end - 1)
	from, to := int(a.in), int(b.in+b.inLen)
	if a.ident {
		from += start - int(a.out)
	}
	if b.ident {
		to = int(b.in) + end - int(b.out)
	}
	return from, to
}

// at finds the segment that holds prepared byte i.
func (t *Text) at(i int) segment {
	lo, hi := 0, len(t.segs)
	for hi-lo > 1 {
		if m := int(uint(lo+hi) >> 1); int(t.segs[m].out) <= i {
			lo = m
		} else {
			hi = m
		}
	}
	return t.segs[lo]
}
