package dualview

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.org/auditd/schema"
)

// Context is the place that a value is put into, which decides how it is
// escaped.
type Context uint8

// Contexts. The zero value is none, and is refused: a caller that does not know
// where a value goes cannot escape it.
const (
	ContextUnset Context = iota
	Raw                  // plain text for a person or a file without syntax
	JSON
	YAML
	CSV
	HTML
	ShellArgument // the text is one argument; the result is exactly one word
	URL
)

var (
	// ErrUnknown means that no symbol of this owner has the token. Forged,
	// foreign and dropped symbols cannot be told apart.
	ErrUnknown = errors.New("no such symbol")
	// ErrContext means that a value cannot be put safely into its place.
	ErrContext = errors.New("the value cannot be put there safely")
)

// record is a symbol as the database knows it.
type record struct {
	n, content, start, size, created int64
	provenance, sinks                []byte
	hash, inline                     []byte // of the content
}

const lookupSQL = `SELECT s.n, s.content, s.start, s.size, s.created, s.provenance, s.sinks, c.hash, c.data
	FROM dualview_symbol s JOIN dualview_content c ON c.id = s.content WHERE s.id = ? AND s.owner = ?`

// lookup finds a symbol of owner; q is lookupSQL, prepared.
func (t *Table) lookup(ctx context.Context, q *sql.Stmt, owner string, id symbolID) (record, error) {
	var r record
	err := q.QueryRowContext(ctx, id[:], owner).Scan(&r.n, &r.content, &r.start, &r.size, &r.created, &r.provenance, &r.sinks, &r.hash, &r.inline)
	if errors.Is(err, sql.ErrNoRows) {
		return r, ErrUnknown
	}
	if err != nil {
		return r, fmt.Errorf("look up a symbol: %w", err)
	}
	return r, nil
}

// Symbols returns the genuine tokens in text, in order. Whether they resolve
// depends on owner and grant.
func (t *Table) Symbols(text string) []Symbol {
	var found []Symbol
	for _, tok := range t.mint.scan(text) {
		found = append(found, t.mint.symbol(tok.id))
	}
	return found
}

// Spans returns where the genuine tokens of text are, as pairs of offsets.
func (t *Table) Spans(text string) [][2]int {
	var spans [][2]int
	for _, tok := range t.mint.scan(text) {
		spans = append(spans, [2]int{tok.start, tok.end})
	}
	return spans
}

