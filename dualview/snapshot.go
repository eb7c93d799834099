package dualview

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
)

// The filters are written when the index is closed, and are good for exactly the
// segments that there were: so that a start need not read all entries. They are
// taken away when they are read, so that after a crash the filters are made
// from the entries again.
const (
	snapshotName  = "filters"
	snapshotMagic = "adflt01\n"
)

// snapshotKey names a set of segments.
func (x *index) snapshotKey() []byte {
	key := []byte(snapshotMagic)
	for _, s := range x.segments {
		key = append(append(key, filepath.Base(s.path)...), '\n')
		key = binary.LittleEndian.AppendUint64(key, uint64(s.n))
	}
	return key
}

func (x *index) saveSnapshot() error {
	out := x.snapshotKey()
	out = binary.LittleEndian.AppendUint64(out, uint64(x.trustedKeys))
	for _, f := range []*filter{x.filter, x.trusted} {
		out = binary.LittleEndian.AppendUint64(out, uint64(len(f.words)))
		for _, w := range f.words {
			out = binary.LittleEndian.AppendUint64(out, w)
		}
	}
	out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	return writePrivate(filepath.Join(x.dir, snapshotName), out, true)
}

// loadSnapshot reports whether it has set the filters.
func (x *index) loadSnapshot() bool {
	path := filepath.Join(x.dir, snapshotName)
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	if os.Remove(path) != nil {
		return false // it would be there after a crash, and be wrong
	}
	key := x.snapshotKey()
	if len(data) < len(key)+8+4 || string(data[:len(key)]) != string(key) {
		return false
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if crc32.ChecksumIEEE(body) != sum {
		return false
	}
	body = body[len(key):]
	trustedKeys := binary.LittleEndian.Uint64(body)
	body = body[8:]
	var filters []*filter
	for _, least := range []int{filterMin, trustedMin} {
		if len(body) < 8 {
			return false
		}
		n := binary.LittleEndian.Uint64(body)
		body = body[8:]
		if n == 0 || n%8 != 0 || n > uint64(len(body))/8 {
			return false
		}
		f := &filter{words: make([]uint64, n), limit: int(n) * 64 / bitsPerKey}
		if int(n)*8 >= filterMax {
			f.limit = int(^uint(0) >> 1)
		}
		if int(n)*8 < least {
			return false
		}
		for i := range f.words {
			f.words[i] = binary.LittleEndian.Uint64(body[8*i:])
		}
		body = body[8*n:]
		filters = append(filters, f)
	}
	x.filter, x.trusted, x.trustedKeys = filters[0], filters[1], int(trustedKeys)
	return len(body) == 0
}
