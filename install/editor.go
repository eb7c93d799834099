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

// editor puts auditd into one agent's settings file and takes it out again.
type editor struct {
	name     string // of the record and the backup
	settings string // the owner's file
	state    string // directory for the record and the backup
	now      func() time.Time
	options  record // what is kept with the record: Wait, Command, Routes

	// in returns the settings with auditd in them, the same when it is there.
	in func([]member) ([]member, error)
	// out returns the settings without it, and whether it was there. original
	// is what was there before, as far as that is known.
	out func(list, original []member) ([]member, bool, error)
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
	Routes   []Route   `json:"routes,omitempty"` // none: the model proxy is not in between
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

// Diff shows the change. Where the file holds the hook token, so does it.
func (c *Change) Diff() string {
	return string(diff.Diff(c.Path+" (now)", c.Before, c.Path+" (then)", c.After))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (e *editor) recordPath() string   { return filepath.Join(e.state, e.name+".json") }
func (e *editor) originalPath() string { return filepath.Join(e.state, e.name+".settings.orig") }

// target is the file behind the settings path: where that is a link, as with
// dotfiles in a repository, the link stays.
func (e *editor) target() (string, error) {
	path, err := filepath.EvalSymlinks(e.settings)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(e.settings); err == nil {
			return "", fmt.Errorf("%s is a link to nothing", e.settings)
		}
		return e.settings, nil
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

func (e *editor) readRecord() (*record, error) {
	data, err := os.ReadFile(e.recordPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the installation's record: %w", err)
	}
	r := new(record)
	if err := schema.Decode(data, r); err != nil || r.Version != 1 {
		return nil, fmt.Errorf("the installation's record %s is damaged", e.recordPath())
	}
	return r, nil
}

// Files are the settings that auditd is installed in, by the records in state:
// an agent that could edit them could take auditd out.
func Files(state string) []string {
	var out []string
	for _, name := range []string{claudeCodeName, openClawName} {
		if r, err := (&editor{name: name, state: state}).readRecord(); err == nil && r != nil && r.Settings != "" {
			out = append(out, r.Settings)
		}
	}
	return out
}

func (e *editor) writeRecord(r *record) error {
	data, err := schema.Encode(r)
	if err != nil {
		return fmt.Errorf("write the installation's record: %w", err)
	}
	return durable.WriteFile(e.recordPath(), append(data, '\n'), 0o600)
}

// planInstall says what install would do.
func (e *editor) planInstall() (*Change, error) {
	path, err := e.target()
	if err != nil {
		return nil, err
	}
	before, _, err := read(path)
	if err != nil {
		return nil, err
	}
	list, err := readSettings(before)
	if err == nil {
		list, err = e.in(list)
	}
	var after []byte
	if err == nil {
		after, err = writeSettings(list)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// The same settings in a file that is laid out differently are the same.
	if r, err := e.readRecord(); err == nil && r != nil && e.current(before) {
		after = before
	}
	return &Change{Path: path, Before: before, After: after}, nil
}

// current reports whether data holds auditd as it would be written now.
func (e *editor) current(data []byte) bool {
	list, err := readSettings(data)
	if err != nil {
		return false
	}
	want, err := e.in(list)
	if err != nil {
		return false
	}
	a, err1 := writeSettings(list)
	b, err2 := writeSettings(want)
	return err1 == nil && err2 == nil && string(a) == string(b)
}

// original is what was there before installing; nil when that is not known.
func (e *editor) original() []member {
	data, err := os.ReadFile(e.originalPath())
	if err != nil {
		return nil
	}
	list, err := readSettings(data)
	if err != nil {
		return nil
	}
	return list
}

// install puts auditd into the settings. Doing it twice is the same as once.
func (e *editor) install() (*Change, error) {
	change, err := e.planInstall()
	if err != nil || !change.Changes() {
		return change, err
	}
	old, err := e.readRecord()
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(e.state); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	_, mode, err := read(change.Path)
	if err != nil {
		return nil, err
	}
	r := &record{Version: 1, Installed: e.now().UTC(), Settings: change.Path, Existed: change.Before != nil, Mode: uint32(mode), Written: digest(change.After),
		Wait: e.options.Wait, Command: e.options.Command, Routes: e.options.Routes}
	original := change.Before
	switch {
	case old != nil && old.Written == digest(change.Before):
		// What stands there is ours: the original is the one that we have.
		r.Existed, r.Mode = old.Existed, old.Mode
		if original, err = os.ReadFile(e.originalPath()); err != nil {
			return nil, fmt.Errorf("read the backup: %w", err)
		}
	default:
		// What an earlier installation left in a file that was edited since is
		// not part of what is to come back.
		list, err := readSettings(change.Before)
		if err != nil {
			return nil, err
		}
		if list, found, err := e.out(list, e.original()); err == nil && found {
			if original, err = writeSettings(list); err != nil {
				return nil, err
			}
		}
	}
	// The backup is there before the file is touched, the record before that:
	// a crash in between leaves a file that uninstall takes for edited, and
	// cleans.
	if err := durable.WriteFile(e.originalPath(), original, 0o600); err != nil {
		return nil, fmt.Errorf("write the backup: %w", err)
	}
	if err := e.writeRecord(r); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(change.Path), 0o700); err != nil {
		return nil, fmt.Errorf("make the settings' directory: %w", err)
	}
	// 0600: settings hold credentials, the hook token among them.
	if err := durable.WriteFile(change.Path, change.After, 0o600); err != nil {
		return nil, fmt.Errorf("write the settings: %w", err)
	}
	return change, nil
}

// planUninstall says what uninstall would do.
func (e *editor) planUninstall() (*Change, *record, error) {
	path, err := e.target()
	if err != nil {
		return nil, nil, err
	}
	before, _, err := read(path)
	if err != nil {
		return nil, nil, err
	}
	r, err := e.readRecord()
	if err != nil {
		return nil, nil, err
	}
	if r != nil && before != nil && r.Written == digest(before) {
		if !r.Existed {
			return &Change{Path: path, Before: before, Exact: true}, r, nil
		}
		original, err := os.ReadFile(e.originalPath())
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
	list, found, err := e.out(list, e.original())
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

// uninstall takes auditd out again.
func (e *editor) uninstall() (*Change, error) {
	change, r, err := e.planUninstall()
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
	for _, path := range []string{e.recordPath(), e.originalPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove the installation's record: %w", err)
		}
	}
	return change, nil
}
