package fileview

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/auditd/dualview/canary"
)

// tree returns what lies in a directory, but for what tools keep there.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if st.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(data)
		}
		rel, err := filepath.Rel(root, path)
		out[rel] = fmt.Sprintf("%v %s", st.Mode().Perm()|0o600, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Property 16, 03: the first opening shows every kind of file as a later look
// would, and what is known to be untrusted, or was written by a HumanShell, as
// symbols.
func TestProperty16FirstOpening(t *testing.T) {
	e := newEnv(t)
	marks := canary.New(16)
	page, shell := marks.Text(400), marks.Text(400)
	e.symbol(page)
	e.trust["feed.csv"] = "untrusted"
	for i := range 300 {
		e.human(fmt.Sprintf("d%d/e%d/f%d", i%7, i%3, i), fmt.Sprintf("file %d\n", i))
	}
	e.human("empty", "")
	e.human("d1/no newline", "x")
	e.human("d1/crlf", "a\r\nb\r\n")
	e.human("d2/large", strings.Repeat("a line of a large file\n", 40_000))
	e.human("d3/quotes.md", "before\n"+page+"\nafter\n")
	e.human("feed.csv", marks.Text(200))
	if err := os.Chmod(filepath.Join(e.root, "d1/crlf"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("d1/crlf", filepath.Join(e.root, "link")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * clockSlack)
	w, err := e.store.HumanShell(t.Context(), "curl -o downloaded", "")
	if err != nil {
		t.Fatal(err)
	}
	e.human("downloaded", shell)
	if err := w.Ended(t.Context()); err != nil {
		t.Fatal(err)
	}
	human := tree(t, e.root)
	r := e.sync()
	if len(r.Conflicts) > 0 || r.ToHuman > 0 || r.ToAgent < 300 {
		t.Errorf("%+v", r)
	}
	agent := tree(t, e.w.AgentRoot())
	if len(agent) != len(human) {
		t.Errorf("the agent sees %d files of %d", len(agent), len(human))
	}
	for path, want := range human {
		got := agent[path]
		if marks.Find(want) == "" {
			if got != want {
				t.Errorf("%s: the agent sees %.60q, want %.60q", path, got, want)
			}
		} else if marks.Find(got) != "" || !strings.Contains(got, "symu") {
			t.Errorf("%s: the agent reads %q", path, got)
		}
	}
	// Nothing has changed since on either side.
	if r := e.sync(); r.ToAgent+r.ToHuman+len(r.Conflicts) != 0 {
		t.Errorf("the second sync: %+v", r)
	}
	e.w.watch.distrust()
	if r := e.sync(); r.ToAgent+r.ToHuman+len(r.Conflicts) != 0 {
		t.Errorf("a whole look: %+v", r)
	}
	if _, err := os.Lstat(filepath.Join(e.w.dir, openingFile)); err == nil {
		t.Error("the opening has not come to its end")
	}
	e.agent("d1/crlf", "changed\n")
	e.sync()
	e.humanHas("d1/crlf", "changed\n")
}

// Property 19: a first opening that is killed leaves the person's files as they
// are, and the next one shows them all.
func TestProperty19KillTheFirstOpening(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 2))
	killed := 0
	for round := range 8 {
		e := newEnv(t)
		for i := range 400 {
			e.human(fmt.Sprintf("d%d/f%d", i%20, i), fmt.Sprintf("file %d of round %d\n", i, round)+strings.Repeat("text\n", 500))
		}
		want := tree(t, e.root)
		cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
		cmd.Env = append(os.Environ(), "FILEVIEW_TEST_CHILD="+e.dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1<<16)
		var seen string
		for !strings.Contains(seen, "ready") {
			n, err := out.Read(buf)
			if seen += string(buf[:n]); err != nil {
				t.Fatalf("the child ended: %s", seen)
			}
		}
		if round > 0 { // in the first round it is killed once it has begun
			time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond)
		} else {
			for begun := time.Now(); time.Since(begun) < 20*time.Second; {
				if _, err := os.Lstat(filepath.Join(e.w.dir, openingFile)); err == nil {
					break
				}
			}
		}
		cmd.Process.Kill()
		for {
			n, err := out.Read(buf)
			if seen += string(buf[:n]); err != nil {
				break
			}
		}
		cmd.Wait()
		if !strings.Contains(seen, "done") {
			killed++
		}
		e.open()
		if rep := e.sync(); len(rep.Conflicts)+rep.ToHuman > 0 {
			t.Fatalf("round %d: %+v", round, rep)
		}
		for name, side := range map[string]string{"person": e.root, "agent": e.w.AgentRoot()} {
			got := tree(t, side)
			for path, text := range want {
				if got[path] != text {
					t.Fatalf("round %d: the %s's %s is %.80q", round, name, path, got[path])
				}
			}
			if len(got) != len(want) {
				t.Fatalf("round %d: the %s has %d files of %d", round, name, len(got), len(want))
			}
		}
	}
	if killed == 0 {
		t.Error("no opening was killed")
	}

	// A torn file that an opening left is not the agent's.
	e := newEnv(t)
	e.human("a", "the whole text\n")
	if err := os.WriteFile(filepath.Join(e.w.dir, openingFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e.agent("a", "the wh")
	if rep := e.sync(); len(rep.Conflicts)+rep.ToHuman > 0 {
		t.Errorf("%+v", rep)
	}
	e.humanHas("a", "the whole text\n")
	e.agentHas("a", "the whole text\n")
	// After its end a mark that a crash left takes nothing away.
	e.agent("a", "the agent's\n")
	if err := os.WriteFile(filepath.Join(e.w.dir, openingFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e.sync()
	e.humanHas("a", "the agent's\n")
}
