package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// Webhook is where to post.
type Webhook struct {
	URL   string // often a secret itself: it is in no log and no error
	Token string // sent as a bearer token when it is set
	Ntfy  bool   // ntfy's form: the text is the body; else a JSON document
}

// maxAnswer is how much of an answer is read, so that a connection can be used
// again.
const maxAnswer = 4 << 10

// Causes of failures, without what the URL or the answer says.
var (
	errRefused  = errors.New("the connection was refused")
	errLookup   = errors.New("the host's name was not found")
	errTimedOut = fmt.Errorf("no answer within %s", timeout)
	errSend     = errors.New("it could not be sent")
)

// check says what is wrong with the address.
func (w *Webhook) check() error {
	u, err := url.Parse(w.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("notify.webhook: is not an http or https URL")
	}
	if u.User != nil {
		return errors.New("notify.webhook: holds a password; use token_file")
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	if u.Scheme == "http" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("notify.webhook: must be https, unless it is on this machine")
	}
	if strings.ContainsFunc(w.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("notify.webhook: the token is not one word")
	}
	return nil
}

// sender returns what posts a message.
func (w *Webhook) sender() (func(context.Context, *message) error, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	client := &http.Client{
		Timeout: timeout,
		// A redirect would take the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, m *message) error { return w.post(ctx, client, m) }, nil
}

func (w *Webhook) post(ctx context.Context, client *http.Client, m *message) error {
	body, media := []byte(m.Text), "text/plain; charset=utf-8"
	if !w.Ntfy {
		var err error
		if body, err = json.Marshal(m); err != nil {
			return errSend
		}
		media = "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return errSend // its text has the URL
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set("User-Agent", "auditd")
	if w.Ntfy {
		req.Header.Set("Title", m.Title)
		req.Header.Set("Click", m.Page)
	}
	if w.Token != "" {
		req.Header.Set("Authorization", "Bearer "+w.Token)
	}
	res, err := client.Do(req)
	if err != nil {
		return causeOf(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // nobody reads it
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver answered %d", res.StatusCode)
	}
	return nil
}

// causeOf names a failure without quoting the URL.
func causeOf(err error) error {
	var lookup *net.DNSError
	var slow net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, syscall.ECONNREFUSED):
		return errRefused
	case errors.As(err, &slow) && slow.Timeout():
		return errTimedOut
	case errors.As(err, &lookup):
		return errLookup
	}
	return errSend
}
