// Package client is the Go client of the daemon's API.
//
// Its zero value works: it finds the socket or the port and the hook token
// where `auditd serve` puts them. Every failure is a decision that stops,
// together with an error: a caller that looks only at the decision is safe.
package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/api"
	"example.org/auditd/heartbeat"
	"example.org/auditd/schema"
)

// DefaultURL is where the daemon listens.
const DefaultURL = "http://127.0.0.1:7841"

// maxAnswer bounds what is read of an answer: a rewritten payload in JSON, and
// much more than that.
const maxAnswer = 16 << 20

// StateDir is where the daemon keeps its state: $XDG_STATE_HOME/auditd.
func StateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "auditd")
	}
	home, _ := os.UserHomeDir() // without a home: relative to the working directory, as the daemon does
	return filepath.Join(home, ".local", "state", "auditd")
}

// SocketPath and TokenPath are places below the state directory.
func SocketPath(stateDir string) string { return filepath.Join(stateDir, "run", "auditd.sock") }

// TokenPath is where the hook token lies.
func TokenPath(stateDir string) string { return filepath.Join(stateDir, "hook.token") }

// Client talks to one daemon. Set fields before the first call; then it is
// safe for concurrent use.
type Client struct {
	// URL is used when it is set. Otherwise Socket is, when it is set or the
	// default one exists: only the owner can listen on it, while any user of
	// the machine can listen on a free port. Otherwise DefaultURL is.
	URL    string
	Socket string
	// Token is sent when it is set; otherwise the one in TokenFile.
	Token     string
	TokenFile string // default TokenPath(StateDir())
	// Timeout is for a whole call, default 35s: above the daemon's own.
	Timeout time.Duration

	once sync.Once
	http *http.Client
	base string
}

// Error is a refusal by the daemon.
type Error struct {
	Status     int
	Detail     api.ErrorDetail
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Detail.Message }

// ErrNoDaemon is wrapped when nothing answers.
var ErrNoDaemon = errors.New("no daemon answers (start one with `auditd serve`)")

