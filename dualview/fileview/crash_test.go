package fileview

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/auditd/dualview/canary"
)

// TestChild is what the crash test runs in a process of its own and kills.
func TestChild(t *testing.T) {
	dir := os.Getenv("FILEVIEW_TEST_CHILD")
	if dir == "" {
		return
	}
	e := &env{t: t, dir: dir, root: filepath.Join(dir, "project"), trust: map[string]string{}}
	e.open()
	fmt.Println("ready")
	os.Stdout.Sync()
	e.sync()
	fmt.Println("done")
}

// TestProperty19KillAnywhere kills a process with signal 9 while it syncs, at
// many moments, and looks whether the next start finds everything on both
// sides.
func TestProperty19KillAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 1))
	marks := canary.New(19)
	e := newEnv(t)
	for i := range 12 {
		e.human(fmt.Sprintf("h%d", i), fmt.Sprintf("person's file %d\n", i))
		e.agent(fmt.Sprintf("a%d", i), fmt.Sprintf("agent's file %d\n", i))
	}
	e.sync()
	wantHuman, wantAgent := map[string]string{}, map[string]string{}
	killed, done := 0, 0
	for round := range 14 {
		for i := range 12 {
			h, a := fmt.Sprintf("h%d", i), fmt.Sprintf("a%d", i)
			text := fmt.Sprintf("person's file %d, round %d\n", i, round)
			e.human(h, text)
			wantHuman[h], wantAgent[h] = text, text
			value := strings.TrimSpace(marks.Text(100))
			s := e.symbol(value)
			text = fmt.Sprintf("round %d\n%s\n", round, s)
			e.agent(a, text)
			wantHuman[a], wantAgent[a] = fmt.Sprintf("round %d\n%s\n", round, value), text
		}
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
		time.Sleep(time.Duration(r.IntN(60000)) * time.Microsecond)
		cmd.Process.Kill()
		for {
			n, err := out.Read(buf)
			if seen += string(buf[:n]); err != nil {
				break
			}
		}
		cmd.Wait()
		if strings.Contains(seen, "done") {
			done++
		} else {
			killed++
		}
		// No file is missing or torn right after the kill.
		for name := range wantHuman {
			if got := read(t, e.root, name); got == "(absent)" || !strings.HasSuffix(got, "\n") {
				t.Fatalf("round %d: after the kill %s is %q", round, name, got)
			}
		}
		e.open()
		if rep := e.sync(); len(rep.Conflicts) > 0 {
			t.Fatalf("round %d: %+v", round, rep.Conflicts)
		}
		for name, want := range wantHuman {
			e.humanHas(name, want)
			e.agentHas(name, wantAgent[name])
		}
		if left, _ := filepath.Glob(filepath.Join(e.root, tempPrefix+"*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d killed while they synced, %d were faster", killed, done)
	if killed == 0 {
		t.Error("no process was killed in the middle")
	}
}

// TestProperty18TwoAgentsAndAPerson lets all of them write at once.
func TestProperty18TwoAgentsAndAPerson(t *testing.T) {
	e := newEnv(t)
	const rounds = 25
	var wg sync.WaitGroup
	e.human("shared", "start\n")
	e.sync()
	var mu sync.Mutex // one agent's read-modify-write at a time, as the host does it
	for agent := range 2 {
		wg.Go(func() {
			for i := range rounds {
				mu.Lock()
				e.agent(fmt.Sprintf("agent%d/%d", agent, i), fmt.Sprintf("agent %d wrote %d\n", agent, i))
				mu.Unlock()
				e.sync()
			}
		})
	}
	wg.Go(func() {
		for i := range rounds {
			e.human(fmt.Sprintf("person/%d", i), fmt.Sprintf("person wrote %d\n", i))
			e.human("shared", fmt.Sprintf("person %d\n", i))
			time.Sleep(time.Millisecond)
		}
	})
	wg.Wait()
	if r := e.sync(); len(r.Conflicts) > 0 {
		t.Errorf("%+v", r.Conflicts)
	}
	e.sync()
	for i := range rounds {
		for agent := range 2 {
			e.humanHas(fmt.Sprintf("agent%d/%d", agent, i), fmt.Sprintf("agent %d wrote %d\n", agent, i))
		}
		e.agentHas(fmt.Sprintf("person/%d", i), fmt.Sprintf("person wrote %d\n", i))
	}
	e.agentHas("shared", fmt.Sprintf("person %d\n", rounds-1))
	e.humanHas("shared", fmt.Sprintf("person %d\n", rounds-1))
}

// TestProperty19NeverMissing watches a file while it is rewritten many times.
func TestProperty19NeverMissing(t *testing.T) {
	e := newEnv(t)
	e.agent("f", strings.Repeat("0", 4096))
	e.sync()
	stop := make(chan struct{})
	bad := make(chan string, 1)
	go func() {
		defer close(bad)
		for {
			select {
			case <-stop:
				return
			default:
			}
			data, err := os.ReadFile(filepath.Join(e.root, "f"))
			if err != nil || len(data) != 4096 || strings.Trim(string(data), string(data[:1])) != "" {
				bad <- fmt.Sprintf("%v, %d bytes", err, len(data))
				return
			}
		}
	}()
	for i := range 60 {
		e.agent("f", strings.Repeat(string(rune('a'+i%26)), 4096))
		e.sync()
	}
	close(stop)
	if s, ok := <-bad; ok {
		t.Errorf("a reader saw %s", s)
	}
}

// TestProperty16ManyAndLarge has 1,000 files by default; -files sets another
// number, such as the 100,000 that are promised.
func TestProperty16ManyAndLarge(t *testing.T) {
	e := newEnv(t)
	n := *manyFiles
	for i := range n {
		e.human(fmt.Sprintf("d%d/f%d", i%200, i), fmt.Sprintf("file %d\n", i))
	}
	large := filepath.Join(e.root, "large.bin")
	f, err := os.Create(large)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(*largeMiB << 20); err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte("the end"), *largeMiB<<20-7)
	f.Close()
	r := e.sync()
	if r.ToAgent < n {
		t.Errorf("%d files went to the agent, want %d", r.ToAgent, n)
	}
	e.agentHas("d7/f7", "file 7\n")
	st, err := os.Stat(filepath.Join(e.w.AgentRoot(), "large.bin"))
	if err != nil || st.Size() != *largeMiB<<20 {
		t.Errorf("large.bin: %v %v", st, err)
	}
	e.agent("d7/f7", "changed\n")
	e.sync()
	e.humanHas("d7/f7", "changed\n")
}

func BenchmarkWorkspace(b *testing.B) {
	e := newEnv(b)
	for i := range *benchFiles {
		e.human(fmt.Sprintf("d%d/f%d", i%100, i), fmt.Sprintf("file %d\n%s", i, strings.Repeat("some text of a source file\n", 20)))
	}
	start := time.Now()
	e.sync()
	b.Logf("first opening of %d files: %v", *benchFiles, time.Since(start))
	e.sync()
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			e.sync()
		}
	})
	i := 0
	b.Run("one changed by the agent", func(b *testing.B) {
		for b.Loop() {
			i++
			e.agent("d1/f1", fmt.Sprintf("changed %d\n", i))
			e.sync()
		}
	})
	b.Run("one changed by a person", func(b *testing.B) {
		for b.Loop() {
			i++
			e.human("d1/f1", fmt.Sprintf("changed %d\n", i))
			e.sync()
		}
	})
	b.Run("whole look", func(b *testing.B) {
		for b.Loop() {
			e.w.watch.distrust()
			e.sync()
		}
	})
}
