package precheck

import (
	"slices"
	"strings"
	"unicode/utf8"

	"example.org/auditd/precheck/command"
	"example.org/auditd/precheck/normalise"
	"example.org/auditd/schema"
)

// Bounds on what is reported. A model reads it: more would drown it, and an
// attacker could write a million matches.
const (
	maxSpansPerSignal = 32
	maxSegments       = 512
	maxSentence       = 400 // bytes of an instruction clause
)

// piece is a text to be scanned: the payload, or something decoded from it.
type piece struct {
	text       string
	start, end int  // where it lies in the payload
	exact      bool // byte i of text is byte start+i of the payload
	depth      int
	via        []string
}

// at maps a part of the piece's text to the payload.
func (p *piece) at(start, end int) (int, int) {
	if p.exact {
		return p.start + start, p.start + end
	}
	return p.start, p.end
}

// check is one run over one flow.
type check struct {
	c    *Checker
	f    *schema.Flow
	env  command.Env
	acts bool // the sink would really act on the payload

	signals  []schema.Signal
	spans    []schema.Span
	hard     string // the rule whose invariant is violated
	decoded  int
	pieces   int
	lines    int
	decoders []string
	limits   []string
	inert    []command.Arg // parts of the payload that only print or search
	fields   []field       // string fields of a JSON payload
	isJSON   bool
	pending  []pendingEndpoint
	effort   effort
	urlEnd   int    // where the last URL's run of characters ended
	urlText  string // in this text
}

func (k *check) begin(c *Checker, f *schema.Flow) {
	k.c, k.f = c, f
	if k.effort.tries == nil {
		k.effort.tries = make([]int32, len(c.rules.rules))
	}
	k.env = command.Env{Workspaces: c.cfg.Workspaces, Home: c.cfg.Home, Protected: c.cfg.Protected, Guarded: c.cfg.Guarded, Port: c.cfg.Port, ProxyPort: c.cfg.ProxyPort}
	if ws := f.Session.Workspace; strings.HasPrefix(ws, "/") && len(ws) > 1 {
		k.env.Workspaces = append(slices.Clip(k.env.Workspaces), ws)
	}
	switch f.Sink.Kind {
	case schema.SinkExec, schema.SinkTool, schema.SinkPayment, schema.SinkOther:
		k.acts = true
	default:
		k.acts = f.Boundary == schema.BoundaryExecution
	}
}

func (k *check) reset() {
	clear(k.effort.tries)
	*k = check{spans: k.spans[:0], effort: effort{tries: k.effort.tries}}
}

// bridges reports whether the sink would connect to an address that it is
// given, or tell it to somebody outside.
func (k *check) bridges() bool {
	switch k.f.Sink.Kind {
	case schema.SinkExec, schema.SinkWeb, schema.SinkTool, schema.SinkMessage, schema.SinkOther:
		return true
	}
	return k.f.Boundary == schema.BoundaryExecution || k.f.Boundary == schema.BoundaryDisclosure
}

// raise adds a signal, or another span to one that is there.
func (k *check) raise(rule string, hard bool, start, end int, via []string) {
	r := k.c.byName[rule]
	if r == nil {
		panic("precheck: internal error: rule " + rule + " is not registered")
	}
	k.raiseRule(r, hard, start, end, via, true)
}

func (k *check) raiseRule(r *Rule, hard bool, start, end int, via []string, segment bool) {
	span := schema.Span{Start: start, End: end, Category: r.Span}
	if span.Category == schema.SpanUnset {
		span.Category = schema.SpanInstruction
		segment = false
	}
	var s *schema.Signal
	for i := range k.signals {
		if k.signals[i].Rule == r.Name && slices.Equal(k.signals[i].Via, via) {
			s = &k.signals[i]
			break
		}
	}
	if s == nil {
		k.signals = append(k.signals, schema.Signal{Code: r.Code, Rule: r.Name, Via: via})
		s = &k.signals[len(k.signals)-1]
	}
	if hard {
		s.Severity = schema.Hard
		if k.hard == "" || r.Name == string(command.SelfProtection) {
			k.hard = r.Name
		}
	}
	if end > start {
		if len(s.Spans) < maxSpansPerSignal && !slices.Contains(s.Spans, span) {
			s.Spans = append(s.Spans, span)
		}
		if segment {
			k.segment(span)
		}
	}
}

func (k *check) segment(s schema.Span) {
	if len(k.spans) >= maxSegments && s.Category != schema.SpanSecret || len(k.spans) >= schema.MaxSpans {
		return
	}
	if s.Category == schema.SpanInstruction && s.End-s.Start < maxSentence && s.End-s.Start < len(k.f.Payload) {
		s.Start, s.End = sentence(k.f.Payload, s.Start, s.End)
	}
	k.spans = append(k.spans, s)
}

// sentence widens [start,end) to the clause around it.
func sentence(text string, start, end int) (int, int) {
	for n := 0; start > 0 && n < maxSentence; n++ {
		c := text[start-1]
		if c == '\n' || (c == '.' || c == '!' || c == '?') && text[start] == ' ' {
			break
		}
		start--
	}
	for !utf8.RuneStart(text[start]) {
		start++
	}
	for start < end && (text[start] == ' ' || text[start] == '\t') {
		start++
	}
	for n := 0; end < len(text) && n < maxSentence; n++ {
		c := text[end]
		if c == '\n' {
			break
		}
		end++
		if (c == '.' || c == '!' || c == '?') && (end == len(text) || text[end] == ' ' || text[end] == '\n') {
			break
		}
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	return start, end
}

func (k *check) limit(name string) {
	if !slices.Contains(k.limits, name) {
		k.limits = append(k.limits, name)
	}
}

func (k *check) decoder(name string) {
	if !slices.Contains(k.decoders, name) {
		k.decoders = append(k.decoders, name)
	}
}

// via returns the folds under which a match was found: those of the text, when
// the matched part was folded.
func via(p *piece, t *normalise.Text, start, end int) []string {
	if t == nil || !t.Changed(start, end) {
		return p.via
	}
	out := slices.Clip(p.via)
	for _, f := range t.Folds {
		if f != normalise.FoldDiacritics {
			out = append(out, f)
		}
	}
	return out
}

func (k *check) finish() *schema.Precheck {
	if len(k.limits) > 0 {
		k.raise("limit-reached", false, 0, 0, nil)
	}
	out := &schema.Precheck{
		Signals:   k.signals,
		HardBlock: k.hard != "", HardReason: k.hard,
		Spans: segments(k.spans),
		Coverage: schema.Coverage{Bytes: len(k.f.Payload), Total: len(k.f.Payload), Decoded: k.decoded,
			Decoders: k.decoders, Limits: k.limits},
	}
	if out.Signals == nil {
		out.Signals = []schema.Signal{}
	}
	out.Risk, out.Exploitability, out.Impact = hints(k.f, out)
	return out
}

// segments sorts the spans and drops those that lie within another of their
// category.
func segments(spans []schema.Span) []schema.Span {
	if len(spans) == 0 {
		return nil
	}
	slices.SortFunc(spans, func(a, b schema.Span) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	out := make([]schema.Span, 0, len(spans))
	var last [8]int // the furthest end of each category
	for _, s := range spans {
		c := int(s.Category) & 7
		if s.End <= last[c] {
			continue
		}
		last[c] = s.End
		out = append(out, s)
	}
	return out
}
