package dualview

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"example.org/auditd/schema"
)

// ErrTooLarge means that a value is over the table's limit. The caller
// withholds it.
var ErrTooLarge = errors.New("the value is over the size limit")

// Item is one value to be replaced by a symbol.
type Item struct {
	Value      []byte
	Provenance Provenance
	// Secret makes a symbol that resolves only for Sinks; with none of them it
	// resolves for nothing.
	Secret bool
	Sinks  []SinkRule
}

// Symbolise replaces one untrusted value by a new symbol.
func (t *Table) Symbolise(ctx context.Context, owner string, value []byte, p Provenance) (Symbol, error) {
	symbols, err := t.SymboliseAll(ctx, owner, []Item{{Value: value, Provenance: p}})
	if err != nil {
		return "", err
	}
	return symbols[0], nil
}

// SymboliseAll replaces values by symbols, all of them or none. Two values never
// share a symbol, also when they are equal. When it returns, the symbols
// resolve after a restart and their content is recognised wherever it comes
// back.
func (t *Table) SymboliseAll(ctx context.Context, owner string, items []Item) ([]Symbol, error) {
	if owner == "" {
		return nil, errors.New("symbolise: no owner")
	}
	prepared := make([]preparedItem, len(items))
	for i := range items {
		var err error
		if prepared[i], err = t.prepare(&items[i]); err != nil {
			return nil, fmt.Errorf("symbolise: %w", err)
		}
	}
	if err := t.index.room(ctx); err != nil {
		return nil, fmt.Errorf("symbolise: %w", err)
	}
	symbols := make([]Symbol, len(items))
	var fresh []indexJob
	err := t.withWrite(ctx, func(tx *sql.Tx) error {
		ins, err := prepareInserts(ctx, tx)
		if err != nil {
			return err
		}
		defer ins.close()
		for i := range prepared {
			p := &prepared[i]
			if p.content, p.fresh, err = t.storeContent(ctx, ins, p.hash, p.data); err != nil {
				return err
			}
			if !p.fresh && p.sinks == nil {
				// What was a secret once is one wherever it is met again.
				if p.sinks, err = secretSinks(ctx, tx, owner, p.content); err != nil {
					return err
				}
			}
			if p.fresh {
				fresh = append(fresh, indexJob{p.content, p.data})
			}
			if symbols[i], err = t.insertSymbol(ctx, ins, owner, p.content, 0, int64(len(p.data)), p.provenance, p.parents, p.sinks); err != nil {
				return err
			}
		}
		return nil
	}, func() { t.index.later(fresh) })
	if err != nil {
		return nil, fmt.Errorf("symbolise: %w", err)
	}
	return symbols, nil
}

// secretSinks returns where a content may go that is a secret of owner's; nil for
// one that is none.
func secretSinks(ctx context.Context, tx *sql.Tx, owner string, content int64) (sinks []byte, err error) {
	err = tx.QueryRowContext(ctx, `SELECT sinks FROM dualview_symbol WHERE content = ? AND owner = ? AND sinks IS NOT NULL ORDER BY n LIMIT 1`, content, owner).Scan(&sinks)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look whether a value is a secret: %w", err)
	}
	return sinks, nil
}

// preparedItem is everything about an item that needs no lock.
type preparedItem struct {
	data, hash, provenance, sinks []byte
	parents                       []symbolID
	content                       int64
	fresh                         bool
}

func (t *Table) prepare(it *Item) (preparedItem, error) {
	if int64(len(it.Value)) > t.maxValue {
		return preparedItem{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(it.Value), t.maxValue)
	}
	p := preparedItem{data: it.Value}
	p.hash = t.values.hash(it.Value)
	var err error
	if p.provenance, p.parents, err = t.encodeProvenance(&it.Provenance); err != nil {
		return preparedItem{}, err
	}
	if it.Secret {
		if p.sinks, err = schema.Encode(append([]SinkRule{}, it.Sinks...)); err != nil {
			return preparedItem{}, fmt.Errorf("encode a secret's sinks: %w", err)
		}
	}
	return p, nil
}

func (t *Table) encodeProvenance(p *Provenance) ([]byte, []symbolID, error) {
	if err := p.validate(); err != nil {
		return nil, nil, fmt.Errorf("provenance: %w", err)
	}
	var parents []symbolID
	for _, s := range p.Parents {
		id, err := t.mint.parse(string(s))
		if err != nil {
			return nil, nil, fmt.Errorf("provenance: a parent %w", err)
		}
		parents = append(parents, id)
	}
	enc, err := schema.Encode(p)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the provenance: %w", err)
	}
	return enc, parents, nil
}

