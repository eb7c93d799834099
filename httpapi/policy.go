package httpapi

import (
	"github.com/gin-gonic/gin"

	"example.org/auditd/api"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
)

func (s *Server) applyPolicy(c *gin.Context) {
	var n api.NewPolicy
	if err := s.decode(c, &n); err != nil {
		s.fail(c, err)
		return
	}
	if s.cfg.Policies == nil || s.cfg.Policy == nil {
		s.fail(c, errAbsent)
		return
	}
	was := s.cfg.Policies.Policy().Digest()
	if err := s.cfg.Policies.Apply(n.Text, n.Base); err != nil {
		s.fail(c, err)
		return
	}
	p := s.cfg.Policy()
	s.cfg.Logger.InfoContext(c.Request.Context(), "policy changed", "from", was, "to", p.Digest)
	s.answer(c, p)
}

func (s *Server) checkPolicy(c *gin.Context) {
	var n api.NewPolicy
	if err := s.decode(c, &n); err != nil {
		s.fail(c, err)
		return
	}
	out := api.PolicyCheck{Problems: []api.PolicyProblem{}}
	for _, p := range policy.Problems(n.Text) {
		out.Problems = append(out.Problems, api.PolicyProblem{Line: p.Line, Problem: p.Text})
	}
	s.answer(c, out)
}

func (s *Server) policyHistory(c *gin.Context) {
	if s.cfg.Policies == nil {
		s.fail(c, errAbsent)
		return
	}
	list, err := s.cfg.Policies.History()
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, api.PolicyHistory{Policies: list})
}

func (s *Server) earlierPolicy(c *gin.Context) {
	if s.cfg.Policies == nil {
		s.fail(c, errAbsent)
		return
	}
	digest := schema.Digest(c.Param("digest"))
	text, err := s.cfg.Policies.Earlier(digest)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, api.PolicyInfo{Digest: digest, Source: "history", Text: text})
}
