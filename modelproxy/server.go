package modelproxy

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// TokenHeader is where the token may be sent when it is not in the path.
const TokenHeader = "X-Auditd-Token"

// bodyWait is how long a request may take to arrive.
const bodyWait = time.Minute

// dialect is one API of a provider.
type dialect interface {
	// read finds what a request holds. Its error is a *refusal.
	read(root *node) (*request, error)
	// answer checks and changes a complete answer.
	answer(g *gate, root *node) error
	// stream makes a filter for one answer that comes in events.
	stream(g *gate) filter
	// lines: a stream is one document a line, and no server-sent events.
	lines() bool
}

// filter looks at the events of one answer.
type filter interface {
	// next takes an event and returns those that go on by now.
	next(e event) ([]event, error)
	// done reports whether the answer has come to its end.
	done() bool
	// fail is how a stream ends that has begun and cannot go on.
	fail(r *refusal) event
}

// endpoint is what may be asked of a provider: nothing else is passed on.
type endpoint struct {
	method, path string // below the provider's name
	upstream     string // below the provider's URL
	dialect      dialect
	counts       bool // the answer is a number, no model's words
}

func endpoints(api string) []endpoint {
	switch api {
	case "anthropic":
		return []endpoint{
			{http.MethodPost, "/v1/messages", "/v1/messages", anthropic{}, false},
			{http.MethodPost, "/v1/messages/count_tokens", "/v1/messages/count_tokens", anthropic{}, true},
			{http.MethodGet, "/v1/models", "/v1/models", nil, false},
		}
	case "openai": // the provider's URL ends in /v1
		return []endpoint{
			{http.MethodPost, "/v1/chat/completions", "/chat/completions", chat{}, false},
			{http.MethodPost, "/v1/responses", "/responses", responses{}, false},
			{http.MethodGet, "/v1/models", "/models", nil, false},
		}
	case "ollama":
		return []endpoint{
			{http.MethodPost, "/api/chat", "/api/chat", ollama{}, false},
			{http.MethodPost, "/v1/chat/completions", "/v1/chat/completions", chat{}, false},
			{http.MethodPost, "/v1/responses", "/v1/responses", responses{}, false},
			{http.MethodGet, "/v1/models", "/v1/models", nil, false},
			{http.MethodGet, "/api/tags", "/api/tags", nil, false},
			{http.MethodGet, "/api/version", "/api/version", nil, false},
			{http.MethodPost, "/api/show", "/api/show", nil, false},
		}
	}
	return nil
}

// ServeHTTP answers /TOKEN/PROVIDER/… or, with the token in a header,
// /PROVIDER/….
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	api := ""
	began := &watch{ResponseWriter: w}
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			p.panicked(r.Context(), v)
			if began.written {
				panic(http.ErrAbortHandler) // half an answer must not look like a whole one
			}
			answerError(began, api, refuse(http.StatusInternalServerError, "api_error", "it failed; its log has the details"))
		}
	}()
	t, path, ref := p.route(r)
	if t != nil {
		if api = t.API; api == "ollama" && strings.HasPrefix(path, "/v1/") {
			api = "openai"
		}
	} else if strings.Contains(r.URL.Path, "/v1/messages") {
		api = "anthropic"
	}
	if ref == nil {
		ref = p.serve(began, r, t, path)
	}
	if ref != nil {
		p.cfg.Logger.WarnContext(r.Context(), "refused a request to a model", "api", api, "status", ref.status, "why", ref.message)
		answerError(began, api, ref)
	}
}

// watch notes whether an answer has begun.
type watch struct {
	http.ResponseWriter
	written bool
}

func (w *watch) WriteHeader(status int) {
	w.written = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *watch) Write(b []byte) (int, error) {
	w.written = true
	return w.ResponseWriter.Write(b)
}

func (w *watch) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func answerError(w http.ResponseWriter, api string, r *refusal) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if r.retry != "" {
		h.Set("Retry-After", r.retry)
	}
	w.WriteHeader(r.status)
	w.Write(errorBody(api, r).encode())
}

