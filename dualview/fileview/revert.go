package fileview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// Revert brings the workspace back to a recorded state. It goes by the agent's
// side of that state, so that what was untrusted then is untrusted again. What a
// person has changed since and not synced is synced first, and stays in the
// history.
func (w *Workspace) Revert(ctx context.Context, id string) (*Report, error) {
	if _, err := w.Sync(ctx, "before going back"); err != nil {
		return nil, err
	}
	w.syncing.Lock()
	err := w.checkout(ctx, id)
	w.syncing.Unlock()
	if err != nil {
		return nil, fmt.Errorf("go back: %w", err)
	}
	return w.Sync(ctx, "back to "+id)
}

func (w *Workspace) checkout(ctx context.Context, id string) error {
	unlock, err := w.lock()
	if err != nil {
		return err
	}
	defer unlock()
	want, err := w.git.tree(ctx, id)
	if err != nil {
		return err
	}
	var entries []*entry
	if err := w.eachEntry(ctx, func(e *entry) { entries = append(entries, e) }); err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := want[e.agent]; ok || e.agentID == "" || e.kind == directory {
			continue
		}
		a, err := lookAt(w.agent, e.agent, false)
		if err != nil {
			return err
		}
		if err := remove(w.agent, e.agent, a); err != nil {
			return err
		}
	}
	for path, meta := range want {
		mode, blob, _ := strings.Cut(meta, " ")
		a, err := lookAt(w.agent, path, true)
		if err != nil {
			return err
		}
		if a.id == blob {
			continue
		}
		content, err := w.git.read(blob)
		if err != nil {
			return err
		}
		l := look{kind: file, content: content, perm: 0o644}
		if a.kind == file {
			l.perm = a.perm
		} else if bits, err := strconv.ParseUint(mode, 8, 32); err == nil {
			l.perm = fs.FileMode(bits) & 0o777
		}
		if mode == "120000" {
			l.kind = link
		}
		if err := w.agent.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return bare(err)
		}
		if err := write(w.agent, path, l, bytes.NewReader(content), a, false); err != nil {
			return err
		}
	}
	return nil
}

// Show returns a file of a recorded state as the agent saw it.
func (w *Workspace) Show(ctx context.Context, id, path string) (string, error) {
	if !isCommit(id) || strings.ContainsAny(path, "\n\x00") {
		return "", errors.New("that is no recorded state")
	}
	content, err := w.git.read(id + ":" + path)
	if err != nil {
		return "", err
	}
	return string(content), nil
}
