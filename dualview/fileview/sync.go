package fileview

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"example.org/auditd/dualview"
)

// Report says what a sync did.
type Report struct {
	ToAgent, ToHuman int
	// Conflicts are changes of the agent that did not land. The agent has to be
	// told.
	Conflicts []Conflict
}

// Sync brings both sides in step: what people and programs changed goes into
// the agent's tree, what the agent changed goes into the workspace with
// originals in place of symbols. It is called before and after every tool that
// works in the agent's view.
func (w *Workspace) Sync(ctx context.Context, message string) (*Report, error) {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	unlock, err := w.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	again, rules := w.reapply, ""
	if again && w.store.rules != nil {
		rules = w.store.rules() // before any file is asked about
	}
	r, err := w.sync(ctx, message)
	if err != nil {
		w.reapply = w.reapply || again
		// What was not finished is not known, so everything is looked at again.
		w.watch.distrust()
		return nil, fmt.Errorf("sync the workspace: %w", err)
	}
	if again && !w.reapply {
		w.noteRules(rules)
	}
	return r, nil
}

// batch collects what one sync records.
type batch struct {
	*Workspace
	ctx      context.Context
	report   Report
	save     map[string]*entry // by path
	drop     map[string]bool
	history  map[string][]change
	trusted  []string
	conflict []Conflict
	held     []dualview.Symbol
	fresh    bool // nothing is recorded, and the agent's tree is empty
}

func (w *Workspace) sync(ctx context.Context, message string) (*Report, error) {
	if err := w.store.settle(ctx); err != nil {
		return nil, err
	}
	if err := w.unfinished(ctx); err != nil {
		return nil, err
	}
	b := &batch{Workspace: w, ctx: ctx, history: map[string][]change{}, save: map[string]*entry{}, drop: map[string]bool{}}
	dirty, all := w.watch.changed(w.store.now())
	paths, err := b.candidates(dirty, all)
	if err != nil {
		return nil, err
	}
	if b.fresh {
		if paths, err = b.first(paths); err != nil {
			return nil, err
		}
	}
	var gone []string
	for _, p := range paths { // parents before children
		later, err := b.path(p)
		if err != nil {
			return nil, err
		}
		if later {
			gone = append(gone, p)
		}
	}
	slices.Reverse(gone) // children before parents
	for _, p := range gone {
		if err := b.removed(p); err != nil {
			return nil, err
		}
	}
	if err := b.finish(message); err != nil {
		return nil, err
	}
	if b.fresh {
		if err := os.Remove(filepath.Join(b.dir, openingFile)); err != nil {
			return nil, fmt.Errorf("end the opening of a workspace: %w", bare(err))
		}
	}
	return &b.report, nil
}

// path brings one path in step. It reports whether the path has gone on one
// side, which is handled after everything else.
func (b *batch) path(p string) (later bool, err error) {
	e, err := b.entry(b.ctx, humanSide, p)
	if err != nil {
		return false, err
	}
	h, err := lookAt(b.human, p, true)
	if err != nil {
		return false, err
	}
	name, err := b.agentName(p, e, h)
	if err != nil {
		return false, err
	}
	a, err := lookAt(b.agent, name, true)
	if err != nil {
		return false, err
	}
	base := entry{path: p, agent: name}
	if e != nil {
		base = *e
	}
	humanChanged := base.kind != h.kind || base.humanID != h.id || base.kind != absent && base.perm != h.perm
	if h.kind == file && h.size > 0 && !humanChanged && b.distrusted(p) && (len(base.segs) != 1 || base.segs[0].Symbol == "") {
		humanChanged = true // a rule has come to say so
	}
	agentChanged := base.agentSees() != (a.kind != absent) || a.kind != absent && (base.kind != a.kind || base.agentID != a.id || a.perm != agentPerm(base.kind, base.perm) && a.kind != link)
	switch {
	case h.kind == absent && a.kind == absent:
		if e != nil {
			b.drop[p] = true
			b.gone(&base)
		}
		return false, nil
	case (h.kind == absent || a.kind == absent && base.agentSees()) && e != nil:
		return true, nil
	case !humanChanged && !agentChanged:
		b.record(base, h, a)
		return false, nil
	case !agentChanged:
		return false, b.toAgent(&base, h, a)
	case !humanChanged || h.kind == absent:
		return false, b.toHuman(&base, h, a)
	}
	return false, b.both(&base, h, a)
}

// saved is entry, with what this sync has found out already.
func (b *batch) saved(p string) (*entry, error) {
	if e, ok := b.save[p]; ok {
		return e, nil
	}
	return b.entry(b.ctx, humanSide, p)
}
