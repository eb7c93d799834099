package shell

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"example.org/auditd/dualview"
	"example.org/auditd/dualview/fileview"
)

// Defaults and limits of a run.
const (
	DefaultTimeout = 2 * time.Minute
	MaxOutput      = 1 << 20 // bytes of each stream; what is over is dropped and said so
	maxCommand     = 128 << 10
)

// Config is what a Runner is made of.
type Config struct {
	Views *fileview.Store
	Table *dualview.Table
	Bwrap string // the bubblewrap program; found in PATH when empty
	Now   func() time.Time
}

// Runner runs commands. It is safe for concurrent use.
type Runner struct {
	views *fileview.Store
	table *dualview.Table
	box   sandbox
	now   func() time.Time
}

// New returns a runner once it has seen that the isolation holds on this
// machine: that bubblewrap is there, makes all namespaces, and that a command in
// it has no new privileges, a filter of system calls, no network, and cannot
// write or see what it must not.
func New(ctx context.Context, cfg Config) (*Runner, error) {
	if cfg.Views == nil || cfg.Table == nil {
		return nil, errors.New("shell: Config needs Views and Table")
	}
	r := &Runner{views: cfg.Views, table: cfg.Table, now: cfg.Now}
	if r.now == nil {
		r.now = time.Now
	}
	if err := r.open(ctx, cfg.Bwrap); err != nil {
		return nil, err
	}
	return r, nil
}

// Probe reports whether a Runner could isolate on this machine.
func Probe(ctx context.Context) error { return new(Runner).open(ctx, "") }

// open finds bubblewrap and tries out what it makes.
func (r *Runner) open(ctx context.Context, bwrap string) error {
	r.box.bwrap = bwrap
	if r.box.bwrap == "" {
		var err error
		if r.box.bwrap, err = exec.LookPath("bwrap"); err != nil {
			return fmt.Errorf("%w: bubblewrap is missing: apt-get install bubblewrap", ErrIsolation)
		}
	}
	var err error
	if r.box.filter, err = filter(); err != nil {
		return fmt.Errorf("%w: %w", ErrIsolation, err)
	}
	return r.probe(ctx)
}

// probeScript says what a command in the sandbox can do. Every line must be as
// probeWant has it.
const probeScript = `grep -E '^(NoNewPrivs|Seccomp|CapEff):' /proc/self/status | tr -d '\t '
for d in /usr /etc /var /home / ; do touch $d/probe 2>/dev/null && echo wrote; done
ls /root /home | tr '\n' ' '
grep -c : /proc/net/dev
unshare -U true 2>/dev/null && echo unshared
echo end`

func (r *Runner) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	if _, err := r.box.run(ctx, nil, "/", []string{"/bin/sh", "-c", probeScript}, nil, &out, &errs); err != nil {
		return fmt.Errorf("%w (is the kernel allowed to make user namespaces? sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns): %s", err, firstLine(errs.String()))
	}
	got := strings.Fields(out.String())
	want := []string{"CapEff:0000000000000000", "NoNewPrivs:1", "Seccomp:2", "/home:", "agent", "1", "end"}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		return fmt.Errorf("%w: a command in it can do more than it should", ErrIsolation)
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line[:min(len(line), 200)]
}

// Request is a command of an agent.
type Request struct {
	Workspace *fileview.Workspace
	// Also are further workspaces that the command may use.
	Also    []*fileview.Workspace
	Dir     string // in the workspace; its root when empty
	Command string // with symbols, which the AgentShell leaves as they are
	Stdin   []byte
	Timeout time.Duration
}

// Result is what a command did.
type Result struct {
	Stdout, Stderr string
	ExitCode       int
	TimedOut       bool
	Truncated      bool // output was over MaxOutput and was dropped
	// Synced is what the agent's changes became.
	Synced      *fileview.Report
	Attestation Attestation
}

// Attestation says that this package ran a command in the agent's view. Only a
// Runner makes one that says so; the zero value says nothing.
type Attestation struct{ ran bool }

// AgentView reports whether the command ran in the agent's view.
func (a Attestation) AgentView() bool { return a.ran }

