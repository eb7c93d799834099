package auditlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"example.org/auditd/internal/durable"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Open opens the log in cfg.Dir, creating it when there is none. It checks the
// head's signature, the names and sizes of the segments, the chain through the
// segment that was being written, and the tree's root; Verify checks the rest.
//
// It repairs what a crash can leave behind and nothing else: bytes after the
// last acknowledged record. Whole records that continue the chain are kept,
// the rest is cut; Repaired and a record of its own say so. Everything else is
// refused with the reason.
func Open(cfg Config) (*Log, error) {
	return open(cfg, disk{writeAt: writeAt, sync: durable.Sync})
}

func open(cfg Config, d disk) (_ *Log, err error) {
	if cfg.Dir == "" || cfg.Now == nil {
		return nil, errors.New("open the log: Dir and Now must be set")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.SegmentBytes <= 0 {
		cfg.SegmentBytes = defaultSegmentBytes
	}
	if cfg.SegmentAge <= 0 {
		cfg.SegmentAge = defaultSegmentAge
	}
	l := &Log{cfg: cfg, disk: d, queue: make(chan *pending), quit: make(chan struct{}), done: make(chan struct{}),
		changed: make(chan struct{}), active: activeSegment{ids: map[uint64][]int64{}}}
	l.w.dir = cfg.Dir
	for _, dir := range []string{logDir(cfg.Dir), valuesDir(cfg.Dir)} {
		if err := durable.MkdirAll(dir); err != nil {
			return nil, fmt.Errorf("open the log: %w", err)
		}
	}
	if l.lock, err = lockDir(cfg.Dir); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	defer func() {
		if err != nil {
			l.w.close()
			l.lock.Close()
		}
	}()
	verifier, err := l.loadKeys()
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	if err := l.recover(verifier); err != nil {
		return nil, fmt.Errorf("open the log: %w (to go on, keep log/, values/, log.key, log.pub and log.mac together elsewhere as evidence; a new log is begun then)", err)
	}
	go l.commits()
	if r := l.repaired; r != (Repaired{}) {
		cfg.Log.Warn("the decision log was repaired after a crash", "cut_bytes", r.CutBytes, "kept_records", r.Kept)
		if _, err := l.appendEvent(context.Background(), recordRest{Kind: KindRepaired, Repaired: &r}, false); err != nil {
			close(l.quit)
			<-l.done
			return nil, fmt.Errorf("open the log: %w", err)
		}
	}
	return l, nil
}

// lockDir makes sure of a single writer. The lock ends with the process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(logDir(dir), "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("take the lock: %w", err)
	}
	return f, nil
}

