package fileview

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
)

// What a sync leaves behind: the state of every path in step, and the history.

// note records a file or link that is in step now.
func (b *batch) note(base *entry, h, a look) {
	b.record(*base, h, a)
	if h.kind != directory && base.humanID != h.id && !h.large {
		b.history["human"] = append(b.history["human"], change{path: base.path, mode: gitMode(h), content: h.content, id: h.id})
	}
	if a.kind != absent && a.kind != directory && base.agentID != a.id && !a.large {
		b.history["agent"] = append(b.history["agent"], change{path: base.agent, mode: gitMode(a), content: a.content, id: a.id})
	}
	if h.kind == file && len(base.segs) > 0 {
		b.held = append(b.held, symbolsOf(base.segs)...)
		if trustedWhole(base.segs) {
			b.trusted = append(b.trusted, h.id)
		}
	}
}

func gitMode(l look) string {
	switch {
	case l.kind == link:
		return "120000"
	case l.perm&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// gone records in the history that a path is no more.
func (b *batch) gone(e *entry) {
	if e.humanID != "" {
		b.history["human"] = append(b.history["human"], change{path: e.path, gone: true})
	}
	if e.agentID != "" {
		b.history["agent"] = append(b.history["agent"], change{path: e.agent, gone: true})
	}
}

func (b *batch) record(e entry, h, a look) {
	e.humanID, e.hstat, e.perm = h.id, h.stat, h.perm
	e.agentID, e.astat = a.id, a.stat
	b.save[e.path] = &e
}

// finish writes the history and then, in one transaction, what is in step. A
// crash before the transaction makes the next sync find the same changes again,
// which are then equal on both sides.
func (b *batch) finish(message string) error {
	if len(b.history) > 0 {
		if err := b.git.commit(b.ctx, message, b.store.now(), b.history); err != nil {
			return err
		}
	}
	if len(b.held) > 0 {
		if err := b.store.table.Hold(b.ctx, b.store.owner, fmt.Sprintf("view:%d", b.id), b.held); err != nil {
			return err
		}
	}
	if len(b.save)+len(b.drop)+len(b.conflict) == 0 {
		return nil
	}
	tx, err := b.store.db.BeginTx(b.ctx, nil)
	if err != nil {
		return fmt.Errorf("record a sync: %w", err)
	}
	defer tx.Rollback() // does nothing after a commit
	if err := b.finishTx(tx); err != nil {
		return fmt.Errorf("record a sync: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("record a sync: %w", err)
	}
	return nil
}

func (b *batch) finishTx(tx *sql.Tx) error {
	for p := range b.drop {
		if _, err := tx.ExecContext(b.ctx, `DELETE FROM fileview_entry WHERE view = ? AND path = ?`, b.id, []byte(p)); err != nil {
			return err
		}
	}
	put, err := tx.PrepareContext(b.ctx, `INSERT OR REPLACE INTO fileview_entry (view, `+entryColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer put.Close()
	for _, e := range b.save {
		if b.drop[e.path] {
			continue
		}
		if _, err := put.ExecContext(b.ctx, b.id, []byte(e.path), []byte(e.agent), e.kind, int64(e.perm), e.humanID, e.agentID, e.hstat, e.astat, encodeSegments(e.segs)); err != nil {
			return err
		}
	}
	trust, err := tx.PrepareContext(b.ctx, `INSERT OR IGNORE INTO fileview_trusted (blob) VALUES (?)`)
	if err != nil {
		return err
	}
	defer trust.Close()
	for _, id := range b.trusted {
		if _, err := trust.ExecContext(b.ctx, id); err != nil {
			return err
		}
	}
	for i := range b.conflict {
		c := &b.conflict[i]
		res, err := tx.ExecContext(b.ctx, `INSERT INTO fileview_conflict (view, path, time, reason, human, agent) VALUES (?, ?, ?, ?, ?, ?)`, b.id, []byte(c.Path), c.Time.UnixMilli(), c.Reason, c.Human, c.Agent)
		if err != nil {
			return err
		}
		if c.ID, err = res.LastInsertId(); err != nil {
			return err
		}
	}
	b.report.Conflicts = b.conflict
	return b.conflictLog()
}

// conflictLog appends to the file that the paper names, for people.
func (b *batch) conflictLog() error {
	if len(b.conflict) == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(b.dir, "conflicts.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, c := range b.conflict {
		if _, err := fmt.Fprintf(f, "%s %q: %s (person %.12s, agent %.12s)\n", c.Time.UTC().Format("2006-01-02T15:04:05Z"), c.Path, c.Reason, c.Human, c.Agent); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}
