package wordpiece

import "unicode/utf8"

// Tokens are ids and where each stands in the prepared text. Its buffers, and
// those that a word is folded in, are reused.
type Tokens struct {
	IDs        []int32
	Start, End []int32 // prepared bytes, on character bounds

	word []byte  // the current word, folded
	from []int32 // for each byte of word: the prepared range of its character
	to   []int32
}

// Reset empties t.
func (t *Tokens) Reset() { t.IDs, t.Start, t.End = t.IDs[:0], t.Start[:0], t.End[:0] }

func (t *Tokens) add(id, start, end int32) {
	t.IDs = append(t.IDs, id)
	t.Start = append(t.Start, start)
	t.End = append(t.End, end)
}

// Append tokenises prepared text.
func (z *Tokenizer) Append(t *Tokens, text []byte) {
	for i := 0; i < len(text); {
		switch c := text[i]; asciiKind[c] {
		case asciiSpace:
			i++
			continue
		case asciiPunct:
			z.piece(t, text[i:i+1], int32(i))
			i++
			continue
		case asciiAlnum:
			// The common word: ASCII from end to end.
			j := i + 1
			for j < len(text) && asciiKind[text[j]] == asciiAlnum {
				j++
			}
			if j == len(text) || text[j] < utf8.RuneSelf {
				z.asciiWord(t, text, i, j)
				i = j
				continue
			}
		}
		i = z.word(t, text, i)
	}
}

// piece adds the one-character ASCII word at prepared byte at.
func (z *Tokenizer) piece(t *Tokens, b []byte, at int32) {
	id, n := z.trie.longest(first, b)
	if n == 0 {
		id = z.Special.Unk
	}
	t.add(id, at, at+1)
}

func (z *Tokenizer) asciiWord(t *Tokens, text []byte, i, j int) {
	if j-i > z.maxWord {
		t.add(z.Special.Unk, int32(i), int32(j))
		return
	}
	w := t.word[:0]
	for _, c := range text[i:j] {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		w = append(w, c)
	}
	t.word = w
	mark, root := len(t.IDs), first
	for k := 0; k < len(w); root = inner {
		id, n := z.trie.longest(root, w[k:])
		if n == 0 {
			t.truncate(mark)
			t.add(z.Special.Unk, int32(i), int32(j))
			return
		}
		t.add(id, int32(i+k), int32(i+k+n))
		k += n
	}
}

func (t *Tokens) truncate(n int) { t.IDs, t.Start, t.End = t.IDs[:n], t.Start[:n], t.End[:n] }

// word folds and cuts the word at i, which holds other than ASCII letters and
// digits, and returns where it ends. Characters that fold to a word of their
// own end the word before them.
func (z *Tokenizer) word(t *Tokens, text []byte, i int) int {
	t.word, t.from, t.to = t.word[:0], t.from[:0], t.to[:0]
	chars := 0
	for i < len(text) {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(text[i:])
		}
		kind, to, more := z.table.folded(r)
		switch kind {
		case foldDrop:
			i += n
			continue
		case foldSpace:
			z.flush(t, chars)
			return i + n
		case foldAlone:
			z.flush(t, chars)
			t.word, t.from, t.to = t.word[:0], t.from[:0], t.to[:0]
			z.flush(t, t.push(to, more, i, n))
			return i + n
		}
		chars += t.push(to, more, i, n)
		i += n
	}
	z.flush(t, chars)
	return i
}

// push appends what the character at prepared bytes [i,i+n) folds to.
func (t *Tokens) push(to rune, more []rune, i, n int) int {
	mark := len(t.word)
	count := 1
	if more == nil {
		t.word = utf8.AppendRune(t.word, to)
	} else {
		count = len(more)
		for _, x := range more {
			t.word = utf8.AppendRune(t.word, x)
		}
	}
	for range len(t.word) - mark {
		t.from = append(t.from, int32(i))
		t.to = append(t.to, int32(i+n))
	}
	return count
}

// flush cuts the folded word into pieces.
func (z *Tokenizer) flush(t *Tokens, chars int) {
	w := t.word
	if len(w) == 0 {
		return
	}
	if chars > z.maxWord {
		t.add(z.Special.Unk, t.from[0], t.to[len(w)-1])
		return
	}
	mark, root := len(t.IDs), first
	for k := 0; k < len(w); root = inner {
		id, n := z.trie.longest(root, w[k:])
		if n == 0 {
			t.truncate(mark)
			t.add(z.Special.Unk, t.from[0], t.to[len(w)-1])
			return
		}
		t.add(id, t.from[k], t.to[k+n-1])
		k += n
	}
}