// panicked logs where it happened, not the value: it may quote a payload.
func (p *Proxy) panicked(ctx context.Context, v any) {
	p.cfg.Logger.ErrorContext(ctx, "panic in the model proxy", "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
}

// route finds the provider, and whether the caller may ask.
func (p *Proxy) route(r *http.Request) (*target, string, *refusal) {
	path := r.URL.EscapedPath()
	if strings.Contains(path, "%") || strings.Contains(path, "//") || strings.Contains(path, "/.") || len(path) > 512 {
		return nil, "", refuse(404, "not_found_error", "there is nothing under this path")
	}
	// A web page in the owner's browser can reach the loopback interface. It
	// sends its own name, or says where it comes from.
	if !loopbackHost(r.Host) || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return nil, "", refuse(403, "permission_error", "requests of web pages are not answered")
	}
	parts := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 3)
	token := r.Header.Get(TokenHeader)
	switch {
	case token != "":
		parts = append([]string{""}, strings.SplitN(strings.TrimPrefix(path, "/"), "/", 2)...)
	case p.authorized(parts[0]):
		token = parts[0]
	default: // where the daemon holds the key, the agent may send the token as its own
		for _, v := range []string{r.Header.Get("X-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")} {
			if p.authorized(v) {
				token = v
			}
		}
		parts = append([]string{""}, strings.SplitN(strings.TrimPrefix(path, "/"), "/", 2)...)
	}
	if !p.authorized(token) {
		return nil, "", refuse(401, "authentication_error", "the proxy's token is missing or wrong; `auditd proxy` shows the base URL")
	}
	if len(parts) < 3 || p.providers[parts[1]] == nil {
		return nil, "", refuse(404, "not_found_error", "no such provider is configured")
	}
	return p.providers[parts[1]], "/" + parts[2], nil
}

func (p *Proxy) authorized(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(p.cfg.Token)) == 1
}

func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// serve answers one request. It returns what is to be answered in place of an
// answer that has not begun.
func (p *Proxy) serve(w *watch, r *http.Request, t *target, path string) *refusal {
	list := endpoints(t.API)
	i := slices.IndexFunc(list, func(e endpoint) bool { return e.path == path && e.method == r.Method })
	if i < 0 {
		return refuse(404, "not_found_error", "this path of the API is not passed on")
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		ref := refuse(http.StatusTooManyRequests, "rate_limit_error", "too many requests at once")
		ref.retry = "1"
		return ref
	}
	e := list[i]
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if e.dialect == nil {
		return p.plainly(ctx, w, r, t, e)
	}
	body, ref := p.body(w, r)
	if ref != nil {
		return ref
	}
	root, err := parse(body)
	if err != nil {
		return badRequest("the request %s", err)
	}
	req, err := e.dialect.read(root)
	if err != nil {
		return asRefusal(err)
	}
	s, changed, err := p.prepare(ctx, t, req)
	if err != nil {
		return asRefusal(err)
	}
	if changed {
		body = root.encode()
	}
	res, ref := p.askFor(ctx, r, t, e, body, req.stream && !e.counts)
	if ref != nil {
		return ref
	}
	defer res.Body.Close()
	g := &gate{p: p, ctx: ctx, t: t, s: s, model: req.model}
	idle := newIdle(res.Body, p.cfg.IdleWait, int64(p.cfg.MaxResponse), cancel)
	defer idle.stop()
	if req.stream && !e.counts {
		return p.stream(w, res, idle, g, e.dialect)
	}
	return p.complete(w, res, idle, g, e)
}

func asRefusal(err error) *refusal {
	var r *refusal
	if errors.As(err, &r) {
		return r
	}
	return badRequest("the request cannot be read")
}

