package isolate

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"example.org/auditd/api"
	"example.org/auditd/dualview"
	"example.org/auditd/dualview/fileview"
)

// Bounds of one answer.
const (
	maxGraph   = 200  // symbols of a graph
	maxListed  = 500  // symbols or files of a list
	maxSymbols = 1000 // symbols of one file that are described
)

// known says what is known about a symbol without its value.
func known(info *dualview.Info) *api.Symbol {
	p := info.Provenance
	s := &api.Symbol{Symbol: string(info.Symbol), Created: info.Created.UTC(), Size: info.Size, Secret: info.Secret, Kind: p.Kind, Trust: p.Trust, Tool: p.Tool, Field: p.Field, Origin: p.Origin, Agent: p.Agent}
	for _, parent := range p.Parents {
		s.Parents = append(s.Parents, string(parent))
	}
	return s
}

// Symbols lists symbols that are older than before, the youngest first.
func (o *Owner) Symbols(ctx context.Context, before time.Time) (*api.SymbolList, error) {
	out := &api.SymbolList{Symbols: []api.Symbol{}}
	if o.Table == nil {
		return out, nil
	}
	list, err := o.Table.List(ctx, o.Name, before, maxListed+1)
	if err != nil {
		return nil, err
	}
	for i := range list[:min(len(list), maxListed)] {
		out.Symbols = append(out.Symbols, *known(&list[i]))
	}
	out.More = len(list) > maxListed
	return out, nil
}

