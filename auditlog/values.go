package auditlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// valueState is what became of a value.
type valueState uint8

const (
	valueChanged valueState = iota // neither what was written nor erased
	valueErased
	valueThere
)

// valueAt reads a value. An erased one is a hole or blanks, or lies beyond the
// end of its file.
func valueAt(f *os.File, ref *ValueRef) ([]byte, valueState, error) {
	if ref.Bytes <= 0 || ref.Bytes > maxValueLine || ref.At < 0 {
		return nil, valueChanged, nil
	}
	b := make([]byte, ref.Bytes)
	n, err := f.ReadAt(b, ref.At)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, valueChanged, fmt.Errorf("read a value: %w", err)
	}
	switch {
	case blank(b[:n]):
		return nil, valueErased, nil
	case int64(n) == ref.Bytes && valueDigest(b) == ref.Digest:
		return b, valueThere, nil
	}
	return nil, valueChanged, nil
}

func blank(b []byte) bool { return len(bytes.Trim(b, " \x00")) == 0 }
