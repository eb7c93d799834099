package prompts

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// Limits of a segmentation.
const (
	// MaxSegments is how many numbered spans one prompt has at most: a model
	// that must refer to hundreds of numbers gets them wrong.
	MaxSegments  = 64
	maxMarks     = 20  // findings that get spans of their own
	longSentence = 400 // bytes after which a line without a full stop is cut
	minSegment   = 24  // bytes: splitting finer costs tokens and says nothing
)

// Range is a half-open range of bytes of a payload.
type Range struct{ Start, End int }

// Segment is one numbered span of a payload. The segments of a prompt tile the
// part of the payload that it shows.
type Segment struct {
	Range
	// Cuts is what goes when a rewrite names the segment. For JSON these are
	// the insides of its string values; it is empty when there are none, and a
	// rewrite must not name the segment then.
	Cuts   []Range
	Secret bool // it is masked, not removed
	Codes  []schema.Code
}

// mark is a place that the precheck or the caller pointed at.
type mark struct {
	Range
	secret bool
}

// segmenter cuts one payload into segments. It is made once per record.
type segmenter struct {
	payload string
	marks   []mark
	codes   []codeRange
	json    bool
	strings []Range // insides of JSON string values, ascending
	bounds  []int   // ends of lines and sentences, ascending
}

type codeRange struct {
	Range
	code schema.Code
}

func newSegmenter(f *schema.Flow, pre *schema.Precheck) *segmenter {
	s := &segmenter{payload: f.Payload}
	if t := strings.TrimSpace(f.Payload); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		s.json = jsontext.Value(t).IsValid()
	}
	if s.json {
		s.scanJSON()
	} else {
		s.scanText()
	}
	if pre != nil {
		for _, sig := range pre.Signals {
			for _, sp := range sig.Spans {
				s.addMark(sp, exact(sig.Code))
				if r, ok := s.clip(sp); ok {
					s.codes = append(s.codes, codeRange{r, sig.Code})
				}
			}
		}
	}
	for _, sp := range f.Spans {
		s.addMark(sp, sp.Category == schema.SpanSecret)
	}
	s.mergeMarks()
	slices.SortStableFunc(s.codes, func(a, b codeRange) int { return cmp.Compare(a.Start, b.Start) })
	return s
}

// exact reports whether a finding of this code is to be masked by itself. Of
// the others the whole sentence goes: half an instruction is still one.
func exact(c schema.Code) bool {
	switch c {
	case schema.CredSecret, schema.PIIContact, schema.FinancialData:
		return true
	default:
		return false
	}
}

// clip moves a span onto the payload and onto whole characters.
func (s *segmenter) clip(sp schema.Span) (Range, bool) {
	r := Range{max(0, min(sp.Start, len(s.payload))), max(0, min(sp.End, len(s.payload)))}
	for r.Start > 0 && r.Start < len(s.payload) && !utf8.RuneStart(s.payload[r.Start]) {
		r.Start--
	}
	for r.End < len(s.payload) && r.End > 0 && !utf8.RuneStart(s.payload[r.End]) {
		r.End++
	}
	return r, r.Start < r.End
}

func (s *segmenter) addMark(sp schema.Span, secret bool) {
	r, ok := s.clip(sp)
	if !ok {
		return
	}
	if !secret {
		i, found := slices.BinarySearch(s.bounds, r.Start)
		if !found {
			if i == 0 {
				r.Start = 0
			} else {
				r.Start = s.bounds[i-1]
			}
		}
		if i, found := slices.BinarySearch(s.bounds, r.End); !found {
			if i == len(s.bounds) {
				r.End = len(s.payload)
			} else {
				r.End = s.bounds[i]
			}
		}
	}
	s.marks = append(s.marks, mark{r, secret})
}

