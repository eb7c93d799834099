package inferencetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/auditd/inference"
	"example.org/auditd/schema"
)

// Dialect is how one kind of model server speaks.
type Dialect struct {
	// Path is where prompts are posted.
	Path string
	// Prompt returns the last message of a request's body.
	Prompt func(body []byte) (string, error)
	// Reply wraps what the model said; cut says that it ran out of tokens.
	Reply       func(content string, cut bool) []byte
	ContentType string
	// Other serves every other path; nil answers 404.
	Other http.HandlerFunc
	// Probe says what the model answers to a message that is no case, such as a
	// warm-up; rows of a table are never applied to it.
	Probe func(body []byte) string
	// Arbiter says that answers are those of an arbiter.
	Arbiter bool
}

var (
	canaryRE = regexp.MustCompile(`(?m)^CASE ([a-z]+)$`)
	nonceRE  = regexp.MustCompile(` n is ([a-z]+)\n$`)
)

// Answer writes what a well-behaved model says to a rendered prompt.
func Answer(prompt, decision string, arbiter bool) (string, error) {
	c, n := canaryRE.FindStringSubmatch(prompt), nonceRE.FindStringSubmatch(prompt)
	if c == nil || n == nil {
		return "", errors.New("the prompt carries no codes")
	}
	if arbiter {
		return fmt.Sprintf(`{"c":%q,"e":[],"t":["none"],"r":5,"d":%q,"w":[],"n":%q}`, c[1], decision, n[1]), nil
	}
	return fmt.Sprintf(`{"c":%q,"e":[],"t":["none"],"r":5,"u":5,"x":5,"i":5,"d":%q,"w":[],"k":90,"q":false,"n":%q}`, c[1], decision, n[1]), nil
}

// NewServer returns a server that plays a model of this dialect which allows
// everything.
func NewServer(t testing.TB, d Dialect) *httptest.Server {
	return newServer(t, d, nil, nil)
}

// newServer calls answer with the good answer to each prompt once it is armed;
// before that it gives the good answer, so that a backend can start.
func newServer(t testing.TB, d Dialect, armed *atomic.Bool, answer func(http.ResponseWriter, *http.Request, string)) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != d.Path {
			if d.Other != nil {
				d.Other(w, r)
				return
			}
			http.NotFound(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client went away
		}
		prompt, err := d.Prompt(body)
		if err != nil {
			t.Errorf("the request is not one of the dialect: %v", err)
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		good, err := Answer(prompt, "allow", d.Arbiter)
		if err != nil {
			text := "ok"
			if d.Probe != nil {
				text = d.Probe(body)
			}
			w.Header().Set("Content-Type", d.ContentType)
			w.Write(d.Reply(text, false))
			return
		}
		if armed == nil || !armed.Load() {
			w.Header().Set("Content-Type", d.ContentType)
			w.Write(d.Reply(good, false))
			return
		}
		answer(w, r, good)
	}))
	t.Cleanup(srv.Close)
	return srv
}

