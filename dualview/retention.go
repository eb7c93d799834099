package dualview

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Hold keeps symbols from being dropped for as long as holder (a view, a
// session, a question) shows them.
func (t *Table) Hold(ctx context.Context, owner, holder string, symbols []Symbol) error {
	err := t.withWrite(ctx, func(tx *sql.Tx) error { return t.hold(ctx, tx, owner, holder, symbols) }, nil)
	if err != nil {
		return fmt.Errorf("hold symbols: %w", err)
	}
	return nil
}

// SetHeld makes symbols the only ones that holder holds.
func (t *Table) SetHeld(ctx context.Context, owner, holder string, symbols []Symbol) error {
	err := t.withWrite(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM dualview_hold WHERE holder = ?`, holder); err != nil {
			return err
		}
		return t.hold(ctx, tx, owner, holder, symbols)
	}, nil)
	if err != nil {
		return fmt.Errorf("hold symbols: %w", err)
	}
	return nil
}

func (t *Table) hold(ctx context.Context, tx *sql.Tx, owner, holder string, symbols []Symbol) error {
	find := tx.StmtContext(ctx, t.find)
	for _, s := range symbols {
		id, err := t.mint.parse(string(s))
		if err != nil {
			return fmt.Errorf("it %w", err)
		}
		r, err := t.lookup(ctx, find, owner, id)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO dualview_hold (symbol, holder) VALUES (?, ?)`, r.n, holder); err != nil {
			return err
		}
	}
	return nil
}

// Release gives up everything that holder holds.
func (t *Table) Release(ctx context.Context, holder string) error {
	return t.SetHeld(ctx, "", holder, nil)
}

// Collected says what a collection dropped.
type Collected struct{ Symbols, Values int }

// Collect drops the symbols that are older than the retention, that nobody
// holds and that no other symbol was made from; and the values that no symbol
// stands for any more. A dropped value is still recognised: its hashes stay in
// the content index.
func (t *Table) Collect(ctx context.Context) (Collected, error) {
	var c Collected
	before := t.now().Add(-t.retention)
	for {
		// A child is dropped before its parent, one generation a round.
		n, err := t.collectSymbols(ctx, before)
		if err != nil {
			return c, fmt.Errorf("collect symbols: %w", err)
		}
		if c.Symbols += n; n == 0 {
			break
		}
	}
	for {
		n, err := t.collectValues(ctx)
		if err != nil {
			return c, fmt.Errorf("collect values: %w", err)
		}
		if c.Values += n; n == 0 {
			break
		}
	}
	if err := t.sweep(ctx); err != nil {
		return c, fmt.Errorf("collect values' files: %w", err)
	}
	return c, nil
}

// collectBatch keeps the write lock short.
const collectBatch = 1000

func (t *Table) collectSymbols(ctx context.Context, before time.Time) (n int, err error) {
	err = t.withWrite(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM dualview_symbol WHERE n IN (
			SELECT n FROM dualview_symbol s WHERE created < ?
			AND NOT EXISTS (SELECT 1 FROM dualview_hold h WHERE h.symbol = s.n)
			AND NOT EXISTS (SELECT 1 FROM dualview_parent p WHERE p.parent = s.n)
			LIMIT ?)`, before.UnixMilli(), collectBatch)
		if err != nil {
			return err
		}
		dropped, err := res.RowsAffected()
		n = int(dropped)
		return err
	}, nil)
	return n, err
}

func (t *Table) collectValues(ctx context.Context) (n int, err error) {
	err = t.withWrite(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM dualview_content WHERE id IN (
			SELECT id FROM dualview_content c WHERE NOT EXISTS (SELECT 1 FROM dualview_symbol s WHERE s.content = c.id) LIMIT ?)`, collectBatch)
		if err != nil {
			return err
		}
		dropped, err := res.RowsAffected()
		n = int(dropped)
		return err
	}, nil)
	return n, err
}

// sweep removes the files that no value names: those of dropped values, and
// those that a transaction left behind which did not commit.
func (t *Table) sweep(ctx context.Context) error {
	return filepath.WalkDir(t.values.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		// A file is written within its transaction, so no file that is about
		// to be named can be seen here while the writer's lock is held.
		t.writing.Lock()
		defer t.writing.Unlock()
		hash, err := hex.DecodeString(d.Name())
		if err != nil {
			return os.Remove(path) // half of a file, left by a crash
		}
		var named bool
		if err := t.write.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM dualview_content WHERE hash = ?)`, hash).Scan(&named); err != nil {
			return err
		}
		if named {
			return nil
		}
		return t.values.remove(hash)
	})
}
