package fileview

import (
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"io"
)

// unpackLimit bounds what is unpacked to look for symbols.
const unpackLimit = 64 << 20

// packed reports whether a compressed file of the agent's holds symbols. Their
// originals cannot be put in, and a person must not unpack symbols. What is too
// large to look at counts as holding some.
func (b *batch) packed(content []byte) bool {
	left := int64(unpackLimit)
	holds := func(r io.Reader, err error) bool {
		if err != nil {
			return false
		}
		data, err := io.ReadAll(io.LimitReader(r, left))
		left -= int64(len(data))
		return len(b.store.table.Symbols(string(data))) > 0 || left <= 0 && err == nil
	}
	switch {
	case bytes.HasPrefix(content, []byte{0x1f, 0x8b}):
		r, err := gzip.NewReader(bytes.NewReader(content))
		return holds(r, err)
	case bytes.HasPrefix(content, []byte("BZh")):
		return holds(bzip2.NewReader(bytes.NewReader(content)), nil)
	case len(content) > 2 && content[0] == 0x78 && (uint16(content[0])<<8|uint16(content[1]))%31 == 0:
		r, err := zlib.NewReader(bytes.NewReader(content))
		return holds(r, err)
	case bytes.HasPrefix(content, []byte("PK")):
		z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return false
		}
		for _, f := range z.File {
			if len(b.store.table.Symbols(f.Name)) > 0 {
				return true
			}
			r, err := f.Open()
			found := holds(r, err)
			if err == nil {
				r.Close()
			}
			if found {
				return true
			}
		}
	}
	return false
}
