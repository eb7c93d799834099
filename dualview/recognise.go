package dualview

import (
	"bytes"
	"container/list"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"example.org/auditd/schema"
)

// Span is a part of a text that is known to come from a value.
type Span struct {
	Start, End int
	content    int64 // the value, 0 when it has been dropped since
}

// Known returns the parts of text that were untrusted before, in order and
// without overlap. It finds every MinMatch folded bytes of any value of any
// owner, also when the text holds them in base64 or in hexadecimal, unless the
// same bytes were trusted before they were part of a value.
func (t *Table) Known(ctx context.Context, text []byte) ([]Span, error) {
	// A value that was made just now counts as well.
	if err := t.index.settle(ctx); err != nil {
		return nil, fmt.Errorf("look for known values: %w", err)
	}
	spans, err := t.known(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("look for known values: %w", err)
	}
	for _, e := range []encoding{{isHexDigit, 2 * MinMatch, decodeHex}, {isBase64, MinMatch * 4 / 3, decodeBase64}} {
		for _, run := range e.runs(text) {
			for _, decoded := range e.decode(text[run[0]:run[1]]) {
				inner, err := t.known(ctx, decoded)
				if err != nil {
					return nil, fmt.Errorf("look for known values: %w", err)
				}
				if len(inner) > 0 {
					spans = append(spans, Span{run[0], run[1], inner[0].content})
					break
				}
			}
		}
	}
	return mergeSpans(spans), nil
}

