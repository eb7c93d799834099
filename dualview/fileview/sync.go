package fileview

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

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
}

func (w *Workspace) sync(ctx context.Context, message string) (*Report, error) {
	if err := w.store.settle(ctx); err != nil {
		return nil, err
	}
	b := &batch{Workspace: w, ctx: ctx, history: map[string][]change{}, save: map[string]*entry{}, drop: map[string]bool{}}
	dirty, all := w.watch.changed(w.store.now())
	paths, err := b.candidates(dirty, all)
	if err != nil {
		return nil, err
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
	return &b.report, nil
}

// candidates returns the paths that may have changed, by the person's names.
func (b *batch) candidates(dirty map[watched]bool, all bool) ([]string, error) {
	set := map[string]bool{}
	if all {
		if err := b.lookAtAll(set); err != nil {
			return nil, err
		}
	}
	for d := range dirty {
		if err := b.add(set, d); err != nil {
			return nil, err
		}
	}
	paths := make([]string, 0, len(set))
	for p := range set {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	return paths, nil
}

// add adds one dirty path, and what lies below it when it is a directory that
// nothing is known about.
func (b *batch) add(set map[string]bool, d watched) error {
	if d.path == "." || slices.Contains(strings.Split(d.path, "/"), ".git") {
		return nil
	}
	e, err := b.entry(b.ctx, d.side, d.path)
	if err != nil {
		return err
	}
	if e != nil {
		set[e.path] = true
	}
	tree := [2]*os.Root{b.human, b.agent}[d.side]
	l, err := lookAt(tree, d.path, false)
	if err != nil {
		return err
	}
	if e == nil || e.kind == directory || l.kind == directory {
		name, err := b.humanName(d)
		if err != nil {
			return err
		}
		for p := name; p != "."; p = filepath.Dir(p) {
			set[p] = true // its directories may be new too
		}
		if l.kind == directory {
			return b.watch.walk(d.side, tree, d.path, func(path string) error {
				name, err := b.humanName(watched{d.side, path})
				set[name] = true
				return err
			})
		}
		if l.kind == absent && e != nil {
			return b.eachEntry(b.ctx, func(c *entry) {
				if strings.HasPrefix(c.path, e.path+"/") {
					set[c.path] = true
				}
			})
		}
	}
	return nil
}

// humanName translates a path of one side into the person's: names that are
// symbols on the agent's side have a plain name on the other.
func (b *batch) humanName(d watched) (string, error) {
	if d.side == humanSide {
		return d.path, nil
	}
	for dir := d.path; dir != "."; dir = filepath.Dir(dir) {
		e, err := b.entry(b.ctx, agentSide, dir)
		if err != nil {
			return "", err
		}
		if e != nil {
			return filepath.Join(e.path, strings.TrimPrefix(strings.TrimPrefix(d.path, dir), "/")), nil
		}
	}
	return d.path, nil
}

// lookAtAll compares the stat of everything with what is recorded.
func (b *batch) lookAtAll(set map[string]bool) error {
	type known struct {
		human, agent string
		path         string
	}
	byPath := [2]map[string]known{{}, {}}
	reapply := b.reapply
	b.reapply = false
	err := b.eachEntry(b.ctx, func(e *entry) {
		if reapply {
			set[e.path] = true
		}
		byPath[humanSide][e.path] = known{e.hstat, e.astat, e.path}
		if e.agent != "" {
			byPath[agentSide][e.agent] = known{e.hstat, e.astat, e.path}
		}
	})
	if err != nil {
		return err
	}
	for side, tree := range []*os.Root{b.human, b.agent} {
		seen := map[string]bool{}
		err := b.watch.walk(side, tree, ".", func(path string) error {
			l, err := lookAt(tree, path, false)
			if err != nil {
				return err
			}
			seen[path] = true
			k, ok := byPath[side][path]
			if !ok {
				if l.kind == absent {
					return nil
				}
				name, err := b.humanName(watched{side, path})
				set[name] = true
				return err
			}
			if l.stat != [2]string{k.human, k.agent}[side] {
				set[k.path] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
		for path, k := range byPath[side] {
			if !seen[path] && [2]string{k.human, k.agent}[side] != "" {
				set[k.path] = true
			}
		}
	}
	return nil
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

// agentPerm is the mode that a path has in the agent's tree: the person's, and
// readable and writable for the daemon.
func agentPerm(k kind, perm fs.FileMode) fs.FileMode {
	if k == directory {
		return perm | 0o700
	}
	return perm | 0o600
}

// humanPerm is the mode that the agent's version has for the person: what it
// was, unless the agent has changed it.
func humanPerm(h, a look) fs.FileMode {
	if h.kind == a.kind && a.perm == agentPerm(h.kind, h.perm) {
		return h.perm
	}
	return a.perm
}

func (b *batch) distrusted(p string) bool {
	return b.store.trust != nil && b.store.trust(filepath.Join(b.root, p), b.root) == "untrusted"
}

func (e *entry) agentSees() bool { return e.agentID != "" || e.kind == directory && e.astat != "" }

// agentName returns the agent's name for a path. A name that somebody outside
// the agent's view chose while a HumanShell was alive is a symbol, unless the
// agent itself wrote it in the command.
func (b *batch) agentName(p string, e *entry, h look) (string, error) {
	if e != nil {
		return e.agent, nil
	}
	name := filepath.Base(p)
	if parent := filepath.Dir(p); parent != "." {
		pe, err := b.saved(parent)
		if err != nil {
			return "", err
		}
		if pe != nil {
			parent = pe.agent
		}
		p = filepath.Join(parent, name)
	}
	if h.kind == absent {
		return p, nil
	}
	if a, err := lookAt(b.agent, p, false); err != nil || a.kind != absent {
		return p, err // the agent knows it by this name
	}
	command, tainted, err := b.store.window(b.ctx, h.ctime)
	if err != nil {
		return "", fmt.Errorf("look for shells: %w", err)
	}
	if utf8.ValidString(name) && (!tainted || strings.Contains(command, name)) {
		return p, nil
	}
	s, err := b.store.table.Symbolise(b.ctx, b.store.owner, []byte(name), b.provenance("name", ""))
	if err != nil {
		return "", err
	}
	b.held = append(b.held, s)
	return filepath.Join(filepath.Dir(p), string(s)), nil
}

// saved is entry, with what this sync has found out already.
func (b *batch) saved(p string) (*entry, error) {
	if e, ok := b.save[p]; ok {
		return e, nil
	}
	return b.entry(b.ctx, humanSide, p)
}

// toAgent carries a change of the person's side over.
func (b *batch) toAgent(base *entry, h, a look) error {
	b.report.ToAgent++
	switch h.kind {
	case directory:
		return b.directory(base, h, a, b.agent, base.agent)
	case link:
		return b.linkToAgent(base, h, a)
	}
	segs, err := b.classify(base, h)
	if err != nil {
		return err
	}
	return b.show(base, h, a, segs)
}

// show writes what the agent may see of a person's file.
func (b *batch) show(base *entry, h, a look, segs []segment) error {
	base.segs = segs
	var from io.Reader
	if h.large {
		f, err := b.human.Open(base.path)
		if err != nil {
			return fmt.Errorf("read a file: %w", bare(err))
		}
		defer f.Close()
		from = f
		if !trustedWhole(segs) {
			from = strings.NewReader(string(segs[0].Symbol))
		}
	} else {
		text, err := agentText(h.content, segs)
		if err != nil {
			return err
		}
		from = bytes.NewReader(text)
	}
	l := look{kind: file, perm: agentPerm(file, h.perm)}
	if err := b.agent.MkdirAll(filepath.Dir(base.agent), 0o700); err != nil {
		return fmt.Errorf("make a directory: %w", bare(err))
	}
	if err := write(b.agent, base.agent, l, from, a, false); err != nil {
		return err
	}
	after, err := lookAt(b.agent, base.agent, true)
	if err != nil {
		return err
	}
	base.kind = file
	b.note(base, h, after)
	return nil
}

func (b *batch) directory(base *entry, h, a look, to *os.Root, path string) error {
	from := h
	if h.kind != directory {
		from = a
	}
	if to == b.agent && a.kind != absent && a.kind != directory || to == b.human && h.kind != absent && h.kind != directory {
		return b.lost(base, h, a, "one side has a directory where the other has a file")
	}
	perm := agentPerm(directory, from.perm)
	if to == b.human {
		perm = humanPerm(h, a)
	}
	if err := to.MkdirAll(path, perm|0o700); err != nil {
		return fmt.Errorf("make a directory: %w", bare(err))
	}
	if err := to.Chmod(path, perm); err != nil {
		return fmt.Errorf("make a directory: %w", bare(err))
	}
	b.watch.add(humanSide, base.path)
	b.watch.add(agentSide, base.agent)
	h, err := lookAt(b.human, base.path, false)
	if err != nil {
		return err
	}
	if a, err = lookAt(b.agent, base.agent, false); err != nil {
		return err
	}
	base.kind, base.segs = directory, nil
	b.record(*base, h, a)
	return nil
}

// linkToAgent shows a link that stays inside. The agent does not see another
// one: its tools would follow it to what this package does not mediate.
func (b *batch) linkToAgent(base *entry, h, a look) error {
	base.kind, base.segs = link, nil
	if !safeLink(base.path, string(h.content)) {
		if a.kind != absent {
			if err := remove(b.agent, base.agent, a); err != nil {
				return err
			}
		}
		b.note(base, h, look{})
		return nil
	}
	if err := write(b.agent, base.agent, look{kind: link, content: h.content}, nil, a, false); err != nil {
		return err
	}
	after, err := lookAt(b.agent, base.agent, true)
	if err != nil {
		return err
	}
	b.note(base, h, after)
	return nil
}

// toHuman carries a change of the agent over.
func (b *batch) toHuman(base *entry, h, a look) error {
	if len(b.store.table.Symbols(filepath.Base(base.path))) > 0 && base.humanID == "" {
		if a.kind == directory {
			return nil // it stays the agent's; what is in it cannot land
		}
		return b.lost(base, h, a, "a name that is a symbol has to be chosen by a person")
	}
	b.report.ToHuman++
	switch a.kind {
	case directory:
		return b.directory(base, h, a, b.human, base.path)
	case link:
		if !safeLink(base.agent, string(a.content)) {
			return b.lost(base, h, a, "the link leads out of the workspace")
		}
		base.segs = nil
		return b.land(base, h, a, look{kind: link, content: a.content, id: a.id})
	}
	if a.large {
		return b.lost(base, h, a, fmt.Sprintf("the file is larger than %d bytes", maxHistory))
	}
	content, segs, err := b.render(base, h, a)
	if err != nil {
		return b.lost(base, h, a, err.Error())
	}
	base.segs = segs
	return b.land(base, h, a, look{kind: file, perm: humanPerm(h, a), content: content, id: blobID(content)})
}

// land writes a version for the person, unless that is there already.
func (b *batch) land(base *entry, h, a, l look) error {
	if h.kind == directory {
		return b.lost(base, h, a, "a person has a directory there")
	}
	if h.kind != l.kind || h.id != l.id {
		err := write(b.human, base.path, l, bytes.NewReader(l.content), h, true)
		if errors.Is(err, errChanged) {
			// A person was faster. Their version stays.
			if h, err = lookAt(b.human, base.path, true); err != nil {
				return err
			}
			if h.kind == absent {
				return b.lost(base, h, a, "the file was removed meanwhile")
			}
			return b.both(base, h, a)
		}
		if err != nil {
			return b.lost(base, h, a, "it could not be written")
		}
	} else if l.kind == file && h.perm != l.perm {
		if err := b.human.Chmod(base.path, l.perm); err != nil {
			return fmt.Errorf("set a file's mode: %w", bare(err))
		}
	}
	after, err := lookAt(b.human, base.path, true)
	if err != nil {
		return err
	}
	if after.id != l.id {
		// Changed in this very moment: the next sync sees it.
		after.stat = "changed"
		after.id, after.content = l.id, l.content
	}
	base.kind = l.kind
	b.note(base, after, a)
	return nil
}

// both merges changes of both sides.
func (b *batch) both(base *entry, h, a look) error {
	if h.kind == directory && a.kind == directory {
		return b.directory(base, h, a, b.agent, base.agent)
	}
	if h.kind != file || a.kind != file || h.large || a.large {
		if h.kind == a.kind && h.id == a.id && h.kind == link {
			b.note(base, h, a)
			return nil
		}
		return b.lost(base, h, a, "both sides changed it")
	}
	text, segs, err := b.render(base, h, a)
	if err != nil {
		return b.lost(base, h, a, err.Error())
	}
	var old []byte
	if base.kind == file {
		if old, err = b.git.read(base.humanID); err != nil && !errors.Is(err, errNoBlob) {
			return err
		}
	}
	// After a sync that was cut off both have the same, and all of it is taken
	// from the agent's version, which knows what is untrusted in it.
	chunks, ok := merge3(old, h.content, text)
	if !ok {
		return b.lost(base, h, a, "both sides changed the same place")
	}
	known := *base
	known.segs = append(slices.Clone(base.segs), segs...) // symbols that the agent's version has are known too
	humanSegs, err := b.classifyAgainst(base, h, symbolsOf(known.segs))
	if err != nil {
		return err
	}
	var merged []byte
	var from []slice
	for _, c := range chunks {
		src, provenance := h.content, humanSegs
		if c.agent {
			src, provenance = text, segs
		}
		from = cut(from, src, provenance, c.start, c.end)
		merged = append(merged, src[c.start:c.end]...)
	}
	if base.segs, err = b.segmentsOf(from); err != nil {
		return err
	}
	if !bytes.Equal(merged, h.content) {
		l := look{kind: file, perm: h.perm, content: merged, id: blobID(merged)}
		if err := write(b.human, base.path, l, bytes.NewReader(merged), h, true); err != nil {
			return b.lost(base, h, a, "it changed again while it was merged")
		}
		if h, err = lookAt(b.human, base.path, true); err != nil {
			return err
		}
		if h.id != l.id {
			h.stat, h.id, h.content = "changed", l.id, merged
		}
	}
	b.report.ToHuman++
	return b.show(base, h, a, base.segs)
}

// lost records that a change of the agent did not land, and gives the agent the
// person's version. Both are kept.
func (b *batch) lost(base *entry, h, a look, reason string) error {
	c := Conflict{Path: base.path, Time: b.store.now(), Reason: reason, Human: h.id, Agent: a.id}
	prefix := fmt.Sprintf("%d/%s", c.Time.UnixNano(), base.path)
	if h.kind == file && !h.large {
		b.history["conflicts"] = append(b.history["conflicts"], change{path: prefix + "/human", mode: "100644", content: h.content})
	}
	if a.kind == file && !a.large {
		b.history["conflicts"] = append(b.history["conflicts"], change{path: prefix + "/agent", mode: "100644", content: a.content})
	}
	b.conflict = append(b.conflict, c)
	if a.kind == file && a.large {
		// Too large for the history: it stays where it is, under another name.
		kept := filepath.Join(b.dir, "kept-"+a.id)
		if err := os.Rename(filepath.Join(b.agentRoot, base.agent), kept); err != nil {
			return fmt.Errorf("keep the agent's version: %w", bare(err))
		}
		a = look{}
	}
	switch h.kind {
	case absent:
		if a.kind == directory {
			return nil // an empty directory; it is tried again
		}
		if a.kind != absent {
			if err := remove(b.agent, base.agent, a); err != nil {
				return err
			}
		}
		b.drop[base.path] = true
		b.gone(base)
		return nil
	case directory:
		if a.kind != absent {
			if err := remove(b.agent, base.agent, a); err != nil {
				return err
			}
		}
		return b.directory(base, h, look{}, b.agent, base.agent)
	case link:
		return b.linkToAgent(base, h, a)
	}
	if a.kind == directory {
		return nil // what is in it is tried one by one
	}
	segs, err := b.classify(base, h)
	if err != nil {
		return err
	}
	return b.show(base, h, a, segs)
}

// removed handles a path that is gone on one side.
func (b *batch) removed(p string) error {
	e, err := b.saved(p)
	if err != nil || e == nil {
		return err
	}
	base := *e
	h, err := lookAt(b.human, p, true)
	if err != nil {
		return err
	}
	a, err := lookAt(b.agent, base.agent, true)
	if err != nil {
		return err
	}
	switch {
	case h.kind == absent && a.kind == absent:
	case h.kind == absent && a.kind == base.kind && a.id == base.agentID:
		b.report.ToAgent++
		if err := remove(b.agent, base.agent, a); err != nil {
			if a.kind == directory {
				return nil // the agent has put something there
			}
			return err
		}
	case h.kind == absent:
		return b.lost(&base, h, a, "a person removed what the agent changed")
	case h.kind == base.kind && h.id == base.humanID:
		b.report.ToHuman++
		if err := remove(b.human, p, h); errors.Is(err, errChanged) && h.kind == directory {
			return b.directory(&base, h, a, b.agent, base.agent) // a person has put something there
		} else if errors.Is(err, errChanged) {
			return b.lost(&base, h, a, "a person changed what the agent removed")
		} else if err != nil {
			return fmt.Errorf("remove a file: %w", bare(err))
		}
	default:
		return b.lost(&base, h, a, "a person changed what the agent removed")
	}
	b.drop[p] = true
	b.gone(&base)
	return nil
}

// note records a file or link that is in step now.
func (b *batch) note(base *entry, h, a look) {
	b.record(*base, h, a)
	if h.kind != directory && base.humanID != h.id && !h.large {
		b.history["human"] = append(b.history["human"], change{path: base.path, mode: gitMode(h), content: h.content})
	}
	if a.kind != absent && a.kind != directory && base.agentID != a.id && !a.large {
		b.history["agent"] = append(b.history["agent"], change{path: base.agent, mode: gitMode(a), content: a.content})
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
	for _, id := range b.trusted {
		if _, err := tx.ExecContext(b.ctx, `INSERT OR IGNORE INTO fileview_trusted (blob) VALUES (?)`, id); err != nil {
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
