package fileview

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"example.org/auditd/dualview"
	"example.org/auditd/schema"
)

func (b *batch) provenance(field, path string) dualview.Provenance {
	p := dualview.Provenance{Kind: schema.SourceFile, Tool: "fileview", Field: field, Trust: schema.Untrusted}
	if len(path) <= schema.MaxName/2 {
		p.Origin = strings.ToValidUTF8(path, "?")
	}
	return p
}

// classify finds the provenance of every byte of a person's file.
func (b *batch) classify(base *entry, h look) ([]segment, error) {
	return b.classifyAgainst(base, h, symbolsOf(base.segs))
}

// classifyAgainst is classify with the symbols whose content must be recognised
// however short the stretch of it is.
func (b *batch) classifyAgainst(base *entry, h look, known []dualview.Symbol) ([]segment, error) {
	if h.size == 0 {
		return nil, nil
	}
	if b.distrusted(base.path) {
		return b.whole(base, h)
	}
	if h.large {
		return b.classifyLarge(base, h)
	}
	tainted, err := b.tainted(h)
	if err != nil {
		return nil, err
	}
	var old []byte
	if base.kind == file && base.humanID != "" {
		if old, err = b.git.read(base.humanID); err != nil && !errors.Is(err, errNoBlob) {
			return nil, err
		}
		if err != nil {
			old = nil
		}
	}
	var stretches []stretch
	if sumN(base.segs) == len(old) && len(old) > 0 {
		stretches = trace(old, base.segs, h.content)
	} else {
		stretches = []stretch{{0, len(h.content), -1, 0}}
	}
	// label says for every byte which old segment it is of, or how it is new.
	label := make([]int32, len(h.content))
	offset := make([]int32, len(h.content))
	for _, s := range stretches {
		for i := s.start; i < s.end; i++ {
			switch {
			case s.seg < 0 && tainted:
				label[i] = labelTainted
			case s.seg < 0:
				label[i] = labelNew
			case base.segs[s.seg].Symbol == "":
				label[i] = labelTrusted
			default:
				label[i], offset[i] = int32(s.seg), int32(s.from+i-s.start)
			}
		}
	}
	if err := b.taintKnown(label, h.content, known); err != nil {
		return nil, err
	}
	return b.segments(base, h.content, label, offset)
}

// Labels of bytes that are of no old symbol.
const (
	labelTrusted = -1 // was trusted and still is
	labelNew     = -2 // a person or a program of theirs wrote it
	labelTainted = -3 // a HumanShell may have written it
	labelKnown   = -4 // it is known to be of some value
)

func sumN(segs []segment) int {
	n := 0
	for _, s := range segs {
		n += s.N
	}
	return n
}

// tainted reports whether a file may have been written by a HumanShell: its
// ctime lies within the life of one. A content that was trusted whole before is
// not, wherever it was copied.
func (b *batch) tainted(h look) (bool, error) {
	_, tainted, err := b.store.window(b.ctx, h.ctime)
	if err != nil || !tainted {
		return false, err
	}
	var one int
	err = b.store.db.QueryRowContext(b.ctx, `SELECT 1 FROM fileview_trusted WHERE blob = ?`, h.id).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	return false, err
}

// taintKnown marks the new bytes that are known to be untrusted: those of a
// value that the content index recognises, and those that this very file's
// symbols hold, for which a few bytes are enough.
func (b *batch) taintKnown(label []int32, content []byte, known []dualview.Symbol) error {
	spans, err := b.store.table.Known(b.ctx, content)
	if err != nil {
		return err
	}
	for _, s := range spans {
		for i := s.Start; i < s.End; i++ {
			if label[i] == labelNew {
				label[i] = labelKnown
			}
		}
	}
	if len(known) == 0 {
		return nil
	}
	fresh := false
	for _, l := range label {
		fresh = fresh || l == labelNew
	}
	if !fresh {
		return nil
	}
	m, err := b.contents(known)
	if err != nil {
		return err
	}
	for at := 0; at < len(content); {
		if label[at] != labelNew {
			at++
			continue
		}
		end := at
		for end < len(content) && label[end] == labelNew {
			end++
		}
		m.mark(content, at, end, label)
		at = end
	}
	return nil
}