// FailClosed runs the table of broken servers against a backend. newCall
// returns a function that makes one call with a small record; url is the
// server's. Every row must be an *inference.Error of the wanted cause, and no
// error may quote what the server said. The last row checks that a good answer
// passes, so that the table proves something.
func FailClosed(t *testing.T, d Dialect, newCall func(t *testing.T, url string) func(context.Context) error) {
	const secret = "PLANTED-CANARY-TEXT" // in every body that is not a good answer
	reply := func(w http.ResponseWriter, content string, cut bool) {
		w.Header().Set("Content-Type", d.ContentType)
		w.Write(d.Reply(content, cut))
	}
	edit := func(old, new string) func(http.ResponseWriter, *http.Request, string) {
		return func(w http.ResponseWriter, r *http.Request, good string) {
			bad := regexp.MustCompile(old).ReplaceAllString(good, new)
			if bad == good {
				t.Errorf("%s is not in the good answer", old)
			}
			reply(w, bad, false)
		}
	}
	say := func(content string) func(http.ResponseWriter, *http.Request, string) {
		return func(w http.ResponseWriter, r *http.Request, good string) { reply(w, content, false) }
	}
	raw := func(status int, body string) func(http.ResponseWriter, *http.Request, string) {
		return func(w http.ResponseWriter, r *http.Request, good string) {
			w.Header().Set("Content-Type", d.ContentType)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	const any = inference.CauseUnknown

	for _, row := range []struct {
		name   string
		want   inference.Cause // CauseUnknown: any cause
		answer func(http.ResponseWriter, *http.Request, string)
	}{
		{"BadRequest", inference.CauseStatus, raw(400, `{"error":"`+secret+`"}`)},
		{"Unauthorized", inference.CauseStatus, raw(401, `{"error":"`+secret+`"}`)},
		{"NotFound", any, raw(404, `{"error":"`+secret+`"}`)},
		{"TooMany", any, raw(429, `{"error":"`+secret+`"}`)},
		{"ServerError", inference.CauseStatus, raw(500, `{"error":"`+secret+`"}`)},
		{"Overloaded", any, raw(503, secret)},
		{"EmptyBody", inference.CauseEmpty, raw(200, "")},
		{"NoContent", any, raw(204, "")},
		{"EmptyAnswer", inference.CauseEmpty, say("")},
		{"BlankAnswer", inference.CauseEmpty, say(" \n\t")},
		{"GarbageBody", inference.CauseMalformed, raw(200, secret+"\x00\xff<html>")},
		{"WrongBody", any, raw(200, `{"hello":"`+secret+`"}`)},
		{"NullBody", any, raw(200, "null")},
		{"Prose", inference.CauseMalformed, say("I would allow this. " + secret)},
		{"OtherObject", inference.CauseMalformed, say(`{"verdict":"allow","why":"` + secret + `"}`)},
		{"EmptyObject", inference.CauseMalformed, say("{}")},
		{"NullAnswer", inference.CauseMalformed, say("null")},
		{"ListAnswer", inference.CauseMalformed, say("[]")},
		{"TwoAnswers", inference.CauseMalformed, func(w http.ResponseWriter, r *http.Request, good string) { reply(w, good+good, false) }},
		{"UnknownField", inference.CauseMalformed, edit(`^\{`, `{"z":1,`)},
		{"MissingField", inference.CauseMalformed, edit(`"r":5,`, ``)},
		{"NullField", inference.CauseMalformed, edit(`"r":5,`, `"r":null,`)},
		{"DuplicateField", inference.CauseMalformed, edit(`"r":5,`, `"r":5,"r":5,`)},
		{"OutOfRange", inference.CauseMalformed, edit(`"r":5,`, `"r":500,`)},
		{"Negative", inference.CauseMalformed, edit(`"r":5,`, `"r":-1,`)},
		{"Fraction", inference.CauseMalformed, edit(`"r":5,`, `"r":0.05,`)},
		{"WrongType", inference.CauseMalformed, edit(`"r":5,`, `"r":"5",`)},
		{"UnknownVerdict", inference.CauseMalformed, edit(`"allow"`, `"yes"`)},
		{"WrongCaseVerdict", inference.CauseMalformed, edit(`"allow"`, `"ALLOW"`)},
		{"NumberVerdict", inference.CauseMalformed, edit(`"allow"`, `3`)},
		{"NoSuchSpan", inference.CauseMalformed, edit(`"e":\[\]`, `"e":[63]`)},
		{"RewriteOfNothing", inference.CauseMalformed, edit(`"allow"`, `"rewrite"`)},
		{"WrongCanary", inference.CauseCanary, edit(`"c":"[a-z]+"`, `"c":"aaaaaa"`)},
		{"WrongNonce", inference.CauseCanary, edit(`"n":"[a-z]+"`, `"n":"aaaaaa"`)},
		{"RanOutOfTokens", inference.CauseTruncated, func(w http.ResponseWriter, r *http.Request, good string) { reply(w, good[:len(good)/2], true) }},
		{"RanOutButWhole", inference.CauseTruncated, func(w http.ResponseWriter, r *http.Request, good string) { reply(w, good, true) }},
		{"CutConnection", any, func(w http.ResponseWriter, r *http.Request, good string) {
			body := d.Reply(good, false)
			w.Header().Set("Content-Type", d.ContentType)
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.Write(body[:len(body)/2])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}},
		{"CutBeforeHeader", any, func(w http.ResponseWriter, r *http.Request, good string) { panic(http.ErrAbortHandler) }},
		{"HugeBody", any, func(w http.ResponseWriter, r *http.Request, good string) {
			w.Header().Set("Content-Type", d.ContentType)
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for range 256 { // a client that reads on would take it all
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}},
		{"HugeAnswer", any, func(w http.ResponseWriter, r *http.Request, good string) {
			reply(w, good+strings.Repeat(" ", 1<<21), false)
		}},
		{"Redirect", inference.CauseStatus, func(w http.ResponseWriter, r *http.Request, good string) {
			http.Redirect(w, r, other.URL+d.Path, http.StatusTemporaryRedirect)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var armed atomic.Bool
			call := newCall(t, newServer(t, d, &armed, row.answer).URL)
			armed.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			wantError(t, call(ctx), row.want, secret)
		})
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}

	t.Run("Refused", func(t *testing.T) {
		srv := NewServer(t, d)
		call := newCall(t, srv.URL)
		srv.Close()
		wantError(t, call(t.Context()), inference.CauseUnavailable, secret)
	})
	// A deadline that passes while the server is silent, and while it drips.
	for name, drip := range map[string]bool{"Silent": false, "SlowDrip": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			var once sync.Once
			var armed atomic.Bool
			srv := newServer(t, d, &armed, func(w http.ResponseWriter, r *http.Request, good string) {
				once.Do(func() { cancel(context.DeadlineExceeded) })
				for _, b := range d.Reply(good, false) {
					if drip {
						w.Write([]byte{b})
						w.(http.Flusher).Flush()
					}
					select {
					case <-r.Context().Done():
						return
					case <-time.After(20 * time.Millisecond):
					}
				}
			})
			call := newCall(t, srv.URL)
			armed.Store(true)
			wantError(t, call(deadlineContext{ctx}), inference.CauseTimeout, secret)
		})
	}
	t.Run("GoodAnswer", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := newCall(t, NewServer(t, d).URL)(ctx); err != nil {
			t.Errorf("the good answer was refused: %v", err)
		}
	})
}

