package httpapi

import (
	"time"

	"github.com/gin-gonic/gin"

	"example.org/auditd/api"
	"example.org/auditd/approval"
	"example.org/auditd/schema"
)

// shown is q as the caller may see it: an agent's hook token is enough to
// follow its own question, not to read what other sessions put into theirs.
func shown(q schema.Question, cred schema.Credential) schema.Question {
	if cred == schema.CredentialOwner {
		return q
	}
	if q.Flow != nil {
		f := q.Flow.WithPayload("")
		f.Intent = ""
		f.Ticket = ""
		q.Flow = f
	}
	q.Rewrite = nil
	q.Report = nil
	return q
}

// questions are those that wait; the API and the page read them here,
// one of each agent in turn.
func (s *Server) questions(c *gin.Context) ([]*schema.Question, error) {
	if s.cfg.Approvals == nil {
		return nil, errAbsent
	}
	list, err := s.cfg.Approvals.Pending(c.Request.Context())
	return approval.Fair(list), err
}

// asked is one question, whether or not it still waits. The queue keeps no
// ticket with it.
func (s *Server) asked(c *gin.Context, id string) (*schema.Question, error) {
	if s.cfg.Approvals == nil {
		return nil, errAbsent
	}
	return s.cfg.Approvals.Get(c.Request.Context(), id)
}

func (s *Server) pending(c *gin.Context) {
	list, err := s.questions(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	out := api.Questions{Questions: []schema.Question{}}
	for _, q := range list {
		out.Questions = append(out.Questions, shown(*q, credentialOf(c)))
	}
	s.answer(c, out)
}

func (s *Server) question(c *gin.Context) {
	q, err := s.asked(c, c.Param("id"))
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, shown(*q, credentialOf(c)))
}

// waiting returns a question that can still be answered.
func (s *Server) waiting(c *gin.Context, id string) (*schema.Question, error) {
	q, err := s.asked(c, id)
	switch {
	case err != nil:
		return nil, err
	case q.Answer == "expired":
		return nil, approval.ErrExpired
	case q.Answer != "" || q.Flow == nil:
		return nil, approval.ErrAnswered
	}
	return q, nil
}

// review audits a text that would go on in place of a question's.
func (s *Server) review(c *gin.Context) {
	var r api.Review
	if err := s.decode(c, &r); err != nil {
		s.fail(c, err)
		return
	}
	q, err := s.waiting(c, c.Param("id"))
	if err != nil {
		s.fail(c, err)
		return
	}
	d, problem, err := s.reviewed(c, q, r.Text)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, api.Reviewed{Decision: d, Problem: problem})
}

// reviewed says whether an owner may send text: no hard rule stops it, it was
// judged, and it is no riskier than what was asked about.
func (s *Server) reviewed(c *gin.Context, q *schema.Question, text string) (schema.Decision, string, error) {
	if s.cfg.Review == nil {
		return schema.Decision{}, "", errAbsent
	}
	if len(text) > s.cfg.MaxPayload {
		return schema.Decision{}, "", invalid("text", "is over the limit of a payload")
	}
	d := s.cfg.Review(c.Request.Context(), q.Flow, text)
	switch {
	case d.Precheck != nil && d.Precheck.HardBlock:
		return d, "A hard rule stops this text (" + d.Precheck.HardReason + ").", nil
	case d.LogIndex < 0 && d.Reason == "log_failed":
		return d, d.Message, nil
	case d.Report == nil:
		return d, "The auditor could not judge this text: " + d.Message, nil
	case d.Action == schema.Allow:
		return d, "", nil
	case q.Report == nil || d.Report.Risk > q.Report.Risk:
		return d, "The auditor finds this text riskier than the one that was asked about.", nil
	}
	return d, "", nil
}

func (s *Server) approveInstead(c *gin.Context, id, text string) error {
	q, err := s.waiting(c, id)
	if err != nil {
		return err
	}
	d, problem, err := s.reviewed(c, q, text)
	if err == nil && problem != "" {
		err = invalid("instead", problem)
	}
	if err == nil {
		err = s.cfg.Approvals.AnswerInstead(c.Request.Context(), id, text, "owner")
	}
	if err == nil {
		s.cfg.Logger.InfoContext(c.Request.Context(), "question answered with another text", "id", id, "review", d.ID, "at", time.Now().UTC())
	}
	return err
}

func (s *Server) approve(c *gin.Context) {
	if s.cfg.Approvals == nil {
		s.fail(c, errAbsent)
		return
	}
	var a api.Approval
	if err := s.decode(c, &a); err != nil {
		s.fail(c, err)
		return
	}
	switch {
	case a.Answer != "approve" && a.Answer != "deny":
		s.fail(c, invalid("answer", "must be approve or deny"))
		return
	case a.Grant != nil && a.Answer == "deny":
		s.fail(c, invalid("grant", "goes with approve only"))
		return
	case a.Remember != nil && a.Answer == "approve":
		s.fail(c, invalid("remember", "goes with deny only"))
		return
	}
	id, approved := c.Param("id"), a.Answer == "approve"
	if a.Instead != nil {
		if !approved || a.Grant != nil {
			s.fail(c, invalid("instead", "goes with approve, and with no grant"))
			return
		}
		if err := s.approveInstead(c, id, *a.Instead); err != nil {
			s.fail(c, err)
			return
		}
		s.answerQuestion(c, id)
		return
	}
	// First what lasts: a no that could not be remembered is not given either.
	if err := s.remember(c, id, a.Remember); err != nil {
		s.fail(c, err)
		return
	}
	var grant *approval.Grant
	if a.Grant != nil {
		grant = &approval.Grant{Uses: a.Grant.Uses, ThisSession: a.Grant.Session, Until: a.Grant.Until}
	}
	if err := s.cfg.Approvals.Answer(c.Request.Context(), id, approved, "owner", grant); err != nil {
		s.fail(c, err)
		return
	}
	s.cfg.Logger.InfoContext(c.Request.Context(), "question answered", "id", id, "approved", approved, "at", time.Now().UTC())
	s.answerQuestion(c, id)
}

func (s *Server) answerQuestion(c *gin.Context, id string) {
	q, err := s.asked(c, id)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, *q)
}
