package dualview

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Tell charges bits to what session has been told about values in clear, if
// that stays within limit, and reports whether it has. The account is on the
// disk before anything is told. It has no end: a session that goes on for
// months does not get a new budget.
func (t *Table) Tell(ctx context.Context, owner, session string, bits, limit float64) (bool, error) {
	if owner == "" || session == "" || !(bits >= 0) { // NaN too
		return false, errors.New("charge what is told: no owner, no session or no number of bits")
	}
	fits := false
	err := t.withWrite(ctx, func(tx *sql.Tx) error {
		var told float64
		err := tx.QueryRowContext(ctx, `SELECT bits FROM dualview_told WHERE owner = ? AND session = ?`, owner, session).Scan(&told)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if !(told+bits <= limit) {
			return nil
		}
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO dualview_told (owner, session, bits, at) VALUES (?, ?, ?, ?)`,
			owner, session, told+bits, t.now().UnixMilli())
		fits = err == nil
		return err
	}, nil)
	if err != nil {
		return false, fmt.Errorf("charge what is told: %w", err)
	}
	return fits, nil
}