// segments makes segments of labelled bytes: an old symbol that is whole stays
// the same symbol, a part of one becomes a symbol of its own.
func (b *batch) segments(base *entry, content []byte, label, offset []int32) ([]segment, error) {
	var segs []segment
	for at := 0; at < len(content); {
		l := label[at]
		end := at + 1
		switch {
		case l == labelTrusted || l == labelNew:
			for end < len(content) && (label[end] == labelTrusted || label[end] == labelNew) {
				end++
			}
			segs = append(segs, segment{N: end - at})
		case l < 0:
			for end < len(content) && (label[end] == labelKnown || label[end] == labelTainted) {
				end++
			}
			if len(bytes.TrimSpace(content[at:end])) == 0 {
				segs = append(segs, segment{N: end - at}) // white space tells nothing
				break
			}
			s, err := b.store.table.Symbolise(b.ctx, b.store.owner, bytes.Clone(content[at:end]), b.provenance("content", base.path))
			if err != nil {
				return nil, err
			}
			segs = append(segs, segment{s, end - at})
		default:
			for end < len(content) && label[end] == l && offset[end] == offset[end-1]+1 {
				end++
			}
			part, err := b.part(content[at:end], base.segs[l], int(offset[at]))
			if err != nil {
				return nil, err
			}
			segs = append(segs, part)
		}
		at = end
	}
	segs = join(segs)
	for at, i := 0, 0; i < len(segs); i++ {
		if segs[i].Symbol == "" {
			b.store.table.Trust(content[at : at+segs[i].N])
		}
		at += segs[i].N
	}
	return segs, nil
}

// part returns the segment for bytes [off, off+len(text)) of an old symbol.
func (b *batch) part(text []byte, old segment, off int) (segment, error) {
	if off == 0 && len(text) == old.N {
		return old, nil
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return segment{N: len(text)}, nil
	}
	p := b.provenance("split", "")
	p.Parents = []dualview.Symbol{old.Symbol}
	s, err := b.store.table.Symbolise(b.ctx, b.store.owner, bytes.Clone(text), p)
	if err != nil {
		return segment{}, err
	}
	return segment{s, len(text)}, nil
}

// slice is a range of the bytes of one segment.
type slice struct {
	of       segment
	from, to int
	text     []byte
}

// cut appends the slices that make up text[start:end]. A slice that goes on
// where the last one ended is joined to it, so that a symbol that a merge took
// from both sides in turn stays whole.
func cut(out []slice, text []byte, segs []segment, start, end int) []slice {
	at := 0
	for _, s := range segs {
		from, to := max(at, start), min(at+s.N, end)
		if from < to {
			sl := slice{s, from - at, to - at, text[from:to]}
			if n := len(out); n > 0 && s.Symbol != "" && out[n-1].of == s && out[n-1].to == sl.from {
				sl.from = out[n-1].from
				sl.text = append(bytes.Clone(out[n-1].text), sl.text...)
				out = out[:n-1]
			}
			out = append(out, sl)
		}
		at += s.N
	}
	return out
}

// segmentsOf makes segments of slices.
func (b *batch) segmentsOf(slices []slice) ([]segment, error) {
	var out []segment
	for _, s := range slices {
		if s.of.Symbol == "" {
			out = append(out, segment{N: len(s.text)})
			continue
		}
		part, err := b.part(s.text, s.of, s.from)
		if err != nil {
			return nil, err
		}
		out = append(out, part)
	}
	return join(out), nil
}

// whole makes one symbol of a file that a rule says is untrusted. An unchanged
// one keeps its symbol.
func (b *batch) whole(base *entry, h look) ([]segment, error) {
	if len(base.segs) == 1 && base.segs[0].Symbol != "" && base.humanID == h.id {
		return base.segs, nil
	}
	content := h.content
	if h.large {
		if h.size > dualview.DefaultMaxValue {
			return nil, fmt.Errorf("an untrusted file of %d bytes is over the limit of %d: %w", h.size, dualview.DefaultMaxValue, dualview.ErrTooLarge)
		}
		f, err := b.human.ReadFile(base.path)
		if err != nil {
			return nil, fmt.Errorf("read a file: %w", bare(err))
		}
		content = f
	}
	s, err := b.store.table.Symbolise(b.ctx, b.store.owner, content, b.provenance("content", base.path))
	if err != nil {
		return nil, err
	}
	return []segment{{s, len(content)}}, nil
}

