// Package keyword finds many literal words in a text in one pass. It is the
// prefilter in front of every regular expression of the precheck: an
// expression runs only where one of its words stands, so the cost of a rule
// that does not match is nothing.
package keyword

import "fmt"

// Set is an Aho-Corasick automaton over ASCII-case-insensitive words. It is
// immutable and may be used concurrently.
type Set struct {
	class   [256]uint16 // byte -> column; 0 is "in no word"
	columns int
	next    []int32 // state*columns + column -> state
	outputs [][]int32
	lengths []int32
	// firstOutput is the first state that ends a word: states are numbered so
	// that one comparison in the hot loop tells whether anything ended.
	firstOutput int32
}

// New builds the automaton. The ids that Scan reports are indices into words.
// Empty words are an error: they would match everywhere.
func New(words []string) (*Set, error) {
	s := &Set{columns: 1}
	for i, w := range words {
		if w == "" {
			return nil, fmt.Errorf("keyword %d is empty", i)
		}
		s.lengths = append(s.lengths, int32(len(w)))
		for j := 0; j < len(w); j++ {
			b := lower(w[j])
			if s.class[b] == 0 {
				s.class[b] = uint16(s.columns)
				s.columns++
			}
		}
	}
	for b := 'A'; b <= 'Z'; b++ {
		s.class[b] = s.class[b+'a'-'A']
	}
	s.build(words)
	return s, nil
}

func (s *Set) build(words []string) {
	type node struct {
		child []int32
		out   []int32
		fail  int32
	}
	newNode := func() node {
		c := make([]int32, s.columns)
		for i := range c {
			c[i] = -1
		}
		return node{child: c}
	}
	nodes := []node{newNode()}
	for id, w := range words {
		at := int32(0)
		for j := 0; j < len(w); j++ {
			c := s.class[w[j]]
			if nodes[at].child[c] < 0 {
				nodes = append(nodes, newNode())
				nodes[at].child[c] = int32(len(nodes) - 1)
			}
			at = nodes[at].child[c]
		}
		nodes[at].out = append(nodes[at].out, int32(id))
	}
	// Breadth first: a node's failure state is complete before its children's.
	queue := make([]int32, 0, len(nodes))
	for c, child := range nodes[0].child {
		if child < 0 {
			nodes[0].child[c] = 0
			continue
		}
		queue = append(queue, child)
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		n := &nodes[at]
		n.out = append(n.out, nodes[n.fail].out...)
		for c, child := range n.child {
			if child < 0 {
				n.child[c] = nodes[n.fail].child[c]
				continue
			}
			nodes[child].fail = nodes[n.fail].child[c]
			queue = append(queue, child)
		}
	}
	s.number(len(nodes), func(i int) ([]int32, []int32) { return nodes[i].child, nodes[i].out })
}

// number lays the states out with those that end a word last.
func (s *Set) number(n int, node func(int) (child, out []int32)) {
	order := make([]int32, n)
	k := int32(0)
	for i := range n {
		if _, out := node(i); len(out) == 0 {
			order[i] = k
			k++
		}
	}
	s.firstOutput = k
	for i := range n {
		if _, out := node(i); len(out) > 0 {
			order[i] = k
			k++
		}
	}
	s.next = make([]int32, n*s.columns)
	s.outputs = make([][]int32, n-int(s.firstOutput))
	for i := range n {
		child, out := node(i)
		at := order[i]
		for c, to := range child {
			s.next[int(at)*s.columns+c] = order[to]
		}
		if len(out) > 0 {
			s.outputs[at-s.firstOutput] = out
		}
	}
}

// Scan calls hit for every occurrence of every word in text, in the order in
// which the occurrences end. Time is linear in the text and the hits.
func (s *Set) Scan(text string, hit func(id, start, end int)) {
	state := int32(0)
	for i := 0; i < len(text); i++ {
		state = s.next[int(state)*s.columns+int(s.class[text[i]])]
		if state < s.firstOutput {
			continue
		}
		for _, id := range s.outputs[state-s.firstOutput] {
			hit(int(id), i+1-int(s.lengths[id]), i+1)
		}
	}
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
