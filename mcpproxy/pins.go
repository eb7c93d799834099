package mcpproxy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

// Pinned says how a definition stands to the one that was pinned.
type Pinned uint8

// The zero value offers nothing.
const (
	Changed Pinned = iota
	Unseen
	Same
)

// maxPins bounds the file.
const maxPins = 1 << 14

// Pins remembers the definitions of tools that were looked at, by server. The
// file is shared by all proxies of the owner.
type Pins struct {
	path string
	now  func() time.Time
	mu   sync.Mutex
}

type pinFile struct {
	Version int                       `json:"version"`
	Servers map[string]map[string]pin `json:"servers"`
}

type pin struct {
	Hash schema.Digest `json:"hash"`
	Seen time.Time     `json:"seen"`
}

// OpenPins uses the file at path, which need not exist yet.
func OpenPins(path string, now func() time.Time) *Pins { return &Pins{path: path, now: now} }

// locked runs f on the file's content while no other proxy writes it, and
// writes what f changed.
func (p *Pins) locked(f func(*pinFile) bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := durable.MkdirAll(filepath.Dir(p.path)); err != nil {
		return fmt.Errorf("make the pins' directory: %w", err)
	}
	lock, err := os.OpenFile(p.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the pins: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock the pins: %w", err)
	}
	file := pinFile{Version: 1, Servers: map[string]map[string]pin{}}
	data, err := os.ReadFile(p.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the pins: %w", err)
	}
	if err == nil {
		if err := schema.Decode(data, &file); err != nil || file.Version != 1 || file.Servers == nil {
			return fmt.Errorf("the pins in %s are damaged; delete the file to begin anew", p.path)
		}
	}
	if !f(&file) {
		return nil
	}
	if data, err = schema.Encode(file); err != nil {
		return fmt.Errorf("write the pins: %w", err)
	}
	return durable.WriteFile(p.path, append(data, '\n'), 0o600)
}

// Check compares a definition with the pinned one. What cannot be read counts
// as changed.
func (p *Pins) Check(server, tool string, hash schema.Digest) Pinned {
	out := Changed
	err := p.locked(func(f *pinFile) bool {
		known, ok := f.Servers[server][tool]
		switch {
		case !ok:
			out = Unseen
		case hash != "" && known.Hash == hash:
			out = Same
		}
		return false
	})
	if err != nil {
		return Changed
	}
	return out
}

// Add pins a definition that was looked at. One that is pinned already stays.
func (p *Pins) Add(server, tool string, hash schema.Digest) error {
	full := false
	err := p.locked(func(f *pinFile) bool {
		n := 0
		for _, s := range f.Servers {
			n += len(s)
		}
		if full = n >= maxPins; full {
			return false
		}
		if f.Servers[server] == nil {
			f.Servers[server] = map[string]pin{}
		}
		if _, ok := f.Servers[server][tool]; ok {
			return false
		}
		f.Servers[server][tool] = pin{hash, p.now().UTC()}
		return true
	})
	if err == nil && full {
		err = fmt.Errorf("pin a tool: %d are pinned, the limit is %d", maxPins, maxPins)
	}
	return err
}

// Forget takes out a server's pins and says how many there were: what it lists
// next is looked at and pinned anew.
func (p *Pins) Forget(server string) (n int, err error) {
	err = p.locked(func(f *pinFile) bool {
		n = len(f.Servers[server])
		delete(f.Servers, server)
		return n > 0
	})
	return n, err
}