// SymbolGraph returns a symbol and all that it was made from, near ones first.
func (o *Owner) SymbolGraph(ctx context.Context, token string) (*api.SymbolGraph, error) {
	if o.Table == nil {
		return nil, api.ErrNoSuch
	}
	out := &api.SymbolGraph{Symbols: []api.Symbol{}}
	seen := map[string]bool{token: true}
	for queue := []string{token}; len(queue) > 0; queue = queue[1:] {
		info, err := o.Table.Info(ctx, o.Name, dualview.Symbol(queue[0]))
		switch {
		case errors.Is(err, dualview.ErrUnknown) && len(out.Symbols) == 0:
			return nil, api.ErrNoSuch
		case errors.Is(err, dualview.ErrUnknown):
			continue // dropped since
		case err != nil:
			return nil, err
		}
		s := known(&info)
		out.Symbols = append(out.Symbols, *s)
		for _, p := range s.Parents {
			if !seen[p] && len(seen) >= maxGraph {
				out.Cut = true
			} else if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return out, nil
}

// ViewFiles lists the files of a view in whose path a text occurs.
func (o *Owner) ViewFiles(ctx context.Context, id, path string, symbolsOnly bool) (*api.ViewFiles, error) {
	w, err := o.view(ctx, id)
	if err != nil {
		return nil, err
	}
	list, more, err := w.Files(ctx, path, symbolsOnly, maxListed)
	if err != nil {
		return nil, err
	}
	out := &api.ViewFiles{Files: []api.ViewListed{}, More: more}
	for _, f := range list {
		if utf8.ValidString(f.Path) { // another could not be asked for
			out.Files = append(out.Files, api.ViewListed{Path: f.Path, Symbols: f.Symbols, Unseen: f.Unseen})
		}
	}
	return out, nil
}

// ViewFile returns a file as both sides have it, without any original.
func (o *Owner) ViewFile(ctx context.Context, id, path string) (*api.ViewSides, error) {
	w, err := o.view(ctx, id)
	if err != nil {
		return nil, err
	}
	return o.sides(ctx, w, path)
}

func (o *Owner) sides(ctx context.Context, w *fileview.Workspace, path string) (*api.ViewSides, error) {
	f, err := w.Sides(ctx, path)
	if err != nil {
		return nil, outside(err)
	}
	out := &api.ViewSides{Path: f.Path, AgentPath: strings.ToValidUTF8(f.AgentPath, "\uFFFD"), Human: f.Human, Agent: f.Agent, Pieces: []api.ViewPiece{}, Symbols: []api.Symbol{}, Unshown: f.Unshown, Exact: f.Unshown == ""}
	seen := map[dualview.Symbol]bool{}
	for _, p := range f.Pieces {
		out.Exact = out.Exact && utf8.ValidString(p.Text)
		out.Pieces = append(out.Pieces, api.ViewPiece{Text: strings.ToValidUTF8(p.Text, "\uFFFD"), Symbol: string(p.Symbol), Bytes: p.Bytes})
		if p.Symbol == "" || seen[p.Symbol] || len(seen) >= maxSymbols {
			continue
		}
		seen[p.Symbol] = true
		info, err := o.Table.Info(ctx, o.Name, p.Symbol)
		if errors.Is(err, dualview.ErrUnknown) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out.Symbols = append(out.Symbols, *known(&info))
	}
	return out, nil
}

// ViewOriginal returns what one piece of a file stands for.
func (o *Owner) ViewOriginal(ctx context.Context, id, path, human string, piece int) (*api.ViewText, error) {
	w, err := o.view(ctx, id)
	if err != nil {
		return nil, err
	}
	part, err := w.Part(ctx, path, human, piece)
	if err != nil {
		return nil, outside(err)
	}
	return &api.ViewText{Text: strings.ToValidUTF8(part.Reveal(), "\uFFFD")}, nil
}

func (o *Owner) conflict(ctx context.Context, id, conflict string) (*fileview.Workspace, *fileview.Conflict, error) {
	w, err := o.view(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	n, err := strconv.ParseInt(conflict, 10, 64)
	if err != nil {
		return nil, nil, api.ErrNoSuch
	}
	c, err := w.Conflict(ctx, n)
	return w, c, outside(err)
}

// ViewConflict returns a conflict with both versions.
func (o *Owner) ViewConflict(ctx context.Context, id, conflict string) (*api.ViewBoth, error) {
	w, c, err := o.conflict(ctx, id, conflict)
	if err != nil {
		return nil, err
	}
	out := &api.ViewBoth{ViewConflict: conflicts([]fileview.Conflict{*c})[0]}
	if out.Now, err = o.sides(ctx, w, c.Path); errors.Is(err, api.ErrNoSuch) {
		out.Now, err = nil, nil
	}
	if lost, ok := w.Lost(c); ok {
		text := strings.ToValidUTF8(lost, "\uFFFD")
		out.Lost, out.Exact = &text, utf8.ValidString(lost)
	}
	return out, err
}

// ViewSettle ends a conflict.
func (o *Owner) ViewSettle(ctx context.Context, id, conflict string, s *api.ViewSettle) (*api.ViewReverted, error) {
	w, c, err := o.conflict(ctx, id, conflict)
	if err != nil {
		return nil, err
	}
	text := s.Text
	switch s.Take {
	case "mine":
		if err := w.Drop(ctx, c.ID); err != nil {
			return nil, outside(err)
		}
		return &api.ViewReverted{Conflicts: []api.ViewConflict{}}, nil
	case "agent":
		var ok bool
		if text, ok = w.Lost(c); !ok {
			return nil, api.ErrNoSuch
		}
	case "text":
	default:
		return nil, api.ErrBadTake
	}
	r, err := w.Merge(ctx, c.ID, s.Agent, text)
	if err != nil {
		return nil, outside(err)
	}
	return &api.ViewReverted{ToHuman: r.ToHuman, Conflicts: conflicts(r.Conflicts)}, nil
}

// outside says an error of the views in the API's words.
func outside(err error) error {
	switch {
	case errors.Is(err, fileview.ErrNoFile), errors.Is(err, fileview.ErrNoConflict):
		return api.ErrNoSuch
	case errors.Is(err, fileview.ErrMoved):
		return api.ErrMoved
	case errors.Is(err, dualview.ErrNoGrant):
		return api.ErrSecret
	}
	return err
}
