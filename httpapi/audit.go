package httpapi

import (
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/auditd/api"
	"example.org/auditd/schema"
)

// batchWorkers bounds how many flows of one batch are decided at the same time.
const batchWorkers = 8

func (s *Server) audit(c *gin.Context) {
	data, err := s.body(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	f, err := schema.DecodeFlow(data, s.cfg.MaxPayload)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, s.decide(c, f))
}

// decide asks the firewall. A panic in it is a decision to block: a host that
// gets a 500 may go on.
func (s *Server) decide(c *gin.Context, f *schema.Flow) (d schema.Decision) {
	s.metrics.inFlight.Inc()
	defer s.metrics.inFlight.Dec()
	start := time.Now()
	defer func() {
		if v := recover(); v != nil {
			s.panicked(c, v)
			d = schema.Decision{Time: start.UTC(), Action: schema.Block, Stage: schema.StageInput, Reason: "internal_error",
				Message: "The daemon failed while it decided, so the flow is stopped. Its log has the details.", LogIndex: -1}
		}
		s.metrics.decided(&d, f.Surface)
	}()
	return s.cfg.Audit(c.Request.Context(), f, credentialOf(c))
}

func (s *Server) event(c *gin.Context) {
	data, err := s.body(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	e, err := schema.DecodeEvent(data, s.cfg.MaxPayload)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, s.report(c, e))
}

func (s *Server) report(c *gin.Context, e *schema.Event) (o schema.Outcome) {
	s.metrics.inFlight.Inc()
	defer s.metrics.inFlight.Dec()
	defer func() {
		if v := recover(); v != nil {
			s.panicked(c, v)
			o = schema.Outcome{Action: schema.Block, Reason: "internal_error",
				Message: "The daemon failed while it decided, so the call is stopped. Its log has the details."}
		}
		for i := range o.Decisions {
			s.metrics.decided(&o.Decisions[i], schema.SurfaceUnset)
		}
	}()
	return s.cfg.Event(c.Request.Context(), e, credentialOf(c))
}

func (s *Server) batch(c *gin.Context) {
	var b api.Batch
	if err := s.decode(c, &b); err != nil {
		s.fail(c, err)
		return
	}
	if n := len(b.Flows); n == 0 || n > s.cfg.MaxBatch {
		s.fail(c, invalid("flows", "has "+strconv.Itoa(n)+" entries, the limit is 1 to "+strconv.Itoa(s.cfg.MaxBatch)))
		return
	}
	results := make([]api.BatchResult, len(b.Flows))
	s.each(len(b.Flows), func(i int) {
		f, err := schema.DecodeFlow(b.Flows[i], s.cfg.MaxPayload)
		if err != nil {
			p := asProblem(err)
			field := "flows[" + strconv.Itoa(i) + "]"
			if p.field != "" {
				field += "." + p.field
			}
			results[i].Error = &api.ErrorDetail{Code: p.code, Field: field, Message: p.message}
			return
		}
		d := s.decide(c, f)
		results[i].Decision, results[i].Action = &d, d.Action
	})
	s.answer(c, api.BatchAnswer{Results: results})
}

// each runs do for 0…n-1, a few at a time.
func (s *Server) each(n int, do func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, batchWorkers) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
