package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"fmt"

	"github.com/mattn/go-sqlite3"
)

// connector opens connections with the pragmas of the DSN and the one that the
// driver has no DSN parameter for.
type connector struct{ dsn string }

func (c connector) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	d := &sqlite3.SQLiteDriver{ConnectHook: func(conn *sqlite3.SQLiteConn) error {
		_, err := conn.Exec(`PRAGMA trusted_schema = off`, nil)
		return err
	}}
	conn, err := d.Open(c.dsn)
	if err != nil {
		return nil, fmt.Errorf("open a database connection: %w", err)
	}
	return conn, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
