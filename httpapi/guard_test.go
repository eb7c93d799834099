package httpapi

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/auditd/api"
	"example.org/auditd/credential"
	"example.org/auditd/schema"
)

const smallest = `{"payload":"benign","source":{"kind":"web"},"sink":{"kind":"reasoning"}}`

// TestEveryEdgeDenies is the table of what can be wrong with a request. Each
// answer is of the one error shape and says block.
func TestEveryEdgeDenies(t *testing.T) {
	w := newWorld(t, nil)
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	none := func(*http.Request) {}
	big := strings.Repeat("x", schema.DefaultMaxPayload+1)
	for _, tc := range []struct {
		name, path, token, body string
		change                  func(*http.Request)
		status                  int
		code, field, says       string
	}{
		{"no token", "/audit", "", smallest, none, 401, "credential", "Authorization", "hook.token"},
		{"wrong token", "/audit", "ah_" + strings.Repeat("0", 64), smallest, none, 401, "credential", "Authorization", ""},
		{"token of another scheme", "/audit", "", smallest, set("Authorization", "Basic "+w.hook), 401, "credential", "Authorization", ""},
		{"no content type", "/audit", w.hook, smallest, func(r *http.Request) { r.Header.Del("Content-Type") }, 415, "content_type", "Content-Type", "application/json"},
		{"form", "/audit", w.hook, "payload=x", set("Content-Type", "application/x-www-form-urlencoded"), 415, "content_type", "Content-Type", ""},
		{"text/plain, as a form on a web page can send it", "/audit", w.hook, smallest, set("Content-Type", "text/plain"), 415, "content_type", "Content-Type", ""},
		{"compressed", "/audit", w.hook, smallest, set("Content-Encoding", "gzip"), 415, "content_encoding", "Content-Encoding", ""},
		{"rebound host", "/audit", w.hook, smallest, func(r *http.Request) { r.Host = "evil.example:7841" }, 403, "host", "Host", ""},
		{"host with our name inside", "/audit", w.hook, smallest, func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, 403, "host", "Host", ""},
		{"no host", "/audit", w.hook, smallest, func(r *http.Request) { r.Host = "" }, 403, "host", "Host", ""},
		{"cross-site origin", "/audit", w.hook, smallest, set("Origin", "http://evil.example"), 403, "origin", "Origin", ""},
		{"null origin", "/audit", w.hook, smallest, set("Origin", "null"), 403, "origin", "Origin", ""},
		{"another port's origin", "/audit", w.hook, smallest, set("Origin", "http://127.0.0.1:3000"), 403, "origin", "Origin", ""},
		{"cross-site fetch", "/audit", w.hook, smallest, set("Sec-Fetch-Site", "cross-site"), 403, "origin", "Origin", ""},
		{"empty", "/audit", w.hook, "", none, 400, "invalid", "", ""},
		{"garbage", "/audit", w.hook, "\x00\xff", none, 400, "invalid", "", ""},
		{"two documents", "/audit", w.hook, smallest + smallest, none, 400, "invalid", "", ""},
		{"unknown field", "/audit", w.hook, `{"payload":"x","source":{"kind":"web"},"sink":{"kind":"reasoning"},"allow":true}`, none, 400, "invalid", "allow", ""},
		{"duplicate field", "/audit", w.hook, `{"payload":"x","payload":"y","source":{"kind":"web"},"sink":{"kind":"reasoning"}}`, none, 400, "invalid", "payload", "twice"},
		{"unknown sink", "/audit", w.hook, `{"payload":"x","source":{"kind":"web"},"sink":{"kind":"safe"}}`, none, 400, "invalid", "sink.kind", ""},
		{"no sink", "/audit", w.hook, `{"payload":"x","source":{"kind":"web"}}`, none, 400, "invalid", "sink.kind", "missing"},
		{"too deep", "/audit", w.hook, strings.Repeat("[", 40) + strings.Repeat("]", 40), none, 400, "invalid", "", "32"},
		{"payload over its limit", "/audit", w.hook, `{"payload":"` + big + `","source":{"kind":"web"},"sink":{"kind":"reasoning"}}`, none, 413, "too_large", "payload", "1048576"},
		{"body over its limit", "/audit", w.hook, `{"payload":"` + big + big + big + `"}`, none, 413, "too_large", "body", "2162688"},
		{"event without phase", "/v1/events", w.hook, `{"host":"h","session":"s"}`, none, 400, "invalid", "phase", ""},
		{"batch of none", "/v1/audit/batch", w.hook, `{"flows":[]}`, none, 400, "invalid", "flows", "64"},
		{"batch of too many", "/v1/audit/batch", w.hook, `{"flows":[` + strings.Repeat(`1,`, 64) + `1]}`, none, 400, "invalid", "flows", "65"},
		{"approval without passphrase", "/v1/approvals/" + w.question, w.hook, `{"answer":"approve"}`, none, 403, "no_passphrase", "", "auditd passphrase set"},
		{"login without passphrase", "/v1/owner/session", "", `{"passphrase":"x"}`, none, 403, "no_passphrase", "", "auditd passphrase set"},
		{"wrong code", "/v1/owner/session", "", `{"code":"x"}`, none, 401, "passphrase", "passphrase", ""},
		{"login with nothing", "/v1/owner/session", "", `{}`, none, 400, "invalid", "passphrase", ""},
		{"litellm without texts' kind", "/beta/litellm_basic_guardrail_api", w.hook, `{"texts":["x"]}`, none, 400, "invalid", "input_type", ""},
		{"litellm of another shape", "/beta/litellm_basic_guardrail_api", w.hook, `{"texts":"x","input_type":"request"}`, none, 400, "invalid", "body", ""},
		{"moderation without input", "/v1/moderations", w.hook, `{}`, none, 400, "invalid", "input", ""},
		{"moderation of an image", "/v1/moderations", w.hook, `{"input":[{"type":"image_url","image_url":{"url":"x"}}]}`, none, 400, "invalid", "input[0]", ""},
		{"no such route", "/v2/audit", w.hook, smallest, none, 404, "no_such_route", "", ""},
		{"wrong method", "/healthz", w.hook, "{}", none, 405, "wrong_method", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rec, body := w.request(t, http.MethodPost, tc.path, tc.token, tc.body, tc.change)
			var e api.ErrorBody
			if err := schema.Decode([]byte(body), &e); err != nil {
				t.Fatalf("not of the error shape: %v: %s", err, body)
			}
			if rec.Code != tc.status || e.Error.Code != tc.code || tc.field != "" && e.Error.Field != tc.field || !strings.Contains(e.Error.Message, tc.says) {
				t.Errorf("%d %+v, want %d %s %s %q", rec.Code, e.Error, tc.status, tc.code, tc.field, tc.says)
			}
			if e.Action != schema.Block || !strings.Contains(body, `"action":"block"`) {
				t.Errorf("does not say block: %s", body)
			}
		})
	}
	if len(w.seen) != 0 {
		t.Errorf("%d flows reached the firewall", len(w.seen))
	}
}

