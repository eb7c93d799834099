package dualview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// memoryEntries is how many entries are collected before they become a
	// segment: 16 MiB of memory, about 20 MiB of text.
	memoryEntries = 1 << 20
	memoryBits    = 12 // buckets of the memory table
	// mergeAt segments of memoryEntries become one. Merged ones stay.
	mergeAt = 8
	// maxPlaces bounds what is looked at for one shingle; one that occurs in
	// more places is found without comparing.
	maxPlaces = 64
)

// index is the content index: it finds texts that share MinMatch folded bytes
// with a value. It holds hashes only. All of it can be made again from the
// values, apart from which texts were trusted.
type index struct {
	dir string
	*folder
	*shingler
	log     *slog.Logger
	backlog backlog

	mu       sync.RWMutex // guards what follows
	filter   *filter
	trusted  *filter // the keys of trusted text alone
	active   *memtable
	frozen   *memtable // being written to a segment; nil at most times
	segments []*segment
	entries  int
	// trustedKeys is how many keys trusted holds.
	trustedKeys int
	flushed     chan struct{} // closed when the last flush has ended
	flushing    bool
	failed      error // a segment could not be written
	closed      bool
}

// memtable holds the youngest entries, by the first bits of their keys.
type memtable struct {
	buckets [1 << memoryBits][]entry
	n       int
	covers  int64
}

func (m *memtable) add(e entry) {
	b := &m.buckets[e.key>>(64-memoryBits)]
	if e.content != trustedContent {
		// A value that repeats a passage endlessly must not fill the index.
		same := 0
		for i := len(*b) - 1; i >= max(0, len(*b)-16); i-- {
			if o := (*b)[i]; o.key == e.key && o.content == e.content {
				if o.off == anywhere {
					return
				}
				same++
			}
		}
		if same >= 8 {
			e.off = anywhere
		}
	}
	*b = append(*b, e)
	m.n++
}

func (m *memtable) find(dst []entry, key uint64, limit int) []entry {
	for _, e := range m.buckets[key>>(64-memoryBits)] {
		if e.key == key && len(dst) < limit {
			dst = append(dst, e)
		}
	}
	return dst
}

// sorted sorts m in place and returns its entries one by one.
func (m *memtable) sorted() func() (entry, bool, error) {
	for i := range m.buckets {
		slices.SortFunc(m.buckets[i], compareEntries)
	}
	b, i := 0, 0
	return func() (entry, bool, error) {
		for ; b < len(m.buckets); b, i = b+1, 0 {
			if i < len(m.buckets[b]) {
				i++
				return m.buckets[b][i-1], true, nil
			}
		}
		return entry{}, false, nil
	}
}

func compareEntries(a, b entry) int {
	switch {
	case a.key != b.key:
		return cmpUint(a.key, b.key)
	case a.content != b.content:
		return cmpUint(uint64(a.content), uint64(b.content))
	default:
		return cmpUint(uint64(a.off), uint64(b.off))
	}
}

func cmpUint(a, b uint64) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

// shingles returns the kept shingles of a value. It needs no lock.
func (x *index) shingles(value []byte) []shingle {
	folded := x.fold(make([]byte, 0, len(value)+16), value, nil)
	kept := x.keep(make([]shingle, 0, len(folded)/16+8), folded)
	ordered := make([]shingle, len(kept))
	for i, at := range byBucket(kept) {
		ordered[i] = kept[at]
	}
	return ordered
}

// byBucket returns in which order to look shingles up: by the first bits of
// their keys, and within these as they are. Filter, memory table and segments
// are laid out by these bits, so that one look stays near to the one before; in
// any other order almost each of them waits for the memory.
func byBucket(kept []shingle) []uint32 {
	order := make([]uint32, len(kept))
	var starts [1<<memoryBits + 1]uint32
	for i := range kept {
		starts[kept[i].key>>(64-memoryBits)+1]++
	}
	for b := 1; b < len(starts); b++ {
		starts[b] += starts[b-1]
	}
	for i := range kept {
		at := &starts[kept[i].key>>(64-memoryBits)]
		order[*at] = uint32(i)
		*at++
	}
	return order
}

// add puts a value's shingles into the index, apart from those that belong to
// text that was trusted before. The caller serialises adds by ascending ids.
func (x *index) add(content int64, kept []shingle) {
	x.insert(content, kept, func(key uint64, have []entry) bool {
		// The filter of trusted keys rules most of them out without a look.
		return !x.trusted.has(key) || !slices.ContainsFunc(x.lookup(have, maxPlaces, key), isTrusted)
	})
}

// addTrusted remembers text as trusted, apart from what is already known to
// come from a value: what was untrusted first stays so.
func (x *index) addTrusted(kept []shingle) {
	x.insert(trustedContent, kept, func(key uint64, have []entry) bool { return len(x.lookup(have, 1, key)) == 0 })
}

func isTrusted(e entry) bool { return e.content == trustedContent }