// body reads a request's body.
func (p *Proxy) body(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "invalid_request_error", "Content-Type must be application/json")
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, refuse(http.StatusUnsupportedMediaType, "invalid_request_error", "the body must not be compressed")
	}
	// The deadline is for the body alone: after it the connection is only
	// watched for its end, and an answer may take long.
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(bodyWait))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(p.cfg.MaxRequest)+1))
	if err != nil {
		return nil, badRequest("the body could not be read to its end")
	}
	if len(body) > p.cfg.MaxRequest {
		return nil, refuse(http.StatusRequestEntityTooLarge, "request_too_large", "the body is over %d bytes", p.cfg.MaxRequest)
	}
	return body, nil
}

// idle ends a response that says nothing for too long, or too much.
type idle struct {
	r     io.Reader
	left  int64
	after time.Duration
	timer *time.Timer
}

var errTooLong = errors.New("is too large")

func newIdle(r io.Reader, after time.Duration, limit int64, cancel func()) *idle {
	return &idle{r: r, left: limit, after: after, timer: time.AfterFunc(after, cancel)}
}

func (i *idle) Read(b []byte) (int, error) {
	if i.left <= 0 {
		return 0, errTooLong
	}
	if int64(len(b)) > i.left {
		b = b[:i.left]
	}
	n, err := i.r.Read(b)
	i.left -= int64(n)
	i.timer.Reset(i.after)
	return n, err
}

func (i *idle) stop() { i.timer.Stop() }

// complete answers with what came as one document.
func (p *Proxy) complete(w *watch, res *http.Response, body io.Reader, g *gate, e endpoint) *refusal {
	data, err := io.ReadAll(body)
	if err != nil {
		return brokenAnswer(g.ctx, err)
	}
	root, err := parse(data)
	if err != nil {
		return badAnswer("%s", err)
	}
	if e.counts {
		if root.kind != '{' || !root.inert() {
			return badAnswer("is no count of tokens")
		}
	} else if err := e.dialect.answer(g, root); err != nil {
		return asRefusal(err)
	}
	copyHeader(w.Header(), res.Header)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(res.StatusCode)
	w.Write(root.encode())
	return nil
}

// stream answers with what comes in events.
func (p *Proxy) stream(w *watch, res *http.Response, body io.Reader, g *gate, d dialect) *refusal {
	var from reader = newSSE(body)
	media := "text/event-stream"
	if d.lines() {
		from, media = newLines(body), "application/x-ndjson"
	}
	f := d.stream(g)
	flush := http.NewResponseController(w)
	send := func(events []event) {
		if len(events) == 0 {
			return
		}
		if !w.written {
			copyHeader(w.Header(), res.Header)
			w.Header().Set("Content-Type", media)
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(res.StatusCode)
		}
		var b []byte
		for _, e := range events {
			if d.lines() {
				b = append(append(b, e.data...), '\n')
			} else {
				b = e.write(b)
			}
		}
		w.Write(b)
		_ = flush.Flush() // the writer notices a client that has gone
	}
	var ref *refusal
	for ref == nil && !f.done() {
		e, err := from.next()
		if err != nil {
			ref = brokenAnswer(g.ctx, err)
			break
		}
		out, err := f.next(e)
		if err != nil {
			ref = asRefusal(err)
			break
		}
		send(out)
	}
	if ref == nil {
		return nil
	}
	if !w.written {
		return ref
	}
	p.cfg.Logger.WarnContext(g.ctx, "an answer of a model was ended", "status", ref.status, "why", ref.message)
	send([]event{f.fail(ref)})
	return nil
}

// brokenAnswer says why an answer could not be read to its end.
func brokenAnswer(ctx context.Context, err error) *refusal {
	switch {
	case ctx.Err() != nil:
		return refuse(http.StatusGatewayTimeout, "timeout_error", "the provider did not go on with its answer")
	case errors.Is(err, errTooLong), errors.Is(err, errEventSize), errors.Is(err, errEventText), errors.Is(err, errField):
		return badAnswer("%s", err)
	}
	return badAnswer("was cut off")
}
