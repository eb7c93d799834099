package dualview

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"syscall"
)

// entry says where a kept shingle occurs: in which content, at which offset of
// its folded text.
type entry struct {
	key     uint64
	content uint32 // trustedContent for text that was trusted when it was first seen
	off     uint32
}

const (
	trustedContent = 0
	// anywhere in off: the shingle occurs in the content too often to list all
	// places, so that it counts as found without comparing what is around it.
	anywhere = ^uint32(0)

	entrySize    = 16
	segmentMagic = "adseg01\n"
	bucketBits   = 16 // buckets of a segment: by the first bits of the key
	headerSize   = 8 + 8 + 8 + 4
)

// segment is an immutable sorted file of entries. The table of where each
// bucket starts is in memory (256 KiB), the entries are not.
//
//	magic[8] entries[8] covers[8] crc32 of the table[4] table[4*(2^16+1)] entries[16*n]
type segment struct {
	path   string
	data   []byte // the file, mapped; touched only under the index's lock
	n      int
	covers int64 // contents up to this id are in this or an earlier segment
	starts []uint32
}

// writeSegment writes entries, which next returns in ascending order of keys.
func writeSegment(path string, n int, covers int64, next func() (entry, bool, error)) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	table := make([]byte, 4*(1<<bucketBits+1))
	if _, err := f.Seek(int64(headerSize+len(table)), 0); err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	bucket, count := 0, 0
	var last uint64
	for {
		e, ok, err := next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if e.key < last {
			return errors.New("entries are out of order")
		}
		last = e.key
		for b := int(e.key >> (64 - bucketBits)); bucket < b; bucket++ {
			binary.LittleEndian.PutUint32(table[4*(bucket+1):], uint32(count))
		}
		var buf [entrySize]byte
		binary.LittleEndian.PutUint64(buf[0:], e.key)
		binary.LittleEndian.PutUint32(buf[8:], e.content)
		binary.LittleEndian.PutUint32(buf[12:], e.off)
		if _, err := w.Write(buf[:]); err != nil {
			return err
		}
		count++
	}
	if count != n {
		return fmt.Errorf("%d entries instead of %d", count, n)
	}
	for ; bucket < 1<<bucketBits; bucket++ {
		binary.LittleEndian.PutUint32(table[4*(bucket+1):], uint32(count))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	header := append([]byte(segmentMagic), make([]byte, 20)...)
	binary.LittleEndian.PutUint64(header[8:], uint64(n))
	binary.LittleEndian.PutUint64(header[16:], uint64(covers))
	binary.LittleEndian.PutUint32(header[24:], crc32.ChecksumIEEE(table))
	if _, err := f.WriteAt(append(header, table...), 0); err != nil {
		return err
	}
	// What a segment covers is not looked at again, so it has to be on the
	// disk before it counts.
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

var errSegment = errors.New("not a whole segment of the content index")

func openSegment(path string) (*segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // a mapping does not need it
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	s := &segment{path: path}
	if st.Size() < headerSize+4*(1<<bucketBits+1) {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), errSegment)
	}
	if s.data, err = syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ, syscall.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map a segment of the content index: %w", err)
	}
	if err := s.readHeader(); err != nil {
		s.close()
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return s, nil
}

func (s *segment) close() error { return syscall.Munmap(s.data) }

func (s *segment) readHeader() error {
	table := s.data[headerSize : headerSize+4*(1<<bucketBits+1)]
	n := binary.LittleEndian.Uint64(s.data[8:])
	s.covers = int64(binary.LittleEndian.Uint64(s.data[16:]))
	if string(s.data[:8]) != segmentMagic || binary.LittleEndian.Uint32(s.data[24:]) != crc32.ChecksumIEEE(table) ||
		n > 1<<32-1 || int64(len(s.data)) != int64(headerSize+len(table))+int64(n)*entrySize {
		return errSegment
	}
	s.n = int(n)
	s.starts = make([]uint32, 1<<bucketBits+1)
	for i := range s.starts {
		s.starts[i] = binary.LittleEndian.Uint32(table[4*i:])
		if i > 0 && s.starts[i] < s.starts[i-1] || int(s.starts[i]) > s.n {
			return errSegment
		}
	}
	return nil
}

// entry returns entry i.
func (s *segment) entry(i uint32) entry {
	b := s.data[headerSize+4*(1<<bucketBits+1)+int(i)*entrySize:]
	return entry{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])}
}

// find appends to dst the entries with this key, until dst holds limit of them.
func (s *segment) find(dst []entry, key uint64, limit int) []entry {
	b := key >> (64 - bucketBits)
	from, to := s.starts[b], s.starts[b+1]
	for from < to { // the first entry that is not less
		if mid := from + (to-from)/2; s.entry(mid).key < key {
			from = mid + 1
		} else {
			to = mid
		}
	}
	for end := s.starts[b+1]; from < end && len(dst) < limit; from++ {
		e := s.entry(from)
		if e.key != key {
			break
		}
		dst = append(dst, e)
	}
	return dst
}

// reader returns the entries one by one, in order.
func (s *segment) reader() func() (entry, bool, error) {
	i := uint32(0)
	return func() (entry, bool, error) {
		if int(i) == s.n {
			return entry{}, false, nil
		}
		i++
		return s.entry(i - 1), true, nil
	}
}
