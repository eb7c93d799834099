package inference

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

var (
	errRedirect = errors.New("the server answered with a redirect")
	errTooLarge = errors.New("the server's answer is too large")
)

// NewHTTPClient returns the client that every HTTP backend uses. It follows no
// redirect, because a model server that sends us elsewhere would send the
// record there too, and reads at most maxBody bytes of an answer, or any number
// if that is 0. Time-outs come from the context of each call.
func NewHTTPClient(maxBody int64) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// A default of 2 would close and reopen connections at every burst.
	transport.MaxIdleConnsPerHost = 16
	return &http.Client{
		Transport:     &boundedTransport{transport, maxBody},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}
}

type boundedTransport struct {
	next    http.RoundTripper
	maxBody int64
}

func (t *boundedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if t.maxBody > 0 {
		resp.Body = &boundedBody{resp.Body, t.maxBody}
	}
	return resp, nil
}

// boundedBody fails, and does not end, when the answer is too large: an answer
// that ends is taken for whole.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// HTTPError makes an Error out of what an HTTP client returned. It quotes
// nothing that a server said.
func HTTPError(ctx context.Context, backend string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	e = &Error{Backend: backend}
	var op *net.OpError
	var before *url.Error // from before the answer's body
	var timeout interface{ Timeout() bool }
	switch {
	case ctx.Err() != nil:
		e.Cause, e.Err = CauseOf(ctx.Err()), ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e.Cause, e.Err = CauseOf(err), err
	case errors.Is(err, errRedirect):
		e.Cause, e.Err = CauseStatus, errRedirect
	case errors.Is(err, errTooLarge):
		e.Cause, e.Err = CauseMalformed, errTooLarge
	case errors.As(err, &op) && op.Op == "dial":
		e.Cause, e.Err = CauseUnavailable, op
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Cause, e.Err = CauseTimeout, errors.New("the connection timed out")
	case errors.As(err, &before) && (errors.Is(err, io.EOF) || errors.As(err, &op)):
		e.Cause, e.Err = CauseUnavailable, errors.New("the server closed the connection before it answered")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &op):
		e.Cause, e.Err = CauseTruncated, errors.New("the connection was cut")
	default:
		e.Cause, e.Err = CauseMalformed, fmt.Errorf("the answer could not be read (%T)", err)
	}
	return e
}

// StatusError makes an Error out of an HTTP status. hint is our own advice.
func StatusError(backend string, status int, hint string) *Error {
	e := &Error{Cause: CauseStatus, Backend: backend}
	if hint != "" {
		hint = "; " + hint
	}
	e.Err = fmt.Errorf("the server answered with status %d%s", status, hint)
	return e
}
