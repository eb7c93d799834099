package dualview

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
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
	file   *os.File
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
	s := &segment{path: path, file: f}
	if err := s.readHeader(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return s, nil
}

func (s *segment) readHeader() error {
	header := make([]byte, headerSize+4*(1<<bucketBits+1))
	if _, err := s.file.ReadAt(header, 0); err != nil {
		return err
	}
	table := header[headerSize:]
	n := binary.LittleEndian.Uint64(header[8:])
	s.covers = int64(binary.LittleEndian.Uint64(header[16:]))
	st, err := s.file.Stat()
	if err != nil {
		return err
	}
	if string(header[:8]) != segmentMagic || binary.LittleEndian.Uint32(header[24:]) != crc32.ChecksumIEEE(table) ||
		n > 1<<32-1 || st.Size() != int64(len(header))+int64(n)*entrySize {
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

// find appends to dst the entries with this key, up to limit of them.
func (s *segment) find(dst []entry, key uint64, limit int) ([]entry, error) {
	b := key >> (64 - bucketBits)
	from, to := s.starts[b], s.starts[b+1]
	var stack [4096]byte
	for from < to && len(dst) < limit {
		n := min(int(to-from)*entrySize, len(stack))
		buf := stack[:n]
		if _, err := s.file.ReadAt(buf, int64(headerSize+4*len(s.starts))+int64(from)*entrySize); err != nil {
			return dst, fmt.Errorf("read the content index: %w", err)
		}
		for ; len(buf) > 0; buf = buf[entrySize:] {
			switch k := binary.LittleEndian.Uint64(buf); {
			case k > key:
				return dst, nil
			case k == key && len(dst) < limit:
				dst = append(dst, entry{k, binary.LittleEndian.Uint32(buf[8:]), binary.LittleEndian.Uint32(buf[12:])})
			}
		}
		from += uint32(n / entrySize)
	}
	return dst, nil
}

// reader returns the entries one by one, in order.
func (s *segment) reader() func() (entry, bool, error) {
	left := s.n
	r := bufio.NewReaderSize(&offsetReader{s.file, int64(headerSize + 4*len(s.starts))}, 1<<20)
	return func() (entry, bool, error) {
		if left == 0 {
			return entry{}, false, nil
		}
		left--
		var buf [entrySize]byte
		for n := 0; n < len(buf); {
			m, err := r.Read(buf[n:])
			if n += m; err != nil && n < len(buf) {
				return entry{}, false, fmt.Errorf("read the content index: %w", err)
			}
		}
		return entry{binary.LittleEndian.Uint64(buf[0:]), binary.LittleEndian.Uint32(buf[8:]), binary.LittleEndian.Uint32(buf[12:])}, true, nil
	}
}

type offsetReader struct {
	f  *os.File
	at int64
}

func (r *offsetReader) Read(p []byte) (int, error) {
	n, err := r.f.ReadAt(p, r.at)
	r.at += int64(n)
	return n, err
}
