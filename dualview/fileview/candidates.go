package fileview

import (
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// Which paths a sync has to look at: what the watcher has seen change, or
// everything when it may have missed something.

// candidates returns the paths that may have changed, by the person's names.
func (b *batch) candidates(dirty map[watched]bool, all bool) ([]string, error) {
	set := map[string]bool{}
	if all {
		if err := b.lookAtAll(set); err != nil {
			return nil, err
		}
	}
	if b.fresh {
		clear(dirty) // everything is new
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
		if side == agentSide {
			delete(seen, ".")
			b.fresh = len(seen) == 0 && len(byPath[humanSide]) == 0
		}
		for path, k := range byPath[side] {
			if !seen[path] && [2]string{k.human, k.agent}[side] != "" {
				set[k.path] = true
			}
		}
	}
	return nil
}
