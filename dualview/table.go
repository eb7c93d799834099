package dualview

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the tables that a database must have for New.
func Migrations() fs.FS {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic("dualview: internal error: " + err.Error()) // the path is a constant
	}
	return sub
}

// Limits.
const (
	DefaultMaxValue  = 64 << 20 // bytes of one value
	DefaultRetention = 90 * 24 * time.Hour
	keySize          = 32
	// inlineMax is the size up to which a value lies in the database itself.
	inlineMax = 64 << 10
)

// Config is what a Table is made of.
type Config struct {
	DB  *sql.DB // with Migrations applied
	Dir string  // for keys, large values and the content index; made with mode 0700
	// EncryptionKeyFile, when set, names a file of 32 bytes: values are then
	// stored under AES-256-GCM. A table cannot be opened without the key that
	// it was made with.
	EncryptionKeyFile string
	Retention         time.Duration // 0 means DefaultRetention
	MaxValue          int64         // 0 means DefaultMaxValue
	Now               func() time.Time
	Logger            *slog.Logger
}

// Table holds all symbols of all owners and sessions. It is safe for
// concurrent use. Nothing of it is held in memory but the index's filter.
type Table struct {
	db        *sql.DB
	find      *sql.Stmt // lookupSQL
	mint      *mint
	values    *valueStore
	index     *index
	compared  foldedCache
	now       func() time.Time
	retention time.Duration
	maxValue  int64
	log       *slog.Logger

	// writing serialises writers: SQLite has one anyway, and the content index
	// must see values in the order of their ids.
	writing sync.Mutex
	write   *sql.Conn // guarded by writing
}

// New opens the table in cfg.DB and cfg.Dir.
func New(ctx context.Context, cfg Config) (*Table, error) {
	if cfg.DB == nil || cfg.Dir == "" {
		return nil, errors.New("dualview: Config needs DB and Dir")
	}
	t := &Table{db: cfg.DB, now: cfg.Now, retention: cfg.Retention, maxValue: cfg.MaxValue, log: cfg.Logger}
	if t.now == nil {
		t.now = time.Now
	}
	if t.retention == 0 {
		t.retention = DefaultRetention
	}
	if t.maxValue == 0 {
		t.maxValue = DefaultMaxValue
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if err := privateDir(cfg.Dir); err != nil {
		return nil, err
	}
	key, err := tableKey(ctx, cfg.DB, cfg.Dir)
	if err != nil {
		return nil, err
	}
	t.mint = newMint(subkey(key, "symbol"), rand.Reader)
	if t.values, err = newValueStore(ctx, cfg, subkey(key, "content")); err != nil {
		return nil, err
	}
	if t.write, err = cfg.DB.Conn(ctx); err != nil {
		return nil, fmt.Errorf("open the symbol table's writing connection: %w", err)
	}
	// In WAL mode NORMAL leaves a commit to the next checkpoint's sync: killing
	// the process loses nothing, and a power failure can lose the youngest
	// symbols, which then resolve to nothing. The originals that people have
	// lie in their files, so a sync for each tool result buys nothing.
	if _, err := t.write.ExecContext(ctx, `PRAGMA synchronous = NORMAL`); err != nil {
		t.write.Close()
		return nil, fmt.Errorf("set up the symbol table's writing connection: %w", err)
	}
	if t.find, err = cfg.DB.PrepareContext(ctx, lookupSQL); err != nil {
		t.write.Close()
		return nil, fmt.Errorf("prepare the symbol table: %w", err)
	}
	if t.index, err = t.openIndex(ctx, filepath.Join(cfg.Dir, "index"), subkey(key, "index")); err != nil {
		t.find.Close()
		t.write.Close()
		return nil, err
	}
	return t, nil
}

// Close writes out the content index. The database stays open.
func (t *Table) Close() error {
	t.writing.Lock()
	defer t.writing.Unlock()
	return errors.Join(t.index.settle(context.Background()), t.index.close(), t.find.Close(), t.write.Close())
}

func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the symbol table's directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close the symbol table's directory to others: %w", err)
	}
	return nil
}

func subkey(key []byte, name string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("auditd dualview " + name))
	return h.Sum(nil)
}

// tableKey reads the key that makes this table's symbols its own, or makes one
// for an empty table. With another key every symbol would silently mean
// nothing, so a mismatch is refused.
func tableKey(ctx context.Context, db *sql.DB, dir string) ([]byte, error) {
	var want []byte
	err := db.QueryRowContext(ctx, `SELECT value FROM dualview_meta WHERE name = 'key'`).Scan(&want)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read the symbol table's key check: %w", err)
	}
	path := filepath.Join(dir, "symbol.key")
	key, rerr := readKey(path)
	switch {
	case rerr == nil && want == nil, errors.Is(rerr, fs.ErrNotExist) && want == nil:
		if rerr != nil {
			key = make([]byte, keySize)
			rand.Read(key) // never fails
			if err := writePrivate(path, key, true); err != nil {
				return nil, fmt.Errorf("write the symbol table's key: %w", err)
			}
		}
		if _, err := db.ExecContext(ctx, `INSERT INTO dualview_meta (name, value) VALUES ('key', ?)`, subkey(key, "check")); err != nil {
			return nil, fmt.Errorf("record the symbol table's key check: %w", err)
		}
	case rerr != nil:
		return nil, fmt.Errorf("read the symbol table's key: %w", rerr)
	case !hmac.Equal(want, subkey(key, "check")):
		return nil, fmt.Errorf("%s is not the key of this symbol table: put the right one back, or start with an empty state directory", path)
	}
	return key, nil
}

// readKey reads a key file, which must be exactly keySize bytes and closed to
// everybody else.
func readKey(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s may be read by others (mode %04o): chmod 600 it", path, st.Mode().Perm())
	}
	key := make([]byte, keySize+1)
	n, err := io.ReadFull(f, key)
	if err != io.ErrUnexpectedEOF || n != keySize {
		return nil, fmt.Errorf("%s must hold exactly %d bytes", path, keySize)
	}
	return key[:keySize], nil
}

// writePrivate writes a file with mode 0600 so that it is there whole or not at
// all.
func writePrivate(path string, data []byte, sync bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing to remove
	if _, err = f.Write(data); err == nil && sync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
