package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"example.org/auditd/api"
	"example.org/auditd/httpapi/ui"
	"example.org/auditd/schema"
)

// The page's routes. They are no part of the API: they take the owner's cookie
// and never a bearer token, and the API never takes the cookie, so that nothing
// that a browser can be made to send does anything there.
//
// A cookie knows a host and no port: a development server that an agent starts
// on 127.0.0.1:3000 receives the page's cookie as soon as the owner looks at
// it. Therefore the cookie alone opens nothing. Every request also carries a
// key that the page got at login and keeps in its origin's storage, which does
// know ports; no answer ever repeats it.
const (
	pageKeyHeader = "X-Auditd-Page"
	maxStreams    = 16 // browsers that follow changes at the same time
	pageRate      = 60 // requests a second, of all browsers together
	strangerRate  = 10 // of those without a session: they must not use up the owner's
)

// page is the state behind those routes.
type page struct {
	limit     *rate.Limiter // of requests in a session
	strangers *rate.Limiter // of all others
	streams   chan struct{} // one per browser that follows changes
	end       context.Context
	stop      context.CancelFunc

	mu   sync.Mutex // guards keys
	keys map[[sha256.Size]byte]pageKey

	overview overviewCache
	replay   replayJob
}

// pageKey is the second half of a browser's session.
type pageKey struct {
	digest [sha256.Size]byte
	until  time.Time // when it may be forgotten
}

func newPage() *page {
	end, stop := context.WithCancel(context.Background())
	return &page{limit: rate.NewLimiter(pageRate, 4*pageRate), strangers: rate.NewLimiter(strangerRate, 2*strangerRate), streams: make(chan struct{}, maxStreams), end: end, stop: stop,
		keys: map[[sha256.Size]byte]pageKey{}}
}

// servePage adds the page to the engine.
func (s *Server) servePage() {
	s.http.RegisterOnShutdown(s.page.stop) // streams would hold up the shutdown
	s.engine.GET("/", s.pageFile)
	s.engine.GET("/ui/static/:name", s.pageFile)
	s.engine.POST("/ui/login", s.pageStranger, s.guard(route{method: http.MethodPost, small: true}), s.pageLogin)
	owner := s.engine.Group("/ui", s.pageOwner)
	get := func(path string, h gin.HandlerFunc) { owner.GET(path, h) }
	post := func(path string, h gin.HandlerFunc) {
		owner.POST(path, s.guard(route{method: http.MethodPost, small: true}), h)
	}
	post("/session", s.pageRenew)
	post("/logout", s.pageLogout)
	get("/events", s.pageEvents)
	get("/questions", s.pageQuestions)
	get("/questions/:id", s.pageQuestion)
	large := func(path string, decides bool, h gin.HandlerFunc) {
		owner.POST(path, s.guard(route{method: http.MethodPost, decides: decides}), h)
	}
	large("/questions/:id", false, s.approve)
	large("/questions/:id/review", true, s.review)
	get("/grants", s.pageGrants)
	post("/grants/:id/revoke", s.pageRevoke)
	get("/feed", s.pageFeed)
	get("/decisions/:id", s.pageDecision)
	get("/standing", s.orders)
	post("/standing", s.addOrder)
	post("/standing/:id/revoke", s.revokeOrder)
	post("/marks", s.mark)
	get("/policy", s.policy)
	large("/policy", false, s.applyPolicy)
	large("/policy/check", false, s.checkPolicy)
	get("/policy/history", s.policyHistory)
	get("/policy/history/:digest", s.earlierPolicy)
	get("/symbols", s.symbols)
	get("/symbols/:token", s.pageSymbol)
	get("/symbols/:token/graph", s.symbolGraph)
	get("/views", s.views)
	get("/views/:id/log", s.viewLog)
	get("/views/:id/show", s.viewShow)
	get("/views/:id/diff", s.viewDiff)
	post("/views/:id/revert", s.viewRevert)
	get("/views/:id/files", s.viewFiles)
	get("/views/:id/file", s.viewFile)
	get("/views/:id/original", s.viewOriginal)
	get("/views/:id/conflicts", s.viewConflicts)
	get("/views/:id/conflicts/:conflict", s.viewConflict)
	large("/views/:id/conflicts/:conflict", false, s.viewSettle)
	get("/overview", s.pageOverview)
	post("/verify", s.pageVerify)
	get("/replay", s.pageReplay)
	large("/replay", false, s.pageReplayStart)
	post("/replay/stop", s.pageReplayStop)
}

// pageFile serves the page itself, which says nothing about this daemon.
func (s *Server) pageFile(c *gin.Context) {
	name := c.Param("name")
	if name == "" {
		name = "index.html"
	}
	data, mediaType, ok := ui.File(name)
	if !ok {
		s.fail(c, errNotFound)
		return
	}
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", ui.CSP)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	s.answerRaw(c, mediaType, data)
}