// classifyLarge decides on a file that is too large to be compared: trusted
// whole or untrusted whole.
func (b *batch) classifyLarge(base *entry, h look) ([]segment, error) {
	tainted, err := b.tainted(h)
	if err != nil {
		return nil, err
	}
	if tainted || len(symbolsOf(base.segs)) > 0 {
		return b.whole(base, h)
	}
	f, err := b.human.Open(base.path)
	if err != nil {
		return nil, fmt.Errorf("read a file: %w", bare(err))
	}
	defer f.Close()
	const step, overlap = 4 << 20, 64 << 10
	buf := make([]byte, step+overlap)
	for at := int64(0); at < h.size; at += step {
		n, err := f.ReadAt(buf, at)
		if n == 0 && err != nil {
			break
		}
		spans, err := b.store.table.Known(b.ctx, buf[:n])
		if err != nil {
			return nil, err
		}
		if len(spans) > 0 {
			return b.whole(base, h)
		}
	}
	return []segment{{N: int(h.size)}}, nil
}

// contents are the values of some symbols, to be found in other text by
// stretches of few bytes and by whole lines.
type contents struct {
	grams map[uint64][]int32 // offsets in text
	lines map[string]bool
	text  []byte
}

const (
	gram        = 12
	maxGrams    = 512 << 10 // bytes of values that are indexed so; beyond, the content index has to do
	maxPlaces   = 8
	minLineSize = 3
)

func (b *batch) contents(known []dualview.Symbol) (*contents, error) {
	c := &contents{grams: map[uint64][]int32{}, lines: map[string]bool{}}
	seen := map[dualview.Symbol]bool{}
	for _, s := range known {
		if seen[s] || len(c.text) > maxGrams {
			continue
		}
		seen[s] = true
		o, err := b.store.table.Resolve(b.ctx, string(s), dualview.Raw, b.store.grant())
		if errors.Is(err, dualview.ErrNoGrant) {
			continue // a secret: it is never written into a file
		}
		if err != nil {
			return nil, err
		}
		v := []byte(o.Reveal())
		from := len(c.text)
		c.text = append(append(c.text, v...), 0)
		for i := from; i+gram <= from+len(v); i++ {
			k := gramKey(c.text[i:])
			if len(c.grams[k]) < maxPlaces {
				c.grams[k] = append(c.grams[k], int32(i))
			}
		}
		for _, l := range bytes.Split(v, []byte("\n")) {
			if l = bytes.TrimSpace(l); len(l) >= minLineSize {
				c.lines[string(l)] = true
			}
		}
	}
	return c, nil
}

func gramKey(b []byte) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range b[:gram] {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// mark labels what of content[start:end] the values hold.
func (c *contents) mark(content []byte, start, end int, label []int32) {
	for at := start; at+gram <= end; {
		best := 0
		for _, p := range c.grams[gramKey(content[at:])] {
			n := 0
			for at+n < end && int(p)+n < len(c.text) && c.text[int(p)+n] == content[at+n] && c.text[int(p)+n] != 0 {
				n++
			}
			best = max(best, n)
		}
		if best < gram {
			at++
			continue
		}
		for i := at; i < at+best; i++ {
			label[i] = labelKnown
		}
		at += best
	}
	// Whole lines, as far as this stretch holds them whole.
	for at := start; at < end; {
		n := bytes.IndexByte(content[at:end], '\n')
		if n < 0 {
			n = end - at
		}
		if at == 0 || content[at-1] == '\n' {
			if c.lines[string(bytes.TrimSpace(content[at:at+n]))] && (at+n == len(content) || content[at+n] == '\n') {
				for i := at; i < at+n; i++ {
					label[i] = labelKnown
				}
			}
		}
		at += n + 1
	}
}
