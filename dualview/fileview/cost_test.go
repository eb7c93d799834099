package fileview

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Property 20: cost follows the change. After one change of a large tree only
// that path is looked at, and many changes take no process each.
func TestProperty20CostFollowsTheChange(t *testing.T) {
	e := newEnv(t)
	const files = 2000
	for i := range files {
		e.human(fmt.Sprintf("d%d/f%d", i%50, i), fmt.Sprintf("file %d\n", i))
	}
	e.sync()
	e.sync()

	looked := func() []string {
		t.Helper()
		b := &batch{Workspace: e.w, ctx: t.Context()}
		dirty, all := e.w.watch.changed(e.store.now())
		if all {
			t.Error("everything is looked at")
		}
		paths, err := b.candidates(dirty, all)
		if err != nil {
			t.Fatal(err)
		}
		e.w.watch.distrust() // what was taken out is not lost
		return paths
	}
	if p := looked(); len(p) != 0 {
		t.Errorf("nothing has changed, and %d paths are looked at", len(p))
	}
	for _, change := range []func(){
		func() { e.human("d7/f7", "changed\n") },
		func() { e.agent("d8/f8", "changed\n") },
	} {
		e.sync()
		e.sync()
		change()
		if p := looked(); len(p) == 0 || len(p) > 3 {
			t.Errorf("one file has changed, and %d paths are looked at", len(p))
		}
		e.sync()
	}
	e.humanHas("d8/f8", "changed\n")
	e.agentHas("d7/f7", "changed\n")

	// Every process of git leaves a line.
	log := filepath.Join(e.dir, "processes")
	wrapper := filepath.Join(e.dir, "git")
	script := fmt.Sprintf("#!/bin/sh\necho run >> '%s'\nexec '%s' \"$@\"\n", log, e.w.git.bin)
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	e.w.git.bin = wrapper
	for i := range 300 {
		e.human(fmt.Sprintf("d%d/f%d", i%50, i), fmt.Sprintf("file %d again\n", i))
		e.agent(fmt.Sprintf("new/f%d", i), "the agent's\n")
	}
	if _, err := e.w.Sync(context.Background(), "many"); err != nil {
		t.Fatal(err)
	}
	e.agentHas("d1/f1", "file 1 again\n")
	e.humanHas("new/f299", "the agent's\n")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "run"); n > 10 {
		t.Errorf("%d processes for 600 changed files", n)
	}
}
