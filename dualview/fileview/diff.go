package fileview

import (
	"bytes"
	"sort"
	"unicode"
	"unicode/utf8"
)

// match says that a[a:a+n] equals b[b:b+n].
type match struct{ a, b, n int }

// matches aligns two versions of a file: what they have in common, in order.
// Lines that occur once in both anchor the alignment (patience diff); what lies
// between anchors is aligned by words. It is correct for any input, only less
// complete where that would cost too much: what is not matched counts as new.
func matches(a, b []byte) []match {
	var d differ
	d.lines(a, b, 0, 0)
	return d.out
}

type differ struct{ out []match }

func (d *differ) add(a, b, n int) {
	if n == 0 {
		return
	}
	if k := len(d.out); k > 0 {
		if l := &d.out[k-1]; l.a+l.n == a && l.b+l.n == b {
			l.n += n
			return
		}
	}
	d.out = append(d.out, match{a, b, n})
}

// lines aligns by lines. offA and offB are where a and b begin in their files.
func (d *differ) lines(a, b []byte, offA, offB int) {
	p := commonLines(a, b)
	d.add(offA, offB, p)
	a, b, offA, offB = a[p:], b[p:], offA+p, offB+p
	s := commonLinesBack(a, b)
	tailA, tailB := offA+len(a)-s, offB+len(b)-s
	a, b = a[:len(a)-s], b[:len(b)-s]
	la, lb := splitLines(a), splitLines(b)
	posA, posB := 0, 0 // in a and b
	for _, anchor := range anchors(la, lb) {
		ia, ib := anchor[0], anchor[1]
		startA, startB := la[ia].start, lb[ib].start
		if startA < posA || startB < posB {
			continue
		}
		d.words(a[posA:startA], b[posB:startB], offA+posA, offB+posB)
		n := len(la[ia].text)
		d.add(offA+startA, offB+startB, n)
		posA, posB = startA+n, startB+n
		// Lines that are not unique may follow an anchor.
		q := commonLines(a[posA:], b[posB:])
		d.add(offA+posA, offB+posB, q)
		posA, posB = posA+q, posB+q
	}
	d.words(a[posA:], b[posB:], offA+posA, offB+posB)
	d.add(tailA, tailB, s)
}

type line struct {
	text  []byte
	start int
}

func splitLines(s []byte) []line {
	var out []line
	for at := 0; at < len(s); {
		n := bytes.IndexByte(s[at:], '\n') + 1
		if n == 0 {
			n = len(s) - at
		}
		out = append(out, line{s[at : at+n], at})
		at += n
	}
	return out
}

// commonLines returns the length of the whole lines that a and b begin with.
func commonLines(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) && n == len(b) {
		return n
	}
	return bytes.LastIndexByte(a[:n], '\n') + 1
}

func commonLinesBack(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	if n == len(a) && n == len(b) {
		return n
	}
	// Cut to a line's beginning: right after a line end that both have.
	tail := a[len(a)-n:]
	if (n == len(a) || a[len(a)-n-1] == '\n') && (n == len(b) || b[len(b)-n-1] == '\n') {
		return n
	}
	i := bytes.IndexByte(tail, '\n')
	if i < 0 {
		return 0
	}
	return n - i - 1
}

// anchors returns the longest increasing sequence of lines that occur exactly
// once in each.
func anchors(a, b []line) [][2]int {
	type count struct{ na, nb, ia, ib int }
	counts := make(map[string]*count, len(a))
	for i, l := range a {
		c := counts[string(l.text)]
		if c == nil {
			c = new(count)
			counts[string(l.text)] = c
		}
		c.na++
		c.ia = i
	}
	for i, l := range b {
		if c := counts[string(l.text)]; c != nil {
			c.nb++
			c.ib = i
		}
	}
	var pairs [][2]int
	for i, l := range a {
		if c := counts[string(l.text)]; c.na == 1 && c.nb == 1 && len(bytes.TrimSpace(l.text)) > 0 {
			pairs = append(pairs, [2]int{i, c.ib})
		}
	}
	// Longest increasing subsequence by the second member.
	var tails []int // indices into pairs
	prev := make([]int, len(pairs))
	for i, p := range pairs {
		k := sort.Search(len(tails), func(k int) bool { return pairs[tails[k]][1] >= p[1] })
		prev[i] = -1
		if k > 0 {
			prev[i] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, i)
		} else {
			tails[k] = i
		}
	}
	out := make([][2]int, len(tails))
	if len(tails) > 0 {
		for k, i := len(tails)-1, tails[len(tails)-1]; k >= 0; k, i = k-1, prev[i] {
			out[k] = pairs[i]
		}
	}
	return out
}

// maxCells bounds the table of the word alignment.
const maxCells = 4 << 20

// words aligns by words where that is cheap enough, else by what both begin and
// end with.
func (d *differ) words(a, b []byte, offA, offB int) {
	p := 0
	for p < len(a) && p < len(b) && a[p] == b[p] {
		p++
	}
	s := 0
	for s < len(a)-p && s < len(b)-p && a[len(a)-1-s] == b[len(b)-1-s] {
		s++
	}
	d.add(offA, offB, p)
	ma, mb := a[p:len(a)-s], b[p:len(b)-s]
	wa, wb := splitWords(ma), splitWords(mb)
	if len(wa) > 0 && len(wb) > 0 && len(wa)*len(wb) <= maxCells {
		d.lcs(wa, wb, offA+p, offB+p)
	}
	d.add(offA+len(a)-s, offB+len(b)-s, s)
}

// splitWords cuts text into words, single other characters, and white space.
func splitWords(s []byte) []line {
	var out []line
	class := func(r rune) int {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 0
	}
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRune(s[at:])
		end, c := at+n, class(r)
		for c != 0 && end < len(s) {
			r, n := utf8.DecodeRune(s[end:])
			if class(r) != c {
				break
			}
			end += n
		}
		out = append(out, line{s[at:end], at})
		at = end
	}
	return out
}

// lcs adds the longest common subsequence of words. Single short words and
// white space between them are no evidence and are left out.
func (d *differ) lcs(a, b []line, offA, offB int) {
	w := len(b) + 1
	table := make([]uint16, (len(a)+1)*w)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			switch {
			case bytes.Equal(a[i].text, b[j].text):
				table[i*w+j] = table[(i+1)*w+j+1] + 1
			case table[(i+1)*w+j] >= table[i*w+j+1]:
				table[i*w+j] = table[(i+1)*w+j]
			default:
				table[i*w+j] = table[i*w+j+1]
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if bytes.Equal(a[i].text, b[j].text) {
			startA, startB, n := a[i].start, b[j].start, 0
			for i < len(a) && j < len(b) && bytes.Equal(a[i].text, b[j].text) {
				n += len(a[i].text)
				i, j = i+1, j+1
			}
			if n >= minEvidence {
				d.add(offA+startA, offB+startB, n)
			}
			continue
		}
		if table[(i+1)*w+j] >= table[i*w+j+1] {
			i++
		} else {
			j++
		}
	}
}

// minEvidence is how many bytes in a row have to be equal inside a changed line
// to count as the same bytes.
const minEvidence = 4
