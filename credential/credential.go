// Package credential keeps the two credentials of the daemon apart.
//
// The hook token lies in a file that every program of the owner's user can
// read, agents included: whoever holds it may report and ask. The owner's
// rights (approve, change policy, see originals) hang on a passphrase that
// exists only in the owner's head and as an argon2id hash on disk, and on
// short-lived session tokens that exist only in the daemon's memory.
//
// The limit of this, said plainly: a process that runs as the owner's user and
// is not mediated can replace the hash file, or the daemon itself. The daemon
// therefore keeps the hash that it started with and says when the file has
// changed since; an owner who needs more runs the daemon as a user of its own.
package credential

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Prefixes tell a reader of a log or a config which kind of token leaked.
const (
	hookPrefix  = "ah_"
	ownerPrefix = "ao_"
)

// HookToken returns the hook token in the file at path, and creates the file
// (0600) when it does not exist. A file that others may read is refused: the
// token in it must be taken as known.
func HookToken(path string) (string, error) {
	token, err := ReadHookToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	token = newToken(hookPrefix)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("create the hook token's directory: %w", err)
	}
	if err := writeFile(path, []byte(token+"\n"), false); err != nil {
		if errors.Is(err, fs.ErrExist) { // another start was quicker
			return ReadHookToken(path)
		}
		return "", fmt.Errorf("create the hook token: %w", err)
	}
	return token, nil
}

// ReadHookToken returns the hook token in the file at path.
func ReadHookToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read the hook token: %w", err)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return "", fmt.Errorf("read the hook token: %s has mode %#o, which lets others read it; delete it and start auditd again for a new one", path, perm)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the hook token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if !strings.HasPrefix(token, hookPrefix) || len(token) != len(hookPrefix)+64 {
		return "", fmt.Errorf("read the hook token: %s does not hold one; delete it and start auditd again", path)
	}
	return token, nil
}

func newToken(prefix string) string {
	var b [32]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return prefix + hex.EncodeToString(b[:])
}

// writeFile writes a 0600 file so that a crash leaves the old one, the new one
// or none, never half of one. Without replace an existing file is an error.
func writeFile(path string, data []byte, replace bool) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // CreateTemp makes it 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if replace {
		err = os.Rename(tmp.Name(), path)
	} else {
		err = os.Link(tmp.Name(), path) // fails when path exists
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
