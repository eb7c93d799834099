package fileview

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// history is the Git repository of one workspace. Every call runs at most one
// process.
type history struct {
	dir string
	bin string

	mu  sync.Mutex // guards what follows: the process that reads blobs
	cat *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// maxHistory is the size up to which contents are kept in the history and
// compared byte by byte. Larger files are replaced whole.
const maxHistory = 16 << 20

func openHistory(ctx context.Context, bin, dir string) (*history, error) {
	h := &history{dir: dir, bin: bin}
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return h, nil
	}
	if out, err := h.command(ctx, "init", "--quiet", "--bare", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make the history of a workspace: %w: %s", err, bytes.TrimSpace(out))
	}
	return h, nil
}

// command runs git without anybody's configuration, hooks or environment.
func (h *history) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, h.bin, args...)
	c.Dir = filepath.Dir(h.dir)
	c.Env = []string{"PATH=/usr/bin:/bin", "GIT_DIR=" + h.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "HOME=/nonexistent", "LC_ALL=C"}
	return c
}

// blobID is the name that Git gives a content.
func blobID(content []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// change is one path of a commit; a nil content removes it.
type change struct {
	path    string
	mode    string // 100644, 100755 or 120000
	content []byte
	id      string // of the content, where it is known
	gone    bool
}

// commit records the changes of some branches, all in one process.
func (h *history) commit(ctx context.Context, message string, when time.Time, branches map[string][]change) error {
	// Speed counts for more than the size of a history that is thrown away.
	args := []string{"-c", "core.compression=1", "fast-import", "--quiet", "--done", "--date-format=raw", "--force"}
	c := h.command(ctx, args...)
	stdin, err := c.StdinPipe()
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		return fmt.Errorf("record history: %w", err)
	}
	w := bufio.NewWriterSize(stdin, 1<<20)
	sent := map[string]bool{}
	for _, branch := range []string{"human", "agent", "conflicts"} {
		changes := branches[branch]
		if len(changes) == 0 {
			continue
		}
		fmt.Fprintf(w, "commit refs/heads/%s\ncommitter auditd <auditd@localhost> %d +0000\ndata %d\n%s\n", branch, when.Unix(), len(message), message)
		if h.hasBranch(branch) {
			fmt.Fprintf(w, "from refs/heads/%s^0\n", branch)
		}
		for _, ch := range changes {
			if ch.gone {
				fmt.Fprintf(w, "D %s\n", quotePath(ch.path))
				continue
			}
			if sent[ch.id] { // most files are the same on both sides
				fmt.Fprintf(w, "M %s %s %s\n", ch.mode, ch.id, quotePath(ch.path))
				continue
			}
			if ch.id != "" {
				sent[ch.id] = true
			}
			fmt.Fprintf(w, "M %s inline %s\ndata %d\n", ch.mode, quotePath(ch.path), len(ch.content))
			w.Write(ch.content)
			w.WriteByte('\n')
		}
		w.WriteByte('\n')
	}
	w.WriteString("done\n")
	werr := w.Flush()
	stdin.Close()
	if err := c.Wait(); err != nil {
		// Git's own words may quote file names, which others choose.
		return fmt.Errorf("record history: git fast-import: %w", err)
	}
	return werr
}

func (h *history) hasBranch(name string) bool {
	if _, err := os.Stat(filepath.Join(h.dir, "refs", "heads", name)); err == nil {
		return true
	}
	packed, err := os.ReadFile(filepath.Join(h.dir, "packed-refs"))
	return err == nil && bytes.Contains(packed, []byte(" refs/heads/"+name+"\n"))
}

// quotePath writes a path as fast-import reads it, whatever bytes it has.
func quotePath(p string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(p) {
		switch c := p[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

var errNoBlob = errors.New("the history does not have this content")

// read returns what an object name such as a blob's id or "human:path" means.
func (h *history) read(name string) ([]byte, error) {
	if strings.ContainsAny(name, "\n\x00") {
		return nil, errNoBlob
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cat == nil {
		c := h.command(context.Background(), "cat-file", "--batch")
		in, err := c.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := c.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := c.Start(); err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		h.cat, h.in, h.out = c, in, bufio.NewReaderSize(out, 64<<10)
	}
	content, err := h.readOne(name)
	if err != nil && !errors.Is(err, errNoBlob) {
		h.stop() // its output is out of step now
	}
	return content, err
}

func (h *history) readOne(name string) ([]byte, error) {
	if _, err := io.WriteString(h.in, name+"\n"); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	header, err := h.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	f := strings.Fields(header)
	if len(f) < 3 || f[len(f)-2] == "" || f[1] != "blob" {
		return nil, errNoBlob
	}
	n, err := strconv.Atoi(f[2])
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	content := make([]byte, n+1)
	if _, err := io.ReadFull(h.out, content); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return content[:n], nil
}

func (h *history) stop() {
	if h.cat != nil {
		h.in.Close()
		h.cat.Process.Kill()
		h.cat.Wait()
		h.cat = nil
	}
}

func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop()
}

// log lists the recorded states, the youngest first. They are those of the
// agent's side, which know what is untrusted.
func (h *history) log(ctx context.Context, limit int) ([]State, error) {
	if !h.hasBranch("agent") {
		return nil, nil
	}
	out, err := h.command(ctx, "log", "-n", strconv.Itoa(limit), "--format=%H%x00%ct%x00%s", "agent").Output()
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	var states []State
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		f := strings.SplitN(line, "\x00", 3)
		if len(f) != 3 {
			continue
		}
		sec, _ := strconv.ParseInt(f[1], 10, 64)
		states = append(states, State{f[0], time.Unix(sec, 0), f[2]})
	}
	return states, nil
}

// tree lists the files of a recorded state.
func (h *history) tree(ctx context.Context, commit string) (map[string]string, error) {
	if !isCommit(commit) {
		return nil, errors.New("that is no recorded state")
	}
	out, err := h.command(ctx, "ls-tree", "-r", "-z", commit).Output()
	if err != nil {
		return nil, errors.New("that is no recorded state")
	}
	files := map[string]string{}
	for _, e := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		meta, path, ok := strings.Cut(e, "\t")
		if f := strings.Fields(meta); ok && len(f) == 3 {
			files[path] = f[0] + " " + f[2]
		}
	}
	return files, nil
}

func isCommit(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}

// State is a state of a workspace that can be gone back to.
type State struct {
	ID      string
	Time    time.Time
	Message string
}
