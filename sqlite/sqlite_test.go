package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"example.org/auditd/sqlite"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// TestPragmas holds several connections at once, because a pragma that was set
// through the pool would be on in one of them only.
func TestPragmas(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a b?c#d.db"), nil)
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000",
		"secure_delete": "1", "trusted_schema": "0"}
	var conns []*sql.Conn
	for range 4 {
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	for i, c := range conns {
		for name, value := range want {
			var got string
			if err := c.QueryRowContext(t.Context(), "PRAGMA "+name).Scan(&got); err != nil || got != value {
				t.Errorf("connection %d: %s = %q, %v; want %q", i, name, got, err, value)
			}
		}
	}
}

func TestFileMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	db := open(t, path, fstest.MapFS{"p/1.sql": file(`CREATE TABLE t (x TEXT) STRICT`)})
	if _, err := db.Exec(`INSERT INTO t VALUES ('x')`); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		st, err := os.Stat(path + suffix)
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v; want 0600", "db"+suffix, st.Mode(), err)
		}
	}
}

func TestMigrations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	fsys := fstest.MapFS{
		"b/0001.sql": file(`CREATE TABLE b (x TEXT) STRICT; INSERT INTO b VALUES ('one')`),
		"a/0002.sql": file(`ALTER TABLE a ADD COLUMN y TEXT`),
		"a/0001.sql": file(`CREATE TABLE a (x TEXT) STRICT`),
	}
	for range 2 { // the second time there is nothing to do
		db := open(t, path, fsys)
		var n int
		if err := db.QueryRow(`SELECT count(*) FROM b`).Scan(&n); err != nil || n != 1 {
			t.Fatalf("b has %d rows, %v", n, err)
		}
		if _, err := db.Exec(`INSERT INTO a (x, y) VALUES ('1', '2')`); err != nil {
			t.Fatal(err)
		}
		db.Close()
	}

	bad := fstest.MapFS{"c/0001.sql": file(`CREATE TABLE c (x TEXT) STRICT; CREATE TABLE b (x TEXT)`)}
	if _, err := sqlite.Open(path, bad); err == nil || !strings.Contains(err.Error(), "c/0001.sql") {
		t.Errorf("a migration that fails: %v", err)
	}
	db := open(t, path, nil)
	if _, err := db.Exec(`SELECT * FROM c`); err == nil {
		t.Error("half of a failed migration stayed")
	}
	fsys["a/0001.sql"] = file(`CREATE TABLE a (x TEXT, z TEXT) STRICT`)
	if err := sqlite.Migrate(t.Context(), db, fsys); err == nil || !strings.Contains(err.Error(), "another content") {
		t.Errorf("a changed migration: %v", err)
	}
	if err := sqlite.Migrate(t.Context(), db, fstest.MapFS{"x.sql": file(``)}); err == nil {
		t.Error("a migration without a package was taken")
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"directory": dir, "missing parent": filepath.Join(dir, "no", "x.db"), "garbage": garbage} {
		if db, err := sqlite.Open(path, nil); err == nil {
			db.Close()
			t.Errorf("%s: opened", name)
		}
	}
}

func TestWithTx(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "x.db"), fstest.MapFS{"p/1.sql": file(`CREATE TABLE t (n INTEGER) STRICT; INSERT INTO t VALUES (0)`)})
	boom := errors.New("boom")
	if err := sqlite.WithTx(t.Context(), db, func(tx *sql.Tx) error {
		if _, err := tx.Exec(`UPDATE t SET n = 99`); err != nil {
			return err
		}
		return boom
	}); err != boom {
		t.Fatalf("got %v", err)
	}
	func() {
		defer func() { recover() }()
		sqlite.WithTx(t.Context(), db, func(tx *sql.Tx) error { tx.Exec(`UPDATE t SET n = 99`); panic("x") })
	}()
	// Read, then write: without an immediate lock this loses updates or fails.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if err := sqlite.WithTx(context.Background(), db, func(tx *sql.Tx) error {
					var n int
					if err := tx.QueryRow(`SELECT n FROM t`).Scan(&n); err != nil {
						return err
					}
					_, err := tx.Exec(`UPDATE t SET n = ?`, n+1)
					return err
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var n int
	if err := db.QueryRow(`SELECT n FROM t`).Scan(&n); err != nil || n != 80 {
		t.Errorf("n = %d, %v; want 80", n, err)
	}
}

func open(t *testing.T, path string, migrations fs.FS) *sql.DB {
	t.Helper()
	db, err := sqlite.Open(path, migrations)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
