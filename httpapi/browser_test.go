//go:build integration

package httpapi

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"example.org/auditd/approval"
	"example.org/auditd/auditlog"
	"example.org/auditd/escalation"
	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
)

// site is a served world with a browser in front of it.
type site struct {
	*world
	url      string
	queue    *approval.Queue
	stop     func() // of the daemon
	chromium string
	n        int // questions so far
}

// newSite serves a world on a port of its own. Chromium must be there: scripts/browser.sh.
func newSite(t *testing.T, change func(*Config)) *site {
	t.Helper()
	chromium := os.Getenv("AUDITD_TEST_CHROMIUM")
	if chromium == "" {
		chromium = "chromium"
	}
	path, err := exec.LookPath(chromium)
	if err != nil {
		t.Fatalf("these tests drive a real Chromium (run scripts/browser.sh): %v", err)
	}
	var dir string
	w := newWorld(t, func(c *Config) {
		c.Thresholds = escalation.Default
		c.Verify = func() (auditlog.Summary, error) { return auditlog.Verify(dir) }
		if change != nil {
			change(c)
		}
	})
	dir = filepath.Dir(w.ownerPath)
	s := &site{world: w, queue: w.cfg.Approvals}
	s.serve(t, "127.0.0.1:0")
	s.chromium = path
	return s
}

func (s *site) serve(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(ctx, l)
	}()
	s.stop = func() { cancel(); <-done }
	t.Cleanup(s.stop)
	s.url = "http://" + l.Addr().String()
}

// again starts the daemon once more at the same address, after stop.
func (s *site) again(t *testing.T) {
	t.Helper()
	c := s.cfg
	c.Registry = nil
	server, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	server.page.keys = s.page.keys // sessions live in the keeper, which stays too
	s.Server = server
	s.serve(t, strings.TrimPrefix(s.url, "http://"))
}

// shortQuestions replaces the queue by one whose questions expire soon.
func (s *site) shortQuestions(t *testing.T, ttl time.Duration) {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "auditd.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if s.queue, err = approval.New(approval.Config{DB: db, Now: time.Now, TTL: ttl}); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s.cfg.Approvals = s.queue
	s.again(t)
}

// tab is one page of a browser; an error of its scripts and a breach of the
// content policy fail the test.
type tab struct {
	context.Context
	t *testing.T
}

// browser starts a browser of its own, with one tab.
func (s *site) browser(t *testing.T) *tab {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(s.chromium), chromedp.NoSandbox,
		chromedp.WindowSize(1280, 860), chromedp.UserDataDir(t.TempDir()), chromedp.Flag("lang", "en-GB"))
	alloc, stop := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	return s.watch(t, ctx)
}

// another opens a further tab of the same browser.
func (s *site) another(t *testing.T, of *tab) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(of)
	t.Cleanup(cancel)
	return s.watch(t, ctx)
}

func (s *site) watch(t *testing.T, ctx context.Context) *tab {
	t.Helper()
	b := &tab{ctx, t}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			// The browser's own log tells of every request that failed; what
			// the page makes of those is what the tests look at.
			if m.Type == chromedp.ConsoleException || m.Type == chromedp.ConsoleError && !strings.HasPrefix(m.Text, "Failed to load resource") {
				t.Errorf("the page's console: %s", m.Text)
			}
		}
	}()
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b, 60*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v; the page says:\n%s", err, b.text())
	}
}

// text is what the page shows.
func (b *tab) text() string {
	out, err := chromedp.Run(b, chromedp.Evaluate[string](`document.body.innerText.slice(0, 3000)`))
	if err != nil {
		return err.Error()
	}
	return out
}

func (b *tab) open(url string) { b.t.Helper(); b.do(chromedp.Navigate(url)) }

func (b *tab) click(selector string) {
	b.t.Helper()
	var err error
	for range 3 { // an element can be replaced between being found and being clicked
		ctx, cancel := context.WithTimeout(b, 20*time.Second)
		err = chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
		cancel()
		if err == nil {
			return
		}
	}
	b.t.Fatalf("click %s: %v; the page says:\n%s", selector, err, b.text())
}

// login opens the link that the command line prints.
func (s *site) login(t *testing.T, b *tab) {
	t.Helper()
	code, _, err := s.keeper.Code()
	if err != nil {
		t.Fatal(err)
	}
	b.desk()
	b.open(s.url + "/#code=" + code)
	b.until(`!document.getElementById('nav').hidden`)
}

