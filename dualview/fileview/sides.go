package fileview

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"example.org/auditd/dualview"
)

// What the owner looks at: one file as both sides have it, and what did not
// land. Nothing here gives an original but Part, which gives one at a time.

// Errors that callers branch on.
var (
	ErrNoFile     = errors.New("the view has no such file")
	ErrNoConflict = errors.New("the view has no such conflict")
	ErrMoved      = errors.New("the file has changed meanwhile")
)

// maxShown is the size up to which a file is shown.
const maxShown = 1 << 20

// Listed is a file of a view.
type Listed struct {
	Path    string
	Symbols int  // stretches of it that are symbols
	Unseen  bool // the agent does not see it
}

// Files lists the first limit files in which path occurs in the name, with
// symbolsOnly those that hold symbols. more says that there are further ones.
func (w *Workspace) Files(ctx context.Context, path string, symbolsOnly bool, limit int) (list []Listed, more bool, err error) {
	query := `SELECT ` + entryColumns + ` FROM fileview_entry WHERE view = ? AND kind = ?`
	args := []any{w.id, int(file)}
	if path != "" {
		query, args = query+` AND instr(path, ?) > 0`, append(args, []byte(path))
	}
	if symbolsOnly {
		query, args = query+` AND instr(segments, ?) > 0`, append(args, []byte(`"s":`))
	}
	rows, err := w.store.db.QueryContext(ctx, query+` ORDER BY path LIMIT ?`, append(args, limit+1)...)
	if err != nil {
		return nil, false, fmt.Errorf("list files: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		e, err := scanEntry(rows.Scan)
		if err != nil {
			return nil, false, fmt.Errorf("list files: %w", err)
		}
		if len(list) == limit {
			return list, true, nil
		}
		list = append(list, Listed{e.path, len(symbolsOf(e.segs)), e.agentID == ""})
	}
	return list, false, rows.Err()
}

// Piece is a stretch of a file: trusted text, or what a symbol stands for, of
// which only the length is said.
type Piece struct {
	Text   string
	Symbol dualview.Symbol
	Bytes  int
}

// Sides is a file as both sides had it when they were last in step.
type Sides struct {
	Path, AgentPath string
	Human, Agent    string // names of both versions in the history; Agent is empty when the agent does not see it
	Pieces          []Piece
	Unshown         string // why there are no pieces
}

// Sides returns one file, by the person's name for it.
func (w *Workspace) Sides(ctx context.Context, path string) (*Sides, error) {
	e, err := w.entry(ctx, humanSide, path)
	if err != nil {
		return nil, err
	}
	if e == nil || e.kind != file {
		return nil, ErrNoFile
	}
	out := &Sides{Path: e.path, AgentPath: e.agent, Human: e.humanID, Agent: e.agentID}
	if sumN(e.segs) > maxShown {
		out.Unshown = fmt.Sprintf("it is larger than %d bytes", maxShown)
		return out, nil
	}
	content, err := w.git.read(e.humanID)
	if errors.Is(err, errNoBlob) {
		out.Unshown = "the history does not have it"
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	at := 0
	for _, s := range e.segs {
		if s.N > len(content)-at {
			return nil, errSegments
		}
		p := Piece{Symbol: s.Symbol, Bytes: s.N}
		if s.Symbol == "" {
			p.Text = string(content[at : at+s.N])
		}
		out.Pieces = append(out.Pieces, p)
		at += s.N
	}
	if at != len(content) {
		return nil, errSegments
	}
	return out, nil
}

// Part returns the original that a symbol's piece of a file stands for, as it
// stands in the person's file. human is the version that Sides gave. A secret
// shows itself to nobody: that is dualview.ErrNoGrant.
func (w *Workspace) Part(ctx context.Context, path, human string, piece int) (dualview.Original, error) {
	e, err := w.entry(ctx, humanSide, path)
	if err != nil {
		return dualview.Original{}, err
	}
	switch {
	case e == nil || e.kind != file:
		return dualview.Original{}, ErrNoFile
	case e.humanID != human:
		return dualview.Original{}, ErrMoved
	case piece < 0 || piece >= len(e.segs) || e.segs[piece].Symbol == "":
		return dualview.Original{}, ErrNoFile
	}
	info, err := w.store.table.Info(ctx, w.store.owner, e.segs[piece].Symbol)
	if err != nil {
		return dualview.Original{}, err
	}
	if info.Secret {
		return dualview.Original{}, dualview.ErrNoGrant
	}
	content, err := w.git.read(human)
	if err != nil {
		return dualview.Original{}, ErrNoFile
	}
	at := sumN(e.segs[:piece])
	if len(content)-at < e.segs[piece].N {
		return dualview.Original{}, errSegments
	}
	return dualview.OriginalText(string(content[at : at+e.segs[piece].N])), nil
}

// Conflict returns one conflict.
func (w *Workspace) Conflict(ctx context.Context, id int64) (*Conflict, error) {
	c := &Conflict{ID: id}
	var path []byte
	var ms int64
	err := w.store.db.QueryRowContext(ctx, `SELECT path, time, reason, human, agent FROM fileview_conflict WHERE view = ? AND id = ?`, w.id, id).Scan(&path, &ms, &c.Reason, &c.Human, &c.Agent)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoConflict
	}
	if err != nil {
		return nil, fmt.Errorf("read a conflict: %w", err)
	}
	c.Path, c.Time = string(path), time.UnixMilli(ms)
	return c, nil
}

// Lost returns what the agent had written, with symbols; false where the
// history does not have it.
func (w *Workspace) Lost(c *Conflict) (string, bool) {
	if c.Agent == "" {
		return "", false
	}
	content, err := w.git.read(c.Agent)
	if err != nil || len(content) > maxShown {
		return "", false
	}
	return string(content), true
}

// Drop ends a conflict: the person's version stays. Both stay in the history.
func (w *Workspace) Drop(ctx context.Context, id int64) error {
	res, err := w.store.db.ExecContext(ctx, `DELETE FROM fileview_conflict WHERE view = ? AND id = ?`, w.id, id)
	if err != nil {
		return fmt.Errorf("end a conflict: %w", err)
	}
	if n, err := res.RowsAffected(); err == nil && n == 0 {
		return ErrNoConflict
	}
	return nil
}

// Merge ends a conflict with a text in the agent's form, in which symbols stand
// for originals. It goes the way of every change of the agent's: symbols that
// may not be written there make it a conflict again, which is in the report, and
// then this one stays. agent is the version of the agent's file that the text
// was made from, empty where there was none; ErrMoved when there is another now.
func (w *Workspace) Merge(ctx context.Context, id int64, agent, text string) (*Report, error) {
	c, err := w.Conflict(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, err := w.Sync(ctx, "before a merge"); err != nil {
		return nil, err
	}
	w.syncing.Lock()
	err = w.put(ctx, c.Path, agent, []byte(text))
	w.syncing.Unlock()
	if err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	r, err := w.Sync(ctx, "a conflict merged by its owner")
	if err != nil {
		return nil, err
	}
	for _, again := range r.Conflicts {
		if again.Path == c.Path {
			return r, nil
		}
	}
	return r, w.Drop(ctx, id)
}

// put writes the agent's version of a file.
func (w *Workspace) put(ctx context.Context, path, agent string, content []byte) error {
	unlock, err := w.lock()
	if err != nil {
		return err
	}
	defer unlock()
	name := path
	e, err := w.entry(ctx, humanSide, path)
	if err != nil {
		return err
	}
	if e != nil {
		if name = e.agent; e.kind != file {
			return ErrMoved
		}
	}
	a, err := lookAt(w.agent, name, true)
	if err != nil {
		return err
	}
	if a.kind != absent && a.kind != file || a.id != agent || a.large {
		return ErrMoved
	}
	l := look{kind: file, perm: 0o644}
	if a.kind == file {
		l.perm = a.perm
	}
	if err := w.agent.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return bare(err)
	}
	err = write(w.agent, name, l, bytes.NewReader(content), a, false)
	if errors.Is(err, errChanged) {
		return ErrMoved
	}
	return err
}
