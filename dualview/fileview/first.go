package fileview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// The first opening of a workspace copies a whole tree. What any file would go
// through is the same here for one that nothing is known about; it is done for a
// directory's files together, on all processors, and without a step that only
// protects what is there already: the agent's tree is empty, and nobody looks at
// it before the sync has ended.

// openingFile lies beside the agent's tree while it is filled for the first time.
const openingFile = "opening"

const (
	maxQuick      = 256 << 10 // bytes of a file that is handled here
	maxQuickBytes = 8 << 20   // of the files that one worker holds
	maxQuickFiles = 256
	maxWindows    = 1000 // shells that are looked through for each file
)

// unfinished takes away what a first opening that was killed has left: files that
// may be torn would look like the agent's changes. Where anything is recorded, the
// opening had come to its end.
func (w *Workspace) unfinished(ctx context.Context) error {
	marker := filepath.Join(w.dir, openingFile)
	if _, err := os.Lstat(marker); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look for an unfinished opening: %w", bare(err))
	}
	var recorded bool
	if err := w.store.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM fileview_entry WHERE view = ?)`, w.id).Scan(&recorded); err != nil {
		return fmt.Errorf("look for an unfinished opening: %w", err)
	}
	if !recorded {
		names, err := os.ReadDir(w.agentRoot)
		if err != nil {
			return fmt.Errorf("take away an unfinished opening: %w", bare(err))
		}
		for _, n := range names {
			if err := w.agent.RemoveAll(n.Name()); err != nil {
				return fmt.Errorf("take away an unfinished opening: %w", bare(err))
			}
		}
	}
	return os.Remove(marker)
}

// quick is one file of a first opening.
type quick struct {
	path, name string // in the workspace, and in its directory
	h, a       look
	segs       []segment
	left       bool // to the ordinary way
}

// first copies what it can of a tree that is opened for the first time, and
// returns the paths that have to go the ordinary way. Parents come before children.
func (b *batch) first(paths []string) (rest []string, err error) {
	if err := os.WriteFile(filepath.Join(b.dir, openingFile), nil, 0o600); err != nil {
		return nil, fmt.Errorf("begin to open a workspace: %w", bare(err))
	}
	groups := map[string][]*quick{}
	var order []string
	for _, p := range paths {
		st, err := b.human.Lstat(p)
		switch {
		case err == nil && st.IsDir():
			if later, err := b.path(p); err != nil {
				return nil, err
			} else if later {
				rest = append(rest, p)
			}
			continue
		case err != nil || !st.Mode().IsRegular() || st.Size() > maxQuick || !b.sameName(p) || b.distrusted(p):
			rest = append(rest, p)
			continue
		}
		dir := filepath.Dir(p)
		if groups[dir] == nil {
			order = append(order, dir)
		}
		groups[dir] = append(groups[dir], &quick{path: p, name: filepath.Base(p)})
	}
	work := make(chan string)
	var wg sync.WaitGroup
	var mu sync.Mutex // guards err, and what note changes
	for range min(4, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for dir := range work {
				if e := b.firstDir(dir, groups[dir], &mu); e != nil {
					mu.Lock()
					err = errors.Join(err, e)
					mu.Unlock()
				}
			}
		})
	}
	for _, dir := range order {
		work <- dir
	}
	close(work)
	wg.Wait()
	if err != nil {
		return nil, err
	}
	for _, dir := range order {
		for _, q := range groups[dir] {
			if q.left {
				rest = append(rest, q.path)
			}
		}
	}
	return rest, nil
}

// sameName reports whether a path has the same name on both sides, but for what a
// HumanShell may have named.
func (b *batch) sameName(p string) bool {
	dir := filepath.Dir(p)
	if dir == "." {
		return utf8.ValidString(p)
	}
	e := b.save[dir]
	return e != nil && e.kind == directory && e.agent == dir && e.agentSees() && utf8.ValidString(filepath.Base(p))
}

// firstDir copies files of one directory, a part of them at a time.
func (b *batch) firstDir(path string, files []*quick, mu *sync.Mutex) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	human, err := b.human.OpenRoot(path)
	if err != nil {
		return fmt.Errorf("open a directory: %w", bare(err))
	}
	defer human.Close()
	agent, err := b.agent.OpenRoot(path)
	if err != nil {
		return fmt.Errorf("open a directory: %w", bare(err))
	}
	defer agent.Close()
	for len(files) > 0 {
		n, size := 0, 0
		for n < len(files) && n < maxQuickFiles && size < maxQuickBytes {
			if files[n].h, err = lookAt(human, files[n].name, true); err != nil {
				return err
			}
			size += len(files[n].h.content)
			n++
		}
		// Asked after the files were read: whatever shell wrote what was read began
		// before.
		during, err := b.store.windows(b.ctx)
		if err != nil {
			return err
		}
		for _, q := range files[:n] {
			if err := b.firstFile(agent, q, during); err != nil {
				return err
			}
		}
		mu.Lock()
		for _, q := range files[:n] {
			if q.left {
				continue
			}
			b.report.ToAgent++
			b.note(&entry{path: q.path, agent: q.path, kind: file, segs: q.segs}, q.h, q.a)
		}
		mu.Unlock()
		files = files[n:]
	}
	return nil
}

// firstFile shows a file that is trusted whole. Anything else is left.
func (b *batch) firstFile(agent *os.Root, q *quick, during func(time.Time) bool) error {
	if q.left = q.h.kind != file || q.h.large || during(q.h.ctime); q.left {
		return nil
	}
	spans, err := b.store.table.Known(b.ctx, q.h.content)
	if err != nil {
		return err
	}
	if q.left = len(spans) > 0; q.left {
		return nil
	}
	if n := len(q.h.content); n > 0 {
		q.segs = []segment{{N: n}}
		b.store.table.Trust(q.h.content)
	}
	text, err := agentText(q.h.content, q.segs)
	if err != nil {
		return err
	}
	q.a, err = create(agent, q.name, agentPerm(file, q.h.perm), text)
	if errors.Is(err, fs.ErrExist) {
		q.left = true // somebody is in the agent's tree already
		return nil
	}
	return err
}

// create makes a file that is not there yet, and returns what it is then. A crash
// may leave a part of it.
func create(dir *os.Root, name string, perm fs.FileMode, text []byte) (look, error) {
	f, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, perm)
	if err != nil {
		return look{}, fmt.Errorf("write a file: %w", bare(err))
	}
	_, err = f.Write(text)
	st, serr := f.Stat()
	if err = errors.Join(err, serr); err == nil && st.Mode().Perm() != perm {
		if err = f.Chmod(perm); err == nil {
			st, err = f.Stat()
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return look{}, fmt.Errorf("write a file: %w", bare(err))
	}
	l, _, err := lookOf(st)
	l.kind, l.content, l.id = file, text, blobID(text)
	return l, err
}

// windows returns whether a shell outside the agent's view was alive at a time, by
// what is recorded now.
func (s *Store) windows(ctx context.Context) (func(time.Time) bool, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT start, end FROM fileview_window LIMIT ?`, maxWindows+1)
	if err != nil {
		return nil, fmt.Errorf("look for shells: %w", err)
	}
	defer rows.Close()
	var all [][2]int64
	for rows.Next() {
		var w [2]int64
		if err := rows.Scan(&w[0], &w[1]); err != nil {
			return nil, fmt.Errorf("look for shells: %w", err)
		}
		all = append(all, w)
	}
	return func(ctime time.Time) bool {
		at, slack := ctime.UnixNano(), int64(clockSlack)
		for _, w := range all {
			if w[0] <= at+slack && (w[1] == 0 || w[1] >= at-slack) {
				return true
			}
		}
		return len(all) > maxWindows
	}, rows.Err()
}
