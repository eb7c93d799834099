package httpapi

import (
	"context"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/auditd/api"
)

// What the owner looks at of the agents' views. An original is in no answer but
// those of viewOriginal and of a symbol that the owner asks for by itself, so
// that nothing untrusted is on a screen that nobody asked for.

func (s *Server) symbols(c *gin.Context) {
	var before time.Time
	if q := c.Query("before"); q != "" {
		var err error
		if before, err = time.Parse(time.RFC3339Nano, q); err != nil {
			s.fail(c, invalid("before", "must be a time"))
			return
		}
	}
	look(s, c, func(ctx context.Context, iso Isolation) (*api.SymbolList, error) { return iso.Symbols(ctx, before) })
}

func (s *Server) symbolGraph(c *gin.Context) {
	look(s, c, func(ctx context.Context, iso Isolation) (*api.SymbolGraph, error) {
		return iso.SymbolGraph(ctx, c.Param("token"))
	})
}

// pageSymbol is symbol for the page: the value only where it is asked for.
func (s *Server) pageSymbol(c *gin.Context) {
	look(s, c, func(ctx context.Context, iso Isolation) (*api.Symbol, error) {
		return iso.Symbol(ctx, c.Param("token"), c.Query("original") == "1")
	})
}

func (s *Server) viewFiles(c *gin.Context) {
	look(s, c, func(ctx context.Context, iso Isolation) (*api.ViewFiles, error) {
		return iso.ViewFiles(ctx, c.Param("id"), c.Query("path"), c.Query("symbols") == "1")
	})
}

func (s *Server) viewFile(c *gin.Context) {
	look(s, c, func(ctx context.Context, iso Isolation) (*api.ViewSides, error) {
		return iso.ViewFile(ctx, c.Param("id"), c.Query("path"))
	})
}

func (s *Server) viewOriginal(c *gin.Context) {
	piece, err := strconv.Atoi(c.Query("piece"))
	if err != nil || piece < 0 {
		s.fail(c, invalid("piece", "must be the number of a piece"))
		return
	}
	look(s, c, func(ctx context.Context, iso Isolation) (*api.ViewText, error) {
		return iso.ViewOriginal(ctx, c.Param("id"), c.Query("path"), c.Query("human"), piece)
	})
}

func (s *Server) viewConflict(c *gin.Context) {
	look(s, c, func(ctx context.Context, iso Isolation) (*api.ViewBoth, error) {
		return iso.ViewConflict(ctx, c.Param("id"), c.Param("conflict"))
	})
}

func (s *Server) viewSettle(c *gin.Context) {
	var r api.ViewSettle
	if err := s.decode(c, &r); err != nil {
		s.fail(c, err)
		return
	}
	look(s, c, func(ctx context.Context, iso Isolation) (*api.ViewReverted, error) {
		s.cfg.Logger.InfoContext(ctx, "a conflict is settled", "view", c.Param("id"))
		return iso.ViewSettle(ctx, c.Param("id"), c.Param("conflict"), &r)
	})
}
