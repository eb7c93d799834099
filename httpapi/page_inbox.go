package httpapi

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"example.org/auditd/approval"
	"example.org/auditd/auditlog"
	"example.org/auditd/escalation"
	"example.org/auditd/schema"
)

// maxPreview is how much of a payload the list of questions shows, in bytes.
const maxPreview = 240

// listed is a question in the list: without the texts that can be large.
type listed struct {
	Question schema.Question `json:"question"`
	Bytes    int             `json:"bytes"` // of the payload
	Preview  string          `json:"preview"`
}

// inbox is the list of questions, the oldest of each agent first.
type inbox struct {
	Now       time.Time `json:"now"`
	Questions []listed  `json:"questions"`
	// Refused says how many questions of which agents found no place.
	Refused map[string]int `json:"refused,omitempty"`
}

func (s *Server) pageQuestions(c *gin.Context) {
	list, err := s.questions(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	out := inbox{Now: time.Now().UTC(), Questions: []listed{}, Refused: s.cfg.Approvals.Refused()}
	for _, q := range list {
		l := listed{Question: *q}
		if q.Flow != nil {
			l.Bytes, l.Preview = len(q.Flow.Payload), preview(q.Flow.Payload)
			l.Question.Flow = q.Flow.WithPayload("")
		}
		l.Question.Rewrite = nil
		out.Questions = append(out.Questions, l)
	}
	s.answer(c, out)
}

// preview is the beginning of a text, cut between characters.
func preview(text string) string {
	if len(text) <= maxPreview {
		return text
	}
	end := maxPreview
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// pageAsked is one question with all that a person needs to answer it.
type pageAsked struct {
	Now      time.Time       `json:"now"`
	Question schema.Question `json:"question"`
	// Grant is what a wider approval would cover; without it none may be given.
	Grant *approval.Scope `json:"grant,omitempty"`
	// Record is the decision that asks, when it is in the log already; its
	// positions are those of the original payload.
	Record     *auditlog.Record       `json:"record,omitempty"`
	Details    []string               `json:"details,omitempty"` // of the record's signals
	Message    string                 `json:"message,omitempty"` // of the decision
	Thresholds *escalation.Thresholds `json:"thresholds,omitempty"`
}

func (s *Server) pageQuestion(c *gin.Context) {
	q, err := s.asked(c, c.Param("id"))
	if err != nil {
		s.fail(c, err)
		return
	}
	out := pageAsked{Now: time.Now().UTC(), Question: *q, Thresholds: s.thresholds()}
	if scope, ok := s.cfg.Approvals.ScopeOf(q); ok {
		out.Grant = &scope
	}
	if s.cfg.Log != nil {
		r, err := s.cfg.Log.Find(q.Decision)
		if err != nil && !errors.Is(err, auditlog.ErrNotFound) {
			s.fail(c, err)
			return
		}
		out.Record = r
		if r != nil {
			// An erased or damaged text costs the sentences, not the answer.
			if v, err := s.cfg.Log.Value(r); err == nil && v != nil {
				out.Details, out.Message = v.Details, v.Message
			}
		}
	}
	s.answer(c, out)
}

func (s *Server) thresholds() *escalation.Thresholds {
	if s.cfg.Thresholds == nil {
		return nil
	}
	t := s.cfg.Thresholds()
	return &t
}

// grantList are the wider approvals that are still good.
type grantList struct {
	Now    time.Time        `json:"now"`
	Grants []approval.Grant `json:"grants"`
}

func (s *Server) pageGrants(c *gin.Context) {
	if s.cfg.Approvals == nil {
		s.fail(c, errAbsent)
		return
	}
	list, err := s.cfg.Approvals.Grants(c.Request.Context())
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, grantList{Now: time.Now().UTC(), Grants: append([]approval.Grant{}, list...)})
}

func (s *Server) pageRevoke(c *gin.Context) {
	if s.cfg.Approvals == nil {
		s.fail(c, errAbsent)
		return
	}
	id := c.Param("id")
	if err := s.cfg.Approvals.Revoke(c.Request.Context(), id); err != nil {
		s.fail(c, err)
		return
	}
	s.cfg.Logger.InfoContext(c.Request.Context(), "grant revoked", "id", id)
	s.answer(c, struct{}{})
}

// same reports whether a filter is absent or a part of the text, whatever the
// case of its letters.
func same(filter, text string) bool {
	return filter == "" || strings.Contains(strings.ToLower(text), strings.ToLower(filter))
}
