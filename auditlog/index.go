package auditlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"

	"example.org/auditd/internal/durable"
	"golang.org/x/mod/sumdb/tlog"
)

// The index of a finished segment, all numbers big-endian and eight bytes wide:
//
//	"auditix1", count, bytes of the segment, chain hash after it (32 bytes)
//	SHA-256 of what follows (32 bytes), of what stands before (32 bytes)
//	count offsets, count pairs of id hash and position, sorted
//
// It is a cache. What is found through it is checked against the record itself,
// and an index that does not fit its segment is made again.
const (
	indexMagic  = "auditix1"
	indexHeader = 8 + 8 + 8 + 32 + 32 + 32
)

type idEntry struct {
	hash uint64
	pos  int64 // within the segment
}

func hashID(id []byte) uint64 {
	if len(id) == 0 {
		return 0
	}
	sum := sha256.Sum256(id)
	return binary.BigEndian.Uint64(sum[:8])
}

// closedSegment is a finished segment.
type closedSegment struct {
	first, count, bytes int64
	hash                tlog.Hash // chain hash after its last record
}

func writeIndex(dir string, s *scan) (*closedSegment, error) {
	ids := slices.Clone(s.ids)
	slices.SortFunc(ids, func(a, b idEntry) int {
		if a.hash != b.hash {
			if a.hash < b.hash {
				return -1
			}
			return 1
		}
		return int(a.pos - b.pos)
	})
	var body []byte
	for _, o := range s.offsets {
		body = binary.BigEndian.AppendUint64(body, uint64(o))
	}
	for _, e := range ids {
		body = binary.BigEndian.AppendUint64(body, e.hash)
		body = binary.BigEndian.AppendUint64(body, uint64(e.pos))
	}
	c := &closedSegment{first: s.first, count: int64(len(s.offsets)), bytes: s.bytes, hash: s.end.hash}
	out := []byte(indexMagic)
	out = binary.BigEndian.AppendUint64(out, uint64(c.count))
	out = binary.BigEndian.AppendUint64(out, uint64(c.bytes))
	out = append(out, c.hash[:]...)
	sum := sha256.Sum256(body)
	out = append(out, sum[:]...)
	sum = sha256.Sum256(out)
	out = append(append(out, sum[:]...), body...)
	if err := durable.WriteFile(indexPath(dir, s.first), out, 0o600); err != nil {
		return nil, fmt.Errorf("write a segment's index: %w", err)
	}
	return c, nil
}

var errIndex = errors.New("the index does not fit its segment")

// readIndex checks the index of a segment and returns what Open needs of it.
func readIndex(dir string, first int64) (*closedSegment, error) {
	b, err := os.ReadFile(indexPath(dir, first))
	if err != nil {
		return nil, fmt.Errorf("read a segment's index: %w", err)
	}
	if len(b) < indexHeader || string(b[:8]) != indexMagic {
		return nil, errIndex
	}
	body, header := sha256.Sum256(b[indexHeader:]), sha256.Sum256(b[:indexHeader-32])
	if !bytes.Equal(header[:], b[indexHeader-32:indexHeader]) || !bytes.Equal(body[:], b[56:88]) {
		return nil, errIndex
	}
	c := &closedSegment{first: first, count: int64(binary.BigEndian.Uint64(b[8:])), bytes: int64(binary.BigEndian.Uint64(b[16:]))}
	copy(c.hash[:], b[24:56])
	seg, err := os.Stat(segmentPath(dir, first))
	if err != nil {
		return nil, fmt.Errorf("find a segment: %w", err)
	}
	if c.count <= 0 || c.count > maxLine*1024 || int64(len(b)) != indexHeader+24*c.count || seg.Size() != c.bytes {
		return nil, errIndex
	}
	return c, nil
}

// offset returns where the record at a position of the segment begins.
func (c *closedSegment) offset(f *os.File, pos int64) (int64, error) {
	var b [8]byte
	if _, err := f.ReadAt(b[:], indexHeader+8*pos); err != nil {
		return 0, fmt.Errorf("read a segment's index: %w", err)
	}
	return int64(binary.BigEndian.Uint64(b[:])), nil
}

// find returns the positions whose id has the hash, last first.
func (c *closedSegment) find(f *os.File, hash uint64) (positions []int64, err error) {
	var b [16]byte
	at := func(i int64) uint64 {
		if _, e := f.ReadAt(b[:], indexHeader+8*c.count+16*i); e != nil && err == nil {
			err = fmt.Errorf("read a segment's index: %w", e)
		}
		return binary.BigEndian.Uint64(b[:])
	}
	i := int64(sort.Search(int(c.count), func(i int) bool { return at(int64(i)) >= hash }))
	for ; err == nil && i < c.count && at(i) == hash; i++ {
		positions = append(positions, int64(binary.BigEndian.Uint64(b[8:])))
	}
	slices.Reverse(positions)
	return positions, err
}
