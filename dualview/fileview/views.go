package fileview

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// View names one workspace that is tracked.
type View struct {
	ID   int64
	Root string
}

// ErrNoView means that there is no view with that id.
var ErrNoView = errors.New("there is no view with that id")

// List returns the owner's views.
func (s *Store) List(ctx context.Context) ([]View, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, root FROM fileview_view WHERE owner = ? ORDER BY id LIMIT 10000`, s.owner)
	if err != nil {
		return nil, fmt.Errorf("list views: %w", err)
	}
	defer rows.Close()
	var out []View
	for rows.Next() {
		var v View
		var root []byte
		if err := rows.Scan(&v.ID, &root); err != nil {
			return nil, fmt.Errorf("list views: %w", err)
		}
		v.Root = string(root)
		out = append(out, v)
	}
	return out, rows.Err()
}

// ByID opens a view that is tracked already.
func (s *Store) ByID(ctx context.Context, id int64) (*Workspace, error) {
	var root []byte
	err := s.db.QueryRowContext(ctx, `SELECT root FROM fileview_view WHERE id = ? AND owner = ?`, id, s.owner).Scan(&root)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoView
	}
	if err != nil {
		return nil, fmt.Errorf("look for a view: %w", err)
	}
	return s.Open(ctx, string(root))
}

// Reapply makes the next sync of every workspace ask the owner's rules about
// every file again: the rules have changed. Those that are opened later see that
// by themselves.
func (s *Store) Reapply() {
	s.mu.Lock()
	open := make([]*Workspace, 0, len(s.views))
	for _, w := range s.views {
		open = append(open, w)
	}
	s.mu.Unlock()
	for _, w := range open {
		w.Reapply()
	}
}

// rulesFile, beside a workspace's history, names the rules that its files were
// last asked about by.
const rulesFile = "rules"

// noteRules writes that down. Should it fail, they are asked once more.
func (w *Workspace) noteRules(rules string) {
	if err := os.WriteFile(filepath.Join(w.dir, rulesFile), []byte(rules), 0o600); err != nil {
		w.store.log.Warn("the rules that files were asked about by were not noted", "err", bare(err))
	}
}

// maxDiff bounds what Diff returns; what is over is cut, and the last line says
// so.
const maxDiff = 1 << 20

// Diff returns what a recorded state changed in the agent's tree, as a patch.
func (w *Workspace) Diff(ctx context.Context, id string) (string, error) {
	if _, err := w.git.tree(ctx, id); err != nil {
		return "", err
	}
	cmd := w.git.command(ctx, "show", "--format=", "--no-color", "--no-ext-diff", "--no-textconv", "--patch", id)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("compare states: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("compare states: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(out, maxDiff))
	if err == nil && len(text) == maxDiff {
		_ = cmd.Process.Kill() // the rest is not wanted
		_ = cmd.Wait()
		return string(text) + "\n[the rest is cut]\n", nil
	}
	if werr := cmd.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return "", errors.New("compare states: git failed")
	}
	return string(text), nil
}
