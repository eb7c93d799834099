package fileview

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tempPrefix begins the names of files that are being written. Nobody's view
// shows them.
const tempPrefix = ".auditd-tmp-"

// kind is what a path is on one side.
type kind int

const (
	absent kind = iota
	file
	directory
	link
)

// look is what a path was when it was looked at. Links are never followed.
type look struct {
	kind    kind
	perm    fs.FileMode
	stat    string // changes when the path does
	same    string // stays when the path is only renamed
	ctime   time.Time
	size    int64
	content []byte // of a file up to maxHistory, and the target of a link
	id      string // Git's name for the content
	large   bool   // content was not read
}

// lookAt reads a path of a tree. With read false the content is left out.
func lookAt(tree *os.Root, path string, read bool) (look, error) {
	st, err := tree.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return look{}, nil
	}
	if err != nil {
		return look{}, fmt.Errorf("look at a file: %w", bare(err))
	}
	l, sys, err := lookOf(st)
	if err != nil {
		return look{}, err
	}
	switch {
	case st.Mode().IsRegular():
		l.kind = file
		if read {
			err = l.readFile(tree, path, sys.Ino)
		}
	case st.IsDir():
		l.kind, l.stat = directory, fmt.Sprintf("d%o", sys.Mode)
	case st.Mode()&fs.ModeSymlink != 0:
		l.kind = link
		var target string
		target, err = tree.Readlink(path)
		l.content = []byte(target)
		l.id = blobID(l.content)
	default:
		return look{}, nil // sockets, devices and pipes have no content
	}
	if errors.Is(err, fs.ErrNotExist) {
		return look{}, nil
	}
	if err != nil {
		return look{}, fmt.Errorf("read a file: %w", bare(err))
	}
	return l, nil
}

// lookOf is what a stat alone says.
func lookOf(st fs.FileInfo) (look, *syscall.Stat_t, error) {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return look{}, nil, errors.New("look at a file: this system does not say enough about it")
	}
	l := look{perm: st.Mode().Perm(), size: st.Size(), ctime: time.Unix(sys.Ctim.Sec, sys.Ctim.Nsec)}
	l.same = fmt.Sprintf("%d.%d.%d.%d", sys.Size, sys.Mtim.Sec, sys.Mtim.Nsec, sys.Ino)
	l.stat = fmt.Sprintf("%s.%d.%d.%o", l.same, sys.Ctim.Sec, sys.Ctim.Nsec, sys.Mode)
	return l, sys, nil
}

func (l *look) readFile(tree *os.Root, path string, ino uint64) error {
	f, err := tree.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || sys.Ino != ino || !st.Mode().IsRegular() {
		return errors.New("it was replaced while it was looked at")
	}
	if st.Size() > maxHistory {
		l.large = true
		h := sha1.New()
		fmt.Fprintf(h, "blob %d\x00", st.Size())
		n, err := io.Copy(h, f)
		l.size, l.id = n, hex.EncodeToString(h.Sum(nil))
		return err
	}
	l.content, err = io.ReadAll(io.LimitReader(f, maxHistory+1))
	l.size, l.id = int64(len(l.content)), blobID(l.content)
	l.large = len(l.content) > maxHistory
	return err
}

// bare takes the path out of an error: names are chosen by others.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}

// errChanged means that a file was no longer what it was expected to be. It is
// then as it was found.
var errChanged = errors.New("it was changed meanwhile")

// write puts a file or link in place of what a path was when expect was taken.
// At every moment the path is the old or the new one. durable also means that
// it is so after a power failure.
func write(tree *os.Root, path string, l look, from io.Reader, expect look, durable bool) error {
	dir, err := tree.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("open a file's directory: %w", bare(err))
	}
	defer dir.Close()
	tmp := tempName()
	defer dir.RemoveAll(tmp) // what was replaced, or what was not put in place
	if l.kind == link {
		err = dir.Symlink(string(l.content), tmp)
	} else {
		err = writeTemp(dir, tmp, l.perm, from, durable)
	}
	if err != nil {
		return fmt.Errorf("write a file: %w", bare(err))
	}
	d, err := dir.Open(".")
	if err != nil {
		return fmt.Errorf("open a file's directory: %w", bare(err))
	}
	defer d.Close()
	name := filepath.Base(path)
	if expect.kind == absent {
		if err := unix.Renameat2(int(d.Fd()), tmp, int(d.Fd()), name, unix.RENAME_NOREPLACE); err != nil {
			if errors.Is(err, unix.EEXIST) {
				return errChanged
			}
			return fmt.Errorf("put a file in place: %w", err)
		}
	} else {
		if err := exchange(d, dir, tmp, name, expect); err != nil {
			return err
		}
	}
	if durable {
		if err := d.Sync(); err != nil {
			return fmt.Errorf("put a file in place: %w", err)
		}
	}
	return nil
}

// exchange swaps two names in one step and then looks at what came out. If that
// is not what was expected, they are swapped back: a change that somebody made
// in the last moment is never lost.
func exchange(d *os.File, dir *os.Root, tmp, name string, expect look) error {
	fd := int(d.Fd())
	if err := unix.Renameat2(fd, tmp, fd, name, unix.RENAME_EXCHANGE); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return errChanged
		}
		return fmt.Errorf("put a file in place: %w", err)
	}
	out, err := lookAt(dir, tmp, false)
	if err == nil && out.kind == expect.kind && out.same == expect.same {
		return nil
	}
	if err := unix.Renameat2(fd, tmp, fd, name, unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("put a changed file back: %w", err)
	}
	return errChanged
}

func writeTemp(dir *os.Root, tmp string, perm fs.FileMode, from io.Reader, durable bool) error {
	f, err := dir.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// remove takes a file or link away if it still is what it was.
func remove(tree *os.Root, path string, expect look) error {
	if expect.kind == directory {
		err := tree.Remove(path)
		if errors.Is(err, unix.ENOTEMPTY) {
			return errChanged
		}
		return err
	}
	dir, err := tree.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("open a file's directory: %w", bare(err))
	}
	defer dir.Close()
	d, err := dir.Open(".")
	if err != nil {
		return fmt.Errorf("open a file's directory: %w", bare(err))
	}
	defer d.Close()
	tmp, fd := tempName(), int(d.Fd())
	if err := unix.Renameat2(fd, filepath.Base(path), fd, tmp, unix.RENAME_NOREPLACE); err != nil {
		return errChanged
	}
	out, err := lookAt(dir, tmp, false)
	if err != nil || out.kind != expect.kind || out.same != expect.same {
		if err := unix.Renameat2(fd, tmp, fd, filepath.Base(path), unix.RENAME_NOREPLACE); err != nil {
			return fmt.Errorf("put a changed file back: %w", err)
		}
		return errChanged
	}
	return dir.Remove(tmp)
}

func tempName() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return tempPrefix + hex.EncodeToString(b[:])
}

// safeLink reports whether a link in the agent's tree leads to a place in it:
// relative, and not above the workspace.
func safeLink(path, target string) bool {
	if target == "" || filepath.IsAbs(target) {
		return false
	}
	to := filepath.Join(filepath.Dir(path), target)
	if to == ".." || strings.HasPrefix(to, "../") || filepath.IsAbs(to) {
		return false
	}
	for part := range strings.SplitSeq(to, "/") {
		if part == ".git" {
			return false
		}
	}
	return true
}
