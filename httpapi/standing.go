package httpapi

import (
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/auditd/api"
	"example.org/auditd/auditlog"
	"example.org/auditd/marks"
	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

func (s *Server) orders(c *gin.Context) {
	if s.cfg.Standing == nil {
		s.fail(c, errAbsent)
		return
	}
	s.answer(c, api.Orders{Now: time.Now().UTC(), Orders: s.cfg.Standing.List(c.Query("ended") == "1")})
}

func (s *Server) addOrder(c *gin.Context) {
	if s.cfg.Standing == nil {
		s.fail(c, errAbsent)
		return
	}
	var n api.NewOrder
	if err := s.decode(c, &n); err != nil {
		s.fail(c, err)
		return
	}
	o, err := s.cfg.Standing.Add(n.Order())
	if err != nil {
		s.fail(c, err)
		return
	}
	s.cfg.Logger.InfoContext(c.Request.Context(), "standing order given", "id", o.ID, "effect", string(o.Effect), "expires", o.Expires)
	s.answer(c, o)
}

func (s *Server) revokeOrder(c *gin.Context) {
	if s.cfg.Standing == nil {
		s.fail(c, errAbsent)
		return
	}
	o, err := s.cfg.Standing.Revoke(c.Param("id"))
	if err != nil {
		s.fail(c, err)
		return
	}
	s.cfg.Logger.InfoContext(c.Request.Context(), "standing order revoked", "id", o.ID)
	s.answer(c, o)
}

// remember makes the no to a question last.
func (s *Server) remember(c *gin.Context, id string, r *api.Remember) error {
	if r == nil {
		return nil
	}
	if s.cfg.Standing == nil {
		return errAbsent
	}
	q, err := s.waiting(c, id)
	if err != nil {
		return err
	}
	f := q.Flow
	scope := standing.Scope{Agent: f.Session.Agent, SinkKind: f.Sink.Kind, Tool: f.Sink.Tool, Action: f.Sink.Action, Sink: f.Sink.ID, Destination: f.Sink.Destination}
	if r.Exact {
		scope.Payload = s.cfg.Standing.Digest(f.Payload)
	}
	reason := r.Reason
	if reason == "" {
		reason = "denied in the inbox"
	}
	o, err := s.cfg.Standing.Add(standing.Order{Effect: standing.Deny, Scope: scope, Reason: reason, Expires: r.Expires, Decision: q.Decision, By: "owner"})
	if err == nil {
		s.cfg.Logger.InfoContext(c.Request.Context(), "standing order given", "id", o.ID, "effect", string(o.Effect), "question", id)
	}
	return err
}

func (s *Server) suggestion(c *gin.Context) {
	r, v, err := s.recorded(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, suggest(r, v))
}

// recorded finds the decision that a request names, with its text.
func (s *Server) recorded(c *gin.Context) (*auditlog.Record, *auditlog.Value, error) {
	if s.cfg.Log == nil {
		return nil, nil, errAbsent
	}
	r, err := s.cfg.Log.Find(c.Param("id"))
	if err != nil {
		return nil, nil, err
	}
	v, err := s.cfg.Log.Value(r)
	return r, v, err
}

// suggest makes the narrowest suppression that would have let r's flow pass.
func suggest(r *auditlog.Record, v *auditlog.Value) api.Suggestion {
	no := func(problem string) api.Suggestion { return api.Suggestion{Problem: problem} }
	if r.Decision == nil || r.Flow == nil {
		return no("It is no decision.")
	}
	d, f := r.Decision, r.Flow
	o := &api.NewOrder{Effect: standing.Suppress, Decision: r.ID}
	if p := d.Precheck; p != nil {
		if p.HardBlock {
			return no("A hard rule stopped it, and nothing lifts that.")
		}
		for _, x := range p.Signals {
			if x.Code.Hard() || x.Severity == schema.Hard {
				return no("It holds a finding that can block by itself (" + x.Code.String() + "). Such findings count whatever is suppressed; approve single calls instead.")
			}
			if x.Rule != "" && !slices.Contains(o.Rules, x.Rule) {
				o.Rules = append(o.Rules, x.Rule)
			}
		}
	}
	switch {
	case d.Action == schema.Allow && d.Observed == nil:
		return no("Nothing stopped it.")
	case d.Reason == "refused":
		return no("A refusal of yours stopped it: revoke that under Rules.")
	case d.Reason == "owner_rule" && len(o.Rules) == 0:
		return no("A rule of your policy stopped it: change that rule.")
	case d.Report == nil && len(o.Rules) == 0:
		return no("No finding stopped it: it could not be judged.")
	}
	if d.Report != nil && d.Reason != "owner_rule" {
		o.Judgement = true
		for _, x := range d.Report.ResidualRiskTypes {
			if x != schema.ResidualNone {
				o.Residuals = append(o.Residuals, x)
			}
		}
	}
	o.Scope = standing.Scope{SinkKind: f.SinkKind, SourceKind: f.SourceKind}
	if v != nil {
		o.Scope.Agent, o.Scope.Tool, o.Scope.Action, o.Scope.Destination = v.Agent, v.Tool, v.ToolAction, v.Destination
		o.Scope.Sink, o.Scope.Source = v.Sink, v.Source
	}
	s := &o.Scope
	if s.Sink == "" && s.Source == "" && s.Destination == "" || o.Judgement && (f.SinkKind == schema.SinkExec || f.Surface == schema.Authority || f.SinkKind == schema.SinkPayment) {
		s.Payload = string(f.Payload.Digest)
	}
	return api.Suggestion{Order: o}
}

func (s *Server) marks(c *gin.Context) {
	if s.cfg.Marks == nil {
		s.fail(c, errAbsent)
		return
	}
	s.answer(c, api.Marks{Marks: s.cfg.Marks.List()})
}

func (s *Server) mark(c *gin.Context) {
	if s.cfg.Marks == nil || s.cfg.Log == nil {
		s.fail(c, errAbsent)
		return
	}
	var m api.Mark
	if err := s.decode(c, &m); err != nil {
		s.fail(c, err)
		return
	}
	r, err := s.cfg.Log.Find(m.Decision)
	if err != nil {
		s.fail(c, err)
		return
	}
	v, err := s.cfg.Log.Value(r)
	if err != nil {
		s.fail(c, err)
		return
	}
	kept, err := s.cfg.Marks.Add(r, v, marks.Asked{What: m.What, Note: m.Note, Payload: m.Payload, Family: m.Family, Part: m.Part})
	if err != nil {
		s.fail(c, err)
		return
	}
	s.cfg.Logger.InfoContext(c.Request.Context(), "decision marked", "decision", m.Decision, "what", m.What, "payload", m.Payload)
	s.answer(c, kept)
}