// Agent runs a command in the agent's view.
func (r *Runner) Agent(ctx context.Context, req Request) (*Result, error) {
	if err := checkCommand(req.Command); err != nil {
		return nil, err
	}
	if req.Workspace == nil {
		return nil, errors.New("run a command: no workspace")
	}
	all := append([]*fileview.Workspace{req.Workspace}, req.Also...)
	var mounts []mountPoint
	for _, w := range all {
		if _, err := w.Sync(ctx, "before a command"); err != nil {
			return nil, err
		}
		mounts = append(mounts, mountPoint{w.AgentRoot(), w.Root()})
	}
	dir := req.Workspace.Root()
	if req.Dir != "" {
		agentDir, err := req.Workspace.AgentPath(req.Dir)
		if err != nil {
			return nil, fmt.Errorf("run a command: its directory: %w", err)
		}
		rel, err := filepath.Rel(req.Workspace.AgentRoot(), agentDir)
		if err != nil {
			return nil, fmt.Errorf("run a command: its directory: %w", err)
		}
		dir = filepath.Join(dir, rel)
	}
	limit := req.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	runCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, errs := &capped{}, &capped{}
	code, err := r.box.run(runCtx, mounts, dir, []string{"/bin/bash", "--noprofile", "--norc", "-c", req.Command}, bytes.NewReader(req.Stdin), out, errs)
	res := &Result{ExitCode: code}
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		res.TimedOut, res.ExitCode = true, -1
	case err != nil:
		return nil, err
	}
	res.Stdout, res.Stderr = out.b.String(), errs.b.String()
	res.Truncated = out.over || errs.over
	for i, w := range all {
		rep, err := w.Sync(ctx, "after a command")
		if err != nil {
			return nil, err
		}
		if i == 0 {
			res.Synced = rep
		} else {
			res.Synced.Conflicts = append(res.Synced.Conflicts, rep.Conflicts...)
		}
	}
	res.Attestation = Attestation{ran: true}
	return res, nil
}

func checkCommand(command string) error {
	if len(command) > maxCommand {
		return fmt.Errorf("the command is %d bytes, the limit is %d", len(command), maxCommand)
	}
	if strings.ContainsRune(command, 0) {
		return errors.New("the command holds a NUL byte")
	}
	return nil
}

// capped keeps the first MaxOutput bytes.
type capped struct {
	b    bytes.Buffer
	over bool
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), MaxOutput-c.b.Len())
	c.b.Write(p[:n])
	c.over = c.over || n < len(p)
	return len(p), nil
}

// markerName is the variable by which the processes of a HumanShell are known.
const markerName = "AUDITD_SHELL"

// Human is a command in the human view: it runs as the owner would run it.
type Human struct {
	Owner    string
	Command  string            // as the agent wrote it, with symbols
	Resolved dualview.Original // the same with originals, by usage.Plan.Resolve
	Dir      string
	Env      []string
	Timeout  time.Duration
}

// HumanResult is what it printed. It is untrusted: it has to go through the
// trust policy before an agent reads it.
type HumanResult struct {
	Stdout, Stderr dualview.Original
	ExitCode       int
	TimedOut       bool
	Truncated      bool
}

// Human runs a command outside the agent's view. What it or its children write
// while any of them lives is untrusted.
func (r *Runner) Human(ctx context.Context, h Human) (*HumanResult, error) {
	if err := checkCommand(h.Resolved.Reveal()); err != nil {
		return nil, err
	}
	marker := rand.Text()
	window, err := r.views.HumanShell(ctx, h.Command, marker)
	if err != nil {
		return nil, err
	}
	limit := h.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	runCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(runCtx, "/bin/bash", "-c", h.Resolved.Reveal())
	cmd.Dir, cmd.Env = h.Dir, append(append([]string{}, h.Env...), markerName+"="+marker)
	out, errs := &capped{}, &capped{}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a background child may keep the output open
	runErr := cmd.Run()
	// The window is closed with a context of its own: whatever became of the
	// call, what was written during it stays untrusted.
	if err := window.Ended(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	res := &HumanResult{Stdout: dualview.OriginalText(out.b.String()), Stderr: dualview.OriginalText(errs.b.String()), Truncated: out.over || errs.over}
	var exit *exec.ExitError
	switch {
	case runCtx.Err() != nil && ctx.Err() == nil:
		res.TimedOut, res.ExitCode = true, -1
	case errors.As(runErr, &exit):
		res.ExitCode = exit.ExitCode()
	case runErr != nil && !errors.Is(runErr, exec.ErrWaitDelay):
		return nil, errors.New("run a command: it could not be started")
	}
	return res, nil
}

// Mark returns a command for a host that runs its shell itself: the same
// command, whose processes carry the marker: what the shell starts in its
// environment, the shell itself in its arguments.
func Mark(command, marker string) string {
	return "export " + markerName + "=" + marker + "\n" + command
}

// NewMarker returns a marker for Mark and for fileview.Store.HumanShell.
func NewMarker() string { return rand.Text() }

// Alive reports whether a process with the marker lives. The arguments are looked
// at too: a shell does not have what it exports in its own environment, and
// between two of its children it is all that lives. Processes that have put both
// away, or whose environment belongs to somebody else, are not seen.
func Alive(marker string) bool {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return true // unknown counts as alive
	}
	want := []byte(markerName + "=" + marker)
	for _, p := range procs {
		if name := p.Name(); name[0] < '0' || name[0] > '9' {
			continue
		}
		if args, err := os.ReadFile(filepath.Join("/proc", p.Name(), "cmdline")); err == nil && bytes.Contains(args, want) {
			return true
		}
		env, err := os.ReadFile(filepath.Join("/proc", p.Name(), "environ"))
		if err != nil {
			continue
		}
		for kv := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Equal(kv, want) {
				return true
			}
		}
	}
	return false
}
