package fileview

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// How a sync carries one path over: to the agent, with symbols in place of what
// is untrusted; to the person, with originals in place of symbols; or both ways
// where both have changed it. What cannot land is a conflict and stays.

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
