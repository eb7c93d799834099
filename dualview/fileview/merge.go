package fileview

import "bytes"

// chunk is a part of a merged file: bytes of the person's version or of the
// agent's.
type chunk struct {
	agent      bool
	start, end int
}

// merge3 merges two changes of base. It reports false when both changed the
// same place differently: then nothing may be written.
func merge3(base, human, agent []byte) ([]chunk, bool) {
	mh, ma := matches(base, human), matches(base, agent)
	var out []chunk
	add := func(fromAgent bool, start, end int) {
		if start < end {
			out = append(out, chunk{fromAgent, start, end})
		}
	}
	pb, ph, pa := 0, 0, 0 // how far base, human and agent have been merged
	for {
		// The next stretch of base, at least one byte or its end, that both
		// still have.
		sb, sh, sa, n := nextStable(mh, ma, pb, len(base), len(human), len(agent), ph, pa)
		b, h, a := base[pb:sb], human[ph:sh], agent[pa:sa]
		switch {
		case bytes.Equal(h, b):
			add(true, pa, sa)
		case bytes.Equal(a, b):
			add(false, ph, sh)
		case bytes.Equal(h, a):
			add(true, pa, sa) // both wrote the same: the agent's side knows more of its provenance
		default:
			return nil, false
		}
		if n == 0 {
			return out, true
		}
		// What nobody changed comes from the agent's version too: it knows the
		// provenance, and the bytes are equal.
		add(true, sa, sa+n)
		pb, ph, pa = sb+n, sh+n, sa+n
	}
}

// nextStable finds the first stretch at or after pb that is matched in both.
// Without one it returns the ends and n = 0.
func nextStable(mh, ma []match, pb, lenB, lenH, lenA, ph, pa int) (sb, sh, sa, n int) {
	i, j := 0, 0
	for i < len(mh) && j < len(ma) {
		x, y := mh[i], ma[j]
		start := max(x.a, y.a, pb)
		end := min(x.a+x.n, y.a+y.n)
		h, a := x.b+start-x.a, y.b+start-y.a
		if start < end && h >= ph && a >= pa {
			return start, h, a, end - start
		}
		if x.a+x.n <= y.a+y.n {
			i++
		} else {
			j++
		}
	}
	return lenB, lenH, lenA, 0
}