// loadKeys reads the keys, or creates the log. A log that has lost its keys or
// its head is not created anew: that would make a beginning out of a gap.
func (l *Log) loadKeys() (note.Verifier, error) {
	dir := l.cfg.Dir
	keys, err := l.cfg.Keys, error(nil)
	if keys == nil {
		if keys, err = readKeys(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	created := false
	if keys == nil {
		if keys, err = newKeys(); err != nil {
			return nil, err
		}
		created = true
	} else if l.cfg.Keys != nil {
		_, err := os.Lstat(headPath(dir))
		created = missing(err)
	}
	l.keys = keys
	var verifier note.Verifier
	if l.signer, verifier, err = keys.signerOf(); err != nil {
		return nil, err
	}
	if !created {
		return verifier, nil
	}
	segments, err := listSegments(dir)
	if err != nil {
		return nil, err
	}
	if len(segments) > 0 {
		return nil, errors.New("there are segments but no key or head: restore log.key and log/head, or move log/ and values/ away to begin a new log")
	}
	empty := head{root: new(edge).root(), time: l.cfg.Now()}
	msg, err := empty.sign(l.signer)
	if err != nil {
		return nil, err
	}
	// The head comes first and log.key last, so a crash in between leaves
	// either no log or a whole one.
	if err := durable.WriteFile(headPath(dir), padHead(msg), 0o600); err != nil {
		return nil, fmt.Errorf("create the head: %w", err)
	}
	if l.cfg.Keys == nil {
		return verifier, writeKeys(dir, keys)
	}
	return verifier, durable.WriteFile(filepath.Join(dir, "log.pub"), []byte(keys.Verifier+"\n"), 0o644)
}

// recover brings the writer's state up to the files, or refuses.
func (l *Log) recover(verifier note.Verifier) error {
	w := &l.w
	h, msg, err := readHead(headPath(w.dir), verifier)
	if err != nil {
		return err
	}
	segments, err := listSegments(w.dir)
	if err != nil {
		return err
	}
	state, last, err := l.checkClosed(segments)
	if err != nil {
		return err
	}
	s := &scan{first: state.next, end: state}
	if last >= 0 {
		if s, err = scanSegment(segmentPath(w.dir, last), state); err != nil {
			return err
		}
	}
	if err := checkHead(h, state, s); err != nil {
		return err
	}
	w.first, w.offsets, w.ids, w.state = s.first, s.offsets, s.ids, s.end
	if err := w.openSegment(0); err != nil {
		return err
	}
	if w.head, err = os.OpenFile(headPath(w.dir), os.O_RDWR, 0); err != nil {
		return fmt.Errorf("open the head: %w", err)
	}
	if err := l.loadTree(h, segments, s); err != nil {
		return err
	}
	w.segmentEnd, w.begun = s.bytes, h.time
	if err := l.checkValuesEnd(s); err != nil {
		return err
	}
	l.repaired = Repaired{CutBytes: s.torn, Kept: s.end.next - h.size}
	if l.repaired != (Repaired{}) {
		if err := l.rewriteTail(h, s); err != nil {
			return err
		}
		if msg, err = l.putHead(l.cfg.Now()); err != nil {
			return err
		}
	}
	l.publish(msg, 0)
	return nil
}

// checkClosed checks every segment but the last, by its index where that fits,
// else by reading it, and returns where the last one begins; last is -1 when
// there is none.
func (l *Log) checkClosed(segments []int64) (state chainState, last int64, err error) {
	for i, first := range segments {
		if first != state.next {
			return state, -1, fmt.Errorf("segment %020d is missing: the next one begins with record %d", state.next, first)
		}
		if i == len(segments)-1 {
			return state, first, nil
		}
		c, err := readIndex(l.cfg.Dir, first)
		if err == nil {
			err = checkFirst(l.cfg.Dir, first, state)
		}
		if err != nil {
			s, serr := scanSegment(segmentPath(l.cfg.Dir, first), state)
			if serr != nil {
				return state, -1, serr
			}
			if s.torn != 0 {
				return state, -1, fmt.Errorf("segment %020d is damaged after record %d: %w", first, s.end.next-1, orTorn(s.broken))
			}
			l.cfg.Log.Warn("an index of the decision log was made again", "segment", first)
			if c, err = writeIndex(l.cfg.Dir, s); err != nil {
				return state, -1, err
			}
		}
		l.closed = append(l.closed, c)
		state = chainState{next: first + c.count, hash: c.hash}
	}
	return state, -1, nil
}

// checkFirst checks that a segment continues the one before it.
func checkFirst(dir string, first int64, state chainState) error {
	f, err := os.Open(segmentPath(dir, first))
	if err != nil {
		return fmt.Errorf("open a segment: %w", err)
	}
	defer f.Close()
	line, err := readLineAt(f, 0)
	if err != nil {
		return err
	}
	h, err := parseLineHead(line)
	if err != nil {
		return err
	}
	return state.follow(line, h)
}

func orTorn(err error) error {
	if err == nil {
		return errors.New("its last record is not finished")
	}
	return err
}

// checkHead checks that everything the head counts is there. state is where
// the last segment begins.
func checkHead(h *head, state chainState, s *scan) error {
	reached, hash, bytes := state.next, state.hash, int64(0)
	switch {
	case h.size < state.next:
		return fmt.Errorf("the head counts %d records, but the finished segments hold %d: it was replaced by an older one", h.size, state.next)
	case h.size > s.end.next:
		return fmt.Errorf("%d acknowledged records are missing at the end: the head counts %d, the segments hold %d (%w)",
			h.size-s.end.next, h.size, s.end.next, orTorn(s.broken))
	case h.size > state.next:
		pos := h.size - s.first
		reached, hash = h.size, s.hashes[pos-1]
		if bytes = s.bytes; pos < int64(len(s.offsets)) {
			bytes = s.offsets[pos]
		}
		if h.segment != s.first || h.bytes != bytes {
			return errors.New("the head and the last segment disagree about its length")
		}
	}
	if reached != h.size || hash != h.chain {
		return fmt.Errorf("record %d is not the one that the head was signed over", h.size-1)
	}
	return nil
}

// loadTree brings the tree file up to date and checks it against the head.
func (l *Log) loadTree(h *head, segments []int64, s *scan) (err error) {
	w := &l.w
	if w.tree, err = os.OpenFile(filepath.Join(logDir(w.dir), "tree"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("open the tree: %w", err)
	}
	t := treeFile{w.tree}
	have, err := t.records()
	if err != nil {
		return err
	}
	// The scan has the hashes of the last segment, so the file matters up to
	// there only.
	if e, err := t.load(min(s.first, h.size)); have >= s.first && err == nil {
		w.edge = *e
		if err := l.extendTree(t, h, s.hashes); err == nil {
			return nil
		}
	}
	l.cfg.Log.Warn("the tree of the decision log was made again")
	w.edge = edge{}
	state := chainState{}
	for _, first := range segments {
		if first == s.first {
			break
		}
		c, err := scanSegment(segmentPath(w.dir, first), state)
		if err != nil {
			return err
		}
		if c.torn != 0 {
			return fmt.Errorf("segment %020d is damaged after record %d: %w", first, c.end.next-1, orTorn(c.broken))
		}
		at := tlog.StoredHashCount(w.edge.size)
		var hashes []tlog.Hash
		for _, leaf := range c.hashes {
			hashes = append(hashes, w.edge.add(leaf)...)
		}
		if err := t.write(at, hashes); err != nil {
			return err
		}
		state = c.end
	}
	if state.next != s.first {
		return errors.New("the finished segments do not reach the last one")
	}
	return l.extendTree(t, h, s.hashes)
}

// extendTree adds the records of the last segment and compares the root at the
// head's size.
func (l *Log) extendTree(t treeFile, h *head, leaves []tlog.Hash) error {
	w := &l.w
	at := tlog.StoredHashCount(w.edge.size)
	var hashes []tlog.Hash
	ok := w.edge.size == h.size && w.edge.root() == h.root
	for _, leaf := range leaves {
		hashes = append(hashes, w.edge.add(leaf)...)
		if w.edge.size == h.size {
			ok = w.edge.root() == h.root
		}
	}
	if !ok {
		return errors.New("the records are not those that the head was signed over: the Merkle root differs")
	}
	if err := t.write(at, hashes); err != nil {
		return err
	}
	// What lies beyond was written for records that a crash has cut off.
	if err := w.tree.Truncate(tlog.StoredHashCount(w.edge.size) * tlog.HashSize); err != nil {
		return fmt.Errorf("cut the tree: %w", err)
	}
	return nil
}

// checkValuesEnd decides where the next value goes: after everything that a
// record names, also when the file has been erased.
func (l *Log) checkValuesEnd(s *scan) error {
	st, err := l.w.values.Stat()
	if err != nil {
		return fmt.Errorf("open a values file: %w", err)
	}
	l.w.valuesEnd = s.values
	if st.Size() > s.values {
		if err := l.w.values.Truncate(s.values); err != nil {
			return fmt.Errorf("cut unfinished values: %w", err)
		}
	}
	return nil
}

// rewriteTail cuts what is torn and writes the kept records anew: if they were
// left by a failed sync, the kernel may hold them as clean without their being
// on the disk, and then only writing them again makes the next sync mean
// something.
func (l *Log) rewriteTail(h *head, s *scan) error {
	w := &l.w
	from := int64(0)
	if h.size > s.first {
		from = h.bytes
	}
	tail := make([]byte, s.bytes-from)
	if _, err := io.ReadFull(io.NewSectionReader(w.segment, from, int64(len(tail))), tail); err != nil {
		return fmt.Errorf("read the records to keep: %w", err)
	}
	if err := w.segment.Truncate(from); err != nil {
		return fmt.Errorf("cut the unfinished record: %w", err)
	}
	if _, err := l.disk.writeAt(w.segment, tail, from); err != nil {
		return fmt.Errorf("write the kept records: %w", err)
	}
	if err := errors.Join(l.disk.sync(w.segment), l.disk.sync(w.values)); err != nil {
		return fmt.Errorf("sync the kept records: %w", err)
	}
	return nil
}
