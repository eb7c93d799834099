package httpapi

import (
	"github.com/gin-gonic/gin"

	"example.org/auditd/heartbeat"
)

// beat takes a plugin's report about itself.
func (s *Server) beat(c *gin.Context) {
	if s.cfg.Heartbeats == nil {
		s.fail(c, errAbsent)
		return
	}
	var r heartbeat.Report
	if err := s.decode(c, &r); err != nil {
		s.fail(c, err)
		return
	}
	if field, problem := r.Check(); field != "" {
		s.fail(c, invalid(field, problem))
		return
	}
	s.cfg.Heartbeats.Note(&r)
	s.answer(c, heartbeat.Answer{Version: s.cfg.Version, Protocol: heartbeat.Protocol, EveryMS: int(heartbeat.Every.Milliseconds())})
}

func (s *Server) beats(c *gin.Context) {
	if s.cfg.Heartbeats == nil {
		s.fail(c, errAbsent)
		return
	}
	s.answer(c, heartbeat.List{Seen: s.cfg.Heartbeats.Seen()})
}
