package wordpiece

// trie holds the vocabulary, byte by byte, so that the longest piece at the
// start of a word is found in one walk, whatever the word is. The library's
// map of strings needs a walk for each length, which an attacker would choose.
//
// Transitions stand in one open hash table from (node, byte) to node.
type trie struct {
	keys []uint32 // node<<8 | byte, plus one; 0 is empty
	next []int32
	id   []int32 // of each node; -1 where no piece ends
	n    int     // transitions
}

// The two roots: pieces that start a word, and those that continue one.
const (
	first int32 = iota
	inner
)

func (t *trie) init(words int) {
	size := 1 << 12
	for size < words*8 {
		size <<= 1
	}
	t.keys, t.next = make([]uint32, size), make([]int32, size)
	t.id = append(make([]int32, 0, words*3), -1, -1)
}

func (t *trie) slot(node int32, c byte) (int, bool) {
	key := uint32(node)<<8 | uint32(c) + 1
	mask := len(t.keys) - 1
	for i := int(key*0x9E3779B1>>7) & mask; ; i = (i + 1) & mask {
		switch t.keys[i] {
		case key:
			return i, true
		case 0:
			return i, false
		}
	}
}

func (t *trie) add(root int32, word string, id int32) {
	node := root
	for i := range len(word) {
		s, ok := t.slot(node, word[i])
		if !ok {
			if t.n++; t.n*2 > len(t.keys) {
				t.grow()
				s, _ = t.slot(node, word[i])
			}
			t.keys[s] = uint32(node)<<8 | uint32(word[i]) + 1
			t.next[s] = int32(len(t.id))
			t.id = append(t.id, -1)
		}
		node = t.next[s]
	}
	t.id[node] = id
}

func (t *trie) grow() {
	keys, next := t.keys, t.next
	t.keys, t.next = make([]uint32, 2*len(keys)), make([]int32, 2*len(keys))
	for i, k := range keys {
		if k != 0 {
			s, _ := t.slot(int32((k-1)>>8), byte(k-1))
			t.keys[s], t.next[s] = k, next[i]
		}
	}
}

// longest returns the id and length of the longest piece that word starts
// with, or length 0.
func (t *trie) longest(root int32, word []byte) (id int32, n int) {
	node := root
	for i, c := range word {
		s, ok := t.slot(node, c)
		if !ok {
			break
		}
		node = t.next[s]
		if x := t.id[node]; x >= 0 {
			id, n = x, i+1
		}
	}
	return id, n
}
