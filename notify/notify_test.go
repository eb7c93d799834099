package notify

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const secret = "s3cret-path-and-token"

// receiver is a real HTTP server that keeps what it got.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []string // headers and body
	status int
	sleep  time.Duration
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: 200}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.got = append(r.got, q.Method+" "+q.Header.Get("Content-Type")+" "+q.Header.Get("Authorization")+" "+q.Header.Get("Title")+" "+q.Header.Get("Click")+" "+string(body))
		status, sleep := r.status, r.sleep
		r.mu.Unlock()
		select {
		case <-time.After(sleep):
		case <-q.Context().Done():
			return
		}
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(status)
		io.WriteString(w, strings.Repeat(secret, 10000))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.got...)
}

// waiting is a queue of questions.
type waiting struct {
	mu      sync.Mutex
	ids     []string
	changes chan struct{}
}

func (w *waiting) set(ids ...string) {
	w.mu.Lock()
	w.ids = ids
	w.mu.Unlock()
	select {
	case w.changes <- struct{}{}:
	default:
	}
}

func (w *waiting) list(context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.ids...), nil
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// TestNotifierTells: each question is told of once, many at once in one message,
// and one that failed to get out is tried again.
func TestNotifierTells(t *testing.T) {
	r := newReceiver(t)
	q := &waiting{changes: make(chan struct{}, 1)}
	n, err := New(Config{Webhook: &Webhook{URL: r.URL + "/" + secret, Token: secret}, Changes: q.changes, Waiting: q.list, Page: "http://127.0.0.1:7841/", Every: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); n.Run(ctx) }()
	q.set("q-1")
	eventually(t, "the first", func() bool { return len(r.heard()) == 1 })
	if got := r.heard()[0]; got != `POST application/json Bearer `+secret+`   {"title":"auditd","text":"1 question waits for you.","waiting":1,"page":"http://127.0.0.1:7841/"}` {
		t.Errorf("sent %s", got)
	}
	q.set("q-1")
	q.set()
	time.Sleep(60 * time.Millisecond)
	if got := r.heard(); len(got) != 1 {
		t.Errorf("told again: %q", got)
	}
	r.answers(503)
	q.set("q-2", "q-3")
	eventually(t, "a try", func() bool { return len(r.heard()) >= 2 })
	r.answers(200)
	eventually(t, "another try", func() bool { return len(r.heard()) >= 3 })
	if got := r.heard(); !strings.Contains(got[len(got)-1], "2 questions wait for you.") {
		t.Errorf("sent %q", got)
	}
	cancel()
	<-done
}

// TestWebhookFails: a failure is one line of the log, without the address, the
// token or what the receiver said, and it is bounded.
func TestWebhookFails(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	slow := newReceiver(t)
	slow.sleep = time.Minute
	for name, tc := range map[string]struct {
		url, want string
		status    int
	}{
		"refused":     {"http://" + closed.Addr().String(), "the connection was refused", 0},
		"timed out":   {slow.URL, "no answer within", 0},
		"redirect":    {"", "the receiver answered 302", 302},
		"bad request": {"", "the receiver answered 400", 400},
		"forbidden":   {"", "the receiver answered 403", 403},
		"too many":    {"", "the receiver answered 429", 429},
		"broken":      {"", "the receiver answered 500", 500},
		"unavailable": {"", "the receiver answered 503", 503},
	} {
		t.Run(name, func(t *testing.T) {
			url := tc.url
			if url == "" {
				r := newReceiver(t)
				r.answers(tc.status)
				url = r.URL
			}
			var logged strings.Builder
			n, err := New(Config{Webhook: &Webhook{URL: url + "/" + secret, Token: secret}, Changes: make(chan struct{}), Waiting: (&waiting{}).list, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if tc.status == 0 && tc.url == slow.URL {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond) // in place of the whole five seconds
				defer cancel()
			}
			now := time.Now()
			if again := n.tell(ctx, []string{"q-1"}, now); again != 30*time.Second {
				t.Errorf("it tries again in %s", again)
			}
			if got := logged.String(); !strings.Contains(got, tc.want) || strings.Contains(got, secret) || strings.Contains(got, "q-1") || strings.Count(got, "\n") != 1 {
				t.Errorf("logged %s", got)
			}
			// Not again before its time, and then ever more rarely.
			if again := n.tell(ctx, []string{"q-1"}, now.Add(time.Second)); again != 29*time.Second || strings.Count(logged.String(), "\n") != 1 {
				t.Errorf("too early: in %s, %s", again, logged.String())
			}
			n.channels[0].failed = 40
			if again := n.tell(ctx, []string{"q-1"}, now.Add(time.Minute)); again != maxBackoff {
				t.Errorf("after many failures it tries again in %s", again)
			}
		})
	}
}

func TestNtfy(t *testing.T) {
	r := newReceiver(t)
	send, err := (&Webhook{URL: r.URL, Ntfy: true}).sender()
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context(), newMessage(3, "http://127.0.0.1:7841/")); err != nil {
		t.Fatal(err)
	}
	if got := r.heard(); len(got) != 1 || got[0] != "POST text/plain; charset=utf-8  auditd http://127.0.0.1:7841/ 3 questions wait for you." {
		t.Errorf("sent %q", got)
	}
}

func TestWebhookAddress(t *testing.T) {
	for url, ok := range map[string]bool{"https://ntfy.sh/x": true, "http://127.0.0.1:99/x": true, "http://[::1]/x": true, "http://localhost/x": true, "http://ntfy.sh/x": false, "http://10.0.0.1/": false,
		"file:///etc/passwd": false, "ftp://x/": false, "https://": false, "": false, "https://a:b@x/": false, "https://x/\x00": false} {
		_, err := (&Webhook{URL: url}).sender()
		if (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
		if err != nil && url != "" && strings.Contains(err.Error(), url) {
			t.Errorf("%q is quoted: %v", url, err)
		}
	}
	if _, err := (&Webhook{URL: "https://x/", Token: "a\r\nX: y"}).sender(); err == nil {
		t.Error("a token of two lines is taken")
	}
	if n, err := New(Config{}); n != nil || err != nil {
		t.Errorf("off: %v %v", n, err)
	}
	if _, err := New(Config{Desktop: true}); err == nil {
		t.Error("nothing to tell of is no error")
	}
}

// TestDesktop runs a program in notify-send's place that keeps its arguments.
func TestDesktop(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := desktop(t.Context(), newMessage(1, "")); !errors.Is(err, errNoProgram) {
		t.Errorf("without the program: %v", err)
	}
	out := filepath.Join(dir, "args")
	program := filepath.Join(dir, "notify-send")
	write := func(script string) {
		t.Helper()
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(`for a; do echo "[$a]"; done > ` + out)
	if err := desktop(t.Context(), newMessage(2, "http://127.0.0.1:7841/")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != "[--app-name=auditd]\n[--]\n[auditd]\n[2 questions wait for you.]\n" {
		t.Errorf("%q %v", got, err)
	}
	write("echo " + secret + " >&2; exit 1")
	if err := desktop(t.Context(), newMessage(1, "")); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a failure: %v", err)
	}
	write("exec /bin/sleep 60")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := desktop(ctx, newMessage(1, "")); !errors.Is(err, errTimedOut) {
		t.Errorf("one that hangs: %v", err)
	}
}