func (s *Server) pageStranger(c *gin.Context) {
	if s.page.allow(s, s.page.strangers) {
		c.Next()
		return
	}
	s.fail(c, errPageRate)
}

func (p *page) allow(s *Server, l *rate.Limiter) bool {
	ok := l.Allow()
	if !ok {
		s.metrics.refused.WithLabelValues("page_rate").Inc()
	}
	return ok
}

// cookieName holds the port: two daemons of one host must not take each
// other's cookies for their own.
func cookieName(c *gin.Context) string {
	_, port, err := net.SplitHostPort(c.Request.Host)
	if err != nil {
		port = "80"
	}
	return "auditd_" + port
}

// pageOwner lets requests of a logged-in page through.
func (s *Server) pageOwner(c *gin.Context) {
	token, err := c.Cookie(cookieName(c))
	if err != nil || s.cfg.Keeper.Check(token) != schema.CredentialOwner || !s.page.known(token, c.GetHeader(pageKeyHeader)) {
		s.metrics.refused.WithLabelValues("page").Inc()
		if s.page.allow(s, s.page.strangers) {
			s.fail(c, errPageSession)
		} else {
			s.fail(c, errPageRate)
		}
		return
	}
	if !s.page.allow(s, s.page.limit) {
		s.fail(c, errPageRate)
		return
	}
	c.Set(credentialKey, schema.CredentialOwner)
	c.Set(pageTokenKey, token)
	c.Next()
}

const pageTokenKey = "page token"

// known compares digests: neither half is kept.
func (p *page) known(token, key string) bool {
	got := sha256.Sum256([]byte(key))
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.keys[sha256.Sum256([]byte(token))]
	return ok && subtle.ConstantTimeCompare(k.digest[:], got[:]) == 1
}

// newKey makes the second half of the session that token is the first of.
func (p *page) newKey(token string, now time.Time) string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	key := hex.EncodeToString(b[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	for t, k := range p.keys {
		if now.After(k.until) {
			delete(p.keys, t)
		}
	}
	p.keys[sha256.Sum256([]byte(token))] = pageKey{digest: sha256.Sum256([]byte(key)), until: now.Add(24 * time.Hour)}
	return key
}

func (p *page) forget(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, sha256.Sum256([]byte(token)))
}

// pageLogin exchanges a one-time code for the two halves of a session. The
// passphrase is not taken: it is typed in a terminal, and no page, ours or one
// that looks like it, should make an owner used to typing it elsewhere.
func (s *Server) pageLogin(c *gin.Context) {
	var l api.Login
	if err := s.decode(c, &l); err != nil {
		s.fail(c, err)
		return
	}
	if l.Code == "" || l.Passphrase != "" {
		s.fail(c, invalid("code", "is missing"))
		return
	}
	token, expires, err := s.cfg.Keeper.LoginCode(l.Code)
	if err != nil {
		s.metrics.refused.WithLabelValues("login").Inc()
		s.cfg.Logger.WarnContext(c.Request.Context(), "owner login refused", "cause", asProblem(err).code)
		s.fail(c, err)
		return
	}
	if until, ok := s.cfg.Keeper.Renew(token); ok {
		expires = until
	}
	s.setCookie(c, token, 0)
	s.cfg.Logger.InfoContext(c.Request.Context(), "owner session opened in a browser", "expires", expires)
	s.answer(c, pageSession{Key: s.page.newKey(token, time.Now()), Expires: expires, Now: time.Now().UTC()})
}

// pageSession is what the page learns about its session.
type pageSession struct {
	Key     string    `json:"key,omitempty"` // at login alone
	Expires time.Time `json:"expires"`
	Now     time.Time `json:"now"` // countdowns follow the daemon's clock
}

// setCookie writes the session cookie; it goes when the browser does.
func (s *Server) setCookie(c *gin.Context, token string, maxAge int) {
	http.SetCookie(c.Writer, &http.Cookie{Name: cookieName(c), Value: token, Path: "/ui/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// pageRenew keeps the session alive; the page asks for it when its owner does
// something, and not on its own.
func (s *Server) pageRenew(c *gin.Context) {
	until, ok := s.cfg.Keeper.Renew(c.GetString(pageTokenKey))
	if !ok {
		s.fail(c, errPageSession)
		return
	}
	s.answer(c, pageSession{Expires: until, Now: time.Now().UTC()})
}

func (s *Server) pageLogout(c *gin.Context) {
	token := c.GetString(pageTokenKey)
	s.cfg.Keeper.Logout(token)
	s.page.forget(token)
	s.setCookie(c, "", -1)
	s.answer(c, struct{}{})
}
