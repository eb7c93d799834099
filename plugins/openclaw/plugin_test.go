//go:build agents

package openclaw

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tool returns a program of scripts/agents.sh.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := os.Getenv("AUDITD_TEST_" + name)
	if path == "" {
		t.Fatal("run this through scripts/agents.sh")
	}
	return path
}

// TestOpenClawPluginIsItsSource: what is embedded is what the source compiles
// to, under the strict rules of tsconfig.json.
func TestOpenClawPluginIsItsSource(t *testing.T) {
	tsc, out := tool(t, "TSC"), t.TempDir()
	types := filepath.Join(filepath.Dir(tsc), "..", "..", "@types")
	cmd := exec.Command(tool(t, "NODE"), tsc, "-p", ".", "--typeRoots", types, "--outDir", out)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	fresh, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	dist, err := fs.ReadDir(files, "dist")
	if err != nil || len(dist) != len(fresh) || len(dist) == 0 {
		t.Errorf("%d files in dist, %d compiled, %v", len(dist), len(fresh), err)
	}
	for _, f := range fresh {
		want, err1 := os.ReadFile(filepath.Join(out, f.Name()))
		have, err2 := fs.ReadFile(files, "dist/"+f.Name())
		if err1 != nil || err2 != nil || string(want) != string(have) {
			t.Errorf("dist/%s is not what its source compiles to: make plugin", f.Name())
		}
	}
}

// TestOpenClawPluginAlone runs the plugin's own tests.
func TestOpenClawPluginAlone(t *testing.T) {
	list, err := filepath.Glob("test/*.test.ts")
	if err != nil || len(list) == 0 {
		t.Fatal("no tests", err)
	}
	text, err := exec.Command(tool(t, "NODE"), append([]string{"--test"}, list...)...).CombinedOutput()
	if err != nil || !strings.Contains(string(text), "fail 0") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestOpenClawPluginIsThin: one connection, no process, no code from elsewhere.
func TestOpenClawPluginIsThin(t *testing.T) {
	list, err := filepath.Glob("src/*.ts")
	if err != nil || len(list) == 0 {
		t.Fatal("no source", err)
	}
	allowed := []string{"node:fs", "node:http", "node:crypto"}
	for _, file := range list {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			_, from, is := strings.Cut(line, ` from "`)
			if !is {
				continue
			}
			name, _, _ := strings.Cut(from, `"`)
			if !strings.HasPrefix(name, "./") && !strings.Contains(strings.Join(allowed, " "), name) {
				t.Errorf("%s imports %s", file, name)
			}
		}
		for _, word := range []string{"child_process", "eval(", "new Function", "import(", "fetch("} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s holds %s", file, word)
			}
		}
	}
}
