package install

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

// ClaudeCode is Claude Code's configuration, and what is to be put there.
type ClaudeCode struct {
	Settings string // the owner's settings.json
	State    string // directory for the backup and the record

	URL     string        // of the daemon
	Token   string        // hook token
	Binary  string        // auditd, for command hooks
	Timeout time.Duration // of a hook; above the daemon's own budget
	Wait    time.Duration // how long a deferred call waits for the owner; 0: it is denied at once
	Command bool          // command hooks in place of HTTP hooks

	Now func() time.Time
}

// record is what is known about an installation.
type record struct {
	Version   int       `json:"version"`
	Installed time.Time `json:"installed"`
	Settings  string    `json:"settings"`
	Existed   bool      `json:"existed"` // the file was there before
	Mode      uint32    `json:"mode"`
	Written   string    `json:"written"` // digest of what was written
	// With what it was installed, as far as that can differ.
	Wait     int       `json:"wait_seconds,omitempty"`
	Command  bool      `json:"command,omitempty"`
	Verified *Verified `json:"verified,omitempty"`
}

// Change is what installing or uninstalling does to the settings file.
type Change struct {
	Path   string
	Before []byte // nil: there was no file
	After  []byte // nil: there is none any more
	Exact  bool   // uninstall: After is what was there before installing, byte for byte
}

// Changes reports whether there is anything to do.
func (c *Change) Changes() bool {
	return string(c.Before) != string(c.After) || (c.Before == nil) != (c.After == nil)
}

// Diff shows the change. It holds the hook token, which the file holds too.
func (c *Change) Diff() string {
	return string(diff.Diff(c.Path+" (now)", c.Before, c.Path+" (then)", c.After))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (c *ClaudeCode) recordPath() string { return filepath.Join(c.State, "claude-code.json") }
func (c *ClaudeCode) originalPath() string {
	return filepath.Join(c.State, "claude-code.settings.orig")
}

// target is the file behind the settings path: where that is a link, as with
// dotfiles in a repository, the link stays.
func (c *ClaudeCode) target() (string, error) {
	path, err := filepath.EvalSymlinks(c.Settings)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(c.Settings); err == nil {
			return "", fmt.Errorf("%s is a link to nothing", c.Settings)
		}
		return c.Settings, nil
	}
	if err != nil {
		return "", fmt.Errorf("find the settings: %w", err)
	}
	return path, nil
}

