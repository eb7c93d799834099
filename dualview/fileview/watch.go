package fileview

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watcher knows which paths may have changed since it was asked last, without
// looking at the tree. The kernel queues an event before the call that caused
// it returns, so reading the queue empty shows everything that happened before.
// Where it cannot know (too many directories, a queue that ran over, a shell
// that was alive, too long since the last look) it says so and the whole tree
// is looked at.
type watcher struct {
	mu    sync.Mutex
	fd    int // -1: no watching
	dirs  map[int32]watched
	paths map[watched]int32
	root  [2]string // human, agent
	dirty map[watched]bool
	blind bool      // everything may have changed
	last  time.Time // of the last look at everything
	log   *slog.Logger
}

type watched struct {
	side int // 0 human, 1 agent
	path string
}

const (
	humanSide = 0
	agentSide = 1
	// lookEvery bounds how long a change can go unseen that causes no event,
	// such as a write through a memory mapping.
	lookEvery = time.Minute
	watchMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW | unix.IN_EXCL_UNLINK
)

func newWatcher(human, agent string, log *slog.Logger) *watcher {
	w := &watcher{fd: -1, root: [2]string{human, agent}, dirs: map[int32]watched{}, paths: map[watched]int32{}, dirty: map[watched]bool{}, blind: true, log: log}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		log.Warn("files are not watched: every call looks at the whole workspace", "err", err)
		return w
	}
	w.fd = fd
	return w
}

func (w *watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd >= 0 {
		unix.Close(w.fd)
		w.fd = -1
	}
}

// distrust makes the next look a look at everything.
func (w *watcher) distrust() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blind = true
}

// add watches a directory. It must be called before the directory is listed.
func (w *watcher) add(side int, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := watched{side, path}
	if _, ok := w.paths[d]; ok || w.fd < 0 {
		return
	}
	wd, err := unix.InotifyAddWatch(w.fd, filepath.Join(w.root[side], path), watchMask)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) {
		w.log.Warn("too many directories to watch: every call looks at the whole workspace")
		unix.Close(w.fd)
		w.fd = -1
		return
	}
	if err != nil {
		return // it is gone; its parent's event says so
	}
	if old, ok := w.dirs[int32(wd)]; ok {
		delete(w.paths, old) // the same directory under a new name
	}
	w.dirs[int32(wd)], w.paths[d] = d, int32(wd)
}

// changed returns the paths that may have changed, or all = true.
func (w *watcher) changed(now time.Time) (dirty map[watched]bool, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drain()
	dirty, w.dirty = w.dirty, map[watched]bool{}
	all = w.blind || w.fd < 0 || now.Sub(w.last) > lookEvery || now.Before(w.last)
	if all {
		w.blind, w.last = false, now
	}
	return dirty, all
}

// drain reads all queued events.
func (w *watcher) drain() {
	if w.fd < 0 {
		return
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			if err != nil && !errors.Is(err, unix.EAGAIN) {
				w.blind = true
			}
			return
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd := int32(binary.NativeEndian.Uint32(b[0:]))
			mask := binary.NativeEndian.Uint32(b[4:])
			size := int(binary.NativeEndian.Uint32(b[12:]))
			name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size]), "\x00")
			b = b[unix.SizeofInotifyEvent+size:]
			w.event(wd, mask, name)
		}
	}
}

func (w *watcher) event(wd int32, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		w.blind = true
		return
	}
	d, ok := w.dirs[wd]
	if !ok {
		return
	}
	if mask&unix.IN_IGNORED != 0 {
		delete(w.dirs, wd)
		delete(w.paths, d)
		return
	}
	if strings.HasPrefix(name, tempPrefix) {
		return
	}
	if mask&unix.IN_ISDIR != 0 && mask&(unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0 {
		// The watches below it carry its old name now.
		w.blind = true
		for p, wd := range w.paths {
			if p.side == d.side && (p.path == filepath.Join(d.path, name) || strings.HasPrefix(p.path, filepath.Join(d.path, name)+"/")) {
				unix.InotifyRmWatch(w.fd, uint32(wd))
				delete(w.paths, p)
				delete(w.dirs, wd)
			}
		}
		return
	}
	w.dirty[watched{d.side, filepath.Join(d.path, name)}] = true
}

// walk calls f for everything below dir, directories before what is in them,
// and watches every directory before it lists it. Links are not followed, names
// may be any bytes.
func (w *watcher) walk(side int, tree *os.Root, dir string, f func(path string) error) error {
	w.add(side, dir)
	d, err := tree.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		if dir == "." {
			return errors.New("the workspace is gone")
		}
		return nil // it went while we looked
	}
	if err != nil {
		return fmt.Errorf("list a directory: %w", bare(err))
	}
	list, err := d.ReadDir(-1)
	d.Close()
	if err != nil {
		return fmt.Errorf("list a directory: %w", bare(err))
	}
	for _, e := range list {
		if e.Name() == ".git" || strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := f(path); err != nil {
			return err
		}
		if e.IsDir() {
			if err := w.walk(side, tree, path, f); err != nil {
				return err
			}
		}
	}
	return nil
}