// insert adds those of kept that are new or that want wants. have is room for a
// lookup.
func (x *index) insert(content int64, kept []shingle, want func(key uint64, have []entry) bool) {
	if content > 1<<32-1 {
		// Four thousand million values. Recognition would end here, silently.
		panic("dualview: the content index is full")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	have := make([]entry, 0, maxPlaces)
	for _, s := range kept {
		if !x.filter.addNew(s.key) && !want(s.key, have) {
			continue
		}
		if content == trustedContent {
			x.trusted.add(s.key)
			x.trustedKeys++
		}
		x.active.add(entry{s.key, uint32(content), s.off})
	}
	x.active.covers = max(x.active.covers, content)
	if x.active.n >= memoryEntries {
		x.freeze()
	}
}

// lookup appends the entries of a key to dst, until it holds limit of them. The
// caller holds mu.
func (x *index) lookup(dst []entry, limit int, key uint64) []entry {
	dst = x.active.find(dst, key, limit)
	if x.frozen != nil {
		dst = x.frozen.find(dst, key, limit)
	}
	for _, s := range x.segments {
		dst = s.find(dst, key, limit)
	}
	return dst
}

// freeze hands the memory table to the flusher. While one is being written, the
// next one grows beyond its size rather than making a tool result wait.
func (x *index) freeze() {
	if x.flushing || x.frozen != nil || x.closed {
		return
	}
	x.frozen, x.active = x.active, &memtable{covers: x.active.covers}
	x.flushed, x.flushing = make(chan struct{}), true
	go x.flush(x.frozen, x.flushed)
}

// flush writes a frozen table, merges segments and makes the filter larger.
func (x *index) flush(m *memtable, done chan struct{}) {
	defer close(done)
	defer func() {
		x.mu.Lock()
		x.flushing = false
		x.mu.Unlock()
	}()
	s, err := x.writeTable(m)
	if err != nil {
		// The frozen table stays where it is and is still searched. Nothing is
		// lost: what no segment covers is indexed again at the next start.
		x.log.Error("the content index cannot be written", "err", err)
		x.mu.Lock()
		x.failed = err
		x.mu.Unlock()
		return
	}
	x.mu.Lock()
	x.segments = append(x.segments, s)
	x.entries += s.n
	x.frozen = nil
	segments := slices.Clone(x.segments)
	entries, full := x.entries, x.entries > x.filter.limit || x.trustedKeys > x.trusted.limit
	x.mu.Unlock()

	if err := x.merge(segments); err != nil {
		x.log.Warn("segments of the content index could not be merged", "err", err)
	}
	if full {
		if err := x.enlarge(entries); err != nil {
			x.log.Warn("the content index's filter could not be enlarged", "err", err)
		}
	}
}

// writeTable sorts a table that nobody adds to any more. Readers may scan its
// buckets meanwhile, so the sorting works on copies.
func (x *index) writeTable(m *memtable) (*segment, error) {
	c := &memtable{n: m.n, covers: m.covers}
	for i := range m.buckets {
		c.buckets[i] = slices.Clone(m.buckets[i])
	}
	path := x.segmentPath(m.covers)
	if err := writeSegment(path, c.n, c.covers, c.sorted()); err != nil {
		return nil, err
	}
	return openSegment(path)
}

// segmentPath returns a name that was not used yet.
func (x *index) segmentPath(covers int64) string {
	for i := 0; ; i++ {
		p := filepath.Join(x.dir, fmt.Sprintf("%012d-%04d.seg", covers, i))
		if _, err := os.Lstat(p); err != nil {
			return p
		}
	}
}

// merge makes one segment of mergeAt small ones.
func (x *index) merge(segments []*segment) error {
	var small []*segment
	n, covers := 0, int64(0)
	for _, s := range segments {
		if s.n < memoryEntries*mergeAt/2 {
			small = append(small, s)
			n += s.n
			covers = max(covers, s.covers)
		}
	}
	if len(small) < mergeAt {
		return nil
	}
	path := x.segmentPath(covers)
	if err := writeSegment(path, n, covers, mergeReaders(small)); err != nil {
		return err
	}
	merged, err := openSegment(path)
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.segments = append(slices.DeleteFunc(x.segments, func(s *segment) bool { return slices.Contains(small, s) }), merged)
	x.mu.Unlock()
	// Readers hold mu while they use a segment, so nobody uses these now. A
	// crash before they are removed leaves every entry twice, which is harmless.
	for _, s := range small {
		if err := errors.Join(s.close(), os.Remove(s.path)); err != nil {
			return err
		}
	}
	return nil
}

func mergeReaders(segments []*segment) func() (entry, bool, error) {
	type head struct {
		e    entry
		next func() (entry, bool, error)
	}
	var heads []head
	started := false
	return func() (entry, bool, error) {
		if !started {
			started = true
			for _, s := range segments {
				r := s.reader()
				e, ok, err := r()
				if err != nil {
					return entry{}, false, err
				}
				if ok {
					heads = append(heads, head{e, r})
				}
			}
		}
		if len(heads) == 0 {
			return entry{}, false, nil
		}
		least := 0
		for i := range heads {
			if compareEntries(heads[i].e, heads[least].e) < 0 {
				least = i
			}
		}
		out := heads[least].e
		e, ok, err := heads[least].next()
		if err != nil {
			return entry{}, false, err
		}
		if ok {
			heads[least].e = e
		} else {
			heads = slices.Delete(heads, least, least+1)
		}
		return out, true, nil
	}
}

// enlarge replaces the filters by larger ones. The flusher is the only one who
// changes segments, so it may read them unlocked.
func (x *index) enlarge(entries int) error {
	x.mu.RLock()
	segments, trustedKeys := slices.Clone(x.segments), x.trustedKeys
	x.mu.RUnlock()
	all, trusted := newFilter(2*entries, filterMin, filterMax), newFilter(2*trustedKeys, trustedMin, filterMax)
	n := 0
	for _, s := range segments {
		k, err := fillFilters(all, trusted, s.reader())
		if err != nil {
			return err
		}
		n += k
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range x.active.buckets {
		for _, e := range b {
			all.add(e.key)
			if isTrusted(e) {
				trusted.add(e.key)
				n++
			}
		}
	}
	x.filter, x.trusted, x.trustedKeys = all, trusted, n
	return nil
}

// fillFilters adds entries to the filters and returns how many are trusted.
func fillFilters(all, trusted *filter, next func() (entry, bool, error)) (int, error) {
	n := 0
	for {
		e, ok, err := next()
		if err != nil || !ok {
			return n, err
		}
		all.add(e.key)
		if isTrusted(e) {
			trusted.add(e.key)
			n++
		}
	}
}

// close writes what is in memory.
func (x *index) close() error {
	x.mu.Lock()
	x.closed = true
	flushed := x.flushed
	x.mu.Unlock()
	if flushed != nil {
		<-flushed
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var err error
	if x.active.n > 0 && x.frozen == nil {
		var s *segment
		if s, err = x.writeTable(x.active); err == nil {
			x.segments = append(x.segments, s)
		}
	}
	if err == nil && x.frozen == nil && x.failed == nil {
		err = x.saveSnapshot()
	}
	for _, s := range x.segments {
		err = errors.Join(err, s.close())
	}
	x.segments = nil
	return err
}

// openIndex opens the segments and indexes again what none of them covers: the
// youngest values after a crash, all of them when the directory was lost.
func (t *Table) openIndex(ctx context.Context, dir string, key []byte) (*index, error) {
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	x := &index{dir: dir, folder: newFolder(), shingler: newShingler(key), log: t.log, active: new(memtable)}
	x.backlog.cond.L = &x.backlog.mu
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the content index: %w", err)
	}
	damaged := false
	for _, d := range names {
		path := filepath.Join(dir, d.Name())
		if d.Name() == snapshotName {
			continue
		}
		if !strings.HasSuffix(d.Name(), ".seg") {
			os.Remove(path) // half of a segment that was being written
			continue
		}
		s, err := openSegment(path)
		if err != nil {
			t.log.WarnContext(ctx, "a segment of the content index is damaged: all values are indexed again", "err", err)
			damaged = true
			os.Remove(path)
			continue
		}
		x.segments = append(x.segments, s)
		x.entries += s.n
		x.active.covers = max(x.active.covers, s.covers)
	}
	if damaged {
		x.active.covers = 0
	}
	if damaged || !x.loadSnapshot() {
		if err := x.makeFilters(); err != nil {
			return nil, err
		}
	}
	t.index = x
	if err := t.reindex(ctx, x.active.covers); err != nil {
		return nil, fmt.Errorf("index values again: %w", err)
	}
	return x, nil
}

// makeFilters makes the filters from all entries.
func (x *index) makeFilters() error {
	trustedKeys := 0
	for _, s := range x.segments { // how many there are has to be known first
		for i := range s.n {
			if isTrusted(s.entry(uint32(i))) {
				trustedKeys++
			}
		}
	}
	x.filter, x.trusted, x.trustedKeys = newFilter(2*x.entries, filterMin, filterMax), newFilter(2*trustedKeys, trustedMin, filterMax), trustedKeys
	for _, s := range x.segments {
		if _, err := fillFilters(x.filter, x.trusted, s.reader()); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) reindex(ctx context.Context, after int64) error {
	for {
		var id int64
		err := t.db.QueryRowContext(ctx, `SELECT COALESCE(MIN(id), 0) FROM dualview_content WHERE id > ?`, after).Scan(&id)
		if err != nil {
			return err
		}
		if id == 0 {
			return nil
		}
		after = id
		data, err := t.loadContent(ctx, id)
		if err != nil {
			// Its symbols do not resolve either, so it can only come back from
			// elsewhere; say so and go on.
			t.log.ErrorContext(ctx, "a value cannot be indexed", "content", strconv.FormatInt(id, 10), "err", err)
			continue
		}
		t.index.add(id, t.index.shingles(data))
	}
}
