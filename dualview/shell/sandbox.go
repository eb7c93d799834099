package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrIsolation means that a command did not run because its isolation could not
// be set up.
var ErrIsolation = errors.New("the isolation of the agent's shell could not be set up, so nothing was run")

// sandbox builds the arguments of bubblewrap.
type sandbox struct {
	bwrap  string
	filter []byte
}

// mountPoint shows an agent's tree where the workspace is.
type mountPoint struct{ tree, at string }

// minimal are the only parts of the system that a command sees, read-only.
var minimal = [...]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types"}

// namespaces that must differ from ours, by their names in bubblewrap's status.
var namespaces = map[string]string{"ipc-namespace": "ipc", "mnt-namespace": "mnt", "net-namespace": "net", "pid-namespace": "pid", "uts-namespace": "uts"}

func (s *sandbox) args(mounts []mountPoint, dir string, statusFD, filterFD, passwdFD, blockFD int) ([]string, error) {
	a := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--disable-userns", "--hostname", "agent",
		"--new-session", "--die-with-parent", "--cap-drop", "ALL", "--clearenv",
		"--uid", "1000", "--gid", "1000",
		"--json-status-fd", strconv.Itoa(statusFD), "--seccomp", strconv.Itoa(filterFD), "--block-fd", strconv.Itoa(blockFD),
	}
	for _, p := range minimal {
		st, err := os.Lstat(p)
		switch {
		case err != nil:
		case st.Mode()&os.ModeSymlink != 0 && strings.Count(p, "/") == 1:
			to, err := os.Readlink(p)
			if err != nil {
				return nil, err
			}
			a = append(a, "--symlink", to, p)
		default:
			a = append(a, "--ro-bind", p, p)
		}
	}
	a = append(a, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/run", "--dir", "/home/agent", "--tmpfs", "/home/agent",
		"--ro-bind-data", strconv.Itoa(passwdFD), "/etc/passwd")
	for _, m := range mounts {
		a = append(a, "--bind", m.tree, m.at)
	}
	a = append(a, "--remount-ro", "/", "--chdir", dir)
	for _, kv := range [][2]string{{"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"}, {"HOME", "/home/agent"}, {"USER", "agent"}, {"LANG", "C.UTF-8"}, {"TERM", "dumb"}, {"TMPDIR", "/tmp"}, {"AUDITD_VIEW", "agent"}} {
		a = append(a, "--setenv", kv[0], kv[1])
	}
	return a, nil
}

const passwd = "agent:x:1000:1000::/home/agent:/bin/bash\n"

// run executes argv in the sandbox and returns its exit code. Bubblewrap sets
// everything up, says on a descriptor of its own what it has made, and waits;
// only when that has been found right is the command let go.
func (s *sandbox) run(ctx context.Context, mounts []mountPoint, dir string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (code int, err error) {
	failed := func(err error) (int, error) { return -1, fmt.Errorf("%w: %w", ErrIsolation, err) }
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return failed(err)
	}
	files = append(files, statusR, statusW)
	blockR, blockW, err := os.Pipe()
	if err != nil {
		return failed(err)
	}
	files = append(files, blockR, blockW)
	filterR, err := sealed("filter", s.filter)
	if err != nil {
		return failed(err)
	}
	files = append(files, filterR)
	passwdR, err := sealed("passwd", []byte(passwd))
	if err != nil {
		return failed(err)
	}
	files = append(files, passwdR)
	args, err := s.args(mounts, dir, 3, 4, 5, 6)
	if err != nil {
		return failed(err)
	}
	cmd := exec.CommandContext(ctx, s.bwrap, append(append(args, "--"), argv...)...)
	cmd.Env = []string{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.ExtraFiles = []*os.File{statusW, filterR, passwdR, blockR}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// All of it is killed, not the first process alone: what it has made waits
	// to be let go, and would take the end of our side of the pipe for that.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return failed(err)
	}
	statusW.Close()
	blockR.Close()
	status := json.NewDecoder(io.LimitReader(statusR, 64<<10))
	checkErr := checkStart(status)
	if checkErr == nil {
		_, checkErr = blockW.Write([]byte{1})
	}
	if checkErr != nil {
		_ = cmd.Cancel() // it may have ended by itself
		cmd.Wait()
		if ctx.Err() != nil {
			return -1, ctx.Err()
		}
		return failed(checkErr)
	}
	code, exitErr := exitCode(status)
	cmd.Wait()
	if ctx.Err() != nil {
		return -1, ctx.Err()
	}
	if exitErr != nil {
		return failed(exitErr)
	}
	return code, nil
}

var errStatus = errors.New("bubblewrap did not say what it made")

// checkStart reads what bubblewrap says before the command is let go: the
// namespaces, each of which must be another one than ours.
func checkStart(status *json.Decoder) error {
	var m map[string]json.Number
	if err := status.Decode(&m); err != nil || m["child-pid"] == "" {
		return errStatus
	}
	for key, name := range namespaces {
		id, err := strconv.ParseUint(m[key].String(), 10, 64)
		if err != nil {
			return errStatus
		}
		own, err := ownNamespace(name)
		if err != nil {
			return err
		}
		if id == 0 || id == own {
			return fmt.Errorf("the %s namespace is not its own", name)
		}
	}
	return nil
}

// exitCode reads what bubblewrap says after the command has ended.
func exitCode(status *json.Decoder) (int, error) {
	for {
		var m map[string]json.Number
		if err := status.Decode(&m); err != nil {
			return -1, errStatus
		}
		if n, ok := m["exit-code"]; ok {
			code, err := strconv.Atoi(n.String())
			if err != nil {
				return -1, errStatus
			}
			return code, nil
		}
	}
}

func ownNamespace(name string) (uint64, error) {
	st, err := os.Stat(filepath.Join("/proc/self/ns", name))
	if err != nil {
		return 0, err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.New("this system has no namespaces")
	}
	return sys.Ino, nil
}

// sealed returns a file in memory that holds data and that nobody can change.
func sealed(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