func mergeSpans(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.Start < out[n-1].End {
			if s.End > out[n-1].End {
				s.Start = out[n-1].End // keep both: they may be of two values
				out = append(out, s)
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

// Trust remembers text as trusted. Parts of it that are known to be untrusted
// stay so. Values that quote it later do not taint it.
func (t *Table) Trust(text []byte) {
	kept := t.index.shingles(text)
	t.writing.Lock()
	defer t.writing.Unlock()
	// What was untrusted first stays so: it has to be in the index by now.
	if t.index.settle(context.Background()) != nil {
		return // nothing is trusted, and nothing is recognised either
	}
	t.index.addTrusted(kept)
}

// hit is a kept shingle of the text that the index may know.
type hit struct {
	shingle
	maybeTrusted bool
	places       []entry
}

func (h *hit) at() int { return int(h.off) }

func (t *Table) known(ctx context.Context, text []byte) ([]Span, error) {
	folded := t.index.fold(make([]byte, 0, len(text)+16), text, nil)
	if len(folded) < shingleSize {
		return nil, nil
	}
	hits := t.index.candidates(t.index.keep(make([]shingle, 0, len(folded)/16+8), folded))
	if len(hits) == 0 {
		return nil, nil
	}
	var found []Span // in the folded text
	var trusted stretches
	covered, lastHit := 0, 0
	for i := range hits {
		h := &hits[i]
		in := h.at()+shingleSize <= covered
		if in && !h.maybeTrusted {
			continue // nothing new can be learned
		}
		t.index.places(h)
		switch {
		case len(h.places) == 0:
			continue
		case slices.ContainsFunc(h.places, isTrusted):
			trusted.add(h.at())
			if n := len(found); in && n > 0 {
				// Inside of what matches stands text that was trusted before: the
				// match ends here, and may begin again behind it. A match that only
				// filled the gap between two trusted shingles is none.
				if covered = h.at(); trusted.hold(lastHit) {
					found = found[:n-1]
				} else {
					found[n-1].End = min(found[n-1].End, trusted.last()[0])
				}
			}
			continue
		case in || trusted.hold(h.at()):
			continue
		}
		s, ok, err := t.extend(ctx, folded, h)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if len(trusted) > 0 {
			s.Start = max(s.Start, min(trusted.last()[1], h.at()))
		}
		found, lastHit = append(found, s), h.at()
		covered = s.End
	}
	if len(found) == 0 {
		return nil, nil
	}
	// Only now is it worth knowing where each folded byte came from.
	pos := make([]int32, 0, len(folded))
	t.index.fold(folded[:0], text, &pos)
	for i := range found {
		s := &found[i]
		end := int(pos[s.End-1]) + 1
		for end < len(text) && (s.End >= len(pos) || end < int(pos[s.End])) && text[end] >= 0x80 {
			end++ // the rest of a character of several bytes
		}
		s.Start, s.End = int(pos[s.Start]), end
	}
	return found, nil
}

// candidates returns the kept shingles that the filters do not rule out.
func (x *index) candidates(kept []shingle) []hit {
	x.mu.RLock()
	defer x.mu.RUnlock()
	const maybe, maybeTrusted = 1, 2
	found, n := make([]uint8, len(kept)), 0
	for _, i := range byBucket(kept) {
		if key := kept[i].key; x.filter.has(key) {
			found[i] = maybe
			n++
			if x.trusted.has(key) {
				found[i] |= maybeTrusted
			}
		}
	}
	if n == 0 {
		return nil
	}
	hits := make([]hit, 0, n)
	for i, s := range kept {
		if found[i] != 0 {
			hits = append(hits, hit{shingle: s, maybeTrusted: found[i]&maybeTrusted != 0})
		}
	}
	return hits
}

func (x *index) places(h *hit) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	h.places = x.lookup(nil, maxPlaces, h.key)
}

// stretches are the parts of a folded text that were trusted before: shingles
// known as trusted, and what lies between two of them that are near to each
// other.
type stretches [][2]int

func (s *stretches) add(at int) {
	if n := len(*s); n > 0 && at-(*s)[n-1][1] < windowSize {
		(*s)[n-1][1] = at + shingleSize
		return
	}
	*s = append(*s, [2]int{at, at + shingleSize})
}

func (s stretches) last() [2]int { return s[len(s)-1] }

// hold reports whether a shingle lies in the last stretch. One that lies between
// two trusted ones is met before the second of them, and is compared like any
// other.
func (s stretches) hold(at int) bool {
	return len(s) > 0 && s.last()[0] <= at && at+shingleSize <= s.last()[1]
}

// extend compares the text around a hit with the values that have the shingle
// and returns the longest common stretch. A stretch counts from MinMatch bytes,
// or when it is the whole of a shorter value.
func (t *Table) extend(ctx context.Context, folded []byte, h *hit) (Span, bool, error) {
	at := h.at()
	whole := Span{Start: at, End: at + shingleSize}
	best, ok := whole, false
	if len(h.places) >= maxPlaces {
		return whole, true, nil
	}
	for _, p := range h.places {
		if p.off == anywhere {
			best.content, ok = int64(p.content), true
			continue
		}
		value, err := t.folded(ctx, int64(p.content))
		if errors.Is(err, ErrUnknown) || errors.Is(err, errDamaged) {
			// The value has been dropped; that its shingle was in one is
			// enough.
			ok = true
			continue
		}
		if err != nil {
			return Span{}, false, err
		}
		o := int(p.off)
		if o+shingleSize > len(value) || !bytes.Equal(value[o:o+shingleSize], folded[at:at+shingleSize]) {
			continue // another text with the same hash
		}
		left := commonSuffix(value[:o], folded[:at])
		right := commonPrefix(value[o+shingleSize:], folded[at+shingleSize:])
		if n := left + shingleSize + right; n >= min(MinMatch, len(value)) && (!ok || n > best.End-best.Start) {
			best, ok = Span{at - left, at + shingleSize + right, int64(p.content)}, true
		}
	}
	return best, ok, nil
}

func commonSuffix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// foldedCache keeps the folded form of the values that were compared last.
type foldedCache struct {
	mu    sync.Mutex
	size  int
	order *list.List // of *foldedValue, the youngest first
	byID  map[int64]*list.Element
}

type foldedValue struct {
	id   int64
	text []byte
}

const foldedCacheSize = 8 << 20

func (t *Table) folded(ctx context.Context, id int64) ([]byte, error) {
	c := &t.compared
	c.mu.Lock()
	if e, ok := c.byID[id]; ok {
		c.order.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(*foldedValue).text, nil
	}
	c.mu.Unlock()
	data, err := t.loadContent(ctx, id)
	if err != nil {
		return nil, err
	}
	text := t.index.fold(make([]byte, 0, len(data)), data, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID, c.order = map[int64]*list.Element{}, list.New()
	}
	if _, ok := c.byID[id]; !ok {
		c.byID[id] = c.order.PushFront(&foldedValue{id, text})
		// One value stays whatever its size: a text that quotes it in many
		// places must not load it for each.
		for c.size += len(text); c.size > foldedCacheSize && c.order.Len() > 1; {
			old := c.order.Remove(c.order.Back()).(*foldedValue)
			delete(c.byID, old.id)
			c.size -= len(old.text)
		}
	}
	return text, nil
}

// encoding is a way to write bytes as letters: which letters, how many of them
// hold MinMatch bytes, and what a run of them may stand for.
type encoding struct {
	letter func(c byte) bool
	least  int
	decode func(run []byte) [][]byte
}

func isHexDigit(c byte) bool { return unhex(c) >= 0 }

func isBase64(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_' || c == '='
}

// runs returns the stretches of text that are long enough and hold nothing but
// the encoding's letters and line ends. A stretch of that length holds one of
// the bytes that are looked at first, so ordinary text costs next to nothing.
func (e encoding) runs(text []byte) [][2]int {
	in := func(c byte) bool { return e.letter(c) || c == '\n' || c == '\r' }
	var runs [][2]int
	for at := e.least - 1; at < len(text); at += e.least {
		if !in(text[at]) {
			continue
		}
		start, end, letters := at, at+1, 0
		for start > 0 && in(text[start-1]) {
			start--
		}
		for end < len(text) && in(text[end]) {
			end++
		}
		for _, c := range text[start:end] {
			if e.letter(c) {
				letters++
			}
		}
		if letters >= e.least {
			runs = append(runs, [2]int{start, end})
		}
		at = max(at, end-end%e.least-1) // go on behind the run, on the grid
	}
	return runs
}

// decodeHex tries both alignments, since a digit of the text before may be
// glued to the run.
func decodeHex(run []byte) [][]byte {
	digits := make([]byte, 0, len(run))
	for _, c := range run {
		if isHexDigit(c) {
			digits = append(digits, c)
		}
	}
	var out [][]byte
	for skip := range 2 {
		in := digits[skip:]
		buf := make([]byte, len(in)/2)
		if _, err := hex.Decode(buf, in[:len(buf)*2]); err == nil {
			out = append(out, buf)
		}
	}
	return out
}

// decodeBase64 tries all four alignments of both alphabets.
func decodeBase64(run []byte) [][]byte {
	letters := make([]byte, 0, len(run))
	for _, c := range run {
		switch c {
		case '\n', '\r', '=':
			continue
		case '-':
			c = '+'
		case '_':
			c = '/'
		}
		letters = append(letters, c)
	}
	var out [][]byte
	for skip := range 4 {
		in := letters[skip:]
		if len(in)%4 == 1 {
			in = in[:len(in)-1]
		}
		buf := make([]byte, base64.RawStdEncoding.DecodedLen(len(in)))
		if n, err := base64.RawStdEncoding.Decode(buf, in); err == nil {
			out = append(out, buf[:n])
		}
	}
	return out
}

// Piece is a stretch of a text that was replaced by a symbol.
type Piece struct {
	Start, End int // in the text
	Symbol     Symbol
}

// Recognise gives every known part of text a symbol. Its provenance is p, with
// the symbols of the same owner that have the value as parents.
func (t *Table) Recognise(ctx context.Context, owner string, text []byte, p Provenance) ([]Piece, error) {
	spans, err := t.Known(ctx, text)
	if err != nil || len(spans) == 0 {
		return nil, err
	}
	items := make([]Item, len(spans))
	for i, s := range spans {
		q := p
		if parent, ok, err := t.symbolOf(ctx, owner, s.content); err != nil {
			return nil, fmt.Errorf("look for known values: %w", err)
		} else if ok {
			q.Parents = append(slices.Clone(p.Parents), parent)
		}
		items[i] = Item{Value: bytes.Clone(text[s.Start:s.End]), Provenance: q}
		// A secret that is met again is one, and goes nowhere else.
		if items[i].Sinks, items[i].Secret, err = t.secretOf(ctx, owner, s.content); err != nil {
			return nil, fmt.Errorf("look for known values: %w", err)
		}
	}
	symbols, err := t.SymboliseAll(ctx, owner, items)
	if err != nil {
		return nil, err
	}
	pieces := make([]Piece, len(spans))
	for i, s := range spans {
		pieces[i] = Piece{s.Start, s.End, symbols[i]}
	}
	return pieces, nil
}

// symbolOf returns the oldest symbol of owner for a content.
func (t *Table) symbolOf(ctx context.Context, owner string, content int64) (Symbol, bool, error) {
	var raw []byte
	err := t.db.QueryRowContext(ctx, `SELECT id FROM dualview_symbol WHERE content = ? AND owner = ? ORDER BY n LIMIT 1`, content, owner).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return t.mint.symbol(symbolID(raw)), true, nil
}

// secretOf reports whether a content is a secret of owner's, and where it may go.
func (t *Table) secretOf(ctx context.Context, owner string, content int64) (sinks []SinkRule, secret bool, err error) {
	var raw []byte
	err = t.db.QueryRowContext(ctx, `SELECT sinks FROM dualview_symbol WHERE content = ? AND owner = ? AND sinks IS NOT NULL ORDER BY n LIMIT 1`, content, owner).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if err := schema.Decode(raw, &sinks); err != nil {
		return nil, false, err
	}
	return sinks, true, nil
}