// Info returns what is known about a symbol without its value.
func (t *Table) Info(ctx context.Context, owner string, s Symbol) (Info, error) {
	id, err := t.mint.parse(string(s))
	if err != nil {
		return Info{}, ErrUnknown
	}
	r, err := t.lookup(ctx, t.find, owner, id)
	if err != nil {
		return Info{}, err
	}
	info := Info{Symbol: t.mint.symbol(id), Owner: owner, Created: time.UnixMilli(r.created), Size: r.size, Secret: r.sinks != nil}
	if err := schema.Decode(r.provenance, &info.Provenance); err != nil {
		return Info{}, fmt.Errorf("read a symbol's provenance: %w", err)
	}
	rows, err := t.db.QueryContext(ctx, `SELECT s.id FROM dualview_parent p JOIN dualview_symbol s ON s.n = p.parent WHERE p.child = ? ORDER BY s.n`, r.n)
	if err != nil {
		return Info{}, fmt.Errorf("read a symbol's parents: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var raw []byte
		if err := rows.Scan(&raw); err != nil {
			return Info{}, fmt.Errorf("read a symbol's parents: %w", err)
		}
		info.Provenance.Parents = append(info.Provenance.Parents, t.mint.symbol(symbolID(raw)))
	}
	return info, rows.Err()
}

// List returns an owner's symbols, the youngest first, without their values:
// those older than before, or all for the zero time.
func (t *Table) List(ctx context.Context, owner string, before time.Time, limit int) ([]Info, error) {
	until := int64(1<<63 - 1)
	if !before.IsZero() {
		until = before.UnixMilli()
	}
	rows, err := t.db.QueryContext(ctx, `SELECT id FROM dualview_symbol WHERE created < ? AND owner = ? ORDER BY created DESC, n DESC LIMIT ?`, until, owner, min(max(limit, 1), 1000))
	if err != nil {
		return nil, fmt.Errorf("list symbols: %w", err)
	}
	defer rows.Close()
	var symbols []Symbol
	for rows.Next() {
		var raw []byte
		if err := rows.Scan(&raw); err != nil {
			return nil, fmt.Errorf("list symbols: %w", err)
		}
		symbols = append(symbols, t.mint.symbol(symbolID(raw)))
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list symbols: %w", err)
	}
	out := make([]Info, 0, len(symbols))
	for _, s := range symbols {
		info, err := t.Info(ctx, owner, s)
		if errors.Is(err, ErrUnknown) {
			continue // dropped meanwhile
		}
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

// piece is a genuine token of a text together with its value.
type piece struct {
	token
	value string
}

// Resolve replaces every genuine symbol of text by its value, escaped for
// where in the text it stands. It is one pass: a token inside a value stays as
// it is. What is not a genuine token is left alone. A symbol that the grant does
// not reach is an error, and then nothing is resolved.
func (t *Table) Resolve(ctx context.Context, text string, c Context, g Grant) (Original, error) {
	pieces, err := t.open(ctx, text, g)
	if err != nil {
		return Original{}, err
	}
	out, err := place(text, pieces, c)
	if err != nil {
		return Original{}, err
	}
	return Original{out}, nil
}

// ResolvedRange says which bytes of a resolved text came from which symbol.
type ResolvedRange struct {
	Symbol     Symbol
	Start, End int // in the resolved text
}

// ResolveRanges is Resolve for a text of which the caller has to know later
// what came from where.
func (t *Table) ResolveRanges(ctx context.Context, text string, c Context, g Grant) (Original, []ResolvedRange, error) {
	pieces, err := t.open(ctx, text, g)
	if err != nil {
		return Original{}, nil, err
	}
	out, ranges, err := placeRanges(text, pieces, c)
	if err != nil {
		return Original{}, nil, err
	}
	resolved := make([]ResolvedRange, len(pieces))
	for i, p := range pieces {
		resolved[i] = ResolvedRange{t.mint.symbol(p.id), ranges[i][0], ranges[i][1]}
	}
	return Original{out}, resolved, nil
}

// open checks the grant and loads the values of text's symbols.
func (t *Table) open(ctx context.Context, text string, g Grant) ([]piece, error) {
	tokens := t.mint.scan(text)
	if len(tokens) == 0 {
		return nil, nil // nothing to permit
	}
	if err := g.check(t.now()); err != nil {
		return nil, fmt.Errorf("resolve: %w", err)
	}
	values := make(map[symbolID]string, len(tokens))
	pieces := make([]piece, len(tokens))
	total := int64(len(text))
	for i, tok := range tokens {
		v, ok := values[tok.id]
		if !ok {
			r, err := t.lookup(ctx, t.find, g.Owner, tok.id)
			if err != nil {
				return nil, fmt.Errorf("resolve: %w", err)
			}
			if err := permitsSecret(r.sinks, g.Sink); err != nil {
				return nil, fmt.Errorf("resolve: %w", err)
			}
			b, err := t.load(r)
			if err != nil {
				return nil, fmt.Errorf("resolve: %w", err)
			}
			v = string(b)
			values[tok.id] = v
		}
		// One symbol written a thousand times must not become a thousand
		// times its value.
		if total += int64(len(v)); total > 2*t.maxValue {
			return nil, fmt.Errorf("resolve: %w: more than %d bytes in one text", ErrTooLarge, 2*t.maxValue)
		}
		pieces[i] = piece{tok, v}
	}
	return pieces, nil
}

func permitsSecret(sinks []byte, to schema.Sink) error {
	if sinks == nil {
		return nil
	}
	var rules []SinkRule
	if err := schema.Decode(sinks, &rules); err != nil {
		return fmt.Errorf("read a secret's sinks: %w", err)
	}
	for _, r := range rules {
		if r.permits(to) {
			return nil
		}
	}
	return fmt.Errorf("%w: a secret may not go to this sink", ErrNoGrant)
}

// load returns the bytes that a symbol stands for.
func (t *Table) load(r record) ([]byte, error) {
	data, err := t.values.get(r.hash, r.inline)
	if err != nil {
		return nil, err
	}
	if r.start > int64(len(data)) || r.size > int64(len(data))-r.start {
		return nil, errDamaged
	}
	return data[r.start : r.start+r.size], nil
}

func (t *Table) loadContent(ctx context.Context, id int64) ([]byte, error) {
	var hash, inline []byte
	err := t.db.QueryRowContext(ctx, `SELECT hash, data FROM dualview_content WHERE id = ?`, id).Scan(&hash, &inline)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("read a value: %w", err)
	}
	return t.values.get(hash, inline)
}

// place puts the values where their tokens stand.
func place(text string, pieces []piece, c Context) (string, error) {
	out, _, err := placeRanges(text, pieces, c)
	return out, err
}

// escaper returns what replaces bytes [from, to) of the text, which begin and
// end at or around the piece's token, so that a whole field can be quoted.
type escaper func(text string, p piece) (repl string, err error)

func placeRanges(text string, pieces []piece, c Context) (string, [][2]int, error) {
	var esc escaper
	switch c {
	case Raw:
		esc = func(_ string, p piece) (string, error) { return p.value, nil }
	case JSON:
		esc = newJSONEscaper(text)
	case YAML:
		esc = newYAMLEscaper(text)
	case CSV:
		return placeCSV(text, pieces)
	case HTML:
		esc = newHTMLEscaper(text)
	case ShellArgument:
		return placeShell(text, pieces)
	case URL:
		esc = escapeURL
	default:
		return "", nil, fmt.Errorf("%w: no context was named", ErrContext)
	}
	var b strings.Builder
	size := len(text)
	for _, p := range pieces {
		size += len(p.value) + len(p.value)/16
	}
	b.Grow(size)
	ranges := make([][2]int, len(pieces))
	at := 0
	for i, p := range pieces {
		b.WriteString(text[at:p.start])
		repl, err := esc(text, p)
		if err != nil {
			return "", nil, fmt.Errorf("symbol %d of the text: %w", i+1, err)
		}
		ranges[i][0] = b.Len()
		b.WriteString(repl)
		ranges[i][1] = b.Len()
		at = p.end
	}
	b.WriteString(text[at:])
	return b.String(), ranges, nil
}
