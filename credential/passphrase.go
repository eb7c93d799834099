package credential

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"golang.org/x/crypto/argon2"

	"example.org/auditd/schema"
)

// MinPassphrase is the least length of a passphrase, in bytes. The hash can be
// read by whatever runs as the owner's user and guessed at offline, so length
// is what protects it.
const MinPassphrase = 10

const maxPassphrase = 1024

// passphraseFile is the owner's file on disk. It carries its own cost
// parameters, so that they can be raised later.
type passphraseFile struct {
	Version   int       `json:"version"`
	Algorithm string    `json:"algorithm"`
	Time      uint32    `json:"time"`
	MemoryKiB uint32    `json:"memory_kib"`
	Threads   uint8     `json:"threads"`
	Salt      string    `json:"salt"`
	Hash      string    `json:"hash"`
	SetAt     time.Time `json:"set_at"`
	Terminal  string    `json:"terminal"` // where it was typed, for the owner who wonders
}

// Cost parameters of new hashes: about a tenth of a second on one core, and
// memory that makes guessing in parallel dear.
const (
	costTime    = 3
	costMemory  = 64 << 10
	costThreads = 2
)

// SetPassphrase writes the hash of passphrase to path. Without replace it
// fails with fs.ErrExist when there is one already. The caller has made sure
// that a person typed it: this function is called from a terminal command
// only, never from the API.
func SetPassphrase(path, passphrase, terminal string, now time.Time, replace bool) error {
	if len(passphrase) < MinPassphrase || len(passphrase) > maxPassphrase {
		return fmt.Errorf("the passphrase has %d bytes, it needs %d to %d", len(passphrase), MinPassphrase, maxPassphrase)
	}
	var salt [16]byte
	rand.Read(salt[:])
	f := passphraseFile{Version: 1, Algorithm: "argon2id", Time: costTime, MemoryKiB: costMemory, Threads: costThreads,
		Salt: hex.EncodeToString(salt[:]), SetAt: now.UTC(), Terminal: terminal}
	f.Hash = hex.EncodeToString(argon2.IDKey([]byte(passphrase), salt[:], f.Time, f.MemoryKiB, f.Threads, 32))
	data, err := schema.Encode(f)
	if err != nil {
		return fmt.Errorf("encode the passphrase file: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create the passphrase file's directory: %w", err)
	}
	if err := writeFile(path, append(data, '\n'), replace); err != nil {
		return fmt.Errorf("write the passphrase file: %w", err)
	}
	return nil
}

// Passphrase is the hash of the owner's passphrase as it was when it was read.
type Passphrase struct {
	SetAt    time.Time
	Terminal string
	file     passphraseFile
	digest   [sha256.Size]byte
}

// ReadPassphrase reads the owner's file. The error is fs.ErrNotExist when no
// passphrase has been set.
func ReadPassphrase(path string) (*Passphrase, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the passphrase file: %w", err)
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return nil, fmt.Errorf("read the passphrase file: %s has mode %#o, which lets others change it", path, perm)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the passphrase file: %w", err)
	}
	p := &Passphrase{digest: sha256.Sum256(data)}
	if err := schema.Decode(bytes.TrimSpace(data), &p.file); err != nil {
		return nil, fmt.Errorf("read the passphrase file %s: %w", path, err)
	}
	f := p.file
	// The bounds keep a planted file from making every check free or endless.
	if f.Version != 1 || f.Algorithm != "argon2id" || f.Time < 1 || f.Time > 16 || f.MemoryKiB < 8<<10 || f.MemoryKiB > 1<<20 || f.Threads < 1 || len(f.Hash) != 64 {
		return nil, fmt.Errorf("read the passphrase file %s: its parameters are not ones that auditd writes", path)
	}
	p.SetAt, p.Terminal = f.SetAt, f.Terminal
	return p, nil
}

// Matches reports whether passphrase is the owner's.
func (p *Passphrase) Matches(passphrase string) bool {
	if len(passphrase) > maxPassphrase {
		return false
	}
	salt, err1 := hex.DecodeString(p.file.Salt)
	want, err2 := hex.DecodeString(p.file.Hash)
	if errors.Join(err1, err2) != nil || len(want) != 32 {
		return false
	}
	got := argon2.IDKey([]byte(passphrase), salt, p.file.Time, p.file.MemoryKiB, p.file.Threads, 32)
	debug.FreeOSMemory() // the hash took 64 MiB, the daemon lives in less
	return subtle.ConstantTimeCompare(got, want) == 1
}

// changed reports whether the file at path is no longer the one that was read.
func (p *Passphrase) changed(path string) bool {
	data, err := os.ReadFile(path)
	return err != nil && !errors.Is(err, fs.ErrPermission) || err == nil && sha256.Sum256(data) != p.digest
}
