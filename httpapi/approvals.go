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

func (s *Server) pending(c *gin.Context) {
	if s.cfg.Approvals == nil {
		s.fail(c, errAbsent)
		return
	}
	list, err := s.cfg.Approvals.Pending(c.Request.Context())
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
	if s.cfg.Approvals == nil {
		s.fail(c, errAbsent)
		return
	}
	q, err := s.cfg.Approvals.Get(c.Request.Context(), c.Param("id"))
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, shown(*q, credentialOf(c)))
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
	q, err := s.cfg.Approvals.Get(c.Request.Context(), id)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, *q)
}
