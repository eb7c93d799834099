package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"example.org/auditd/auditlog"
	"example.org/auditd/schema"
)

// signIn exchanges a one-time code and returns both halves of the session.
func (w *world) signIn(t *testing.T) (*http.Cookie, string) {
	t.Helper()
	code, _, err := w.keeper.Code()
	if err != nil {
		t.Fatal(err)
	}
	rec, body := w.request(t, http.MethodPost, "/ui/login", "", `{"code":"`+code+`"}`)
	var s pageSession
	if err := schema.Decode([]byte(body), &s); err != nil || rec.Code != 200 || len(rec.Result().Cookies()) != 1 {
		t.Fatalf("%d %s: %v", rec.Code, body, err)
	}
	return rec.Result().Cookies()[0], s.Key
}

func with(cookie *http.Cookie, key string) func(*http.Request) {
	return func(r *http.Request) {
		if cookie != nil {
			r.AddCookie(cookie)
		}
		if key != "" {
			r.Header.Set(pageKeyHeader, key)
		}
	}
}

func TestPageHeaders(t *testing.T) {
	w := newWorld(t, nil)
	for _, path := range []string{"/", "/ui/static/app.js", "/ui/static/base.css"} {
		rec, _ := w.request(t, http.MethodGet, path, "", "")
		h := rec.Result().Header
		csp := h.Get("Content-Security-Policy")
		if rec.Code != 200 || !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %d, policy %q", path, rec.Code, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, h)
		}
	}
	if rec, _ := w.request(t, http.MethodGet, "/ui/static/ui.go", "", ""); rec.Code != 404 {
		t.Errorf("a file that is none of the page's: %d", rec.Code)
	}
	// A link on another page leads to the page, and to nothing else.
	link := func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Sec-Fetch-Dest", "document")
	}
	if rec, _ := w.request(t, http.MethodGet, "/", "", "", link); rec.Code != 200 {
		t.Errorf("a link to the page: %d", rec.Code)
	}
	for _, path := range []string{"/ui/questions", "/ui/static/app.js", "/v1/log"} {
		if rec, _ := w.request(t, http.MethodGet, path, "", "", link); rec.Code != 403 {
			t.Errorf("a link to %s: %d", path, rec.Code)
		}
	}
}