// deadlineContext turns a cancelled context into one whose deadline passed, so
// that the table needs no clock.
type deadlineContext struct{ context.Context }

// Value hides the context inside from those derived from this one, which would
// otherwise take their error from it.
func (c deadlineContext) Value(any) any { return nil }

func (c deadlineContext) Err() error {
	if c.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

func wantError(t *testing.T, err error, want inference.Cause, secret string) {
	t.Helper()
	var e *inference.Error
	switch {
	case err == nil:
		t.Error("the call succeeded")
	case !errors.As(err, &e):
		t.Errorf("%T is not an *inference.Error: %v", err, err)
	case e.Cause == inference.CauseUnknown:
		t.Errorf("the cause is not known: %v", err)
	case want != inference.CauseUnknown && e.Cause != want:
		t.Errorf("cause is %s, want %s: %v", e.Cause, want, err)
	case strings.Contains(err.Error(), secret):
		t.Errorf("the error quotes the server: %v", err)
	}
}

// FailClosedArbiter runs the table against an arbiter.
func FailClosedArbiter(t *testing.T, d Dialect, newArbiter func(t *testing.T, url string) inference.Arbiter) {
	FailClosed(t, d, func(t *testing.T, url string) func(context.Context) error {
		a := newArbiter(t, url)
		return func(ctx context.Context) error {
			rec := Record("hello")
			rep, _, err := a.Arbitrate(ctx, &schema.ArbiterRecord{
				Original: rec.Flow, Current: rec.Flow, Precheck: rec.Precheck,
				Report: &schema.Report{Decision: schema.Allow, Uncertainty: 0.5, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}},
			})
			if err != nil && rep.Decision != schema.Block {
				t.Errorf("the report beside the error says %v", rep.Decision)
			}
			return err
		}
	})
}
