// Package sqlite opens the daemon's database and brings its tables up to date.
// It knows no table: every package that owns data brings its own migrations as
// an embedded directory and runs its own SQL. Only this package imports the
// driver.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/mattn/go-sqlite3" // the driver, registered as "sqlite3"
)

// maxConns bounds the pool: one writer at a time is all that SQLite has, and a
// few readers beside it.
const maxConns = 8

// pragmas stand in the DSN because a statement run on the pool reaches one
// connection of it only.
//
//	WAL + synchronous=FULL   a committed transaction survives a power failure
//	_txlock=immediate        a transaction takes the write lock when it begins,
//	                         so that it never fails half-way for being second
//	busy_timeout             a second writer waits instead of failing
//	foreign_keys             references are enforced
//	secure_delete            deleted payload is overwritten with zeros
//	trusted_schema=off       a tampered schema cannot call functions
const pragmas = "_journal_mode=WAL&_synchronous=FULL&_txlock=immediate&_busy_timeout=5000&_foreign_keys=on&_secure_delete=on"

// Open opens the database at path, creating it with mode 0600 if it is
// missing, and applies the migrations that it lacks: every file *.sql of
// migrations, in the order of their paths, each in a transaction of its own and
// recorded by its path. A package's files lie in a directory named after the
// package ("approval/0001-questions.sql"), so that several packages keep their
// migrations apart in one database. A nil migrations applies none.
func Open(path string, migrations fs.FS) (*sql.DB, error) {
	// SQLite would create the file with the umask's mode, and gives its -wal and
	// -shm files the mode of the database: so it has to exist with 0600 first.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the database file: %w", err)
	}
	err = f.Chmod(0o600)
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("set the database's file mode: %w", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the database's directory: %w", err)
	}
	dsn := (&url.URL{Scheme: "file", Path: abs, RawQuery: pragmas}).String()
	db := sql.OpenDB(connector{dsn: dsn})
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	if migrations != nil {
		if err := Migrate(context.Background(), db, migrations); err != nil {
			db.Close()
			return nil, err
		}
	} else if err := db.Ping(); err != nil {
		db.Close()
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return db, nil
}

// Migrate applies the migrations that db lacks. It may be called once per
// package. A migration that was applied and has changed since is refused: what
// the tables look like would be unknown.
func Migrate(ctx context.Context, db *sql.DB, migrations fs.FS) error {
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS migrations (
		name TEXT PRIMARY KEY NOT NULL, digest TEXT NOT NULL) STRICT`); err != nil {
		return fmt.Errorf("create the table of migrations: %w", err)
	}
	var names []string
	err := fs.WalkDir(migrations, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && strings.HasSuffix(name, ".sql") {
			if !strings.Contains(name, "/") {
				return fmt.Errorf("migration %s lies in no directory named after its package", name)
			}
			names = append(names, name) // WalkDir goes in lexical order
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the migrations: %w", err)
	}
	for _, name := range names {
		if err := migrate(ctx, db, migrations, name); err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	return nil
}

func migrate(ctx context.Context, db *sql.DB, migrations fs.FS, name string) error {
	script, err := fs.ReadFile(migrations, name)
	if err != nil {
		return err
	}
	want := digest(script)
	return WithTx(ctx, db, func(tx *sql.Tx) error {
		var have string
		switch err := tx.QueryRowContext(ctx, `SELECT digest FROM migrations WHERE name = ?`, name).Scan(&have); {
		case err == nil && have == want:
			return nil
		case err == nil:
			return errors.New("was applied with another content; add a new migration instead of changing one")
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		if _, err := tx.ExecContext(ctx, string(script)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO migrations (name, digest) VALUES (?, ?)`, name, want)
		return err
	})
}

// WithTx runs f in one write transaction: committed when f returns nil, rolled
// back when it returns an error or panics.
func WithTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer tx.Rollback() // does nothing after a commit
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
