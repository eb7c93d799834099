package precheck

import "strings"

// view is another reading of a folded text, with the way back.
type view struct {
	name string
	text string
	from []int32 // byte of the view -> byte of the folded text
	diff []bool  // byte of the view differs, or something in front of it was dropped
}

func (v *view) at(i int) int { return int(v.from[i]) }

func (v *view) changed(start, end int) bool {
	for i := start; i < end; i++ {
		if v.diff[i] {
			return true
		}
	}
	return false
}

type viewBuilder struct {
	view
	b []byte
}

func (w *viewBuilder) add(c byte, at int, diff bool) {
	w.b = append(w.b, c)
	w.from = append(w.from, int32(at))
	w.diff = append(w.diff, diff)
}

func (w *viewBuilder) done(name string) *view {
	w.name, w.text = name, string(w.b)
	return &w.view
}

func newView(n int) *viewBuilder {
	return &viewBuilder{b: make([]byte, 0, n), view: view{from: make([]int32, 0, n), diff: make([]bool, 0, n)}}
}

// maxTag bounds a tag or comment inside a word: longer ones split no word that
// a reader would put together.
const maxTag = 256

// withoutTags drops tags and comments that split words: ig<b></b>nore. It
// returns nil when there are none.
func withoutTags(s string) *view {
	split := false
	for i := 0; ; {
		j := strings.IndexByte(s[i:], '<')
		if j < 0 {
			break
		}
		i += j
		if n := tag(s[i:]); n > 0 && i > 0 && wordByte(s[i-1]) {
			e := i + n
			for e < len(s) && s[e] == '<' {
				if n = tag(s[e:]); n == 0 {
					break
				}
				e += n
			}
			if e < len(s) && wordByte(s[e]) {
				split = true
				break
			}
			i = e
			continue
		}
		i++
	}
	if !split {
		return nil
	}
	v := newView(len(s))
	dropped := false
	for i := 0; i < len(s); i++ {
		if s[i] == '<' {
			if n := tag(s[i:]); n > 0 {
				i += n - 1
				dropped = true
				continue
			}
		}
		v.add(s[i], i, dropped)
		dropped = false
	}
	return v.done("html-tags")
}

// tag returns the length of the tag or comment at the start of s, or 0.
func tag(s string) int {
	if len(s) < 3 {
		return 0
	}
	s = s[:min(len(s), maxTag)]
	if strings.HasPrefix(s, "<!--") {
		if j := strings.Index(s, "-->"); j > 0 {
			return j + 3
		}
		return 0
	}
	if c := s[1]; c != '/' && c != '!' && (c < 'a' || c > 'z') {
		return 0
	}
	if j := strings.IndexByte(s, '>'); j > 0 && strings.IndexByte(s[1:j], '<') < 0 {
		return j + 1
	}
	return 0
}

// leetLetters gives the letter that a digit or sign stands for in a word.
var leetLetters = [256]byte{'0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '@': 'a', '$': 's', '!': 'i', '|': 'l'}

// leet reads digits and signs inside words as letters: 1gn0r3. It returns nil
// unless at least two words mix both, as version numbers and names do not.
func leet(s string) *view {
	words := 0
	for i := 0; i < len(s) && words < 2; {
		letters, digits := 0, 0
		start := i
		for i < len(s) && (wordByte(s[i]) && s[i] != '_' || leetLetters[s[i]] != 0) {
			if leetLetters[s[i]] != 0 {
				digits++
			} else {
				letters++
			}
			i++
		}
		if n := i - start; n >= 3 && n <= 16 && letters > 0 && digits >= 1 && inner(s[start:i]) {
			words++
		}
		if i == start {
			i++
		}
	}
	if words < 2 {
		return nil
	}
	v := newView(len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if l := leetLetters[c]; l != 0 && (i > 0 && letter(s[i-1]) || i+1 < len(s) && letter(s[i+1]) || i > 0 && i+1 < len(s) && leetLetters[s[i-1]] != 0 && leetLetters[s[i+1]] != 0) {
			v.add(l, i, true)
			continue
		}
		v.add(c, i, false)
	}
	return v.done("leetspeak")
}

// inner reports whether a sign stands in front of a letter: "h3llo" and not
// "file12".
func inner(w string) bool {
	for i := 0; i+1 < len(w); i++ {
		if leetLetters[w[i]] != 0 && letter(w[i+1]) {
			return true
		}
	}
	return false
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// spaced joins letters that are written apart: i g n o r e, i.g.n.o.r.e. Where
// the words were is lost, so the rules see them with every reading of blanks
// that English needs: the view keeps a blank where two separators stood.
func spaced(s string) *view {
	const shortest = 12 // letters; a shorter run is an enumeration
	var v *viewBuilder
	for i := 0; i+2*shortest < len(s); i++ {
		if !letter(s[i]) || i > 0 && wordByte(s[i-1]) {
			continue
		}
		sep := s[i+1]
		if sep != ' ' && sep != '.' && sep != '-' && sep != '_' && sep != '*' && sep != '|' {
			continue
		}
		j, n := i, 0
		for j < len(s) && letter(s[j]) && (j+1 >= len(s) || !wordByte(s[j+1]) || s[j+1] == '_' && sep == '_') {
			n++
			j++
			for k := 0; k < 4 && j < len(s) && (s[j] == sep || s[j] == ' '); k++ {
				j++
			}
		}
		if n >= shortest {
			if v == nil {
				v = newView(64)
			}
			join(v, s, i, j, sep)
		}
		i = max(i, j-1)
	}
	if v == nil {
		return nil
	}
	return v.done("spaced-letters")
}

// join writes the letters of s[i:j] and a blank wherever more than one
// separator stands between two, or where a known word ends.
func join(v *viewBuilder, s string, i, j int, sep byte) {
	v.add('\n', i, false)
	run := 0
	start := len(v.b)
	for ; i < j; i++ {
		if s[i] == sep || s[i] == ' ' {
			run++
			if run == 2 {
				v.add(' ', i, true)
			}
			continue
		}
		run = 0
		v.add(s[i], i, true)
	}
	if strings.IndexByte(string(v.b[start:]), ' ') < 0 {
		cut(v, start)
	}
	v.add('\n', j-1, false)
}

// cutWords are the words at which a run of letters without blanks is cut, so
// that the rules' expressions find words in it.
var cutWords = []string{"instructions", "instruction", "previous", "disregard", "override", "guidelines", "system", "prompt", "ignore", "forget", "reveal", "rules", "prior", "above", "your", "the", "all", "any", "and"}

func cut(v *viewBuilder, start int) {
	text := string(v.b[start:])
	from := append([]int32(nil), v.from[start:]...)
	v.b, v.from, v.diff = v.b[:start], v.from[:start], v.diff[:start]
	for i := 0; i < len(text); {
		n := 1
		for _, w := range cutWords {
			if strings.HasPrefix(text[i:], w) {
				n = len(w)
				break
			}
		}
		if n > 1 {
			v.add(' ', int(from[i]), true)
		}
		for j := i; j < i+n; j++ {
			v.add(text[j], int(from[j]), true)
		}
		if i += n; n > 1 && i < len(text) {
			v.add(' ', int(from[i-1]), true)
		}
	}
}