func TestPanicBlocks(t *testing.T) {
	w := newWorld(t, nil)
	for path, tc := range map[string]struct{ body, want string }{
		"/audit":                            {`{"payload":"panic canary-payload","source":{"kind":"web"},"sink":{"kind":"exec"}}`, `"action":"block"`},
		"/v1/events":                        {`{"host":"h","session":"s","phase":"prompt","text":"panic canary-payload"}`, `"action":"block"`},
		"/v1/audit/batch":                   {`{"flows":[{"payload":"panic canary-payload","source":{"kind":"web"},"sink":{"kind":"exec"}}]}`, `"action":"block"`},
		"/beta/litellm_basic_guardrail_api": {`{"texts":["panic canary-payload"],"input_type":"request"}`, `"action":"BLOCKED"`},
		"/v1/moderations":                   {`{"input":"panic canary-payload"}`, `"flagged":true`},
	} {
		rec, body := w.request(t, http.MethodPost, path, w.hook, tc.body)
		if rec.Code != 200 || !strings.Contains(body, tc.want) || strings.Contains(body, "allow") {
			t.Errorf("%s: %d %s", path, rec.Code, body)
		}
		if strings.Contains(body, "canary") {
			t.Errorf("%s: the answer quotes the payload: %s", path, body)
		}
	}
	if strings.Contains(w.logs.String(), "canary") {
		t.Errorf("the log quotes the payload:\n%s", w.logs)
	}
	if !strings.Contains(w.logs.String(), "panic in a handler") {
		t.Error("the log says nothing of a panic")
	}
}

