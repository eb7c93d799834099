package fileview

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"example.org/auditd/dualview"
	"example.org/auditd/schema"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the tables that a database must have for New.
func Migrations() fs.FS {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic("fileview: internal error: " + err.Error()) // the path is a constant
	}
	return sub
}

// Config is what a Store is made of.
type Config struct {
	Table *dualview.Table
	DB    *sql.DB // with Migrations applied
	Dir   string  // for agents' trees and histories; made with mode 0700
	Owner string
	// FileTrust says what the owner's rules say about a file: "untrusted",
	// "trusted" or nothing. Nil says nothing.
	FileTrust func(path, workspace string) string
	// Rules names the rules that FileTrust goes by, so that files are asked about
	// again when they have changed. Nil: at every opening.
	Rules func() string
	// Alive reports whether a process with this marker lives. Nil knows of none.
	Alive  func(marker string) bool
	Home   string // never a workspace
	Git    string // the git program; found in PATH when empty
	Now    func() time.Time
	Logger *slog.Logger
}

// Store holds the views of all workspaces. It is safe for concurrent use.
type Store struct {
	table *dualview.Table
	db    *sql.DB
	dir   string
	owner string
	trust func(path, workspace string) string
	rules func() string
	alive func(marker string) bool
	home  string
	git   string
	now   func() time.Time
	log   *slog.Logger

	mu    sync.Mutex
	views map[string]*Workspace // by root; guarded by mu

	shells  sync.Mutex
	running map[int64]bool // windows whose shell itself runs; guarded by shells
}

// New returns a store. Without git there is none.
func New(cfg Config) (*Store, error) {
	if cfg.Table == nil || cfg.DB == nil || cfg.Dir == "" || cfg.Owner == "" {
		return nil, errors.New("fileview: Config needs Table, DB, Dir and Owner")
	}
	s := &Store{table: cfg.Table, db: cfg.DB, owner: cfg.Owner, trust: cfg.FileTrust, rules: cfg.Rules, git: cfg.Git, now: cfg.Now, log: cfg.Logger, alive: cfg.Alive,
		views: map[string]*Workspace{}, running: map[int64]bool{}}
	if s.git == "" {
		var err error
		if s.git, err = exec.LookPath("git"); err != nil {
			return nil, errors.New("the agent's view of files needs git: install it")
		}
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.dir, err = realPath(cfg.Dir); err != nil {
		return nil, err
	}
	if cfg.Home != "" {
		if s.home, err = filepath.EvalSymlinks(cfg.Home); err != nil {
			return nil, fmt.Errorf("find the home directory: %w", err)
		}
	}
	return s, nil
}

// realPath makes a private directory and returns its path without links.
func realPath(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the directory of views: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return "", fmt.Errorf("close the directory of views to others: %w", err)
	}
	return filepath.EvalSymlinks(dir)
}

// Close ends the helpers of all workspaces.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.views {
		w.close()
	}
	return nil
}

// ErrNoWorkspace means that a path lies in no directory that can be a workspace.
var ErrNoWorkspace = errors.New("no workspace can be made there")

// Root returns the workspace that a path belongs to: the workspace that is
// tracked already, else the enclosing Git project, else its directory; never /
// or the home directory or one above it, and never a system directory.
func (s *Store) Root(ctx context.Context, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%w: the path is not absolute", ErrNoWorkspace)
	}
	dir := filepath.Clean(path)
	// The nearest directory that exists, without links.
	for {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			if st, err := os.Stat(real); err == nil && st.IsDir() && dir != filepath.Clean(path) {
				dir = real
				break
			} else if err == nil && st.IsDir() {
				dir = real
				break
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", ErrNoWorkspace
		}
		dir = up
	}
	if dir == s.dir || strings.HasPrefix(dir, s.dir+"/") {
		return "", fmt.Errorf("%w: it is auditd's own directory", ErrNoWorkspace)
	}
	for d := dir; ; d = filepath.Dir(d) {
		var one int
		err := s.db.QueryRowContext(ctx, `SELECT 1 FROM fileview_view WHERE root = ?`, []byte(d)).Scan(&one)
		if err == nil {
			return d, nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return "", fmt.Errorf("look for a workspace: %w", err)
		}
		if filepath.Dir(d) == d {
			break
		}
	}
	root := dir
	for d := dir; filepath.Dir(d) != d; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil && !s.forbidden(d) {
			root = d
			break
		}
	}
	if s.forbidden(root) {
		return "", fmt.Errorf("%w: %s holds more than one project", ErrNoWorkspace, root)
	}
	return root, nil
}

// forbidden reports whether a directory must not be a workspace as a whole.
func (s *Store) forbidden(dir string) bool {
	if s.home != "" && (dir == s.home || strings.HasPrefix(s.home, dir+"/")) {
		return true
	}
	switch dir {
	case "/", "/home", "/root", "/tmp", "/var", "/var/tmp", "/usr", "/etc", "/opt", "/srv", "/mnt", "/media", "/dev", "/proc", "/sys", "/run", "/boot", "/bin", "/sbin", "/lib", "/lib64":
		return true
	}
	for _, system := range []string{"/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/boot/", "/run/"} {
		if strings.HasPrefix(dir, system) {
			return true
		}
	}
	return strings.HasPrefix(s.dir, dir+"/") // it would hold the agent's tree
}

