// Package httpapi serves the daemon's API over HTTP on the loopback interface
// and on a Unix socket. Handlers decode, call and encode; what is decided is
// decided behind the functions in Config.
//
// Who attacks here: an agent that runs as the owner's user and holds the hook
// token; a web page in the owner's browser (cross-site requests, DNS
// rebinding); and whatever wrote the payloads. Three rules follow. Every error
// body says "action":"block", so that a client which looks only for an action
// stops. A decision is answered with status 200 whatever it is, because hosts
// read the body and not the status. No error text, header or metric label
// quotes a payload.
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"example.org/auditd/api"
	"example.org/auditd/approval"
	"example.org/auditd/auditlog"
	"example.org/auditd/claudehook"
	"example.org/auditd/credential"
	"example.org/auditd/escalation"
	"example.org/auditd/heartbeat"
	"example.org/auditd/marks"
	"example.org/auditd/policy"
	"example.org/auditd/replay"
	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

// Config is what the server needs. Audit, Event, Keeper and Logger must be
// set; whatever else is nil answers 404 or "not configured", never success.
type Config struct {
	// Audit and Event are the firewall's. They return a decision that stops
	// for every failure, so they have no error.
	Audit func(context.Context, *schema.Flow, schema.Credential) schema.Decision
	Event func(context.Context, *schema.Event, schema.Credential) schema.Outcome

	// Isolation is the isolating half; nil where the policy isolates no agent.
	Isolation Isolation
	// Review audits a text that the owner would send in place of a flow's.
	Review func(context.Context, *schema.Flow, string) schema.Decision

	Approvals *approval.Queue
	Log       *auditlog.Log
	Standing  *standing.Store
	Marks     *marks.Book
	// Heartbeats are what plugins say about themselves.
	Heartbeats *heartbeat.Board

	// Ready says what is missing before flows that need a model can be
	// decided; empty when nothing is.
	Ready func() []string
	// Models and Policy describe what is in use.
	Models func(context.Context) []api.ModelInfo
	Policy func() api.PolicyInfo
	// Policies changes it, for the owner.
	Policies *policy.Keeper
	// Thresholds are those that reports are compared with.
	Thresholds func() escalation.Thresholds
	// Storage says what lies in the state directory.
	Storage func() []Stored
	// Protection says which agents auditd is installed in, and what was tried.
	Protection func() []Protected
	// Replay audits recorded flows again. Nil: this daemon can't.
	Replay func(context.Context, *ReplayRequest, func(done, of int)) (*replay.Report, error)
	// Verify checks the whole log from its files.
	Verify func() (auditlog.Summary, error)

	Keeper   *credential.Keeper
	Registry *prometheus.Registry // served at /metrics; default a fresh one
	Logger   *slog.Logger
	Version  string

	// Hosts are further names by which the API may be called, beside the
	// loopback names (for a container's published port).
	Hosts []string

	MaxPayload  int           // bytes of one payload, default schema.DefaultMaxPayload
	MaxBatch    int           // flows in a batch, default 64
	MaxInFlight int           // decisions at the same time, default 128
	Deadline    time.Duration // of one call; the server's write time-out lies above it, default 30s
}

// Server is the API.
type Server struct {
	cfg     Config
	engine  *gin.Engine
	http    *http.Server
	slots   chan struct{} // one per decision in flight
	metrics *metrics
	openapi func() []byte
	hooks   *claudehook.Adapter
	hosts   map[string]bool
	page    *page

	mu       sync.Mutex
	draining bool // no new decisions
}

// Margins between time-outs, see docs/design: each layer's lies above the next
// inner one, so that the inner layer's answer still gets out.
const (
	headerTimeout  = 2 * time.Second
	readTimeout    = 15 * time.Second // a 1 MiB payload from a slow local client
	idleTimeout    = 2 * time.Minute
	writeMargin    = 5 * time.Second
	shutdownMargin = 2 * time.Second
	maxHeaderBytes = 16 << 10
)

// New returns a server that does not listen yet.
func New(c Config) (*Server, error) {
	if c.Audit == nil || c.Event == nil || c.Keeper == nil || c.Logger == nil {
		return nil, errors.New("httpapi: Audit, Event, Keeper and Logger must be set")
	}
	if c.MaxPayload <= 0 {
		c.MaxPayload = schema.DefaultMaxPayload
	}
	if c.MaxBatch <= 0 {
		c.MaxBatch = 64
	}
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = 128
	}
	if c.Deadline <= 0 {
		c.Deadline = 30 * time.Second
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	s := &Server{cfg: c, slots: make(chan struct{}, c.MaxInFlight), metrics: newMetrics(c.Registry, c.Version), hosts: map[string]bool{}, page: newPage()}
	for _, h := range append([]string{"127.0.0.1", "localhost", "::1", unixHost}, c.Hosts...) {
		s.hosts[h] = true
	}
	s.openapi = sync.OnceValue(s.buildOpenAPI)
	s.hooks = claudehook.New(claudehook.Config{Answered: s.answered, Settle: hookSettle, Panicked: s.hookPanicked})

	// The mode is gin's only global; every server of a process sets the same.
	gin.SetMode(gin.ReleaseMode)
	s.engine = gin.New()
	s.engine.HandleMethodNotAllowed = true
	s.engine.RedirectTrailingSlash = false
	s.engine.Use(s.recover, s.observe, s.sameOrigin)
	s.engine.NoRoute(func(c *gin.Context) { s.fail(c, errNoRoute) })
	s.engine.NoMethod(func(c *gin.Context) { s.fail(c, errNoMethod) })
	for _, r := range s.routes() {
		s.engine.Handle(r.method, r.path, s.authorize(r.needs), s.guard(r), r.handler)
	}
	s.http = &http.Server{
		Handler:           s.engine,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      readTimeout + c.Deadline + writeMargin,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}
	s.servePage()
	return s, nil
}

// Handler returns the API without a listener.
func (s *Server) Handler() http.Handler { return s.engine }

// Serve answers on every listener until ctx ends; then it takes no new
// connections, lets decisions in flight finish, and returns.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- s.http.Serve(l) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = fmt.Errorf("serve: %w", err)
	}
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Deadline+shutdownMargin)
	defer cancel()
	if e := s.http.Shutdown(stop); e != nil {
		err = errors.Join(err, fmt.Errorf("shut down: %w", e), s.http.Close())
	}
	return err
}
