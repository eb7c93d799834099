package dualview

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// valueStore keeps values: small ones in the database, large ones in files
// named after their keyed hash, both under AES-GCM when there is a key. What is
// read is checked against the hash before anybody sees it.
type valueStore struct {
	dir  string
	key  []byte // of the hash
	seal cipher.AEAD
}

func newValueStore(ctx context.Context, cfg Config, key []byte) (*valueStore, error) {
	v := &valueStore{dir: filepath.Join(cfg.Dir, "values"), key: key}
	if err := privateDir(v.dir); err != nil {
		return nil, err
	}
	var check []byte
	if cfg.EncryptionKeyFile != "" {
		k, err := readKey(cfg.EncryptionKeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the encryption key: %w", err)
		}
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, fmt.Errorf("use the encryption key: %w", err)
		}
		if v.seal, err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("use the encryption key: %w", err)
		}
		check = subkey(k, "encryption check")
	}
	var want []byte
	err := cfg.DB.QueryRowContext(ctx, `SELECT value FROM dualview_meta WHERE name = 'encryption'`).Scan(&want)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		if check == nil {
			check = []byte{}
		}
		if _, err := cfg.DB.ExecContext(ctx, `INSERT INTO dualview_meta (name, value) VALUES ('encryption', ?)`, check); err != nil {
			return nil, fmt.Errorf("record the encryption key's check: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("read the encryption key's check: %w", err)
	case !hmac.Equal(want, check):
		return nil, errors.New("the symbol table was made with another encryption key, or with none: set encryption_key_file to that one")
	}
	return v, nil
}

func (v *valueStore) hash(data []byte) []byte {
	h := hmac.New(sha256.New, v.key)
	h.Write(data)
	return h.Sum(nil)
}

func (v *valueStore) path(hash []byte) string {
	name := hex.EncodeToString(hash)
	return filepath.Join(v.dir, name[:2], name)
}

func (v *valueStore) encrypt(hash, data []byte) []byte {
	if v.seal == nil {
		return data
	}
	nonce := make([]byte, v.seal.NonceSize(), v.seal.NonceSize()+len(data)+v.seal.Overhead())
	rand.Read(nonce) // never fails
	return v.seal.Seal(nonce, nonce, data, hash)
}

var errDamaged = errors.New("a stored value is damaged")

func (v *valueStore) decrypt(hash, stored []byte) ([]byte, error) {
	data := stored
	if v.seal != nil {
		n := v.seal.NonceSize()
		if len(stored) < n {
			return nil, errDamaged
		}
		var err error
		if data, err = v.seal.Open(nil, stored[:n], stored[n:], hash); err != nil {
			return nil, errDamaged
		}
	}
	if !hmac.Equal(v.hash(data), hash) {
		return nil, errDamaged
	}
	return data, nil
}

// put stores data and returns what belongs into the data column: nil when it
// went into a file.
func (v *valueStore) put(hash, data []byte) ([]byte, error) {
	stored := v.encrypt(hash, data)
	if len(data) <= inlineMax {
		if stored == nil {
			stored = []byte{} // NULL would mean a file
		}
		return stored, nil
	}
	path := v.path(hash)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("store a value: %w", err)
	}
	if err := writePrivate(path, stored, false); err != nil {
		return nil, fmt.Errorf("store a value: %w", err)
	}
	return nil, nil
}

func (v *valueStore) get(hash, inline []byte) ([]byte, error) {
	if inline == nil {
		var err error
		if inline, err = os.ReadFile(v.path(hash)); err != nil {
			return nil, fmt.Errorf("read a stored value: %w", err)
		}
	}
	return v.decrypt(hash, inline)
}

func (v *valueStore) remove(hash []byte) error {
	if err := os.Remove(v.path(hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a stored value: %w", err)
	}
	return nil
}
