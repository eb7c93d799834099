package modelproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Headers that go through. Everything else stays on its side: cookies, the
// token, what names the caller.
var (
	requestHeaders = []string{"Anthropic-Version", "Anthropic-Beta", "Openai-Organization", "Openai-Project", "Openai-Beta", "User-Agent"}
	answerHeaders  = []string{"Request-Id", "X-Request-Id", "Retry-After"}
	answerPrefixes = []string{"Anthropic-Ratelimit-", "X-Ratelimit-"}
)

// maxErrorBody bounds what is read of a provider's error.
const maxErrorBody = 64 << 10

// askFor asks the provider for an answer of the kind that was asked for. Whatever
// else it answers is a refusal.
func (p *Proxy) askFor(ctx context.Context, r *http.Request, t *target, e endpoint, body []byte, stream bool) (*http.Response, *refusal) {
	res, ref := p.send(ctx, r, t, e, bytes.NewReader(body))
	if ref != nil {
		return nil, ref
	}
	media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	want := "application/json"
	if stream {
		want = "text/event-stream"
		if e.dialect.lines() {
			want = "application/x-ndjson"
		}
	}
	if err != nil || media != want {
		res.Body.Close()
		return nil, badAnswer("is not of the type %s", want)
	}
	return res, nil
}

// send sends a request and returns an answer with status 200.
func (p *Proxy) send(ctx context.Context, r *http.Request, t *target, e endpoint, body io.Reader) (*http.Response, *refusal) {
	u := *t.url
	u.Path = strings.TrimSuffix(u.Path, "/") + e.upstream
	if r.URL.RawQuery == "beta=true" && t.API == "anthropic" {
		u.RawQuery = r.URL.RawQuery
	} else if r.URL.RawQuery != "" {
		return nil, badRequest("the query of the address is not passed on")
	}
	req, err := http.NewRequestWithContext(ctx, e.method, u.String(), body)
	if err != nil {
		return nil, refuse(500, "api_error", "the request could not be made")
	}
	if e.method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept-Encoding", "identity")
	for _, name := range requestHeaders {
		if v := r.Header.Get(name); v != "" && len(v) <= 4096 {
			req.Header.Set(name, v)
		}
	}
	if ref := p.authorize(req.Header, r.Header, t); ref != nil {
		return nil, ref
	}
	res, err := p.client.Do(req)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	if enc := res.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		res.Body.Close()
		return nil, badAnswer("is compressed")
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // it serves to tell one known error, no more
		return nil, upstreamError(res.StatusCode, said, res.Header.Get("Retry-After"))
	}
	return res, nil
}

// authorize puts a key into the request: the daemon's own where it holds one,
// else the agent's. The proxy's token never leaves.
func (p *Proxy) authorize(to, from http.Header, t *target) *refusal {
	if t.Key != nil {
		key, err := t.Key()
		if err != nil || key == "" || strings.ContainsAny(key, "\r\n") {
			p.cfg.Logger.Error("the key for a provider could not be read", "provider", t.Name) // the error may name what is in the file
			return refuse(500, "api_error", "the provider's key cannot be read; `auditd doctor` looks at it")
		}
		if t.API == "anthropic" {
			to.Set("X-Api-Key", key)
		} else {
			to.Set("Authorization", "Bearer "+key)
		}
		return nil
	}
	for _, name := range []string{"X-Api-Key", "Authorization"} {
		v := from.Get(name)
		if v == "" || p.authorized(strings.TrimPrefix(v, "Bearer ")) {
			continue
		}
		to.Set(name, v)
	}
	return nil
}

// unreachable says why there is no answer, without the address or the words of
// a library.
func unreachable(ctx context.Context, err error) *refusal {
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout(), ctx.Err() != nil:
		return refuse(http.StatusGatewayTimeout, "timeout_error", "the provider did not answer in time")
	case errors.As(err, &op) && op.Op == "dial":
		return refuse(http.StatusBadGateway, "api_error", "the provider cannot be reached")
	}
	var u *url.Error
	if errors.As(err, &u) && strings.Contains(u.Err.Error(), "tls:") {
		return refuse(http.StatusBadGateway, "api_error", "the provider's certificate is not good")
	}
	return refuse(http.StatusBadGateway, "api_error", "the provider broke the connection off")
}

// plainly passes on what names models and holds none of their words.
func (p *Proxy) plainly(ctx context.Context, w *watch, r *http.Request, t *target, e endpoint) *refusal {
	var body io.Reader
	if e.method == http.MethodPost {
		data, ref := p.body(w, r)
		if ref != nil {
			return ref
		}
		root, err := parse(data)
		if err != nil || !root.inert() {
			return badRequest("the request holds more than names")
		}
		body = bytes.NewReader(root.encode())
	}
	res, ref := p.send(ctx, r, t, e, body)
	if ref != nil {
		return ref
	}
	defer res.Body.Close()
	idle := newIdle(res.Body, p.cfg.IdleWait, int64(p.cfg.MaxResponse), func() { res.Body.Close() })
	defer idle.stop()
	data, err := io.ReadAll(idle)
	if err != nil {
		return brokenAnswer(ctx, err)
	}
	root, err := parse(data)
	if err != nil {
		return badAnswer("%s", err)
	}
	copyHeader(w.Header(), res.Header)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.Write(root.encode())
	return nil
}

// copyHeader passes on what a runtime acts on, as far as it is one word.
func copyHeader(to, from http.Header) {
	for name := range from {
		ok := false
		for _, n := range answerHeaders {
			ok = ok || n == name
		}
		for _, prefix := range answerPrefixes {
			ok = ok || strings.HasPrefix(name, prefix)
		}
		if v := from.Get(name); ok && word(name) && word(v) {
			to.Set(name, v)
		}
	}
}
