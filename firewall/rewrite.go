package firewall

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// Why a rewrite is refused. The texts are shown to agents and hold no payload.
var (
	errUnchanged = errors.New("it changes nothing")
	errEmpty     = errors.New("it leaves nothing")
	errAdds      = errors.New("it adds, alters or removes text outside the identified parts")
	errCutsWord  = errors.New("it cuts a word, path or address in two")
	errCommand   = errors.New("only secrets may be taken out of a command or a payment")
	errJSON      = errors.New("it is not valid JSON any more")
	errTangled   = errors.New("it cannot be told apart from a change of the text")
)

// diffRewrite checks that rewrite is payload with nothing but identified
// content taken away, and returns the difference as edits of the payload. What
// goes on is made from the payload and the edits, never copied from the model:
// so no rewrite can bring in a fact, an address, a number or an instruction
// that the payload does not hold, and every removal can be seen.
//
// Identified is what the precheck or the caller gave spans for, and what the
// evidence cites, either quoted or as "bytes a-b"; for anything but a secret
// that is the whole sentence, since half an instruction is still one.
func diffRewrite(f *schema.Flow, rewrite string, pre *schema.Precheck, evidence []string) ([]schema.Edit, error) {
	payload := f.Payload
	marked := false
	if rest, ok := strings.CutPrefix(rewrite, schema.MarkUntrusted); ok {
		rewrite, marked = rest, !strings.HasPrefix(payload, schema.MarkUntrusted)
		if !marked { // the payload has it already: it must stay
			rewrite = schema.MarkUntrusted + strings.TrimPrefix(rewrite, schema.MarkUntrusted)
		}
	}
	flags := newFlags(f, pre, evidence)
	a := aligner{payload: payload, rewrite: rewrite, flags: flags, steps: maxSteps}
	cuts, err := a.align()
	if err != nil {
		return nil, err
	}
	var edits []schema.Edit
	if marked {
		edits = append(edits, schema.Edit{Mask: schema.MarkUntrusted})
	}
	for _, c := range cuts {
		text := payload[c.start:c.end]
		if strings.TrimFunc(text, invisible) == "" {
			edits = append(edits, schema.Edit{Start: c.start, End: c.end})
			continue
		}
		if !flags.edge(c.start) || !flags.edge(c.end) {
			return nil, errCutsWord
		}
		secret := flags.secret(c)
		if k := f.Sink.Kind; !secret && (k == schema.SinkExec || k == schema.SinkPayment) {
			return nil, errCommand
		}
		mask := schema.MaskRemoved
		if secret {
			mask = schema.MaskSecret
		}
		edits = append(edits, schema.Edit{Start: c.start, End: c.end, Mask: mask})
	}
	if len(edits) == 0 {
		return nil, errUnchanged
	}
	if !leavesSomething(payload, edits) {
		return nil, errEmpty
	}
	if t := strings.TrimSpace(payload); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		if jsontext.Value(payload).IsValid() && !jsontext.Value(schema.ApplyEdits(payload, edits)).IsValid() {
			return nil, errJSON
		}
	}
	return edits, nil
}

func leavesSomething(payload string, edits []schema.Edit) bool {
	at := 0
	for _, e := range edits {
		if strings.TrimFunc(payload[at:e.Start], invisible) != "" {
			return true
		}
		at = e.End
	}
	return strings.TrimFunc(payload[at:], invisible) != ""
}

// invisible: taking it away removes no word, so that it needs no mask.
func invisible(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }

// maxSteps bounds the search for an alignment. A rewrite that a model made by
// leaving spans out takes a few steps per span.
const maxSteps = 1 << 20

type span struct{ start, end int }

// flags are the identified parts of a payload.
type flags struct {
	payload string
	merged  []span       // disjoint, ascending
	secrets []span       // disjoint, ascending
	edges   map[int]bool // starts and ends of the parts before they were merged
}

// Bounds on what evidence can identify.
const (
	maxSentence    = 400 // bytes that a sentence is looked for on each side
	minQuote       = 8   // bytes: a shorter quote stands for too much
	maxOccurrences = 8   // of one quote
)

func newFlags(f *schema.Flow, pre *schema.Precheck, evidence []string) *flags {
	g := &flags{payload: f.Payload, edges: map[int]bool{}}
	for _, s := range pre.Signals {
		for _, sp := range s.Spans {
			switch s.Code {
			case schema.CredSecret:
				g.add(sp.Start, sp.End, true)
			case schema.PIIContact, schema.FinancialData:
				g.add(sp.Start, sp.End, false)
			default:
				g.addSentence(sp.Start, sp.End)
			}
		}
	}
	for _, list := range [][]schema.Span{pre.Spans, f.Spans} {
		for _, sp := range list {
			g.add(sp.Start, sp.End, sp.Category == schema.SpanSecret)
		}
	}
	for _, e := range evidence {
		if start, end, ok := citedBytes(e); ok {
			g.add(start, end, false)
			continue
		}
		if e = strings.TrimSpace(e); len(e) < minQuote {
			continue
		}
		at := 0
		for range maxOccurrences {
			i := strings.Index(g.payload[at:], e)
			if i < 0 {
				break
			}
			g.addSentence(at+i, at+i+len(e))
			at += i + len(e)
		}
	}
	g.merged, g.secrets = merge(g.merged), merge(g.secrets)
	return g
}

