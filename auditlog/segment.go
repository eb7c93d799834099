package auditlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

func logDir(dir string) string    { return filepath.Join(dir, "log") }
func valuesDir(dir string) string { return filepath.Join(dir, "values") }
func headPath(dir string) string  { return filepath.Join(dir, "log", "head") }

func segmentPath(dir string, first int64) string {
	return filepath.Join(logDir(dir), fmt.Sprintf("%020d.jsonl", first))
}

func indexPath(dir string, first int64) string {
	return filepath.Join(logDir(dir), fmt.Sprintf("%020d.idx", first))
}

func valuesPath(dir string, first int64) string {
	return filepath.Join(valuesDir(dir), fmt.Sprintf("%020d.jsonl", first))
}

// listSegments returns the names of the segments in ascending order.
func listSegments(dir string) ([]int64, error) {
	entries, err := os.ReadDir(logDir(dir))
	if err != nil {
		return nil, fmt.Errorf("list the segments: %w", err)
	}
	var firsts []int64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok {
			continue
		}
		first, err := strconv.ParseInt(name, 10, 64)
		if err != nil || first < 0 || len(name) != 20 || !e.Type().IsRegular() {
			return nil, fmt.Errorf("log/%s is not a segment", e.Name())
		}
		firsts = append(firsts, first)
	}
	slices.Sort(firsts)
	return firsts, nil
}

// lines yields every whole line of r with its offset, up to limit bytes (all
// of it when limit is negative). It returns the number of bytes after the last
// newline. A line longer than maxLine+1 is an error, so that a file without a
// newline does not fill the memory.
func lines(r io.Reader, limit int64, f func(line []byte, at int64) error) (torn int64, err error) {
	if limit >= 0 {
		r = io.LimitReader(r, limit)
	}
	br := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	at := int64(0)
	for {
		part, err := br.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if long = append(long, part...); len(long) > maxLine {
				return 0, fmt.Errorf("the line at byte %d is over %d bytes", at, maxLine)
			}
			continue
		case errors.Is(err, io.EOF):
			return int64(len(long) + len(part)), nil
		case err != nil:
			return 0, fmt.Errorf("read a segment: %w", err)
		}
		line := part
		if len(long) > 0 {
			line = append(long, part...)
		}
		n := int64(len(line))
		if err := f(line[:n-1], at); err != nil {
			return 0, err
		}
		at += n
		long = long[:0]
	}
}

// chainState is a position in the log and the hash that the next line must
// name.
type chainState struct {
	next int64
	hash tlog.Hash
}

// follow checks that line continues the chain and moves on.
func (c *chainState) follow(line []byte, h lineHead) error {
	if h.index != c.next {
		return fmt.Errorf("record %d stands where record %d belongs", h.index, c.next)
	}
	if h.prev != c.hash {
		return fmt.Errorf("record %d does not name the hash of the record before it: one of the two was changed", h.index)
	}
	c.hash = tlog.RecordHash(line)
	c.next++
	return nil
}

// scan is what reading a segment with its chain yields.
type scan struct {
	first   int64
	end     chainState // after the last good record
	bytes   int64      // of good records
	torn    int64      // bytes after them
	broken  error      // why the rest is not good; nil for a mere torn line
	offsets []int64
	ids     []idEntry
	hashes  []tlog.Hash
	values  int64 // end of the last value that a record names
}

// scanSegment reads a segment from its beginning, following the chain from
// start, until its end or the first line that does not belong.
func scanSegment(path string, start chainState) (*scan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a segment: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open a segment: %w", err)
	}
	s := &scan{first: start.next, end: start}
	_, err = lines(f, -1, func(line []byte, at int64) error {
		h, err := parseLineHead(line)
		if err != nil {
			s.broken = fmt.Errorf("record %d: %w", s.end.next, err)
			return errStop
		}
		if err := s.end.follow(line, h); err != nil {
			s.broken = err
			return errStop
		}
		s.offsets = append(s.offsets, at)
		s.ids = append(s.ids, idEntry{hashID(h.id), h.index - s.first})
		s.hashes = append(s.hashes, s.end.hash)
		s.bytes = at + int64(len(line)) + 1
		s.values = max(s.values, h.value.At+h.value.Bytes+1)
		return nil
	})
	if err != nil && err != errStop {
		s.broken = err
	}
	s.torn = st.Size() - s.bytes
	return s, nil
}

var errStop = errors.New("stop reading")

// readLineAt reads the whole line at an offset.
func readLineAt(f *os.File, at int64) ([]byte, error) {
	buf := make([]byte, 4096)
	for {
		n, err := f.ReadAt(buf, at)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return buf[:i], nil
		}
		if err != nil {
			return nil, fmt.Errorf("read a record: %w", err)
		}
		if len(buf) > maxLine {
			return nil, fmt.Errorf("the line at byte %d is over %d bytes", at, maxLine)
		}
		buf = make([]byte, 4*len(buf))
	}
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
