//go:build integration

package httpapi

import (
	"context"
	"fmt"
	"testing"
	"time"

	"example.org/auditd/heartbeat"
	"example.org/auditd/replay"
	"example.org/auditd/schema"
)

// passing records a decision that let something pass.
func (s *site) passing(t *testing.T, id, payload string) {
	t.Helper()
	f := &schema.Flow{Payload: payload, Source: schema.Source{Kind: schema.SourceEmail, ID: "imap://inbox/7", Trust: schema.Untrusted},
		Sink: schema.Sink{Kind: schema.SinkReasoning, Tool: "mail"}, Session: schema.Session{Agent: "openclaw:main", ID: "s-1"}}
	if err := f.Complete(0); err != nil {
		t.Fatal(err)
	}
	s.append(t, f, &schema.Decision{ID: id, Time: time.Now().UTC(), Action: schema.Allow, Stage: schema.StageAuditor, Reason: "auditor_allow", LatencyMS: 14,
		Report: &schema.Report{Decision: schema.Allow, Risk: .1, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}, Evidence: []string{}}})
}

// TestBrowserReplay: before a change of the policy is applied, the owner sees
// what it would have changed.
func TestBrowserReplay(t *testing.T) {
	var w *world
	s := newSite(t, func(c *Config) {
		c.Replay = func(ctx context.Context, r *ReplayRequest, progress func(done, of int)) (*replay.Report, error) {
			return w.replayed(ctx, r, progress)
		}
	})
	w = s.world
	for i := range 12 {
		s.passing(t, fmt.Sprintf("d-mail-%d", i), fmt.Sprintf("a benign mail, number %d", i))
	}
	s.passing(t, "d-secret", "a benign letter with ⟦SECRET_1⟧ in it")
	s.alarm(t, "d-lost", "https://docs.example/\"><script>document.title='owned'</script>", "a benign page that was stopped")
	b := s.browser(t)
	s.login(t, b)
	b.press("5")
	b.sees("Replay")
	b.click(".replay")
	b.sees("would not be stopped any more")
	b.sees("2 had secrets replaced in the log")
	b.sees("Suppressions, refusals and approvals are left aside.")
	b.until(`document.querySelectorAll('.changes tbody tr').length === 2`) // and the one that every world has
	b.accessible("replay")
	b.value(`document.querySelector('.report').scrollIntoView()`)
	b.looks("replay")
	b.click("#policy-edit")
	b.fill("#policy-text", "version: 1\nno_arbiter: block\n")
	b.click("#policy-check")
	b.sees("What it would have changed")
	b.click("form .replay")
	b.until(`document.querySelectorAll('form .changes tbody tr').length === 14`)
	if got := b.value(`document.querySelector('form .figure b').textContent`); got != "13" {
		t.Errorf("%s would be stopped, want 13", got)
	}
	b.accessible("policy, replayed")
	b.value(`document.querySelector('form .report').scrollIntoView()`)
	b.looks("policy-replayed")
	b.sound()
	b.click("form .changes a")
	b.sees("Its place in the signed log has just been proved.")
}

// TestBrowserProtection: what was tried with which agent, and when.
func TestBrowserProtection(t *testing.T) {
	tried := time.Now().Add(-2 * time.Hour)
	s := newSite(t, func(c *Config) {
		c.Heartbeats = heartbeat.New(time.Now)
		c.Heartbeats.Note(&heartbeat.Report{Host: "openclaw", Instance: "1", Plugin: "0.1.0", Protocol: heartbeat.Protocol})
		c.Protection = func() []Protected {
			return []Protected{
				{Agent: "claude-code", Title: "Claude Code", Installed: tried, Tried: &tried, Version: "2.1.3", Paths: []Path{{"a forbidden command does not run", true}, {"a poisoned page does not reach the model", true}}, Open: []string{"the model's own words"}},
				{Agent: "openclaw", Title: "OpenClaw", Installed: tried, Tried: &tried, Version: "2026.9.6", Changed: true, Paths: []Path{{"a secret does not leave", true}}, Open: []string{}},
				{Agent: "third", Title: "Third", Installed: tried, Tried: &tried, Paths: []Path{{"one path", false}, {"another", true}}, Open: []string{}},
			}
		}
	})
	b := s.browser(t)
	s.login(t, b)
	b.press("3")
	b.sees("2 of 2 paths hold")
	b.sees("live canary 2 h ago")
	b.sees("its settings have changed since")
	b.sees("plugin 0.1.0 reported")
	b.sees("1 of 2 paths failed")
	b.click(".protected summary")
	b.sees("a forbidden command does not run")
	b.sees("the model's own words")
	b.accessible("protection")
	b.looks("protection")
}
