package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/claudehook"
	"example.org/auditd/schema"
)

// maxHookWait bounds how long a hook may wait for the owner.
const maxHookWait = 10 * time.Minute

// hookSettle is how long a session's first prompt waits for its instruction
// files: they were seen to arrive up to some milliseconds after it.
const hookSettle = 250 * time.Millisecond

// hookBodyKey holds what was read of a hook's body, for an answer that stops.
const hookBodyKey = "hookBody"

// HookDocument is a document of the host's own, described by it and not here.
type HookDocument struct {
	Rest map[string]jsontext.Value `json:",unknown"`
}

// claudeHook answers a hook of Claude Code. That host goes on after most status
// codes that are not 200, so everything on this route is answered with 200 and
// a body that decides, also what the middleware refuses (see fail).
func (s *Server) claudeHook(c *gin.Context) {
	body, err := io.ReadAll(c.Request.Body)
	c.Set(hookBodyKey, body)
	if err != nil {
		s.fail(c, err)
		return
	}
	ctx := c.Request.Context()
	wait, err := time.ParseDuration(c.DefaultQuery("wait", "0s"))
	if err != nil || wait < 0 || wait > maxHookWait {
		s.fail(c, invalid("wait", "must be a time span of at most "+maxHookWait.String()))
		return
	}
	if wait > 0 {
		// The owner has until then; what was decided without the owner stays.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
		h := http.NewResponseController(c.Writer)
		_ = h.SetWriteDeadline(time.Now().Add(wait + s.cfg.Deadline + writeMargin)) // without it the answer is lost, and the host blocks
	}
	answer := s.hooks.Answer(ctx, c.Query("event"), body, wait > 0, func(_ context.Context, e *schema.Event) schema.Outcome { return s.report(c, e) })
	s.answerRaw(c, contentJSON, answer)
}

// answered is what a person said about a question.
func (s *Server) answered(ctx context.Context, id string, wait bool) string {
	if s.cfg.Approvals == nil {
		return ""
	}
	find := s.cfg.Approvals.Get
	if wait {
		find = s.cfg.Approvals.Wait
	}
	q, err := find(ctx, id)
	if err != nil {
		return "" // nobody has said anything
	}
	return q.Answer
}

// failHook answers a hook with a body that stops.
func (s *Server) failHook(c *gin.Context, p *problem) {
	body, read := c.Value(hookBodyKey).([]byte)
	if !read && c.Request.Body != nil {
		// What can be read of it says in which shape this host has to be told.
		body, _ = io.ReadAll(io.LimitReader(c.Request.Body, s.bodyLimit()))
	}
	c.Abort()
	s.answerRaw(c, contentJSON, claudehook.Stop(c.Query("event"), body, "auditd refused this hook ("+p.code+": "+p.message+"), so what it reports is stopped."))
}
