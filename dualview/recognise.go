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
	t.index.addTrusted(kept)
}

// hit is a kept shingle of the text that the index knows.
type hit struct {
	at     int // in the folded text
	places []entry
	from   int // where places begins in the list of all
}

func (t *Table) known(ctx context.Context, text []byte) ([]Span, error) {
	folded := t.index.fold(make([]byte, 0, len(text)+16), text, nil)
	if len(folded) < shingleSize {
		return nil, nil
	}
	hits, trusted, err := t.index.hits(t.index.keep(make([]shingle, 0, len(folded)/16+8), folded))
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	var found []Span // in the folded text
	covered := 0
	for _, h := range hits {
		if h.at+shingleSize <= covered || within(trusted, h.at) {
			continue
		}
		s, ok, err := t.extend(ctx, folded, h)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		s = clip(s, h.at, trusted)
		found = append(found, s)
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

// hits looks the kept shingles up. trusted are the stretches of folded text
// that were trusted before: shingles known as trusted, and what lies between
// two that follow each other.
func (x *index) hits(kept []shingle) (hits []hit, trusted [][2]int, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var all []entry
	lastTrusted := -1
	for i, s := range kept {
		if !x.filter.has(s.key) {
			continue
		}
		n := len(all)
		if all, err = x.lookup(all, n+maxPlaces, s.key); err != nil {
			return nil, nil, err
		}
		places := all[n:]
		if len(places) == 0 {
			continue
		}
		if slices.ContainsFunc(places, isTrusted) {
			from := int(s.off)
			if n := len(trusted); n > 0 && (lastTrusted == i-1 || from-trusted[n-1][1] < windowSize) {
				trusted[n-1][1] = from + shingleSize
			} else {
				trusted = append(trusted, [2]int{from, from + shingleSize})
			}
			lastTrusted, all = i, all[:n]
			continue
		}
		hits = append(hits, hit{at: int(s.off), from: n})
	}
	for i, end := len(hits)-1, len(all); i >= 0; i-- {
		hits[i].places, end = all[hits[i].from:end], hits[i].from
	}
	return hits, trusted, nil
}

func within(trusted [][2]int, at int) bool {
	return slices.ContainsFunc(trusted, func(r [2]int) bool { return r[0] <= at && at+shingleSize <= r[1] })
}

// clip cuts off the trusted stretches on both sides of the shingle at.
func clip(s Span, at int, trusted [][2]int) Span {
	for _, r := range trusted {
		if r[1] <= at+shingleSize && r[0] < at && r[1] > s.Start {
			s.Start = min(r[1], at)
		}
		if r[0] >= at && r[1] > at+shingleSize && r[0] < s.End {
			s.End = max(r[0], at+shingleSize)
		}
	}
	return s
}

// extend compares the text around a hit with the values that have the shingle
// and returns the longest common stretch. A stretch counts from MinMatch bytes,
// or when it is the whole of a shorter value.
func (t *Table) extend(ctx context.Context, folded []byte, h hit) (Span, bool, error) {
	whole := Span{Start: h.at, End: h.at + shingleSize}
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
		if o+shingleSize > len(value) || !bytes.Equal(value[o:o+shingleSize], folded[h.at:h.at+shingleSize]) {
			continue // another text with the same hash
		}
		left := commonSuffix(value[:o], folded[:h.at])
		right := commonPrefix(value[o+shingleSize:], folded[h.at+shingleSize:])
		if n := left + shingleSize + right; n >= min(MinMatch, len(value)) && (!ok || n > best.End-best.Start) {
			best, ok = Span{h.at - left, h.at + shingleSize + right, int64(p.content)}, true
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
