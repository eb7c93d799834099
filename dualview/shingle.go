package dualview

import (
	"encoding/binary"
	"math/bits"
)

// Winnowing (Schleimer, Wilkerson and Aiken, 2003): of every window of
// consecutive shingles the one with the least hash is kept. Two texts that share
// shingleSize+windowSize-1 = MinMatch folded bytes share a kept shingle,
// wherever in them these bytes lie; one in about 21 shingles is kept.
const (
	shingleSize = 24
	windowSize  = 41
	// MinMatch is the number of folded bytes from which a returning value is
	// certain to be recognised.
	MinMatch = shingleSize + windowSize - 1
)

// shingle is a kept shingle: its key and its offset in the folded text.
type shingle struct {
	key uint64
	off uint32
}

// shingler computes the kept shingles. Its hash is keyed, so that nobody
// outside can prepare texts that collide or that dodge selection. It is
// immutable.
type shingler struct{ in, out [256]uint64 }

func newShingler(key []byte) *shingler {
	s := new(shingler)
	for i := range s.in {
		k := subkey(key, "shingle "+string(rune(i)))
		s.in[i] = binary.LittleEndian.Uint64(k)
		s.out[i] = bits.RotateLeft64(s.in[i], shingleSize-1) // what a byte has become when it leaves
	}
	return s
}

// mix is bijective and spreads what the rolling hash leaves alike (the
// finaliser of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// keep appends the kept shingles of a folded text to dst. Of a text too short
// for a window, every shingle is kept.
func (s *shingler) keep(dst []shingle, text []byte) []shingle {
	n := len(text) - shingleSize + 1
	if n <= 0 {
		return dst
	}
	var h uint64
	for _, c := range text[:shingleSize-1] {
		h = bits.RotateLeft64(h, 1) ^ s.in[c]
	}
	var ring [64]uint64 // at least windowSize, a power of two
	least, at, last := ^uint64(0), -1, -1
	short := n < windowSize
	for i := range n {
		h = bits.RotateLeft64(h, 1) ^ s.in[text[i+shingleSize-1]]
		v := h * 0x9e3779b97f4a7c15 // the order; its kept minima are mixed again
		h ^= s.out[text[i]]
		if short {
			dst = append(dst, shingle{mix(v), uint32(i)})
			continue
		}
		ring[i&63] = v
		switch {
		case v < least:
			least, at = v, i
		case i-at >= windowSize:
			least, at = v, i
			for j := i - 1; j > i-windowSize; j-- {
				if ring[j&63] < least {
					least, at = ring[j&63], j
				}
			}
		}
		if i >= windowSize-1 && at != last {
			dst = append(dst, shingle{mix(least), uint32(at)})
			last = at
		}
	}
	return dst
}
