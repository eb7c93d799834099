package httpapi

import (
	"context"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.org/auditd/schema"
)

// Records reads the decision log. Its errors wrap ErrNotFound where they mean
// that.
type Records interface {
	Record(ctx context.Context, id string) (*Record, error)
	Tail(ctx context.Context, n int) ([]Record, error)
}

// Record is one decision as the log holds it, with its place in the log.
type Record struct {
	Index    int64            `json:"index"`
	Decision *schema.Decision `json:"decision"`
	// What the flow was, without its payload.
	Surface string         `json:"surface,omitempty"`
	Source  *schema.Source `json:"source,omitempty"`
	Sink    *schema.Sink   `json:"sink,omitempty"`
	Agent   string         `json:"agent,omitempty"`
	Session string         `json:"session,omitempty"`
	Payload schema.Digest  `json:"payload_digest,omitempty"`
	Bytes   int            `json:"payload_bytes"`
	// Redacted is the payload with its secrets taken out, while it is kept.
	Redacted string `json:"redacted_payload,omitempty"`
	Proof    *Proof `json:"proof,omitempty"`
}

// Proof shows that the record is in the log that a checkpoint signs.
type Proof struct {
	Leaf       string    `json:"leaf"`       // hash of the record
	Root       string    `json:"root"`       // of the tree that the checkpoint signs
	Size       int64     `json:"size"`       // records in that tree
	Path       []string  `json:"path"`       // sibling hashes, from the leaf up
	Checkpoint string    `json:"checkpoint"` // the signed note
	SignedAt   time.Time `json:"signed_at,omitzero"`
}

// RecordList is a part of the log.
type RecordList struct {
	Records []Record `json:"records"`
}

// ModelInfo describes one model.
type ModelInfo struct {
	Name    string `json:"name"`
	Backend string `json:"backend"`
	Role    string `json:"role"` // auditor, arbiter, or known
	Digest  string `json:"digest,omitempty"`
	Ready   bool   `json:"ready"`
	Detail  string `json:"detail,omitempty"` // what is missing
	Purpose string `json:"purpose,omitempty"`
}

// ModelList are the models in use and known.
type ModelList struct {
	Models []ModelInfo `json:"models"`
}

// PolicyInfo is the policy in force.
type PolicyInfo struct {
	Digest schema.Digest `json:"digest"`
	Source string        `json:"source"` // the file, or "built in"
	Text   string        `json:"text"`   // as YAML
}

// Health is the answer of a living process.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

// Readiness says whether every flow can be decided, and what is missing.
type Readiness struct {
	Ready   bool     `json:"ready"`
	Missing []string `json:"missing"`
}

// SchemaList are the names of the JSON Schemas.
type SchemaList struct {
	Schemas []string `json:"schemas"`
}

// maxTail bounds one answer of /v1/log.
const (
	defaultTail = 50
	maxTail     = 1000
)

func (s *Server) record(c *gin.Context) {
	if s.cfg.Records == nil {
		s.fail(c, errAbsent)
		return
	}
	r, err := s.cfg.Records.Record(c.Request.Context(), c.Param("id"))
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, r)
}

func (s *Server) tail(c *gin.Context) {
	if s.cfg.Records == nil {
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
	list, err := s.cfg.Records.Tail(c.Request.Context(), n)
	if err != nil {
		s.fail(c, err)
		return
	}
	if list == nil {
		list = []Record{}
	}
	s.answer(c, RecordList{Records: list})
}

func (s *Server) policy(c *gin.Context) {
	if s.cfg.Policy == nil {
		s.fail(c, errAbsent)
		return
	}
	s.answer(c, s.cfg.Policy())
}

func (s *Server) models(c *gin.Context) {
	list := []ModelInfo{}
	if s.cfg.Models != nil {
		list = append(list, s.cfg.Models(c.Request.Context())...)
	}
	s.answer(c, ModelList{Models: list})
}

func (s *Server) schemas(c *gin.Context) { s.answer(c, SchemaList{Schemas: schema.JSONSchemaNames()}) }

func (s *Server) schema(c *gin.Context) {
	doc, ok := schema.JSONSchema(c.Param("name"))
	if !ok {
		s.fail(c, ErrNotFound)
		return
	}
	s.answerRaw(c, "application/schema+json", doc)
}

func (s *Server) healthz(c *gin.Context) {
	s.answer(c, Health{Status: "ok", Version: s.cfg.Version})
}

func (s *Server) readyz(c *gin.Context) {
	missing := []string{}
	if s.cfg.Ready == nil {
		missing = append(missing, "nothing says that it is ready")
	} else {
		missing = append(missing, s.cfg.Ready()...)
	}
	s.answerReady(c, Readiness{Ready: len(missing) == 0, Missing: missing})
}

func (s *Server) metricsPage(c *gin.Context) {
	promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{}).ServeHTTP(c.Writer, c.Request)
}
