package httpapi

import (
	"context"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/auditd/api"
	"example.org/auditd/schema"
)

// Isolation is what the routes below /v1/dualview need of the isolating half.
// An id that it does not know is api.ErrNoSuch.
type Isolation interface {
	// Inspect and ChangeRules are an agent's calls: every failure is an outcome
	// that stops.
	Inspect(context.Context, *api.Inspection) schema.Outcome
	ChangeRules(context.Context, *api.RuleChange) schema.Outcome

	// IsolationRules says which rules hold; Reload puts those of the file into
	// force.
	IsolationRules(context.Context) (*api.IsolationRules, error)
	Reload(context.Context) (*api.IsolationRules, error)

	Symbol(ctx context.Context, token string, original bool) (*api.Symbol, error)
	Views(context.Context) (*api.ViewList, error)
	ViewLog(ctx context.Context, id string, limit int) (*api.ViewLog, error)
	ViewShow(ctx context.Context, id, state, path string) (*api.ViewText, error)
	ViewDiff(ctx context.Context, id, state string) (*api.ViewText, error)
	ViewConflicts(ctx context.Context, id string) (*api.ViewConflicts, error)
	ViewRevert(ctx context.Context, id, state string) (*api.ViewReverted, error)

	Symbols(ctx context.Context, before time.Time) (*api.SymbolList, error)
	SymbolGraph(ctx context.Context, token string) (*api.SymbolGraph, error)
	ViewFiles(ctx context.Context, id, path string, symbolsOnly bool) (*api.ViewFiles, error)
	ViewFile(ctx context.Context, id, path string) (*api.ViewSides, error)
	ViewOriginal(ctx context.Context, id, path, human string, piece int) (*api.ViewText, error)
	ViewConflict(ctx context.Context, id, conflict string) (*api.ViewBoth, error)
	ViewSettle(ctx context.Context, id, conflict string, s *api.ViewSettle) (*api.ViewReverted, error)
}

// notIsolated is what an agent's calls get where no agent is isolated.
var notIsolated = schema.Outcome{Action: schema.Block, Reason: "isolation_unavailable", Message: "Stopped: the owner's policy isolates no agent, so there are no symbols."}

func (s *Server) inspect(c *gin.Context) {
	var r api.Inspection
	if err := s.decode(c, &r); err != nil {
		s.fail(c, err)
		return
	}
	s.isolationTool(c, func(iso Isolation) schema.Outcome { return iso.Inspect(c.Request.Context(), &r) })
}

func (s *Server) changeRules(c *gin.Context) {
	var r api.RuleChange
	if err := s.decode(c, &r); err != nil {
		s.fail(c, err)
		return
	}
	s.isolationTool(c, func(iso Isolation) schema.Outcome { return iso.ChangeRules(c.Request.Context(), &r) })
}

// isolationTool answers an agent's call; a panic in it stops, as for an event.
func (s *Server) isolationTool(c *gin.Context, call func(Isolation) schema.Outcome) {
	out := notIsolated
	if s.cfg.Isolation != nil {
		func() {
			defer func() {
				if v := recover(); v != nil {
					s.panicked(c, v)
					out = schema.Outcome{Action: schema.Block, Reason: "internal_error", Message: "The daemon failed while it decided, so the call is stopped. Its log has the details."}
				}
			}()
			out = call(s.cfg.Isolation)
		}()
	}
	for i := range out.Decisions {
		s.metrics.decided(&out.Decisions[i], schema.SurfaceUnset)
	}
	s.answer(c, out)
}

// look answers with what f finds.
func look[T any](s *Server, c *gin.Context, f func(ctx context.Context, iso Isolation) (*T, error)) {
	if s.cfg.Isolation == nil {
		s.fail(c, errAbsent)
		return
	}
	v, err := f(c.Request.Context(), s.cfg.Isolation)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.answer(c, v)
}

func (s *Server) symbol(c *gin.Context) {
	look(s, c, func(ctx context.Context, iso Isolation) (*api.Symbol, error) {
		return iso.Symbol(ctx, c.Param("token"), credentialOf(c) == schema.CredentialOwner)
	})
}

func (s *Server) isolationRules(c *gin.Context) {
	look(s, c, func(ctx context.Context, iso Isolation) (*api.IsolationRules, error) { return iso.IsolationRules(ctx) })
}

func (s *Server) reloadRules(c *gin.Context) {
	var r struct{}
	if err := s.decode(c, &r); err != nil {
		s.fail(c, err)
		return
	}
	look(s, c, func(ctx context.Context, iso Isolation) (*api.IsolationRules, error) { return iso.Reload(ctx) })
}

func (s *Server) views(c *gin.Context) {
	look(s, c, func(ctx context.Context, iso Isolation) (*api.ViewList, error) { return iso.Views(ctx) })
}

// maxStates bounds one answer.
const maxStates = 1000

func (s *Server) viewLog(c *gin.Context) {
	limit, err := strconv.Atoi(c.DefaultQuery("limit", "50"))
	if err != nil || limit < 1 || limit > maxStates {
		s.fail(c, invalid("limit", "must be a number from 1 to "+strconv.Itoa(maxStates)))
		return
	}
	look(s, c, func(ctx context.Context, iso Isolation) (*api.ViewLog, error) {
		return iso.ViewLog(ctx, c.Param("id"), limit)
	})
}

func (s *Server) viewShow(c *gin.Context) {
	look(s, c, func(ctx context.Context, iso Isolation) (*api.ViewText, error) {
		return iso.ViewShow(ctx, c.Param("id"), c.Query("state"), c.Query("path"))
	})
}

func (s *Server) viewDiff(c *gin.Context) {
	look(s, c, func(ctx context.Context, iso Isolation) (*api.ViewText, error) {
		return iso.ViewDiff(ctx, c.Param("id"), c.Query("state"))
	})
}

func (s *Server) viewConflicts(c *gin.Context) {
	look(s, c, func(ctx context.Context, iso Isolation) (*api.ViewConflicts, error) {
		return iso.ViewConflicts(ctx, c.Param("id"))
	})
}

func (s *Server) viewRevert(c *gin.Context) {
	var r api.ViewRevert
	if err := s.decode(c, &r); err != nil {
		s.fail(c, err)
		return
	}
	look(s, c, func(ctx context.Context, iso Isolation) (*api.ViewReverted, error) {
		s.cfg.Logger.InfoContext(ctx, "a view is brought back", "view", c.Param("id"))
		return iso.ViewRevert(ctx, c.Param("id"), r.State)
	})
}
