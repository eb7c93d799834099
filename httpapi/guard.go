package httpapi

import (
	"context"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/gin-gonic/gin"

	"example.org/auditd/schema"
)

const credentialKey = "credential"

// credentialOf returns what authorize found; nothing when it did not run.
func credentialOf(c *gin.Context) schema.Credential {
	cred, _ := c.Value(credentialKey).(schema.Credential)
	return cred
}

// bodyLimit is what a request may send: a payload whose every byte needs two in
// JSON, and room for the fields around it.
func (s *Server) bodyLimit() int64 { return 2*int64(s.cfg.MaxPayload) + 64<<10 }

// recover is the last net. Decisions have one of their own (see audit), which
// answers in the caller's shape.
func (s *Server) recover(c *gin.Context) {
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.panicked(c, v)
			if !c.Writer.Written() {
				s.fail(c, errPanic)
			}
		}
	}()
	c.Next()
}

// panicked logs where it happened, not the value: it may quote a payload.
func (s *Server) panicked(c *gin.Context, v any) {
	s.logPanic(c.Request.Context(), c.FullPath(), v)
}

// hookPanicked is panicked for what has no request at hand.
func (s *Server) hookPanicked(v any) { s.logPanic(context.Background(), claudeHookPath, v) }

func (s *Server) logPanic(ctx context.Context, route string, v any) {
	s.metrics.panics.Inc()
	kind := "value"
	if _, ok := v.(error); ok {
		kind = "error"
	}
	s.cfg.Logger.ErrorContext(ctx, "panic in a handler", "route", route, "kind", kind, "stack", string(debug.Stack()))
}

// sameOrigin refuses what a web page in the owner's browser could send. A page
// that rebinds its DNS name to 127.0.0.1 sends its own name as Host; a
// cross-site request carries an Origin that is not ours.
func (s *Server) sameOrigin(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	if !s.ourHost(c.Request.Host) {
		s.fail(c, errHost)
		return
	}
	origins := c.Request.Header.Values("Origin")
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" || u.Host != c.Request.Host {
			s.fail(c, errOrigin)
			return
		}
	}
	// Following a link to the page is no request of another page's: its files say
	// nothing, and it can't be framed.
	link := c.FullPath() == "/" && c.GetHeader("Sec-Fetch-Mode") == "navigate" && c.GetHeader("Sec-Fetch-Dest") == "document"
	if site := c.GetHeader("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" && !link {
		s.fail(c, errOrigin)
		return
	}
	c.Next()
}

func (s *Server) ourHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return s.hosts[strings.Trim(host, "[]")]
}

// need is the least credential that a route asks for.
type need uint8

const (
	needOwner  need = iota // the zero value asks for the most
	needHook               // hook token or owner session
	needNobody             // open: says nothing about what was audited
)

func (n need) String() string { return [...]string{"owner", "hook", "nobody"}[n] }

// authorize checks the bearer token.
func (s *Server) authorize(n need) gin.HandlerFunc {
	return func(c *gin.Context) {
		if n == needNobody {
			c.Next()
			return
		}
		token, _ := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
		if token == "" {
			token = c.GetHeader("X-Api-Key") // LiteLLM's way
		}
		cred := s.cfg.Keeper.Check(token)
		switch {
		case cred == schema.CredentialNone:
			s.metrics.refused.WithLabelValues("credential").Inc()
			s.fail(c, errCredential)
			return
		case n == needOwner && cred != schema.CredentialOwner:
			s.metrics.refused.WithLabelValues("owner_only").Inc()
			if s.cfg.Keeper.HasOwner() {
				s.fail(c, errOwnerOnly)
			} else {
				s.fail(c, errNoOwner)
			}
			return
		}
		c.Set(credentialKey, cred)
		c.Next()
	}
}

// guard bounds what a request may cost before its body is read.
func (s *Server) guard(r route) gin.HandlerFunc {
	return func(c *gin.Context) {
		if r.method == http.MethodPost {
			media, _, err := mime.ParseMediaType(c.GetHeader("Content-Type"))
			if err != nil || media != "application/json" {
				s.fail(c, errContentType)
				return
			}
			if e := c.GetHeader("Content-Encoding"); e != "" && e != "identity" {
				s.fail(c, errEncoding)
				return
			}
			limit := s.bodyLimit()
			if r.small {
				limit = 64 << 10
			}
			c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, limit)
		}
		if !r.decides {
			c.Next()
			return
		}
		// The slot is taken before the body is read: it bounds memory too.
		s.mu.Lock()
		draining := s.draining
		s.mu.Unlock()
		if draining {
			s.fail(c, errDraining)
			return
		}
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
			c.Next()
		default:
			s.metrics.refused.WithLabelValues("busy").Inc()
			s.fail(c, errBusy)
		}
	}
}

// body reads the whole request body.
func (s *Server) body(c *gin.Context) ([]byte, error) {
	data, err := io.ReadAll(c.Request.Body)
	if err != nil {
		if p := asProblem(err); p != errPanic {
			return nil, p
		}
		return nil, invalid("body", "could not be read to its end")
	}
	return data, nil
}

// decode reads a small document into v, strictly.
func (s *Server) decode(c *gin.Context, v any) error {
	data, err := s.body(c)
	if err != nil {
		return err
	}
	return schema.Decode(data, v)
}
