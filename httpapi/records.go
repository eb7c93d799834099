package httpapi

import (
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.org/auditd/api"
	"example.org/auditd/schema"
)

// maxTail bounds one answer of /v1/log.
const (
	defaultTail = 50
	maxTail     = 1000
)

func (s *Server) record(c *gin.Context) {
	if s.cfg.Log == nil {
		s.fail(c, errAbsent)
		return
	}
	r, err := s.cfg.Log.Find(c.Param("id"))
	if err != nil {
		s.fail(c, err)
		return
	}
	out := api.Record{Record: *r}
	if out.Proof, err = s.cfg.Log.Prove(r.Index); err != nil {
		s.fail(c, err)
		return
	}
	if credentialOf(c) == schema.CredentialOwner {
		if out.Value, err = s.cfg.Log.Value(r); err != nil {
			s.fail(c, err)
			return
		}
	}
	s.answer(c, out)
}

func (s *Server) tail(c *gin.Context) {
	if s.cfg.Log == nil {
		s.fail(c, errAbsent)
		return
	}
	n := defaultTail
	if q := c.Query("limit"); q != "" {
		var err error
		if n, err = strconv.Atoi(q); err != nil || n < 1 || n > maxTail {
			s.fail(c, invalid("limit", "must be 1 to "+strconv.Itoa(maxTail)))
			return
		}
	}
	out := api.RecordList{Records: []api.Record{}}
	size := s.cfg.Log.Size()
	for i := max(0, size-int64(n)); i < size; i++ {
		r, err := s.cfg.Log.Get(i)
		if err != nil {
			s.fail(c, err)
			return
		}
		out.Records = append(out.Records, api.Record{Record: *r})
	}
	s.answer(c, out)
}

func (s *Server) policy(c *gin.Context) {
	if s.cfg.Policy == nil {
		s.fail(c, errAbsent)
		return
	}
	p := s.cfg.Policy()
	if credentialOf(c) != schema.CredentialOwner {
		p.Text = "" // it says what an agent would get away with
	}
	s.answer(c, p)
}

func (s *Server) models(c *gin.Context) {
	list := []api.ModelInfo{}
	if s.cfg.Models != nil {
		list = append(list, s.cfg.Models(c.Request.Context())...)
	}
	s.answer(c, api.ModelList{Models: list})
}

func (s *Server) schemas(c *gin.Context) {
	s.answer(c, api.SchemaList{Schemas: schema.JSONSchemaNames()})
}

func (s *Server) schema(c *gin.Context) {
	doc, ok := schema.JSONSchema(c.Param("name"))
	if !ok {
		s.fail(c, errNotFound)
		return
	}
	s.answerRaw(c, "application/schema+json", doc)
}

func (s *Server) healthz(c *gin.Context) {
	s.answer(c, api.Health{Status: "ok", Version: s.cfg.Version, Owner: s.cfg.Keeper.HasOwner()})
}

func (s *Server) readyz(c *gin.Context) {
	missing := []string{}
	if s.cfg.Ready == nil {
		missing = append(missing, "nothing says that it is ready")
	} else {
		missing = append(missing, s.cfg.Ready()...)
	}
	s.answerReady(c, api.Readiness{Ready: len(missing) == 0, Missing: missing})
}

func (s *Server) metricsPage(c *gin.Context) {
	promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{}).ServeHTTP(c.Writer, c.Request)
}