func (c *Client) init() {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext}
	c.base = strings.TrimSuffix(c.URL, "/")
	socket := c.Socket
	if c.base == "" && socket == "" {
		if path := SocketPath(StateDir()); isSocket(path) {
			socket = path
		}
	}
	switch {
	case c.base != "":
	case socket != "":
		c.base = "http://auditd"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "unix", socket)
		}
	default:
		c.base = DefaultURL
	}
	if c.Timeout <= 0 {
		c.Timeout = 35 * time.Second
	}
	if c.TokenFile == "" {
		c.TokenFile = TokenPath(StateDir())
	}
	c.http = &http.Client{Transport: transport,
		// A redirect would carry the token to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// Audit asks for a decision on f.
func (c *Client) Audit(ctx context.Context, f *schema.Flow) (schema.Decision, error) {
	stop := func(err error) (schema.Decision, error) {
		return schema.Decision{Action: schema.Block, Stage: schema.StageInput, Reason: "not_decided", Message: "No decision could be had, so the flow is stopped: " + err.Error(), LogIndex: -1}, err
	}
	g := *f
	if err := g.Complete(0); err != nil {
		return stop(err)
	}
	var d schema.Decision
	if err := c.call(ctx, http.MethodPost, "/v1/audit", &g, &d); err != nil {
		return stop(err)
	}
	if d.ID == "" || (d.Action == schema.RewriteAndContinue) != (d.Payload != nil) {
		return stop(errors.New("the answer is no decision"))
	}
	return d, nil
}

// Event reports e and returns what may go on.
func (c *Client) Event(ctx context.Context, e *schema.Event) (schema.Outcome, error) {
	var o schema.Outcome
	err := c.call(ctx, http.MethodPost, "/v1/events", e, &o)
	if err == nil && o.Reason == "" {
		err = errors.New("the answer is no outcome")
	}
	if err != nil {
		return schema.Outcome{Action: schema.Block, Reason: "not_decided", Message: "No decision could be had, so the call is stopped: " + err.Error()}, err
	}
	return o, nil
}

// ClaudeHook hands a hook of Claude Code to the daemon and returns the answer
// in that host's shape. The caller must check that it is one.
func (c *Client) ClaudeHook(ctx context.Context, body []byte) ([]byte, error) {
	var answer jsontext.Value
	if err := c.call(ctx, http.MethodPost, "/v1/hooks/claude-code", jsontext.Value(body), &answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// Pending lists the questions that wait for a person.
func (c *Client) Pending(ctx context.Context) ([]schema.Question, error) {
	var q api.Questions
	err := c.call(ctx, http.MethodGet, "/v1/approvals", nil, &q)
	return q.Questions, err
}

// Question returns one question.
func (c *Client) Question(ctx context.Context, id string) (*schema.Question, error) {
	q := new(schema.Question)
	if err := c.call(ctx, http.MethodGet, "/v1/approvals/"+url.PathEscape(id), nil, q); err != nil {
		return nil, err
	}
	return q, nil
}

// Answer answers a question; Token must be an owner session.
func (c *Client) Answer(ctx context.Context, id string, a api.Approval) (*schema.Question, error) {
	q := new(schema.Question)
	if err := c.call(ctx, http.MethodPost, "/v1/approvals/"+url.PathEscape(id), a, q); err != nil {
		return nil, err
	}
	return q, nil
}

// Record returns one recorded decision with its proof.
func (c *Client) Record(ctx context.Context, id string) (*api.Record, error) {
	r := new(api.Record)
	if err := c.call(ctx, http.MethodGet, "/v1/decisions/"+url.PathEscape(id), nil, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Policy returns the policy in force.
func (c *Client) Policy(ctx context.Context) (api.PolicyInfo, error) {
	var p api.PolicyInfo
	err := c.call(ctx, http.MethodGet, "/v1/policy", nil, &p)
	return p, err
}

// Models lists the models in use and known.
func (c *Client) Models(ctx context.Context) ([]api.ModelInfo, error) {
	var m api.ModelList
	err := c.call(ctx, http.MethodGet, "/v1/models", nil, &m)
	return m.Models, err
}

// Health says that the daemon lives, and its version.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	var h api.Health
	err := c.call(ctx, http.MethodGet, "/healthz", nil, &h)
	return h, err
}

// Ready says what the daemon lacks. An unready daemon is no error.
func (c *Client) Ready(ctx context.Context) (api.Readiness, error) {
	var r api.Readiness
	err := c.call(ctx, http.MethodGet, "/readyz", nil, &r)
	return r, err
}

// Heartbeats are what the plugins said last, the newest first.
func (c *Client) Heartbeats(ctx context.Context) ([]heartbeat.Seen, error) {
	var l heartbeat.List
	err := c.call(ctx, http.MethodGet, "/v1/heartbeats", nil, &l)
	return l.Seen, err
}

// Login exchanges the owner's passphrase for a session.
func (c *Client) Login(ctx context.Context, passphrase string) (api.Session, error) {
	var s api.Session
	err := c.call(ctx, http.MethodPost, "/v1/owner/session", api.Login{Passphrase: passphrase}, &s)
	return s, err
}

// Link makes a one-time code; Token must be an owner session.
func (c *Client) Link(ctx context.Context) (api.Session, error) {
	var s api.Session
	err := c.call(ctx, http.MethodPost, "/v1/owner/link", struct{}{}, &s)
	return s, err
}

// With returns a client of the same daemon that sends token.
func (c *Client) With(token string) *Client {
	return &Client{URL: c.URL, Socket: c.Socket, Token: token, TokenFile: c.TokenFile, Timeout: c.Timeout}
}

// call sends in and reads the answer into out, strictly.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	c.once.Do(c.init)
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var body io.Reader
	if in != nil {
		data, err := schema.Encode(in)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token := c.token(); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return fmt.Errorf("%w: %w", ErrNoDaemon, op)
		}
		return fmt.Errorf("ask the daemon: %w", err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the answer: %w", err)
	case len(data) > maxAnswer:
		return fmt.Errorf("read the answer: it is over %d bytes", maxAnswer)
	case res.StatusCode == http.StatusOK, res.StatusCode == http.StatusServiceUnavailable && path == "/readyz":
		if err := schema.Decode(data, out); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		return nil
	}
	e := &Error{Status: res.StatusCode}
	var b api.ErrorBody
	if schema.Decode(data, &b) == nil && b.Error.Message != "" {
		e.Detail = b.Error
	} else {
		e.Detail = api.ErrorDetail{Code: "status", Message: fmt.Sprintf("the answer has status %d and is not auditd's", res.StatusCode)}
	}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}

// token returns the token to send. It is read for each call: the daemon may
// have made it after this client started.
func (c *Client) token() string {
	if c.Token != "" {
		return c.Token
	}
	data, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "" // the daemon answers 401 and says where the token is
	}
	return strings.TrimSpace(string(data))
}

// Symbol returns what is known about a symbol, with its value when Token is an
// owner session.
func (c *Client) Symbol(ctx context.Context, token string) (*api.Symbol, error) {
	s := new(api.Symbol)
	return s, c.call(ctx, http.MethodGet, "/v1/dualview/symbols/"+url.PathEscape(token), nil, s)
}

// ChangeRules lists the owner's rules of isolation or proposes a change.
func (c *Client) ChangeRules(ctx context.Context, r *api.RuleChange) (schema.Outcome, error) {
	var o schema.Outcome
	err := c.call(ctx, http.MethodPost, "/v1/dualview/policy", r, &o)
	return o, err
}

// IsolationRules says which rules of isolation hold.
func (c *Client) IsolationRules(ctx context.Context) (*api.IsolationRules, error) {
	r := new(api.IsolationRules)
	return r, c.call(ctx, http.MethodGet, "/v1/dualview/rules", nil, r)
}

// ReloadRules puts the rules of isolation.yaml into force; Token must be an owner
// session.
func (c *Client) ReloadRules(ctx context.Context) (*api.IsolationRules, error) {
	r := new(api.IsolationRules)
	return r, c.call(ctx, http.MethodPost, "/v1/dualview/rules", struct{}{}, r)
}

// Inspect asks about symbols.
func (c *Client) Inspect(ctx context.Context, r *api.Inspection) (schema.Outcome, error) {
	var o schema.Outcome
	err := c.call(ctx, http.MethodPost, "/v1/dualview/inspect", r, &o)
	return o, err
}

// Views lists the workspaces of which agents have a view of their own.
func (c *Client) Views(ctx context.Context) ([]api.View, error) {
	var v api.ViewList
	err := c.call(ctx, http.MethodGet, "/v1/dualview/views", nil, &v)
	return v.Views, err
}

// ViewLog returns the newest n states of a view.
func (c *Client) ViewLog(ctx context.Context, id string, n int) ([]api.ViewState, error) {
	var l api.ViewLog
	err := c.call(ctx, http.MethodGet, "/v1/dualview/views/"+url.PathEscape(id)+"/log?limit="+strconv.Itoa(n), nil, &l)
	return l.States, err
}

// ViewShow returns a file of a state; Token must be an owner session.
func (c *Client) ViewShow(ctx context.Context, id, state, path string) (string, error) {
	var t api.ViewText
	err := c.call(ctx, http.MethodGet, "/v1/dualview/views/"+url.PathEscape(id)+"/show?"+url.Values{"state": {state}, "path": {path}}.Encode(), nil, &t)
	return t.Text, err
}

// ViewDiff returns what a state changed; Token must be an owner session.
func (c *Client) ViewDiff(ctx context.Context, id, state string) (string, error) {
	var t api.ViewText
	err := c.call(ctx, http.MethodGet, "/v1/dualview/views/"+url.PathEscape(id)+"/diff?"+url.Values{"state": {state}}.Encode(), nil, &t)
	return t.Text, err
}

// ViewConflicts lists what did not land; Token must be an owner session.
func (c *Client) ViewConflicts(ctx context.Context, id string) ([]api.ViewConflict, error) {
	var l api.ViewConflicts
	err := c.call(ctx, http.MethodGet, "/v1/dualview/views/"+url.PathEscape(id)+"/conflicts", nil, &l)
	return l.Conflicts, err
}

// ViewRevert brings a view back; Token must be an owner session.
func (c *Client) ViewRevert(ctx context.Context, id, state string) (*api.ViewReverted, error) {
	r := new(api.ViewReverted)
	return r, c.call(ctx, http.MethodPost, "/v1/dualview/views/"+url.PathEscape(id)+"/revert", api.ViewRevert{State: state}, r)
}

// ViewConflict returns a conflict with both versions; Token must be an owner
// session.
func (c *Client) ViewConflict(ctx context.Context, id, conflict string) (*api.ViewBoth, error) {
	b := new(api.ViewBoth)
	return b, c.call(ctx, http.MethodGet, "/v1/dualview/views/"+url.PathEscape(id)+"/conflicts/"+url.PathEscape(conflict), nil, b)
}

// ViewSettle ends a conflict; Token must be an owner session.
func (c *Client) ViewSettle(ctx context.Context, id, conflict string, s *api.ViewSettle) (*api.ViewReverted, error) {
	r := new(api.ViewReverted)
	return r, c.call(ctx, http.MethodPost, "/v1/dualview/views/"+url.PathEscape(id)+"/conflicts/"+url.PathEscape(conflict), s, r)
}
