package auditlog

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"example.org/auditd/internal/durable"
	"golang.org/x/mod/sumdb/note"
)

// origin is the name of the log in its checkpoints and its key.
const origin = "auditd-log"

// Keys are the secrets of a log.
type Keys struct {
	Signer   string // Ed25519 key in the form of sumdb/note
	Verifier string // its public half
	MAC      []byte // key of the keyed digests
}

// Keyed is a keyed digest: equal texts of one kind have equal digests on one
// installation, and nobody without the key can try out guesses.
type Keyed string

// Keyed returns the digest of a text of a kind, such as "payload" or "agent",
// for matching a text at hand with records. The empty text has none.
func (k *Keys) Keyed(kind, text string) Keyed { return keyed(hmac.New(sha256.New, k.MAC), kind, text) }

// keyed is Keyed for many texts with one keyed hash.
func keyed(h hash.Hash, kind, text string) Keyed {
	if text == "" {
		return ""
	}
	h.Reset()
	fmt.Fprintf(h, "%d:%s", len(kind), kind)
	io.WriteString(h, text)
	return Keyed("hmac:" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]))
}

func newKeys() (*Keys, error) {
	skey, vkey, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return nil, fmt.Errorf("generate the signing key: %w", err)
	}
	mac := make([]byte, 32)
	rand.Read(mac) // never fails
	return &Keys{Signer: skey, Verifier: vkey, MAC: mac}, nil
}

// writeKeys stores the keys; log.key goes last, because its presence says that
// the log was created.
func writeKeys(dir string, k *Keys) error {
	for _, f := range []struct {
		name, text string
		perm       os.FileMode
	}{
		{"log.mac", hex.EncodeToString(k.MAC) + "\n", 0o600},
		{"log.pub", k.Verifier + "\n", 0o644},
		{"log.key", k.Signer + "\n", 0o600},
	} {
		write := durable.WriteFile
		if f.name == "log.key" {
			write = durable.CreateFile // never replaces a key
		}
		if err := write(filepath.Join(dir, f.name), []byte(f.text), f.perm); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	return nil
}

// readKeys returns fs.ErrNotExist when the log was never created.
func readKeys(dir string) (*Keys, error) {
	path := filepath.Join(dir, "log.key")
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("find log.key: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("log.key is readable by others (mode %v): chmod 600 it, and take the log for one that others could have signed", st.Mode().Perm())
	}
	signer, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read log.key: %w", err)
	}
	pub, err := readVerifierKey(dir)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "log.mac"))
	if err != nil {
		return nil, noNotExist("read log.mac", err)
	}
	mac, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(mac) != 32 {
		return nil, errors.New("log.mac does not hold 32 bytes in hex")
	}
	return &Keys{Signer: strings.TrimSpace(string(signer)), Verifier: pub, MAC: mac}, nil
}

func readVerifierKey(dir string) (string, error) {
	pub, err := os.ReadFile(filepath.Join(dir, "log.pub"))
	if err != nil {
		return "", noNotExist("read log.pub", err)
	}
	return strings.TrimSpace(string(pub)), nil
}

// noNotExist keeps a missing file from looking like a log that was never
// created.
func noNotExist(doing string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: it is missing", doing)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// signerOf checks that the two halves of the key belong together.
func (k *Keys) signerOf() (note.Signer, note.Verifier, error) {
	s, err := note.NewSigner(k.Signer)
	if err != nil {
		return nil, nil, errors.New("the signing key is malformed") // the cause could quote it
	}
	v, err := note.NewVerifier(k.Verifier)
	if err != nil {
		return nil, nil, errors.New("the verifier key is malformed")
	}
	if s.Name() != v.Name() || s.KeyHash() != v.KeyHash() {
		return nil, nil, errors.New("signing key and verifier key do not belong together")
	}
	if len(k.MAC) < 16 {
		return nil, nil, errors.New("the key of the keyed digests is shorter than 16 bytes")
	}
	return s, v, nil
}
