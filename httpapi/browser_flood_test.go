//go:build integration

package httpapi

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/auditd/approval"
	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
)

// TestBrowserFlood: an agent that asks too much is named, in text, and does not
// hide another agent's question.
func TestBrowserFlood(t *testing.T) {
	s := newSite(t, nil)
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "auditd.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if s.queue, err = approval.New(approval.Config{DB: db, Now: time.Now, MaxPerAgent: 20}); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s.cfg.Approvals = s.queue
	s.again(t)
	noisy := `noisy"><script>document.title='owned'</script>` + "\u202e"
	for i := range 50 {
		f := &schema.Flow{Payload: fmt.Sprintf("git push origin branch-%d", i), Source: schema.Source{Kind: schema.SourceAgent, Trust: schema.Derived},
			Sink: schema.Sink{Kind: schema.SinkExec, Tool: "bash"}, Session: schema.Session{Agent: noisy, ID: "s"}}
		if err := f.Complete(0); err != nil {
			t.Fatal(err)
		}
		_, err := s.queue.Ask(t.Context(), &schema.Question{Binding: f.Binding(), Decision: fmt.Sprintf("d-flood-%d", i), Summary: "run a command", Flow: f})
		if want := i >= 20; errors.Is(err, approval.ErrFull) != want {
			t.Fatalf("question %d: %v", i, err)
		}
	}
	quiet := s.ask(t, func(f *schema.Flow, _ *schema.Decision, _ *schema.Question) {
		f.Payload, f.Session.Agent = "make release", "quiet"
	})
	b := s.browser(t)
	s.login(t, b)
	b.sees("asked 30 more questions than it may have waiting; they were refused.")
	b.sees("Deny all 20")
	if got := b.value(`/[\u202a-\u202e]/.test(document.body.textContent)`); got != "false" {
		t.Error("a name reorders the page")
	}
	// Below the banner are the noisy agent's, as one block, and then this one.
	if got := b.value(`(() => { let e = document.querySelector('a[data-id=' + ` + quote(quote(quiet.ID)) + ` + ']'); while (!e.parentElement.querySelector('.flood')) e = e.parentElement; return [...e.parentElement.children].indexOf(e) })()`); got != "2" && got != "1" {
		t.Errorf("the other agent's question is at place %s:\n%s", got, b.text())
	}
	b.sees("Show the other 16")
	b.until(`document.querySelector('a[data-id=' + ` + quote(quote(quiet.ID)) + ` + ']').getBoundingClientRect().top < innerHeight`)
	b.accessible("flood")
	b.looks("flood")
	b.press("j", "j", "j", "j") // past those that are listed
	b.seesNot("Show the other 16")
	b.asks("branch-4")
	b.sound()
}

// TestBrowserQuestionSymbols: a question says where what its symbols stand for
// comes from, and tells a made-up one from a genuine one.
func TestBrowserQuestionSymbols(t *testing.T) {
	p := newProject(t)
	page, part := p.shop()
	s := newSite(t, func(c *Config) { c.Isolation = looked{Owner: p.owner} })
	forged := "symu" + strings.Repeat("0", 32) + "u"
	q := s.ask(t, func(f *schema.Flow, _ *schema.Decision, _ *schema.Question) {
		f.Payload = "mail bob " + part + " and " + strings.ToUpper(page) + " and " + forged
	})
	b := s.browser(t)
	s.login(t, b)
	b.click(`a[data-id="` + q.ID + `"]`)
	b.sees("What its symbols stand for")
	b.sees("made from")
	b.sees("looks like a symbol and is none")
	b.until(`document.querySelectorAll('.chains a').length === 2`)
	if got := b.value(`document.body.textContent.includes('ignore all previous')`); got != "false" {
		t.Error("a question shows a symbol's original by itself")
	}
	b.accessible("symbols of a question")
	b.looks("question-symbols")
	b.press("e")
	b.sees("What its symbols stand for")
	b.sound()
}
