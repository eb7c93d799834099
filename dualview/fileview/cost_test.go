package fileview

import (
	"context"
	"fmt"
	"testing"
)

// TestProperty20CostFollowsTheChange: a sync looks at what has changed and at
// nothing else, however large the tree.
func TestProperty20CostFollowsTheChange(t *testing.T) {
	e := newEnv(t)
	for i := range 600 {
		e.human(fmt.Sprintf("d%d/f%d", i%20, i), "text\n")
	}
	e.sync()
	e.sync() // its own writes have been heard of
	looked := func() []string {
		t.Helper()
		e.w.syncing.Lock()
		defer e.w.syncing.Unlock()
		b := &batch{Workspace: e.w, ctx: context.Background(), history: map[string][]change{}, save: map[string]*entry{}, drop: map[string]bool{}}
		dirty, all := e.w.watch.changed(e.w.watch.last) // no time has passed
		if all {
			t.Fatal("the whole tree is looked at")
		}
		paths, err := b.candidates(dirty, all)
		if err != nil {
			t.Fatal(err)
		}
		return paths
	}
	if paths := looked(); len(paths) != 0 {
		t.Errorf("without a change %d paths are looked at", len(paths))
	}
	e.human("d3/f3", "other\n")
	e.agent("d4/new", "text\n")
	if paths := looked(); len(paths) == 0 || len(paths) > 6 {
		t.Errorf("after two changes %d paths are looked at: %v", len(paths), paths)
	}
}