// citedBytes reads evidence such as "bytes 12-40: CRED_SECRET".
func citedBytes(e string) (start, end int, ok bool) {
	rest, ok := strings.CutPrefix(e, "bytes ")
	if !ok {
		return 0, 0, false
	}
	rest, _, _ = strings.Cut(rest, ":")
	a, b, ok := strings.Cut(rest, "-")
	if !ok {
		return 0, 0, false
	}
	start, ok1 := digits(a)
	end, ok2 := digits(b)
	return start, end, ok1 && ok2
}

func digits(s string) (int, bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// add records a part, if it lies on whole characters of the payload.
func (g *flags) add(start, end int, secret bool) {
	if start < 0 || end > len(g.payload) || start >= end || !boundary(g.payload, start) || !boundary(g.payload, end) {
		return
	}
	g.merged = append(g.merged, span{start, end})
	if secret {
		g.secrets = append(g.secrets, span{start, end})
	}
	g.edges[start], g.edges[end] = true, true
}

func boundary(s string, i int) bool { return i == len(s) || utf8.RuneStart(s[i]) }

// addSentence records a part and the sentence or line around it.
func (g *flags) addSentence(start, end int) {
	if start < 0 || end > len(g.payload) || start >= end {
		return
	}
	g.add(start, end, false)
	from, least := start, max(0, start-maxSentence)
	for from > least && !sentenceEnds(g.payload, from) {
		from--
	}
	to, most := end, min(len(g.payload), end+maxSentence)
	for to < most && !(to > start && sentenceEnds(g.payload, to)) {
		to++
	}
	for !boundary(g.payload, from) {
		from++
	}
	for !boundary(g.payload, to) {
		to--
	}
	g.add(from, to, false)
}

// sentenceEnds reports whether a sentence or line ends just before p[i].
func sentenceEnds(p string, i int) bool {
	if i == 0 || i >= len(p) {
		return true
	}
	switch p[i-1] {
	case '\n', '\r':
		return true
	case ' ', '\t':
		return i >= 2 && strings.IndexByte(".!?;", p[i-2]) >= 0
	}
	return false
}

func merge(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	out := list[:0]
	for _, s := range list {
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}

// at returns the identified part that holds byte i.
func (g *flags) at(i int) (span, bool) {
	n, _ := slices.BinarySearchFunc(g.merged, i, func(s span, i int) int { return cmp.Compare(s.end, i+1) })
	if n < len(g.merged) && g.merged[n].start <= i {
		return g.merged[n], true
	}
	return span{}, false
}

func (g *flags) secret(c span) bool {
	return slices.ContainsFunc(g.secrets, func(s span) bool { return s.start <= c.start && c.end <= s.end })
}

// edge reports whether a removal may start or end at i: where an identified
// part does, or between words. Inside a path or an address there is no edge,
// because half of one can be another.
func (g *flags) edge(i int) bool {
	if g.edges[i] || i == 0 || i == len(g.payload) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(g.payload[:i])
	after, _ := utf8.DecodeRuneInString(g.payload[i:])
	return between(before) || between(after)
}

func between(r rune) bool { return invisible(r) || strings.ContainsRune("\"'`<>()[]{}", r) }

// aligner finds out which identified bytes of the payload a rewrite left out.
type aligner struct {
	payload, rewrite string
	flags            *flags
	steps            int // what may be spent; hostile texts can align in many ways
}

// choice is a place to come back to: the payload may be read on at i and the
// rewrite at j, with cuts[:n] made so far.
type choice struct {
	i, j, n int
	cut     span // made on the way here; empty for none
}

// align reads both texts from the left. Outside the identified parts they must
// agree byte for byte. Inside one, the payload's bytes may be missing, and a
// mask may stand where they were.
func (a *aligner) align() ([]span, error) {
	var cuts []span
	tried := map[[2]int]bool{}
	todo := []choice{{}}
	for len(todo) > 0 {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		cuts = append(cuts[:c.n], c.cut)
		if c.cut.start == c.cut.end {
			cuts = cuts[:c.n]
		}
		i, j := c.i, c.j
		for {
			if a.steps--; a.steps < 0 {
				return nil, errTangled
			}
			if i == len(a.payload) && j == len(a.rewrite) {
				return joinCuts(cuts), nil
			}
			part, flagged := a.flags.at(i)
			if i >= len(a.payload) || !flagged {
				n := a.agree(i, j)
				if n == 0 {
					break
				}
				i, j = i+n, j+n
				continue
			}
			if tried[[2]int{i, j}] {
				break
			}
			tried[[2]int{i, j}] = true
			todo = a.choices(todo, i, j, part.end, len(cuts))
			break
		}
	}
	return nil, errAdds
}

// agree returns how many bytes the texts have in common at i and j before the
// next identified part. It is 0 when they differ there.
func (a *aligner) agree(i, j int) int {
	end := len(a.payload)
	if n, _ := slices.BinarySearchFunc(a.flags.merged, i, func(s span, i int) int { return cmp.Compare(s.start, i) }); n < len(a.flags.merged) {
		end = a.flags.merged[n].start
	}
	n := end - i
	if n <= 0 || len(a.rewrite)-j < n || a.payload[i:end] != a.rewrite[j:j+n] {
		return 0
	}
	a.steps -= n / 64
	return n
}

// choices adds the ways to read on inside an identified part, the likeliest
// last: the part is kept, or left out to its end, or to some place within.
func (a *aligner) choices(todo []choice, i, j, end, n int) []choice {
	k := j + maskAt(a.rewrite[j:])
	a.steps -= 1 + (end-i)/16
	for at := i + 1; at < end && k < len(a.rewrite); at++ { // within
		if a.payload[at] == a.rewrite[k] && boundary(a.payload, at) && a.flags.edge(at) {
			todo = append(todo, choice{at, k, n, span{i, at}})
			a.steps--
		}
	}
	todo = append(todo, choice{end, k, n, span{i, end}})
	if j < len(a.rewrite) && a.payload[i] == a.rewrite[j] {
		// As far as both agree there is nothing to decide, except that a cut
		// could start anywhere: come back for each such start only if needed.
		m := 1
		for i+m < end && j+m < len(a.rewrite) && a.payload[i+m] == a.rewrite[j+m] {
			m++
		}
		for x := 1; x < m; x++ {
			if maskAt(a.rewrite[j+x:]) > 0 || a.flags.edge(i+x) {
				todo = append(todo, choice{i + x, j + x, n, span{}})
			}
		}
		a.steps -= m / 16
		todo = append(todo, choice{i + m, j + m, n, span{}})
	}
	return todo
}

func joinCuts(cuts []span) []span {
	var out []span
	for _, c := range cuts {
		if n := len(out); n > 0 && out[n-1].end == c.start {
			out[n-1].end = c.end
			continue
		}
		out = append(out, c)
	}
	return out
}

// maskAt returns the length of the mask that s starts with, or 0. A mask's
// words are ours: anything freer could carry an instruction.
func maskAt(s string) int {
	if !strings.HasPrefix(s, "[re") {
		return 0
	}
	for _, m := range []string{schema.MaskRemoved, schema.MaskSecret, "[removed by auditd]"} {
		if strings.HasPrefix(s, m) {
			return len(m)
		}
	}
	rest, ok := strings.CutPrefix(s, "[removed by auditd: ")
	if !ok {
		return 0
	}
	word, _, ok := strings.Cut(rest, "]")
	if !ok || len(word) > 40 || !maskWord(word) {
		return 0
	}
	return len("[removed by auditd: ") + len(word) + 1
}

// maskWord: a span category, a code or a residual risk type.
func maskWord(w string) bool {
	var category schema.SpanCategory
	var code schema.Code
	var risk schema.ResidualRisk
	return category.UnmarshalText([]byte(w)) == nil || code.UnmarshalText([]byte(w)) == nil || risk.UnmarshalText([]byte(w)) == nil
}

// composeEdits makes one list of edits of the original out of those that made
// the present flow and those that were made on it.
func composeEdits(original string, first, second []schema.Edit) ([]schema.Edit, error) {
	type placed struct {
		schema.Edit
		from, to int // where the mask stands in the present flow
		gone     bool
	}
	var masks []placed
	shift := 0
	for _, e := range first {
		from := e.Start + shift
		masks = append(masks, placed{e, from, from + len(e.Mask), false})
		shift += len(e.Mask) - (e.End - e.Start)
	}
	// origin maps a position of the present flow to the original; inside a
	// mask it is that end of the cut which makes the new one wider.
	origin := func(pos int, end bool) int {
		shift := 0
		for _, m := range masks {
			switch {
			case pos >= m.to && pos > m.from, pos == m.to && !end:
				shift += len(m.Mask) - (m.End - m.Start)
				continue
			case pos > m.from && end:
				return m.End
			case pos > m.from:
				return m.Start
			}
			return pos - shift
		}
		return pos - shift
	}
	var out []schema.Edit
	for _, e := range second {
		if e.Start == e.End && len(masks) > 0 && masks[0].Mask == e.Mask {
			continue // the marker is there already
		}
		start, end := origin(e.Start, false), origin(e.End, true)
		for i := range masks {
			if m := &masks[i]; m.from < e.End && e.Start < m.to {
				start, end, m.gone = min(start, m.Start), max(end, m.End), true
			}
		}
		out = append(out, schema.Edit{Start: start, End: end, Mask: e.Mask})
	}
	for _, m := range masks {
		if !m.gone {
			out = append(out, m.Edit)
		}
	}
	slices.SortStableFunc(out, func(a, b schema.Edit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	at := 0
	for _, e := range out {
		if e.Start < at || e.End < e.Start || e.End > len(original) {
			return nil, errTangled
		}
		at = e.End
	}
	return out, nil
}