func TestInternalCausesStayInside(t *testing.T) {
	w := newWorld(t, nil)
	if rec, _ := w.request(t, http.MethodGet, "/v1/decisions/none", w.hook, ""); rec.Code != 404 {
		t.Errorf("unknown id: %d", rec.Code)
	}
	segments, _ := filepath.Glob(filepath.Join(filepath.Dir(w.ownerPath), "log", "*.jsonl"))
	for _, file := range segments {
		if err := os.Truncate(file, 3); err != nil {
			t.Fatal(err)
		}
	}
	rec, body := w.request(t, http.MethodGet, "/v1/decisions/d-1", w.hook, "")
	if rec.Code != 500 || strings.Contains(body, "record") || !strings.Contains(body, `"action":"block"`) {
		t.Errorf("%d %s", rec.Code, body)
	}
	if !strings.Contains(w.logs.String(), "request failed") {
		t.Error("the log lacks the cause")
	}
}

func TestMetricsQuoteNobody(t *testing.T) {
	w := newWorld(t, nil)
	w.request(t, http.MethodPost, "/audit", w.hook, `{"payload":"benign canary","source":{"kind":"web","id":"canary"},"sink":{"kind":"exec","tool":"canary"},"session":{"agent":"canary"}}`)
	w.request(t, http.MethodGet, "/canary", w.hook, "")
	_, body := w.request(t, http.MethodGet, "/metrics", "", "")
	if strings.Contains(body, "canary") {
		t.Error("a label holds what a caller wrote")
	}
	if !strings.Contains(body, `auditd_decisions_total{action="allow",stage="auditor",surface="capability"} 1`) {
		t.Errorf("the decision was not counted:\n%s", body)
	}
}

func TestOwnerAlone(t *testing.T) {
	w := newWorld(t, nil)
	owner := w.owner(t)
	if rec, body := w.request(t, http.MethodPost, "/v1/approvals/"+w.question, w.hook, `{"answer":"approve"}`); rec.Code != 403 || !strings.Contains(body, "owner_only") {
		t.Errorf("the hook token answered: %d %s", rec.Code, body)
	}
	_, body := w.request(t, http.MethodGet, "/v1/approvals", w.hook, "")
	if strings.Contains(body, "what the agent wants to write") {
		t.Error("the hook token reads payloads of questions")
	}
	if _, body = w.request(t, http.MethodGet, "/v1/approvals", owner, ""); !strings.Contains(body, "what the agent wants to write") {
		t.Error("the owner does not see the payload")
	}
	for _, bad := range []string{`{"answer":"yes"}`, `{"answer":"deny","grant":{"uses":1}}`, `{"answer":"approve","grant":{"uses":-1}}`, `{"answer":"approve","grant":{}}`} {
		if rec, body := w.request(t, http.MethodPost, "/v1/approvals/"+w.question, owner, bad); rec.Code != 400 {
			t.Errorf("%s: %d %s", bad, rec.Code, body)
		}
	}
	if rec, body := w.request(t, http.MethodPost, "/v1/approvals/"+w.question, owner, `{"answer":"approve"}`); rec.Code != 200 || !strings.Contains(body, `"answer":"approved"`) {
		t.Errorf("%d %s", rec.Code, body)
	}
	if rec, _ := w.request(t, http.MethodPost, "/v1/approvals/"+w.question, owner, `{"answer":"deny"}`); rec.Code != 409 {
		t.Errorf("answered twice: %d", rec.Code)
	}
	for token, want := range map[string]bool{w.hook: false, owner: true} {
		if _, body := w.request(t, http.MethodGet, "/v1/decisions/d-1", token, ""); strings.Contains(body, "redacted text") != want {
			t.Errorf("redacted text shown: %v, want %v", !want, want)
		}
	}
	if rec, _ := w.request(t, http.MethodPost, "/v1/owner/logout", owner, `{}`); rec.Code != 200 {
		t.Errorf("logout: %d", rec.Code)
	}
	if rec, _ := w.request(t, http.MethodPost, "/v1/approvals/"+w.question, owner, `{"answer":"deny"}`); rec.Code != 401 {
		t.Errorf("after logout: %d", rec.Code)
	}
}

