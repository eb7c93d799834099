package dualview

import "math/bits"

// filter is a blocked Bloom filter: each key lives in one cache line, so a look
// costs one miss. It never says no to a key that was added.
type filter struct {
	words []uint64 // 8 to a block
	limit int      // keys from which on it should be made larger
}

const (
	filterMin  = 4 << 20   // bytes; enough for 3 million keys
	trustedMin = 256 << 10 // bytes, of the filter for trusted text alone
	// filterMax is enough for 1 GiB of indexed text; with the smallest filter
	// for trusted text it stays below 64 MiB.
	filterMax = 63 << 20
	// bitsPerKey gives about one false yes in a hundred.
	bitsPerKey   = 10
	filterProbes = 6
)

func newFilter(keys, least, most int) *filter {
	size := least
	for size < most && size*8/bitsPerKey < keys {
		size = min(2*size, most)
	}
	f := &filter{words: make([]uint64, size/8), limit: size * 8 / bitsPerKey}
	if size == most {
		f.limit = int(^uint(0) >> 1) // it may fill up, but does not grow
	}
	return f
}

func (f *filter) block(key uint64) []uint64 {
	hi, _ := bits.Mul64(key, uint64(len(f.words)/8))
	return f.words[hi*8 : hi*8+8 : hi*8+8]
}

func (f *filter) add(key uint64) {
	b := f.block(key)
	for p, k := 0, mix(key); p < filterProbes; p, k = p+1, k>>9 {
		b[k>>6&7] |= 1 << (k & 63)
	}
}

// addNew adds key and reports whether it had certainly not been added before.
func (f *filter) addNew(key uint64) bool {
	b, fresh := f.block(key), false
	for p, k := 0, mix(key); p < filterProbes; p, k = p+1, k>>9 {
		w, bit := &b[k>>6&7], uint64(1)<<(k&63)
		fresh = fresh || *w&bit == 0
		*w |= bit
	}
	return fresh
}

func (f *filter) has(key uint64) bool {
	b := f.block(key)
	for p, k := 0, mix(key); p < filterProbes; p, k = p+1, k>>9 {
		if b[k>>6&7]&(1<<(k&63)) == 0 {
			return false
		}
	}
	return true
}