// withWrite runs f in a transaction of the writing connection, and then, once
// it has been committed and before any other writer, done.
func (t *Table) withWrite(ctx context.Context, f func(*sql.Tx) error, done func()) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	// The transaction itself must not be cancelled: database/sql would throw the
	// connection away with it, and every later write would fail. Its statements
	// are.
	tx, err := t.write.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // does nothing after a commit
	if err := f(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("before the commit: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if done != nil {
		done()
	}
	return nil
}

type inserts struct{ find, content, symbol, parent, number *sql.Stmt }

func prepareInserts(ctx context.Context, tx *sql.Tx) (*inserts, error) {
	ins := new(inserts)
	for _, s := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&ins.find, `SELECT id FROM dualview_content WHERE hash = ?`},
		{&ins.content, `INSERT INTO dualview_content (hash, size, data) VALUES (?, ?, ?)`},
		{&ins.symbol, `INSERT INTO dualview_symbol (id, owner, content, start, size, created, provenance, sinks) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`},
		{&ins.parent, `INSERT OR IGNORE INTO dualview_parent (child, parent) VALUES (?, ?)`},
		{&ins.number, `SELECT n FROM dualview_symbol WHERE id = ? AND owner = ?`},
	} {
		var err error
		if *s.to, err = tx.PrepareContext(ctx, s.sql); err != nil {
			ins.close()
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	return ins, nil
}

func (ins *inserts) close() {
	for _, s := range []*sql.Stmt{ins.find, ins.content, ins.symbol, ins.parent, ins.number} {
		if s != nil {
			s.Close()
		}
	}
}

// storeContent returns the id of the value's row, and whether it is new.
func (t *Table) storeContent(ctx context.Context, ins *inserts, hash, data []byte) (int64, bool, error) {
	var id int64
	switch err := ins.find.QueryRowContext(ctx, hash).Scan(&id); {
	case err == nil:
		return id, false, nil
	case !errors.Is(err, sql.ErrNoRows):
		return 0, false, fmt.Errorf("look for an equal value: %w", err)
	}
	stored, err := t.values.put(hash, data)
	if err != nil {
		return 0, false, err
	}
	res, err := ins.content.ExecContext(ctx, hash, len(data), stored)
	if err != nil {
		return 0, false, fmt.Errorf("store a value: %w", err)
	}
	id, err = res.LastInsertId()
	return id, true, err
}

// insertSymbol makes one symbol for bytes [start, start+size) of a content.
// Every parent must be a symbol of the same owner: provenance never crosses
// owners.
func (t *Table) insertSymbol(ctx context.Context, ins *inserts, owner string, content, start, size int64, provenance []byte, parents []symbolID, sinks []byte) (Symbol, error) {
	id, err := t.mint.new()
	if err != nil {
		return "", err
	}
	res, err := ins.symbol.ExecContext(ctx, id[:], owner, content, start, size, t.now().UnixMilli(), provenance, sinks)
	if err != nil {
		return "", fmt.Errorf("store a symbol: %w", err)
	}
	n, err := res.LastInsertId()
	if err != nil {
		return "", err
	}
	for _, parent := range parents {
		var pn int64
		if err := ins.number.QueryRowContext(ctx, parent[:], owner).Scan(&pn); err != nil {
			return "", fmt.Errorf("find a parent: %w", err)
		}
		if _, err := ins.parent.ExecContext(ctx, n, pn); err != nil {
			return "", fmt.Errorf("store a parent: %w", err)
		}
	}
	return t.mint.symbol(id), nil
}

// Derive makes a symbol for bytes [start, end) of parent's value. Provenance
// and secrecy are the parent's.
func (t *Table) Derive(ctx context.Context, owner string, parent Symbol, start, end int64) (Symbol, error) {
	id, err := t.mint.parse(string(parent))
	if err != nil {
		return "", fmt.Errorf("derive: the parent %w", err)
	}
	var sym Symbol
	err = t.withWrite(ctx, func(tx *sql.Tx) error {
		r, err := t.lookup(ctx, tx.StmtContext(ctx, t.find), owner, id)
		if err != nil {
			return err
		}
		if start < 0 || end < start || end > r.size {
			return fmt.Errorf("bytes [%d,%d) of a value of %d", start, end, r.size)
		}
		ins, err := prepareInserts(ctx, tx)
		if err != nil {
			return err
		}
		defer ins.close()
		sym, err = t.insertSymbol(ctx, ins, owner, r.content, r.start+start, end-start, r.provenance, []symbolID{id}, r.sinks)
		return err
	}, nil)
	if err != nil {
		return "", fmt.Errorf("derive: %w", err)
	}
	return sym, nil
}
