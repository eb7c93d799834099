package standing

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

const (
	maxFile   = 4 << 20
	maxOrders = 2000 // that hold; those that have ended are kept for a while beside them
	keepEnded = 30 * 24 * time.Hour
)

// Errors that callers branch on.
var (
	ErrNotFound = errors.New("there is no such standing order")
	ErrFull     = errors.New("too many standing orders hold already: revoke some")
)

// file is how the orders are kept.
type file struct {
	Version int     `json:"version"`
	Orders  []Order `json:"orders"`
}

// Store holds the orders. It is safe for concurrent use.
type Store struct {
	path   string
	now    func() time.Time
	digest func(payload string) string

	mu  sync.RWMutex
	all []compiled // the oldest first; guarded by mu
}

// Open reads the orders at path, if there are any. A file that cannot be read
// is an error: a refusal that is not known would not hold. digest makes what
// Scope.Payload holds; it should be keyed, since short payloads can be guessed.
func Open(path string, now func() time.Time, digest func(payload string) string) (*Store, error) {
	s := &Store{path: path, now: now, digest: digest}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the standing orders: %w", err)
	}
	if s.all, err = parse(data); err != nil {
		return nil, fmt.Errorf("read the standing orders in %s: %w", path, err)
	}
	return s, nil
}

func parse(data []byte) ([]compiled, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file has %d bytes, the limit is %d", len(data), maxFile)
	}
	var f file
	if err := schema.Decode(data, &f); err != nil {
		return nil, err
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("version is %d, this auditd reads version 1", f.Version)
	}
	var all []compiled
	for i, o := range f.Orders {
		// One that has ended meanwhile was valid when it was given.
		c, err := compile(o, o.Created.Add(-time.Second))
		if err != nil {
			return nil, fmt.Errorf("order %d: %w", i+1, err)
		}
		if o.ID == "" || o.Created.IsZero() || slices.ContainsFunc(all, func(x compiled) bool { return x.ID == o.ID }) {
			return nil, fmt.Errorf("order %d: its id or time is missing or stands there twice", i+1)
		}
		all = append(all, c)
	}
	return all, nil
}

// Add checks an order, gives it an id and keeps it. It holds when Add returns.
func (s *Store) Add(o Order) (Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	b := make([]byte, 10)
	rand.Read(b) // never fails
	prefix := "s-"
	if o.Effect == Deny {
		prefix = "n-"
	}
	o.ID, o.Created, o.Revoked = prefix+strings.ToLower(base32.StdEncoding.EncodeToString(b))[:10], now.UTC(), nil
	if !o.Expires.IsZero() {
		o.Expires = o.Expires.UTC()
	}
	c, err := compile(o, now)
	if err != nil {
		return Order{}, err
	}
	active := 0
	for i := range s.all {
		if s.all[i].Active(now) {
			active++
		}
	}
	if active >= maxOrders {
		return Order{}, ErrFull
	}
	all := append(slices.Clone(s.all), c)
	if err := s.write(all, now); err != nil {
		return Order{}, err
	}
	return o, nil
}

// Revoke ends an order at once.
func (s *Store) Revoke(id string) (Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	all := slices.Clone(s.all)
	i := slices.IndexFunc(all, func(c compiled) bool { return c.ID == id })
	if i < 0 || !all[i].Active(now) {
		return Order{}, ErrNotFound
	}
	at := now.UTC()
	all[i].Revoked = &at
	if err := s.write(all, now); err != nil {
		return Order{}, err
	}
	return all[i].Order, nil
}

// write makes all the orders that hold, first on the disk. The caller has mu.
func (s *Store) write(all []compiled, now time.Time) error {
	all = slices.DeleteFunc(all, func(c compiled) bool {
		ended := c.Expires
		if c.Revoked != nil {
			ended = *c.Revoked
		}
		return !c.Active(now) && now.Sub(ended) > keepEnded
	})
	f := file{Version: 1, Orders: []Order{}}
	for i := range all {
		f.Orders = append(f.Orders, all[i].Order)
	}
	data, err := schema.Encode(f)
	if err != nil {
		return fmt.Errorf("encode the standing orders: %w", err)
	}
	if len(data) > maxFile {
		return ErrFull
	}
	if err := durable.WriteFile(s.path, data, 0o600); err != nil {
		return fmt.Errorf("write the standing orders: %w", err)
	}
	s.all = all
	return nil
}

// Digest is what Scope.Payload holds for a payload.
func (s *Store) Digest(payload string) string { return s.digest(payload) }

// List returns the orders, the newest first; with ended also those that hold
// no longer and are still kept.
func (s *Store) List(ended bool) []Order {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := s.now()
	out := []Order{}
	for i := len(s.all) - 1; i >= 0; i-- {
		if ended || s.all[i].Active(now) {
			out = append(out, s.all[i].Order)
		}
	}
	return out
}

// Covering returns the orders that hold for a flow, the oldest first.
func (s *Store) Covering(f *schema.Flow, now time.Time) []Order {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var digest string
	payload := func() string {
		if digest == "" {
			digest = s.digest(f.Payload)
		}
		return digest
	}
	var out []Order
	for i := range s.all {
		if c := &s.all[i]; c.Active(now) && c.covers(f, payload) {
			out = append(out, c.Order)
		}
	}
	return out
}