// until waits for an expression to become true.
func (b *tab) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(40 * time.Millisecond) {
		ok, err := chromedp.Run(b, chromedp.Evaluate[bool](`Boolean(`+expression+`)`))
		if err == nil && ok {
			return
		}
	}
	b.t.Fatalf("never true: %s; the page says:\n%s", expression, b.text())
}

// sees waits until the text that the page shows holds want.
func (b *tab) sees(want string) {
	b.t.Helper()
	b.until(`document.body.innerText.includes(` + quote(want) + `)`)
}

func (b *tab) seesNot(unwanted string) {
	b.t.Helper()
	b.until(`!document.body.innerText.includes(` + quote(unwanted) + `)`)
}

// asks waits until the question on screen, not the list beside it, holds want.
func (b *tab) asks(want string) {
	b.t.Helper()
	b.until(`document.querySelector('.pane:not(.stale) .question')?.innerText.includes(` + quote(want) + `)`)
}

func quote(s string) string {
	data, err := schema.Encode(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// press sends keys to the page as a person would: the page takes no answer to
// a question that has only just appeared.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.do(chromedp.Sleep(500*time.Millisecond), chromedp.KeyEvent(k))
	}
}

func (b *tab) value(expression string) string {
	b.t.Helper()
	out, err := chromedp.Run(b, chromedp.Evaluate[string](`String(`+expression+`)`))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// shot writes a screenshot to the folder in AUDITD_SCREENSHOTS, when it is set.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("AUDITD_SCREENSHOTS")
	if dir == "" {
		return
	}
	b.do(chromedp.Sleep(300 * time.Millisecond))
	png, err := chromedp.Run(b, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) scheme(value string) {
	b.t.Helper()
	_, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) phone() {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(2), chromedp.EmulateMobile))
}

func (b *tab) desk() {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(1280, 860))
}

// looks takes the same screenshot light, dark and at phone width, and checks
// that nothing is wider than the phone.
func (b *tab) looks(name string) {
	b.t.Helper()
	b.scheme("light")
	b.shot(name + "-light")
	b.scheme("dark")
	b.shot(name + "-dark")
	b.scheme("light")
	b.phone()
	if w := b.value(`document.documentElement.scrollWidth`); w != "390" {
		b.t.Errorf("%s is %s pixels wide on a phone of 390", name, w)
	}
	b.shot(name + "-phone")
	b.desk()
}

// ask puts a question as the firewall would, together with the decision that
// asks it.
func (s *site) ask(t *testing.T, change func(*schema.Flow, *schema.Decision, *schema.Question)) *schema.Question {
	t.Helper()
	f := &schema.Flow{Payload: "git push origin main", Source: schema.Source{Kind: schema.SourceAgent, Trust: schema.Derived},
		Sink:    schema.Sink{Kind: schema.SinkExec, Tool: "bash"},
		Session: schema.Session{Agent: "claude-code", ID: "7f3a", Workspace: "/home/ada/shop"}}
	s.n++
	d := &schema.Decision{ID: "d-q" + strings.Repeat("x", s.n), Time: time.Now().UTC(), Action: schema.DeferToHuman, Stage: schema.StageHuman, Reason: "auditor_defer",
		Message: "A person has to answer first.", LatencyMS: 41.2,
		Report: &schema.Report{Decision: schema.DeferToHuman, Risk: .58, Uncertainty: .22, Exploitability: .4, Impact: .6,
			ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualSideEffect}, Evidence: []string{}}}
	q := &schema.Question{Decision: d.ID, Reasons: []string{"auditor_defer"}, Summary: "run a command"}
	if change != nil {
		change(f, d, q)
	}
	if err := f.Complete(0); err != nil {
		t.Fatal(err)
	}
	q.Flow, q.Binding, q.Report = f, f.Binding(), d.Report
	s.append(t, f, d)
	asked, err := s.queue.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

func (s *site) append(t *testing.T, f *schema.Flow, d *schema.Decision) {
	t.Helper()
	if _, err := s.log.Append(t.Context(), auditlog.Entry{Decision: d, Flow: f, RedactedPayload: f.Payload}); err != nil {
		t.Fatal(err)
	}
}