func TestBackPressure(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, 2)
	w := newWorld(t, func(c *Config) {
		c.MaxInFlight = 2
		c.Audit = func(context.Context, *schema.Flow, schema.Credential) schema.Decision {
			entered <- struct{}{}
			<-release
			return script(&schema.Flow{Payload: "benign"})
		}
	})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { w.request(t, http.MethodPost, "/audit", w.hook, smallest) })
	}
	<-entered
	<-entered
	rec, body := w.request(t, http.MethodPost, "/audit", w.hook, smallest)
	if rec.Code != 503 || rec.Header().Get("Retry-After") == "" || !strings.Contains(body, `"action":"block"`) {
		t.Errorf("%d %s", rec.Code, body)
	}
	if rec, _ := w.request(t, http.MethodGet, "/healthz", "", ""); rec.Code != 200 {
		t.Errorf("health during load: %d", rec.Code)
	}
	close(release)
	wg.Wait()
	if rec, _ := w.request(t, http.MethodPost, "/audit", w.hook, smallest); rec.Code != 200 {
		t.Errorf("after the load: %d", rec.Code)
	}
}

func TestReadiness(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Ready = func() []string { return []string{"the model is loading"} } })
	rec, body := w.request(t, http.MethodGet, "/readyz", "", "")
	if rec.Code != 503 || !strings.Contains(body, "the model is loading") {
		t.Errorf("%d %s", rec.Code, body)
	}
	w = newWorld(t, func(c *Config) { c.Ready = nil })
	if rec, _ := w.request(t, http.MethodGet, "/readyz", "", ""); rec.Code != 503 {
		t.Errorf("ready although nobody said so: %d", rec.Code)
	}
}

