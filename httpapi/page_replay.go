package httpapi

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/auditd/policy"
	"example.org/auditd/replay"
)

// Bounds of a replay from the page: it shares the auditor with live flows, one
// of its audits at a time.
const (
	replayFlows  = 2000
	replaySince  = 90 * 24 * time.Hour
	replayBudget = 15 * time.Minute
)

// ReplayRequest is what the page asks to be audited again.
type ReplayRequest struct {
	Since  time.Time
	Policy string // text; empty for the one in force
	Limit  int    // flows, the newest
}

// replayJob is the one replay that runs, or the last one.
type replayJob struct {
	mu     sync.Mutex // guards what follows
	state  replaying
	cancel context.CancelFunc // nil when none runs
}

// replaying is what the page learns about it.
type replaying struct {
	ID      int            `json:"id"` // 0: none yet
	Running bool           `json:"running"`
	Stopped bool           `json:"stopped,omitempty"` // by the owner
	Done    int            `json:"done"`
	Of      int            `json:"of"`
	Limit   int            `json:"limit"`
	Started time.Time      `json:"started,omitzero"`
	Since   time.Time      `json:"since,omitzero"`
	InForce bool           `json:"in_force"` // it goes by the policy in force
	Problem string         `json:"problem,omitempty"`
	Report  *replay.Report `json:"report,omitempty"`
}

// replayAsked is what the page sends.
type replayAsked struct {
	Hours  int    `json:"hours"`
	Policy string `json:"policy,omitempty"`
}

func (s *Server) pageReplay(c *gin.Context) {
	if s.cfg.Replay == nil {
		s.fail(c, errAbsent)
		return
	}
	j := &s.page.replay
	j.mu.Lock()
	state := j.state
	j.mu.Unlock()
	s.answer(c, state)
}

func (s *Server) pageReplayStart(c *gin.Context) {
	if s.cfg.Replay == nil {
		s.fail(c, errAbsent)
		return
	}
	var r replayAsked
	if err := s.decode(c, &r); err != nil {
		s.fail(c, err)
		return
	}
	if r.Hours < 1 || time.Duration(r.Hours)*time.Hour > replaySince {
		s.fail(c, invalid("hours", "must be a number from 1 to 2160"))
		return
	}
	if r.Policy != "" {
		if _, err := policy.Parse([]byte(r.Policy)); err != nil {
			s.fail(c, invalid("policy", "is not valid: check it first"))
			return
		}
	}
	j := &s.page.replay
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cancel != nil {
		s.fail(c, errReplaying)
		return
	}
	ctx, cancel := context.WithTimeout(s.page.end, replayBudget)
	now := time.Now().UTC()
	j.cancel = cancel
	j.state = replaying{ID: j.state.ID + 1, Running: true, Limit: replayFlows, Started: now, Since: now.Add(-time.Duration(r.Hours) * time.Hour), InForce: r.Policy == ""}
	go s.replay(ctx, cancel, &ReplayRequest{Since: j.state.Since, Policy: r.Policy, Limit: replayFlows})
	s.answer(c, j.state)
}

func (s *Server) replay(ctx context.Context, cancel context.CancelFunc, r *ReplayRequest) {
	defer cancel()
	j := &s.page.replay
	var report *replay.Report
	err := errors.New("panicked")
	func() {
		defer func() {
			if v := recover(); v != nil {
				s.logPanic(ctx, "/ui/replay", v)
			}
		}()
		report, err = s.cfg.Replay(ctx, r, func(done, of int) {
			j.mu.Lock()
			j.state.Done, j.state.Of = done, of
			j.mu.Unlock()
		})
	}()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cancel, j.state.Running = nil, false
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		j.state.Problem = "It took longer than a quarter of an hour: choose a shorter time, or run auditd replay in a terminal."
	case errors.Is(err, context.Canceled):
		j.state.Stopped = true
	case err != nil:
		s.cfg.Logger.ErrorContext(ctx, "a replay failed", "error", err)
		j.state.Problem = "It failed; the daemon's log has the details."
	default:
		j.state.Report = report
	}
}

func (s *Server) pageReplayStop(c *gin.Context) {
	j := &s.page.replay
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cancel != nil {
		j.cancel()
	}
	s.answer(c, struct{}{})
}
