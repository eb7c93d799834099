package credential

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"example.org/auditd/schema"
)

// What a login can be refused for.
var (
	ErrNoPassphrase = errors.New("no owner passphrase is set: run `auditd passphrase set` in a terminal")
	ErrWrong        = errors.New("the passphrase or code is wrong")
	ErrTooMany      = errors.New("too many attempts, wait a few seconds")
)

// Config configures a Keeper.
type Config struct {
	HookToken      string // see HookToken
	PassphrasePath string
	SessionTTL     time.Duration // of an owner session, default 10 minutes
	LinkTTL        time.Duration // of a one-time code, default 1 minute
	IdleTTL        time.Duration // of a browser's session after its last use, default 30 minutes
	MaxTTL         time.Duration // of a browser's session however much it is used, default 12 hours
	Now            func() time.Time
}

// Keeper checks credentials for the daemon. It is safe for concurrent use.
type Keeper struct {
	path       string
	sessionTTL time.Duration
	linkTTL    time.Duration
	idleTTL    time.Duration
	maxTTL     time.Duration
	now        func() time.Time
	hook       [sha256.Size]byte
	attempts   *rate.Limiter // of logins, right or wrong: guessing is slow and bounded in memory

	checking sync.Mutex // one hash at a time: each takes 64 MiB

	mu sync.Mutex // guards the rest
	// passphrase stays what it was when it was first seen; a file that changes
	// under a running daemon changes nothing.
	passphrase *Passphrase
	sessions   map[[sha256.Size]byte]life // by digest of the token
	codes      map[[sha256.Size]byte]life // one-time codes
}

// life is how long a token is good: until, and with renewals never beyond last.
type life struct{ until, last time.Time }

// maxSessions bounds what the owner's own scripts can pile up.
const maxSessions = 64

// NewKeeper reads the passphrase file, if there is one.
func NewKeeper(c Config) (*Keeper, error) {
	if c.HookToken == "" {
		return nil, errors.New("no hook token")
	}
	if c.SessionTTL <= 0 {
		c.SessionTTL = 10 * time.Minute
	}
	if c.LinkTTL <= 0 {
		c.LinkTTL = time.Minute
	}
	if c.IdleTTL <= 0 {
		c.IdleTTL = 30 * time.Minute
	}
	if c.MaxTTL <= 0 {
		c.MaxTTL = 12 * time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	k := &Keeper{path: c.PassphrasePath, sessionTTL: c.SessionTTL, linkTTL: c.LinkTTL, idleTTL: c.IdleTTL, maxTTL: c.MaxTTL, now: c.Now, hook: sha256.Sum256([]byte(c.HookToken)),
		attempts: rate.NewLimiter(rate.Every(2*time.Second), 5),
		sessions: map[[sha256.Size]byte]life{}, codes: map[[sha256.Size]byte]life{}}
	if _, err := k.owner(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return k, nil
}

// owner returns the passphrase. The first one may be set while the daemon
// runs; from then on it is kept.
func (k *Keeper) owner() (*Passphrase, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.passphrase != nil {
		return k.passphrase, nil
	}
	if k.path == "" {
		return nil, fs.ErrNotExist
	}
	p, err := ReadPassphrase(k.path)
	if err == nil {
		k.passphrase = p
	}
	return p, err
}

// HasOwner reports whether a passphrase is set.
func (k *Keeper) HasOwner() bool {
	_, err := k.owner()
	return err == nil
}

// OwnerFileChanged reports whether the passphrase file is not the one that the
// daemon uses: either its owner changed it and has yet to restart the daemon,
// or somebody else did.
func (k *Keeper) OwnerFileChanged() bool {
	p, err := k.owner()
	return err == nil && p.changed(k.path)
}

// Login exchanges the passphrase for a session token.
func (k *Keeper) Login(passphrase string) (token string, expires time.Time, err error) {
	p, err := k.owner()
	if errors.Is(err, fs.ErrNotExist) {
		return "", time.Time{}, ErrNoPassphrase
	}
	if err != nil {
		return "", time.Time{}, err
	}
	if !k.attempts.AllowN(k.now(), 1) {
		return "", time.Time{}, ErrTooMany
	}
	k.checking.Lock()
	ok := p.Matches(passphrase)
	k.checking.Unlock()
	if !ok {
		return "", time.Time{}, ErrWrong
	}
	return k.open(k.sessions, ownerPrefix, k.sessionTTL)
}

// Code makes a code that buys one session, for a link that the owner opens in
// a browser.
func (k *Keeper) Code() (code string, expires time.Time, err error) {
	return k.open(k.codes, "", k.linkTTL)
}

// LoginCode exchanges a one-time code for a session token.
func (k *Keeper) LoginCode(code string) (token string, expires time.Time, err error) {
	if !k.attempts.AllowN(k.now(), 1) {
		return "", time.Time{}, ErrTooMany
	}
	d := sha256.Sum256([]byte(code))
	k.mu.Lock()
	link, ok := k.codes[d]
	delete(k.codes, d)
	k.mu.Unlock()
	if !ok || !k.now().Before(link.until) {
		return "", time.Time{}, ErrWrong
	}
	return k.open(k.sessions, ownerPrefix, k.sessionTTL)
}

func (k *Keeper) open(in map[[sha256.Size]byte]life, prefix string, ttl time.Duration) (string, time.Time, error) {
	token := newToken(prefix)
	now := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for d, l := range in {
		if !now.Before(l.until) {
			delete(in, d)
		}
	}
	if len(in) >= maxSessions {
		return "", time.Time{}, fmt.Errorf("%d sessions are open: %w", len(in), ErrTooMany)
	}
	in[sha256.Sum256([]byte(token))] = life{until: now.Add(ttl), last: now.Add(k.maxTTL)}
	return token, now.Add(ttl), nil
}

// Logout ends a session.
func (k *Keeper) Logout(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sessions, sha256.Sum256([]byte(token)))
}

// Renew puts off the end of an owner session that is in use, and says when it
// now ends. It is for the page, which a person keeps open all day; a session
// of the command line ends when it was to end.
func (k *Keeper) Renew(token string) (until time.Time, ok bool) {
	d := sha256.Sum256([]byte(token))
	now := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	l, ok := k.sessions[d]
	if !ok || !now.Before(l.until) {
		return time.Time{}, false
	}
	next := now.Add(k.idleTTL)
	if next.After(l.last) {
		next = l.last
	}
	if next.After(l.until) {
		l.until = next
		k.sessions[d] = l
	}
	return l.until, true
}

// Check says which rights token gives. It takes the same time for every wrong
// token: tokens are looked up and compared by digest only.
func (k *Keeper) Check(token string) schema.Credential {
	d := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(d[:], k.hook[:]) == 1 {
		return schema.CredentialHook
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if l, ok := k.sessions[d]; ok && k.now().Before(l.until) {
		return schema.CredentialOwner
	}
	return schema.CredentialNone
}