// TestPageNeedsBothHalves: the cookie reaches servers on other ports of the
// host, so it opens nothing alone; and the page's session is not the API's.
func TestPageNeedsBothHalves(t *testing.T) {
	w := newWorld(t, nil)
	w.page.strangers.SetLimit(rate.Inf) // this test is one
	cookie, key := w.signIn(t)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/ui/" || cookie.Name != "auditd_7841" {
		t.Errorf("cookie %v", cookie)
	}
	_, otherKey := w.signIn(t)
	for _, tc := range []struct {
		name   string
		change func(*http.Request)
		status int
	}{
		{"both", with(cookie, key), 200},
		{"none", with(nil, ""), 401},
		{"cookie alone", with(cookie, ""), 401},
		{"key alone", with(nil, key), 401},
		{"the cookie as the key", with(cookie, cookie.Value), 401},
		{"another session's key", with(cookie, otherKey), 401},
		{"another origin", func(r *http.Request) { with(cookie, key)(r); r.Header.Set("Origin", "http://127.0.0.1:3000") }, 403},
		{"another site", func(r *http.Request) { with(cookie, key)(r); r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		{"another host", func(r *http.Request) { with(cookie, key)(r); r.Host = "evil.example:7841" }, 403},
		{"another port's cookie", func(r *http.Request) { with(cookie, key)(r); r.Host = "127.0.0.1:7842" }, 401},
	} {
		for _, path := range []string{"/ui/questions", "/ui/questions/" + w.question, "/ui/feed", "/ui/decisions/d-1", "/ui/overview", "/ui/grants",
			"/ui/views", "/ui/views/1/files", "/ui/views/1/file?path=p", "/ui/views/1/original?path=p&piece=0", "/ui/views/1/conflicts/1", "/ui/symbols", "/ui/symbols/symu?original=1", "/ui/symbols/symu/graph"} {
			if rec, body := w.request(t, http.MethodGet, path, "", "", tc.change); rec.Code != tc.status {
				t.Errorf("%s: %s: %d %s", tc.name, path, rec.Code, body)
			}
		}
		rec, _ := w.request(t, http.MethodPost, "/ui/questions/"+w.question, "", `{"answer":"nonsense"}`, tc.change)
		if want := map[int]int{200: 400}[tc.status]; rec.Code != max(want, tc.status) {
			t.Errorf("%s: an answer: %d", tc.name, rec.Code)
		}
	}
	// Bearer tokens mean nothing to the page, and cookies nothing to the API.
	owner := w.owner(t)
	for _, token := range []string{owner, w.hook, cookie.Value} {
		if rec, _ := w.request(t, http.MethodGet, "/ui/questions", token, "", with(nil, key)); rec.Code != 401 {
			t.Errorf("a bearer token opened the page: %d", rec.Code)
		}
	}
	if rec, _ := w.request(t, http.MethodGet, "/v1/approvals", "", "", with(cookie, key)); rec.Code != 401 {
		t.Errorf("a cookie opened the API: %d", rec.Code)
	}
	// Login by passphrase is for the terminal.
	if rec, _ := w.request(t, http.MethodPost, "/ui/login", "", `{"passphrase":"`+passphrase+`"}`); rec.Code != 400 {
		t.Errorf("the page took a passphrase: %d", rec.Code)
	}
	if rec, _ := w.request(t, http.MethodPost, "/ui/logout", "", `{}`, with(cookie, key)); rec.Code != 200 {
		t.Errorf("logout: %d", rec.Code)
	}
	if rec, _ := w.request(t, http.MethodGet, "/ui/questions", "", "", with(cookie, key)); rec.Code != 401 {
		t.Errorf("after logout: %d", rec.Code)
	}
}

func TestPageRate(t *testing.T) {
	w := newWorld(t, nil)
	cookie, key := w.signIn(t)
	limited := false
	for range 5 * pageRate {
		rec, _ := w.request(t, http.MethodGet, "/ui/questions", "", "")
		limited = limited || rec.Code == 429
	}
	if !limited {
		t.Error("any number of requests in no time is taken")
	}
	if rec, _ := w.request(t, http.MethodGet, "/ui/questions", "", "", with(cookie, key)); rec.Code != 200 {
		t.Errorf("strangers used up the owner's share: %d", rec.Code)
	}
}

// TestPageShowsOriginals: the owner sees the payload, never an agent's ticket.
func TestPageShowsOriginals(t *testing.T) {
	w := newWorld(t, nil)
	cookie, key := w.signIn(t)
	_, body := w.request(t, http.MethodGet, "/ui/questions/"+w.question, "", "", with(cookie, key))
	if !strings.Contains(body, "what the agent wants to write") || strings.Contains(body, `"ticket":"`) {
		t.Errorf("the question: %s", body)
	}
	_, body = w.request(t, http.MethodGet, "/ui/decisions/d-1", "", "", with(cookie, key))
	if !strings.Contains(body, `"proof_holds":true`) || !strings.Contains(body, "redacted text") || !strings.Contains(body, `"whole":false`) {
		t.Errorf("the decision: %s", body)
	}
	_, body = w.request(t, http.MethodGet, "/ui/feed?action=block", "", "", with(cookie, key))
	if !strings.Contains(body, `"rows":[]`) {
		t.Errorf("filtered: %s", body)
	}
	if rec, _ := w.request(t, http.MethodGet, "/ui/feed?before=-1", "", "", with(cookie, key)); rec.Code != 400 {
		t.Errorf("a position below 0: %d", rec.Code)
	}
}

// TestPageEvents: a change is told at once, and the stream ends with the
// session and with the daemon.
func TestPageEvents(t *testing.T) {
	w := newWorld(t, nil)
	srv := httptest.NewServer(w.Handler())
	defer srv.Close()
	port := strings.TrimPrefix(srv.URL, "http://127.0.0.1:")
	cookie, key := w.signIn(t)
	cookie.Name = "auditd_" + port
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/ui/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	with(cookie, key)(req)
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	told := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(res.Body)
		told <- string(all)
	}()
	if err := w.cfg.Approvals.Answer(t.Context(), w.question, false, "owner", nil); err != nil {
		t.Fatal(err)
	}
	d := script(&schema.Flow{Payload: "benign"})
	d.ID = "d-2"
	if _, err := w.log.Append(t.Context(), auditlog.Entry{Decision: &d, Flow: completed(t, "benign")}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * streamPause)
	w.page.stop() // as a shutdown does
	if got := <-told; !strings.Contains(got, "event: hello") || !strings.Contains(got, "event: questions") || !strings.Contains(got, `event: records`+"\n"+`data: {"records":2}`) {
		t.Errorf("the stream said %q", got)
	}
}
