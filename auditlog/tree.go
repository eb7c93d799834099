package auditlog

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/mod/sumdb/tlog"
)

// edge is the right edge of a Merkle tree: for each level the last finished
// subtree. It is all that adding a record and computing the root needs.
type edge struct {
	size   int64
	levels [64]tlog.Hash
}

// ReadHashes implements tlog.HashReader for the hashes of the edge.
func (e *edge) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		level, _ := tlog.SplitStoredHashIndex(x)
		out[i] = e.levels[level]
	}
	return out, nil
}

// add appends a record and returns the hashes that the tree file gets for it.
func (e *edge) add(leaf tlog.Hash) []tlog.Hash {
	hashes, err := tlog.StoredHashesForRecordHash(e.size, leaf, e)
	if err != nil {
		panic("auditlog: internal error: the edge reads from memory and cannot fail")
	}
	for level, h := range hashes {
		e.levels[level] = h
	}
	e.size++
	return hashes
}

func (e *edge) root() tlog.Hash {
	h, err := tlog.TreeHash(e.size, e)
	if err != nil {
		panic("auditlog: internal error: the edge reads from memory and cannot fail")
	}
	return h
}

// treeFile holds all stored hashes, for proofs. It is a cache: every use checks
// what it yields against a signed root.
type treeFile struct{ f *os.File }

// ReadHashes implements tlog.HashReader.
func (t treeFile) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		if _, err := t.f.ReadAt(out[i][:], x*tlog.HashSize); err != nil {
			return nil, fmt.Errorf("read the tree: %w", err)
		}
	}
	return out, nil
}

// records is the number of records that the file has all hashes of.
func (t treeFile) records() (int64, error) {
	st, err := t.f.Stat()
	if err != nil {
		return 0, fmt.Errorf("read the tree: %w", err)
	}
	have := st.Size() / tlog.HashSize
	// StoredHashCount(n) is just under 2n.
	n := have/2 + 1
	for n > 0 && tlog.StoredHashCount(n) > have {
		n--
	}
	return n, nil
}

// load returns the edge of the tree of the first n records.
func (t treeFile) load(n int64) (*edge, error) {
	if n == 0 {
		return new(edge), nil
	}
	// These are the subtrees that make up the root. Other levels of the edge are
	// not looked at again before they are finished anew.
	e := &edge{size: n}
	for level := range 63 {
		if n>>level&1 == 0 {
			continue
		}
		x := tlog.StoredHashIndex(level, n>>level-1)
		h, err := t.ReadHashes([]int64{x})
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, errors.New("the tree file is too short")
			}
			return nil, err
		}
		e.levels[level] = h[0]
	}
	return e, nil
}

func (t treeFile) write(at int64, hashes []tlog.Hash) error {
	b := make([]byte, 0, len(hashes)*tlog.HashSize)
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	if _, err := t.f.WriteAt(b, at*tlog.HashSize); err != nil {
		return fmt.Errorf("write the tree: %w", err)
	}
	return nil
}