// Open returns the workspace that a path belongs to, and starts to track it.
func (s *Store) Open(ctx context.Context, path string) (*Workspace, error) {
	root, err := s.Root(ctx, path)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := s.views[root]; ok {
		return w, nil
	}
	w, err := s.open(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("open a workspace: %w", err)
	}
	s.views[root] = w
	return w, nil
}

func (s *Store) open(ctx context.Context, root string) (*Workspace, error) {
	name := url.PathEscape(root)
	if len(name) > 200 {
		name = name[:150] + string(schema.DigestOf(root))[7:47] // names end at 255 bytes
	}
	dir := filepath.Join(s.dir, name)
	agent := filepath.Join(dir, "agent")
	if err := os.MkdirAll(agent, 0o700); err != nil {
		return nil, err
	}
	w := &Workspace{store: s, root: root, dir: dir, agentRoot: agent, reapply: true}
	if noted, err := os.ReadFile(filepath.Join(dir, rulesFile)); err == nil && s.rules != nil && string(noted) == s.rules() {
		w.reapply = false
	}
	var err error
	if w.git, err = openHistory(ctx, s.git, filepath.Join(dir, "repo.git")); err != nil {
		return nil, err
	}
	if w.human, err = os.OpenRoot(root); err != nil {
		return nil, err
	}
	if w.agent, err = os.OpenRoot(agent); err != nil {
		w.human.Close()
		return nil, err
	}
	if _, err := s.db.ExecContext(ctx, `INSERT OR IGNORE INTO fileview_view (owner, root) VALUES (?, ?)`, s.owner, []byte(root)); err != nil {
		return nil, err
	}
	if err := s.db.QueryRowContext(ctx, `SELECT id FROM fileview_view WHERE root = ? AND owner = ?`, []byte(root), s.owner).Scan(&w.id); err != nil {
		return nil, fmt.Errorf("the workspace belongs to another owner: %w", err)
	}
	if err := w.sweep(); err != nil {
		return nil, err
	}
	w.watch = newWatcher(root, agent, s.log)
	return w, nil
}

// grant lets files of the owner's own workspace hold originals.
func (s *Store) grant() dualview.Grant {
	return dualview.Grant{By: dualview.ByPolicy, Owner: s.owner, AgentTrusted: true, Sink: schema.Sink{Kind: schema.SinkFile, Tool: "fileview"},
		Expires: s.now().Add(time.Minute)}
}

// Window is the life of one HumanShell.
type Window struct {
	store *Store
	id    int64
}

// HumanShell records that a shell outside the agent's view begins to run a
// command. Until it has ended, and every process that carries its marker too,
// whatever appears in files is untrusted. command is the text with symbols, as
// the agent wrote it.
func (s *Store) HumanShell(ctx context.Context, command, marker string) (*Window, error) {
	// Whoever sees the row must also see that it is running: another session's
	// settle would take it for the rest of a daemon that died, and close it.
	s.shells.Lock()
	defer s.shells.Unlock()
	res, err := s.db.ExecContext(ctx, `INSERT INTO fileview_window (start, end, command, marker) VALUES (?, 0, ?, ?)`, s.now().UnixNano(), command, marker)
	if err != nil {
		return nil, fmt.Errorf("record a shell: %w", err)
	}
	id, err := res.LastInsertId()
	if err != nil {
		return nil, fmt.Errorf("record a shell: %w", err)
	}
	s.running[id] = true
	return &Window{s, id}, nil
}

// Ended says that the shell itself has ended. What it left running still counts.
func (w *Window) Ended(ctx context.Context) error {
	w.store.shells.Lock()
	delete(w.store.running, w.id)
	w.store.shells.Unlock()
	return w.store.settle(ctx)
}

// settle closes the windows of which nothing lives any more, also those that an
// earlier process of the daemon opened.
func (s *Store) settle(ctx context.Context) error {
	rows, err := s.db.QueryContext(ctx, `SELECT id, marker FROM fileview_window WHERE end = 0`)
	if err != nil {
		return fmt.Errorf("look for shells: %w", err)
	}
	markers := map[int64]string{}
	for rows.Next() {
		var id int64
		var marker string
		if err := rows.Scan(&id, &marker); err != nil {
			rows.Close()
			return fmt.Errorf("look for shells: %w", err)
		}
		markers[id] = marker
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return fmt.Errorf("look for shells: %w", err)
	}
	s.shells.Lock()
	for id := range markers {
		if s.running[id] {
			delete(markers, id)
		}
	}
	s.shells.Unlock()
	for id, marker := range markers {
		if marker != "" && s.alive != nil && s.alive(marker) {
			continue
		}
		if _, err := s.db.ExecContext(ctx, `UPDATE fileview_window SET end = ? WHERE id = ?`, s.now().UnixNano(), id); err != nil {
			return fmt.Errorf("record a shell's end: %w", err)
		}
	}
	return nil
}

// clockSlack covers the kernel's coarse clock for file times.
const clockSlack = 25 * time.Millisecond

// window returns the command of a shell that was alive at a file's ctime.
func (s *Store) window(ctx context.Context, ctime time.Time) (command string, tainted bool, err error) {
	at := ctime.UnixNano()
	err = s.db.QueryRowContext(ctx, `SELECT command FROM fileview_window WHERE start <= ? AND (end = 0 OR end >= ?) ORDER BY id DESC LIMIT 1`,
		at+int64(clockSlack), at-int64(clockSlack)).Scan(&command)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return command, err == nil, err
}
