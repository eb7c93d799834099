package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

// maxVersions bounds how many earlier texts are kept.
const maxVersions = 100

// Errors that callers branch on.
var (
	// ErrChanged: somebody else has changed the policy meanwhile.
	ErrChanged = errors.New("the policy in force is another one than the change was made from: look at it and try again")
	ErrVersion = errors.New("there is no such earlier policy")
)

// Keeper holds the policy in force, and puts another one into force without a
// restart. It is safe for concurrent use.
type Keeper struct {
	path, history string
	now           func() time.Time
	prepare       func(*Policy) (commit func(), err error)

	mu      sync.Mutex // one change at a time
	current atomic.Pointer[held]
}

type held struct {
	policy *Policy
	text   string
	file   bool // it is in the file; otherwise it is the built-in one
}

// KeeperConfig is what a Keeper needs.
type KeeperConfig struct {
	Path    string // of the owner's file, which need not exist yet
	History string // directory of earlier texts
	BuiltIn bool   // begin with the built-in policy, whatever is at Path
	Now     func() time.Time
	// Prepare makes ready what depends on a policy, before it is written; commit
	// puts it into force. May be nil.
	Prepare func(*Policy) (commit func(), err error)
}

// OpenKeeper reads the owner's file, or takes the built-in policy when there is
// none.
func OpenKeeper(c KeeperConfig) (*Keeper, error) {
	k := &Keeper{path: c.Path, history: c.History, now: c.Now, prepare: c.Prepare}
	h := &held{text: string(defaultFile)}
	var data []byte
	err := fs.ErrNotExist
	if !c.BuiltIn {
		data, err = readFile(c.Path)
	}
	switch {
	case err == nil:
		h.text, h.file = string(data), true
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if h.policy, err = Parse([]byte(h.text)); err != nil {
		return nil, fmt.Errorf("policy %s: %w", c.Path, err)
	}
	if k.prepare != nil {
		commit, err := k.prepare(h.policy)
		if err != nil {
			return nil, err
		}
		commit()
	}
	k.current.Store(h)
	return k, nil
}

// Policy is the one in force.
func (k *Keeper) Policy() *Policy { return k.current.Load().policy }

// Text is its file's, and Source says where it is from.
func (k *Keeper) Text() (text, source string) {
	h := k.current.Load()
	if !h.file {
		return h.text, "built in"
	}
	return h.text, k.path
}

// Problems lists everything that is wrong with a text.
func Problems(text string) []Problem {
	_, problems := parse([]byte(text))
	return problems
}

// Apply puts text into force: it is checked, the text that it replaces is kept,
// the file is written whole, and the next decision follows it. base is the
// digest of the policy that the change was made from.
func (k *Keeper) Apply(text string, base schema.Digest) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.current.Load()
	if base != was.policy.Digest() {
		return ErrChanged
	}
	p, problems := parse([]byte(text))
	if len(problems) > 0 {
		return problems[0]
	}
	commit := func() {}
	if k.prepare != nil {
		var err error
		if commit, err = k.prepare(p); err != nil {
			return err
		}
	}
	if err := k.keep(was.text, was.policy.Digest()); err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(k.path)); err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	if err := durable.WriteFile(k.path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	k.current.Store(&held{p, text, true})
	commit()
	return nil
}

// Past is an earlier policy.
type Past struct {
	Until  time.Time     `json:"until"` // when another took its place
	Digest schema.Digest `json:"digest"`
}

const stamp = "20060102T150405.000000000Z"

// keep writes a text to the history and lets the oldest go.
func (k *Keeper) keep(text string, digest schema.Digest) error {
	if err := durable.MkdirAll(k.history); err != nil {
		return fmt.Errorf("keep the earlier policy: %w", err)
	}
	name := k.now().UTC().Format(stamp) + "-" + strings.TrimPrefix(string(digest), "sha256:") + ".yaml"
	if err := durable.WriteFile(filepath.Join(k.history, name), []byte(text), 0o600); err != nil {
		return fmt.Errorf("keep the earlier policy: %w", err)
	}
	names, err := k.names()
	if err != nil {
		return err
	}
	for len(names) > maxVersions {
		if err := os.Remove(filepath.Join(k.history, names[0])); err != nil {
			return fmt.Errorf("let an old policy go: %w", err)
		}
		names = names[1:]
	}
	return nil
}

// names are the files of the history, the oldest first.
func (k *Keeper) names() ([]string, error) {
	entries, err := os.ReadDir(k.history)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the earlier policies: %w", err)
	}
	var names []string
	for _, e := range entries {
		if _, ok := version(e.Name()); ok {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func version(name string) (Past, bool) {
	when, rest, ok := strings.Cut(name, "-")
	digest, yaml := strings.CutSuffix(rest, ".yaml")
	t, err := time.Parse(stamp, when)
	return Past{t, schema.Digest("sha256:" + digest)}, ok && yaml && err == nil && len(digest) == 64
}

// History lists the earlier policies, the newest first.
func (k *Keeper) History() ([]Past, error) {
	names, err := k.names()
	if err != nil {
		return nil, err
	}
	out := []Past{}
	for _, n := range slices.Backward(names) {
		v, _ := version(n)
		out = append(out, v)
	}
	return out, nil
}

// Earlier returns the text of an earlier policy.
func (k *Keeper) Earlier(digest schema.Digest) (string, error) {
	names, err := k.names()
	if err != nil {
		return "", err
	}
	for _, n := range slices.Backward(names) {
		if v, _ := version(n); v.Digest == digest {
			data, err := readFile(filepath.Join(k.history, n))
			return string(data), err
		}
	}
	return "", ErrVersion
}
