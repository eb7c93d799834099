package main

import (
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"example.org/auditd/client"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestMain lets the test binary be the program, so that scripts and crash tests
// run the real thing as a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"auditd": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			// Paths of sockets have a short limit.
			dir, err := os.MkdirTemp("", "a")
			if err != nil {
				return err
			}
			env.Defer(func() { os.RemoveAll(dir) })
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("XDG_STATE_HOME", dir)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("STATE", filepath.Join(dir, "auditd"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":    scriptServe,
			"exitcode": scriptExitCode,
		},
	})
}

// scriptServe starts a daemon on a free port in the background and waits until
// it answers.
func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	config := filepath.Join(ts.Getenv("XDG_CONFIG_HOME"), "auditd", "config.yaml")
	if _, err := os.Stat(config); err != nil {
		ts.Check(os.MkdirAll(filepath.Dir(config), 0o700))
		ts.Check(os.WriteFile(config, []byte("version: 1\nlisten: 127.0.0.1:0\nauditor: none\n"), 0o600))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	stdout, stderr := new(lockedBuffer), new(lockedBuffer)
	getenv := ts.Getenv
	go func() {
		done <- run(ctx, append([]string{"serve"}, args...), getenv, strings.NewReader(""), stdout, stderr)
	}()
	ts.Defer(func() {
		cancel()
		<-done
	})
	socket := client.SocketPath(ts.Getenv("STATE"))
	for range 600 {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return
		}
		select {
		case code := <-done:
			done <- code
			if !neg {
				ts.Fatalf("serve ended with %d: %s", code, stderr)
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	ts.Fatalf("serve does not answer: %s", stderr)
}

// scriptExitCode runs auditd and wants its exit code: exitcode 2 audit …
func scriptExitCode(ts *testscript.TestScript, _ bool, args []string) {
	want := args[0]
	err := ts.Exec("auditd", args[1:]...)
	got := "0"
	if exit, ok := err.(*exec.ExitError); ok {
		got = string(rune('0' + exit.ExitCode()))
	} else if err != nil {
		got = err.Error()
	}
	if got != want {
		ts.Fatalf("exit code %s, want %s", got, want)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// home is a place for a daemon of a test's own.
type home struct {
	dir   string
	state string
}

func newHome(t *testing.T, config string) *home {
	t.Helper()
	dir, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &home{dir: dir, state: filepath.Join(dir, "s", "auditd")}
	path := filepath.Join(dir, "c", "auditd", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *home) getenv(name string) string {
	switch name {
	case "HOME":
		return h.dir
	case "XDG_STATE_HOME":
		return filepath.Join(h.dir, "s")
	case "XDG_CONFIG_HOME":
		return filepath.Join(h.dir, "c")
	case "XDG_CACHE_HOME":
		return cacheHome()
	}
	return ""
}

func (h *home) env() []string {
	return append(os.Environ(), "HOME="+h.dir, "XDG_STATE_HOME="+filepath.Join(h.dir, "s"), "XDG_CONFIG_HOME="+filepath.Join(h.dir, "c"), "XDG_CACHE_HOME="+cacheHome())
}

// cacheHome is the real one: ONNX Runtime is there.
func cacheHome() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return dir
}

func (h *home) client() *client.Client {
	return &client.Client{Socket: client.SocketPath(h.state), TokenFile: client.TokenPath(h.state)}
}

// start runs the program as a process of its own.
func (h *home) start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := exec.LookPath("auditd") // testscript.Main puts it on the PATH
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = h.env()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
	})
	for range 600 {
		if _, err := h.client().Health(t.Context()); err == nil {
			return cmd
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the daemon does not answer")
	return nil
}
