package dualview

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Symbol is the token that stands for a value: "symu", 32 letters and digits,
// "u". It is made of ASCII letters and digits only, so that no shell, JSON,
// Markdown, HTML, YAML, CSV or URL gives any of it a meaning, and a tool that
// upper-cases a whole token does not break it. The letter u stands in the two
// marks and never between them, which makes beginning and end unambiguous
// whatever a token is glued to.
type Symbol string

const (
	markStart = "symu"
	markEnd   = 'u'
	// No i, l, o or u: what looks alike cannot be confused, and no token can
	// begin inside another.
	alphabet  = "0123456789abcdefghjkmnpqrstvwxyz"
	idSize    = 12 // random bytes: 96 bits
	checkSize = 8  // bytes of keyed check: a guess costs 2^64 tries even for a known id
	bodySize  = (idSize + checkSize) * 8 / 5
	// SymbolSize is the length of every symbol in bytes.
	SymbolSize = len(markStart) + bodySize + 1
)

type symbolID [idSize]byte

// mint makes symbols and tells ours from others. It is immutable.
type mint struct {
	key    []byte
	random io.Reader
	decode [256]int8
}

func newMint(key []byte, random io.Reader) *mint {
	m := &mint{key: key, random: random}
	for i := range m.decode {
		m.decode[i] = -1
	}
	for i := range len(alphabet) {
		m.decode[alphabet[i]] = int8(i)
	}
	return m
}

func (m *mint) new() (symbolID, error) {
	var id symbolID
	if _, err := io.ReadFull(m.random, id[:]); err != nil {
		return symbolID{}, fmt.Errorf("make a symbol: %w", err)
	}
	return id, nil
}

func (m *mint) check(id symbolID) [checkSize]byte {
	h := hmac.New(sha256.New, m.key)
	h.Write(id[:])
	return [checkSize]byte(h.Sum(nil))
}

// symbol returns the token of id.
func (m *mint) symbol(id symbolID) Symbol {
	check := m.check(id)
	var b strings.Builder
	b.Grow(SymbolSize)
	b.WriteString(markStart)
	acc, bits := uint32(0), 0
	for _, part := range [][]byte{id[:], check[:]} {
		for _, c := range part {
			acc = acc<<8 | uint32(c)
			for bits += 8; bits >= 5; {
				bits -= 5
				b.WriteByte(alphabet[acc>>bits&31])
			}
		}
	}
	b.WriteByte(markEnd)
	return Symbol(b.String())
}

var errNoSymbol = errors.New("is not a symbol of this table")

// parse returns the id of exactly one token, all in lower or all in upper case.
func (m *mint) parse(token string) (symbolID, error) {
	var id symbolID
	if len(token) != SymbolSize {
		return id, errNoSymbol
	}
	lower := token
	if token[0] == 'S' {
		if lower = strings.ToLower(token); strings.ToUpper(token) != token {
			return id, errNoSymbol
		}
	}
	if !strings.HasPrefix(lower, markStart) || lower[SymbolSize-1] != markEnd {
		return id, errNoSymbol
	}
	var raw [idSize + checkSize]byte
	acc, bits, n := uint32(0), 0, 0
	for _, c := range []byte(lower[len(markStart) : SymbolSize-1]) {
		v := m.decode[c]
		if v < 0 {
			return id, errNoSymbol
		}
		acc = acc<<5 | uint32(v)
		if bits += 5; bits >= 8 {
			bits -= 8
			raw[n] = byte(acc >> bits)
			n++
		}
	}
	id = symbolID(raw[:idSize])
	want := m.check(id)
	if !hmac.Equal(want[:], raw[idSize:]) {
		return symbolID{}, errNoSymbol
	}
	return id, nil
}

// token is one symbol found in a text.
type token struct {
	start, end int
	id         symbolID
}

// scan returns every genuine token of text, in order, in one pass. What only
// looks like a token is plain text.
func (m *mint) scan(text string) []token {
	var found []token
	upperMark := strings.ToUpper(markStart)
	lower, upper := strings.Index(text, markStart), strings.Index(text, upperMark)
	for lower >= 0 || upper >= 0 {
		at, next := lower, &lower
		mark := markStart
		if lower < 0 || upper >= 0 && upper < lower {
			at, next, mark = upper, &upper, upperMark
		}
		from := at + 1
		if at+SymbolSize <= len(text) {
			if id, err := m.parse(text[at : at+SymbolSize]); err == nil {
				found = append(found, token{at, at + SymbolSize, id})
				from = at + SymbolSize
			}
		}
		if *next = strings.Index(text[from:], mark); *next >= 0 {
			*next += from
		}
	}
	return found
}
