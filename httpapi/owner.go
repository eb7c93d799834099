package httpapi

import (
	"strings"

	"github.com/gin-gonic/gin"

	"example.org/auditd/api"
)

func (s *Server) login(c *gin.Context) {
	var l api.Login
	if err := s.decode(c, &l); err != nil {
		s.fail(c, err)
		return
	}
	if (l.Passphrase == "") == (l.Code == "") {
		s.fail(c, invalid("passphrase", "send exactly one of passphrase and code"))
		return
	}
	exchange, secret := s.cfg.Keeper.Login, l.Passphrase
	if l.Code != "" {
		exchange, secret = s.cfg.Keeper.LoginCode, l.Code
	}
	token, expires, err := exchange(secret)
	if err != nil {
		s.metrics.refused.WithLabelValues("login").Inc()
		s.cfg.Logger.WarnContext(c.Request.Context(), "owner login refused", "cause", asProblem(err).code)
		s.fail(c, err)
		return
	}
	s.cfg.Logger.InfoContext(c.Request.Context(), "owner session opened", "expires", expires)
	s.answer(c, api.Session{Token: token, Expires: expires})
}

func (s *Server) link(c *gin.Context) {
	code, expires, err := s.cfg.Keeper.Code()
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, api.Session{Code: code, Expires: expires})
}

func (s *Server) logout(c *gin.Context) {
	token, _ := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
	s.cfg.Keeper.Logout(token)
	s.answer(c, struct{}{})
}