// mergeMarks sorts the marks and makes them disjoint; a secret inside another
// mark stays a mark of its own, so that it can be masked alone.
func (s *segmenter) mergeMarks() {
	slices.SortStableFunc(s.marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	var secrets, others []mark
	for _, m := range s.marks {
		list := &others
		if m.secret {
			list = &secrets
		}
		if n := len(*list); n > 0 && m.Start < (*list)[n-1].End {
			(*list)[n-1].End = max((*list)[n-1].End, m.End)
			continue
		}
		*list = append(*list, m)
	}
	all := secrets
	k := 0 // secrets[:k] end before the current mark's rest starts
	for _, m := range others {
		for k < len(secrets) && secrets[k].End <= m.Start {
			k++
		}
		start := m.Start
		for j := k; j < len(secrets) && secrets[j].Start < m.End; j++ {
			if start < secrets[j].Start {
				all = append(all, mark{Range{start, secrets[j].Start}, false})
			}
			start = max(start, secrets[j].End)
		}
		if start < m.End {
			all = append(all, mark{Range{start, m.End}, false})
		}
	}
	slices.SortStableFunc(all, func(a, b mark) int { return cmp.Compare(a.Start, b.Start) })
	s.marks = all
}

// segments cuts the window [w.Start,w.End) of the payload.
func (s *segmenter) segments(w Range) []Segment {
	if w.Start >= w.End {
		return nil
	}
	var marks []mark
	for _, m := range s.marks {
		m.Start, m.End = max(m.Start, w.Start), min(m.End, w.End)
		if m.Start < m.End {
			marks = append(marks, m)
		}
	}
	for len(marks) > maxMarks { // too many to number: neighbours share a span
		half := marks[:0]
		for i := 0; i < len(marks); i += 2 {
			m := marks[i]
			if i+1 < len(marks) {
				m.End, m.secret = marks[i+1].End, m.secret && marks[i+1].secret
			}
			half = append(half, m)
		}
		marks = half
	}
	var pieces []mark
	at := w.Start
	for _, m := range marks {
		if at < m.Start {
			pieces = append(pieces, mark{Range{at, m.Start}, false})
		}
		pieces = append(pieces, m)
		at = m.End
	}
	if at < w.End {
		pieces = append(pieces, mark{Range{at, w.End}, false})
	}
	spare, total := MaxSegments-len(pieces), w.End-w.Start
	var out []Segment
	for _, p := range pieces {
		n := 1
		if !p.secret {
			n += spare * (p.End - p.Start) / total
		}
		for _, r := range s.split(p.Range, n) {
			out = append(out, Segment{Range: r, Secret: p.secret, Cuts: s.cuts(r), Codes: s.codesIn(r)})
		}
	}
	return out
}

// split cuts r at ends of sentences into at most n ranges of about one size.
func (s *segmenter) split(r Range, n int) []Range {
	target := max((r.End-r.Start+n-1)/n, minSegment)
	i, _ := slices.BinarySearch(s.bounds, r.Start+1)
	var out []Range
	start := r.Start
	for ; i < len(s.bounds) && s.bounds[i] < r.End; i++ {
		if s.bounds[i]-start >= target && len(out) < n-1 {
			out = append(out, Range{start, s.bounds[i]})
			start = s.bounds[i]
		}
	}
	return append(out, Range{start, r.End})
}

// cuts returns what is taken out of the payload when r is named.
func (s *segmenter) cuts(r Range) []Range {
	if !s.json {
		// Trailing white space stays: it separates what is left.
		end := r.Start + len(strings.TrimRight(s.payload[r.Start:r.End], " \t\r\n"))
		start := end - len(strings.TrimLeft(s.payload[r.Start:end], " \t\r\n"))
		if start >= end {
			return nil
		}
		return []Range{{start, end}}
	}
	i, _ := slices.BinarySearchFunc(s.strings, r.Start, func(x Range, at int) int { return cmp.Compare(x.End, at) })
	var out []Range
	for ; i < len(s.strings) && s.strings[i].Start < r.End; i++ {
		c := Range{max(s.strings[i].Start, r.Start), min(s.strings[i].End, r.End)}
		if c.Start < c.End {
			out = append(out, c)
		}
	}
	return out
}

func (s *segmenter) codesIn(r Range) []schema.Code {
	var out []schema.Code
	for _, c := range s.codes {
		if c.Start >= r.End {
			break
		}
		if c.End > r.Start && !slices.Contains(out, c.code) {
			out = append(out, c.code)
		}
	}
	slices.Sort(out)
	return out
}

// scanText finds the ends of lines and sentences.
func (s *segmenter) scanText() {
	last, space := 0, -1
	add := func(at int) {
		if at > last && at < len(s.payload) {
			s.bounds = append(s.bounds, at)
		}
		last, space = at, -1
	}
	for i, r := range s.payload {
		next := i + utf8.RuneLen(r)
		switch {
		case r == utf8.RuneError:
			next = i + 1
		case r == '\n', r == '。', r == '！', r == '？':
			add(next)
		case (r == ' ' || r == '\t') && i > 0 && strings.IndexByte(".!?;", s.payload[i-1]) >= 0:
			add(next)
		case r == ' ':
			space = next
		}
		if i-last >= longSentence {
			if space > last {
				add(space)
			} else {
				add(i)
			}
		}
	}
}

// scanJSON finds the insides of string values, and the places between values
// where a document may be cut into spans.
func (s *segmenter) scanJSON() {
	p := s.payload
	last := 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '"':
			start := i + 1
			for i++; i < len(p) && p[i] != '"'; i++ {
				if p[i] == '\\' {
					i++
				}
			}
			j := i + 1
			for j < len(p) && strings.IndexByte(" \t\r\n", p[j]) >= 0 {
				j++
			}
			if key := j < len(p) && p[j] == ':'; !key && i > start {
				s.strings = append(s.strings, Range{start, i})
				s.sentences(Range{start, i}, &last)
			}
		case ',', '\n':
			if i+1 < len(p) && i+1 > last {
				s.bounds = append(s.bounds, i+1)
				last = i + 1
			}
		}
	}
}

// sentences adds the ends of sentences inside a JSON string, never inside an
// escape.
func (s *segmenter) sentences(r Range, last *int) {
	for i := r.Start; i < r.End; i++ {
		c := s.payload[i]
		switch {
		case c == '\\':
			if i++; i < r.End && s.payload[i] == 'n' && i+1 < r.End {
				s.bounds = append(s.bounds, i+1)
				*last = i + 1
			}
		case c == ' ' && i > r.Start && (strings.IndexByte(".!?;", s.payload[i-1]) >= 0 || i-*last >= longSentence):
			s.bounds = append(s.bounds, i+1)
			*last = i + 1
		}
	}
}