// TestForeignShapes holds what gateways see.
func TestForeignShapes(t *testing.T) {
	w := newWorld(t, nil)
	for body, want := range map[string]string{
		`{"texts":["benign"],"input_type":"request"}`:                                                            `{"action":"NONE"}`,
		`{"texts":["benign"],"input_type":"response","new_field":{"a":1}}`:                                       `{"action":"NONE"}`,
		`{"texts":["benign","rewrite"],"input_type":"request"}`:                                                  `{"action":"GUARDRAIL_INTERVENED","texts":["benign","cleaned"]}`,
		`{"texts":["rewrite","hostile"],"input_type":"request"}`:                                                 `{"action":"BLOCKED","blocked_reason":"scripted (decision d-1)"}`,
		`{"texts":["defer"],"input_type":"request"}`:                                                             `{"action":"BLOCKED","blocked_reason":"scripted (decision d-1)"}`,
		`{"texts":["benign"],"images":["AAAA"],"input_type":"request"}`:                                          `{"action":"BLOCKED","blocked_reason":"auditd does not look into images, so it can't let one pass"}`,
		`{"texts":[],"tools":[{"type":"function","function":{"name":"rewrite"}}],"input_type":"request"}`:        `{"action":"BLOCKED","blocked_reason":"scripted (decision d-1)"}`,
		`{"texts":[],"tool_calls":[{"id":"1","function":{"name":"f","arguments":"x"}}],"input_type":"response"}`: `{"action":"BLOCKED","blocked_reason":"scripted (decision d-1)"}`,
	} {
		rec, got := w.request(t, http.MethodPost, "/beta/litellm_basic_guardrail_api", w.hook, body)
		if rec.Code != 200 || got != want {
			t.Errorf("%s:\n got %d %s\nwant %s", body, rec.Code, got, want)
		}
	}
	_, got := w.request(t, http.MethodPost, "/v1/moderations", w.hook, `{"input":["benign","hostile"]}`)
	for _, want := range []string{`"id":"modr-d-1"`, `"auditd/prompt_control":true`, `"harassment/threatening":false`, `"flagged":false`, `"flagged":true`} {
		if !strings.Contains(got, want) {
			t.Errorf("moderation lacks %s: %s", want, got)
		}
	}
	// LiteLLM may send the key in a header of its own.
	rec, _ := w.request(t, http.MethodPost, "/beta/litellm_basic_guardrail_api", "", `{"texts":["benign"],"input_type":"request"}`,
		func(r *http.Request) { r.Header.Set("X-Api-Key", w.hook) })
	if rec.Code != 200 {
		t.Errorf("x-api-key: %d", rec.Code)
	}
}

func TestListenersAndShutdown(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(c *Config) {
		c.Audit = func(context.Context, *schema.Flow, schema.Credential) schema.Decision {
			close(entered)
			<-release
			return script(&schema.Flow{Payload: "benign"})
		}
	})
	socket := filepath.Join(t.TempDir(), "run", "auditd.sock")
	listeners, err := Listen("127.0.0.1:0", socket)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{socket: 0o600, filepath.Dir(socket): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	if _, err := Listen("", socket); err == nil || !strings.Contains(err.Error(), "another auditd") {
		t.Errorf("second daemon on the socket: %v", err)
	}
	if _, err := Listen(listeners[0].Addr().String(), ""); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second daemon on the port: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx, listeners...) }()

	// A decision that is in flight when the daemon stops is still answered.
	answered := make(chan string, 1)
	go func() {
		httpc := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
		req, _ := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, "http://auditd/audit", strings.NewReader(smallest))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+w.hook)
		res, err := httpc.Do(req)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer res.Body.Close()
		answered <- res.Status
	}()
	<-entered
	stop()
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	if got := <-answered; got != "200 OK" {
		t.Errorf("the decision in flight got %s", got)
	}
	if err := <-served; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is still there")
	}
}

func TestStaleSocketIsReplacedAndFilesAreNot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	path := filepath.Join(dir, "s")
	l, err := Listen("", path)
	if err != nil {
		t.Fatal(err)
	}
	l[0].(*net.UnixListener).SetUnlinkOnClose(false) // as after kill -9
	l[0].Close()
	if l, err = Listen("", path); err != nil {
		t.Fatalf("stale socket: %v", err)
	}
	l[0].Close()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("", path); err == nil {
		t.Error("a file was taken for a socket")
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Error("the file is gone")
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("", filepath.Join(dir, "t")); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Errorf("open directory: %v", err)
	}
}

// TestOneFileKnowsStatusCodes keeps the mapping in errors.go.
func TestOneFileKnowsStatusCodes(t *testing.T) {
	files, _ := filepath.Glob("*.go")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if f != "errors.go" && !strings.HasSuffix(f, "_test.go") && regexp.MustCompile(`http\.Status[A-Z]`).Match(b) {
			t.Errorf("%s names a status code", f)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("a server without a firewall was made")
	}
	if _, err := credential.NewKeeper(credential.Config{}); err == nil {
		t.Error("a keeper without a token was made")
	}
}
