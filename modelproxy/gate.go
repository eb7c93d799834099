package modelproxy

import (
	"context"
	"regexp"
	"strings"

	"example.org/auditd/schema"
)

// maxSaid bounds the text of one block that is kept to be recognised later.
const maxSaid = 4 << 20

// symbolPattern is a symbol in text, and symbolSize its length: the most that a
// text is held back.
var symbolPattern = regexp.MustCompile(`(?i:symu[0-9a-hjkmnp-tv-z]{32}u)`)

const (
	symbolStart = "symu"
	symbolSize  = 37
)

// gate is what an answer of the model goes through.
type gate struct {
	p     *Proxy
	ctx   context.Context
	t     *target
	s     scope
	model string
	// left and blocked count the tool calls that went on and that did not.
	left, blocked int
}

// call decides about a tool call whose arguments are complete. It returns the
// arguments to go on with, or the text that takes the call's place.
func (g *gate) call(id, tool, args string) (out string, instead string) {
	if tool == "" || len(tool) > 256 || !word(tool) || len(id) > 256 || !word(id) && id != "" {
		return g.stop("the call does not name its tool.")
	}
	if strings.TrimSpace(args) == "" {
		args = "{}"
	}
	n, err := parse([]byte(args))
	if err != nil || n.kind != '{' {
		return g.stop("the arguments of the call to " + tool + " are not one JSON object without doubled names.")
	}
	e := g.p.event(g.s, schema.PhaseBeforeTool)
	e.Tool, e.CallID, e.Params = tool, id, n.encode()
	report := g.p.cfg.Report
	if g.t.Hooks {
		report = g.p.cfg.Check
	}
	o := g.p.ask(g.ctx, report, e)
	m := g.p.cfg.Memory
	switch {
	case o.Action == schema.Allow, g.t.Hooks && o.Action != schema.Block:
		// Where there are hooks they rewrite and ask.
		g.left++
		m.pass(kindCalled, g.s, tool, canonical(n.encode()))
		return args, ""
	case o.Action == schema.RewriteAndContinue && len(o.Params) > 0:
		c, err := parse(o.Params)
		if err != nil || c.kind != '{' {
			return g.stop("what the arguments were to be changed to could not be put back.")
		}
		g.left++
		changed := c.encode()
		// The runtime will say that the model called it with these. What symbols
		// stood for goes back to being symbols.
		if symbolPattern.MatchString(args) {
			m.note(m.digest(kindCalled, g.s, tool, canonical(changed)), known{replace: n.encode()})
		} else {
			m.pass(kindCalled, g.s, tool, canonical(changed))
		}
		return string(changed), ""
	}
	return g.stop("the call to " + tool + " was stopped. " + explain(o))
}

func (g *gate) stop(why string) (string, string) {
	g.blocked++
	text := "[auditd] " + why
	g.said(text)
	return "", text
}

// said notes what the model said, so that it is recognised in later requests.
func (g *gate) said(text string) {
	if text = strings.TrimSpace(text); text != "" {
		g.p.cfg.Memory.pass(kindSaid, g.s, "", text)
	}
}

// noteShown notes a text that has been through a speech of this gate: where a
// symbol was resolved in it, that one has noted it.
func (g *gate) noteShown(text string) {
	m := g.p.cfg.Memory
	if m.lookup(m.digest(kindSaid, g.s, "", strings.TrimSpace(text))).replace == nil {
		g.said(text)
	}
}

// answered notes an answer's id, which a later request may build on.
func (g *gate) answered(id string) {
	if id != "" && word(id) {
		g.p.cfg.Memory.pass(kindResponse, g.s, "", id)
	}
}

// speech is one block of text on its way to the person.
type speech struct {
	g             *gate
	raw, shown    strings.Builder
	tail          string // held back: the beginning of what may be a symbol
	overlong, any bool   // any: a symbol was resolved
}

func (g *gate) speech() *speech { return &speech{g: g} }

// add takes a piece of the text and returns what may be shown by now.
func (s *speech) add(delta string) string {
	if s.raw.Len()+len(delta) > maxSaid {
		s.overlong = true
	} else {
		s.raw.WriteString(delta)
	}
	if !s.g.t.ResolveSymbols {
		return delta
	}
	text := s.tail + delta
	hold := len(text) - pendingSymbol(text)
	s.tail = text[hold:]
	out := symbolPattern.ReplaceAllStringFunc(text[:hold], s.g.resolve)
	if out != text[:hold] {
		s.any = true
	}
	if !s.overlong {
		s.shown.WriteString(out)
	}
	return out
}

// keep takes a piece of text that is shown as it is.
func (s *speech) keep(delta string) {
	if s.raw.Len()+len(delta) > maxSaid {
		s.overlong = true
		return
	}
	s.raw.WriteString(delta)
}

// note notes a text that was kept.
func (s *speech) note() {
	if !s.overlong {
		s.g.said(s.raw.String())
	}
}

// end returns what was held back, and notes the whole text.
func (s *speech) end() string {
	out := s.tail
	s.tail = ""
	raw := strings.TrimSpace(s.raw.String())
	if s.overlong || raw == "" {
		return out
	}
	if !s.any {
		s.g.said(raw)
		return out
	}
	shown := strings.TrimSpace(s.shown.String() + out)
	m := s.g.p.cfg.Memory
	m.note(m.digest(kindSaid, s.g.s, "", shown), known{replace: str(raw).encode()})
	m.session(s.g.s, func(x *state) { x.resolved = true })
	return out
}

// whole is add and end for a text that is complete.
func (g *gate) whole(text string) string {
	s := g.speech()
	return s.add(text) + s.end()
}

// pendingSymbol is how many bytes at text's end may be the beginning of a
// symbol.
func pendingSymbol(text string) int {
	end := []byte(text[max(0, len(text)-symbolSize+1):])
	for i, c := range end { // a tool may have upper-cased it
		if c >= 'A' && c <= 'Z' {
			end[i] = c + 'a' - 'A'
		}
	}
	for n := len(end); n > 0; n-- {
		tail := string(end[len(end)-n:])
		if n <= len(symbolStart) {
			if symbolStart[:n] == tail {
				return n
			}
			continue
		}
		if strings.HasPrefix(tail, symbolStart) && strings.Trim(tail[len(symbolStart):], "0123456789abcdefghjkmnpqrstvwxyz") == "" {
			return n
		}
	}
	return 0
}

// resolve asks for what a symbol stands for, for the person's eyes.
func (g *gate) resolve(symbol string) string {
	e := g.p.event(g.s, schema.PhaseMessageOut)
	e.Text = symbol
	o := g.p.cfg.Report(g.ctx, e)
	if o.Action == schema.RewriteAndContinue && o.Text != nil {
		return *o.Text
	}
	return symbol
}
