package fileview

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"example.org/auditd/dualview"
)

// Workspace is one directory with its two views.
type Workspace struct {
	store     *Store
	id        int64
	root      string // the person's side
	dir       string // of history, lock and conflicts.log
	agentRoot string
	human     *os.Root
	agent     *os.Root
	git       *history
	watch     *watcher

	// syncing serialises syncs; lock does the same between processes.
	syncing sync.Mutex
	reapply bool // guarded by syncing: the next sync asks the rules about every file
}

// Root returns the workspace's directory, without links.
func (w *Workspace) Root() string { return w.root }

// AgentRoot returns the agent's tree, to be mounted over Root.
func (w *Workspace) AgentRoot() string { return w.agentRoot }

func (w *Workspace) close() {
	w.watch.close()
	w.git.close()
	w.human.Close()
	w.agent.Close()
}

// entry is what both sides were when they were last in step.
type entry struct {
	path, agent      string
	kind             kind
	perm             fs.FileMode
	humanID, agentID string // the agent's is empty for what it does not see
	hstat, astat     string
	segs             []segment
}

// sweep takes away what a killed process was writing.
func (w *Workspace) sweep() error {
	for _, tree := range []*os.Root{w.human, w.agent} {
		if err := w.sweepDir(tree, "."); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workspace) sweepDir(tree *os.Root, dir string) error {
	d, err := tree.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("look at a workspace: %w", bare(err))
	}
	list, err := d.ReadDir(-1)
	d.Close()
	if err != nil {
		return fmt.Errorf("look at a workspace: %w", bare(err))
	}
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.Name() == ".git":
		case e.IsDir():
			err = w.sweepDir(tree, path)
		case strings.HasPrefix(e.Name(), tempPrefix):
			err = w.rescue(tree, path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// rescue handles a temporary file that a killed process left. What was moved
// aside to be removed may be the only copy of what a person wrote in that very
// moment, so it is kept beside the history.
func (w *Workspace) rescue(tree *os.Root, path string) error {
	l, err := lookAt(tree, path, true)
	if err != nil || l.kind != file || l.large || l.size == 0 || tree == w.agent {
		return tree.Remove(path)
	}
	if _, err := w.git.read(l.id); err == nil {
		return tree.Remove(path) // the history has it
	}
	kept := filepath.Join(w.dir, "rescued-"+l.id)
	if err := os.WriteFile(kept, l.content, 0o600); err != nil {
		return fmt.Errorf("keep a file: %w", err)
	}
	return tree.Remove(path)
}

const entryColumns = `path, agent, kind, mode, human, agentid, hstat, astat, segments`

func scanEntry(scan func(...any) error) (*entry, error) {
	e := new(entry)
	var path, agent, segs []byte
	var mode int64
	if err := scan(&path, &agent, &e.kind, &mode, &e.humanID, &e.agentID, &e.hstat, &e.astat, &segs); err != nil {
		return nil, err
	}
	e.path, e.agent, e.perm = string(path), string(agent), fs.FileMode(mode)
	var err error
	e.segs, err = decodeSegments(segs)
	return e, err
}

// entry returns what is recorded for a path, by the person's name or by the
// agent's; nil when nothing is.
func (w *Workspace) entry(ctx context.Context, side int, path string) (*entry, error) {
	column := [2]string{"path", "agent"}[side]
	e, err := scanEntry(w.store.db.QueryRowContext(ctx, `SELECT `+entryColumns+` FROM fileview_entry WHERE view = ? AND `+column+` = ?`, w.id, []byte(path)).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is known of a file: %w", err)
	}
	return e, nil
}

// eachEntry calls f for every recorded path.
func (w *Workspace) eachEntry(ctx context.Context, f func(*entry)) error {
	rows, err := w.store.db.QueryContext(ctx, `SELECT `+entryColumns+` FROM fileview_entry WHERE view = ?`, w.id)
	if err != nil {
		return fmt.Errorf("read what is known of a workspace: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		e, err := scanEntry(rows.Scan)
		if err != nil {
			return fmt.Errorf("read what is known of a workspace: %w", err)
		}
		f(e)
	}
	return rows.Err()
}

// Reapply makes the next sync ask the owner's rules about every file again. It is
// called when the rules have changed.
func (w *Workspace) Reapply() {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.reapply = true
	w.watch.distrust()
}

// Conflict is a change of the agent that did not land.
type Conflict struct {
	ID     int64
	Path   string
	Time   time.Time
	Reason string
	Human  string // names of both versions in the history
	Agent  string
}

// Conflicts lists what did not land, the youngest first.
func (w *Workspace) Conflicts(ctx context.Context) ([]Conflict, error) {
	rows, err := w.store.db.QueryContext(ctx, `SELECT id, path, time, reason, human, agent FROM fileview_conflict WHERE view = ? ORDER BY id DESC LIMIT 1000`, w.id)
	if err != nil {
		return nil, fmt.Errorf("list conflicts: %w", err)
	}
	defer rows.Close()
	var out []Conflict
	for rows.Next() {
		var c Conflict
		var path []byte
		var ms int64
		if err := rows.Scan(&c.ID, &path, &ms, &c.Reason, &c.Human, &c.Agent); err != nil {
			return nil, fmt.Errorf("list conflicts: %w", err)
		}
		c.Path, c.Time = string(path), time.UnixMilli(ms)
		out = append(out, c)
	}
	return out, rows.Err()
}

// Version returns a version that the history has, such as one of a conflict.
// It is for people: it can hold originals.
func (w *Workspace) Version(id string) (dualview.Original, error) {
	content, err := w.git.read(id)
	if err != nil {
		return dualview.Original{}, err
	}
	return dualview.OriginalText(string(content)), nil
}

// Log lists the states that the workspace can go back to.
func (w *Workspace) Log(ctx context.Context, limit int) ([]State, error) {
	return w.git.log(ctx, limit)
}

// AgentPath returns where in the agent's tree a path of the workspace lies. It
// never leads out of that tree: not by "..", not by a link. A name that is a
// symbol is taken as it is.
func (w *Workspace) AgentPath(path string) (string, error) {
	rel, err := w.rel(path)
	if err != nil {
		return "", err
	}
	// The nearest directory that is known says by which name the agent has it: a
	// new file goes there, and not beside it under the person's name.
	for known := rel; known != "."; known = filepath.Dir(known) {
		e, err := w.entry(context.Background(), humanSide, known)
		if err != nil {
			return "", err
		}
		if e == nil {
			continue
		}
		if known == rel && e.agentID == "" && e.kind != directory {
			return "", errors.New("the agent does not see this file")
		}
		rel = filepath.Join(e.agent, strings.TrimPrefix(rel, known))
		break
	}
	if _, err := w.agent.Stat(rel); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the path cannot be used: %w", bare(err))
	}
	// The directories on the way are resolved here, so that a link that is
	// made later is not followed.
	dir := filepath.Join(w.agentRoot, filepath.Dir(rel))
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Join(w.agentRoot, rel), nil
	}
	if err != nil || real != w.agentRoot && !strings.HasPrefix(real, w.agentRoot+"/") {
		return "", errors.New("the path leads out of the workspace")
	}
	return filepath.Join(real, filepath.Base(rel)), nil
}

// rel returns a path relative to the workspace.
func (w *Workspace) rel(path string) (string, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", errors.New("the path is not absolute")
	}
	path = filepath.Clean(path)
	rel, err := filepath.Rel(w.root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		// Perhaps by another name of the workspace.
		dir, derr := filepath.EvalSymlinks(filepath.Dir(path))
		if derr != nil {
			return "", errors.New("the path lies outside the workspace")
		}
		rel, err = filepath.Rel(w.root, filepath.Join(dir, filepath.Base(path)))
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return "", errors.New("the path lies outside the workspace")
		}
	}
	if slices.Contains(strings.Split(rel, "/"), ".git") {
		return "", errors.New("the repository of the project is not part of the agent's view")
	}
	return rel, nil
}

// lock keeps other processes from syncing the same workspace.
func (w *Workspace) lock() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(w.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock a workspace: %w", err)
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock a workspace: %w", err)
	}
	return func() { f.Close() }, nil
}