// read returns the settings file, nil when there is none.
func read(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("look at the settings: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxSettings {
		return nil, 0, fmt.Errorf("%s is no file of an ordinary size", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, fmt.Errorf("read the settings: %w", err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, info.Mode().Perm(), nil
}

func (c *ClaudeCode) readRecord() (*record, error) {
	data, err := os.ReadFile(c.recordPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the installation's record: %w", err)
	}
	r := new(record)
	if err := schema.Decode(data, r); err != nil || r.Version != 1 {
		return nil, fmt.Errorf("the installation's record %s is damaged", c.recordPath())
	}
	return r, nil
}

// Files are the settings that auditd is installed in, by the records in state:
// an agent that could edit them could take the hooks out.
func Files(state string) []string {
	r, err := (&ClaudeCode{State: state}).readRecord()
	if err != nil || r == nil || r.Settings == "" {
		return nil
	}
	return []string{r.Settings}
}

func (c *ClaudeCode) writeRecord(r *record) error {
	data, err := schema.Encode(r)
	if err != nil {
		return fmt.Errorf("write the installation's record: %w", err)
	}
	return durable.WriteFile(c.recordPath(), append(data, '\n'), 0o600)
}

// PlanInstall says what Install would do.
func (c *ClaudeCode) PlanInstall() (*Change, error) {
	path, err := c.target()
	if err != nil {
		return nil, err
	}
	before, _, err := read(path)
	if err != nil {
		return nil, err
	}
	list, err := readSettings(before)
	if err == nil {
		list, err = c.withOurs(list)
	}
	var after []byte
	if err == nil {
		after, err = writeSettings(list)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// The same hooks in a file that is laid out differently are the same.
	if r, err := c.readRecord(); err == nil && r != nil && c.current(before) {
		after = before
	}
	return &Change{Path: path, Before: before, After: after}, nil
}

// current reports whether data holds our hooks as they would be written now.
func (c *ClaudeCode) current(data []byte) bool {
	list, err := readSettings(data)
	if err != nil {
		return false
	}
	want, err := c.withOurs(list)
	if err != nil {
		return false
	}
	a, err1 := writeSettings(list)
	b, err2 := writeSettings(want)
	return err1 == nil && err2 == nil && string(a) == string(b)
}

// Install puts the hooks into the settings. Doing it twice is the same as once.
func (c *ClaudeCode) Install() (*Change, error) {
	change, err := c.PlanInstall()
	if err != nil || !change.Changes() {
		return change, err
	}
	old, err := c.readRecord()
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(c.State); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	_, mode, err := read(change.Path)
	if err != nil {
		return nil, err
	}
	r := &record{Version: 1, Installed: c.Now().UTC(), Settings: change.Path, Existed: change.Before != nil, Mode: uint32(mode), Written: digest(change.After),
		Wait: int(c.Wait.Seconds()), Command: c.Command}
	original := change.Before
	switch {
	case old != nil && old.Written == digest(change.Before):
		// What stands there is ours: the original is the one that we have.
		r.Existed, r.Mode = old.Existed, old.Mode
		if original, err = os.ReadFile(c.originalPath()); err != nil {
			return nil, fmt.Errorf("read the backup: %w", err)
		}
	default:
		// Hooks of an earlier installation in a file that was edited since are
		// not part of what is to come back.
		list, err := readSettings(change.Before)
		if err != nil {
			return nil, err
		}
		if list, found, err := withoutOurs(list); err == nil && found {
			if original, err = writeSettings(list); err != nil {
				return nil, err
			}
		}
	}
	// The backup is there before the file is touched, the record before that:
	// a crash in between leaves a file that Uninstall takes for edited, and
	// cleans.
	if err := durable.WriteFile(c.originalPath(), original, 0o600); err != nil {
		return nil, fmt.Errorf("write the backup: %w", err)
	}
	if err := c.writeRecord(r); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(change.Path), 0o700); err != nil {
		return nil, fmt.Errorf("make the settings' directory: %w", err)
	}
	// 0600: the hook token is in it.
	if err := durable.WriteFile(change.Path, change.After, 0o600); err != nil {
		return nil, fmt.Errorf("write the settings: %w", err)
	}
	return change, nil
}

// PlanUninstall says what Uninstall would do.
func (c *ClaudeCode) PlanUninstall() (*Change, error) {
	change, _, err := c.planUninstall()
	return change, err
}

func (c *ClaudeCode) planUninstall() (*Change, *record, error) {
	path, err := c.target()
	if err != nil {
		return nil, nil, err
	}
	before, _, err := read(path)
	if err != nil {
		return nil, nil, err
	}
	r, err := c.readRecord()
	if err != nil {
		return nil, nil, err
	}
	if r != nil && before != nil && r.Written == digest(before) {
		if !r.Existed {
			return &Change{Path: path, Before: before, Exact: true}, r, nil
		}
		original, err := os.ReadFile(c.originalPath())
		if err != nil {
			return nil, nil, fmt.Errorf("read the backup: %w", err)
		}
		if original == nil {
			original = []byte{}
		}
		return &Change{Path: path, Before: before, After: original, Exact: true}, r, nil
	}
	list, err := readSettings(before)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	list, found, err := withoutOurs(list)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	change := &Change{Path: path, Before: before, After: before}
	if found {
		if change.After, err = writeSettings(list); err != nil {
			return nil, nil, err
		}
	}
	return change, r, nil
}

// Uninstall takes the hooks out again.
func (c *ClaudeCode) Uninstall() (*Change, error) {
	change, r, err := c.planUninstall()
	if err != nil {
		return nil, err
	}
	if change.Changes() {
		mode := fs.FileMode(0o600)
		if r != nil && r.Existed && r.Mode != 0 {
			mode = fs.FileMode(r.Mode).Perm()
		}
		if change.After == nil {
			err = os.Remove(change.Path)
		} else {
			err = durable.WriteFile(change.Path, change.After, mode)
		}
		if err != nil {
			return nil, fmt.Errorf("write the settings: %w", err)
		}
	}
	for _, path := range []string{c.recordPath(), c.originalPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove the installation's record: %w", err)
		}
	}
	return change, nil
}
