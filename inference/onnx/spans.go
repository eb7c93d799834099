package onnx

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/auditd/schema"
)

// maxUnsafeSpans bounds how many spans a text may have: more is not something
// that taking spans out could mend.
const maxUnsafeSpans = 256

// run is a range of tokens.
type run struct{ from, to int }

// mergeTokens takes, for each token, the worst of the windows that hold it.
func (a *Auditor) mergeTokens(j *job) {
	n := len(j.toks.IDs)
	j.tokUnsafe, j.tokCategory = grow(j.tokUnsafe, n), grow(j.tokCategory, n)
	clear(j.tokUnsafe)
	for i := range j.tokCategory {
		j.tokCategory[i] = uint8(schema.SpanInstruction)
	}
	for _, w := range j.todo {
		from := int(j.starts[w])
		at := int(w) * j.window
		for i := from; i < min(from+j.window, n); i++ {
			if u := j.unsafe[at+i-from]; u >= j.tokUnsafe[i] {
				j.tokUnsafe[i], j.tokCategory[i] = u, j.category[at+i-from]
			}
		}
	}
}

// spans returns the unsafe spans as ranges of the payload, and how many tokens
// are outside them.
func (a *Auditor) spans(j *job) ([]schema.Span, int) {
	rule := a.set.Span
	runs := j.runs[:0]
	for i, u := range j.tokUnsafe {
		if u < float32(rule.Threshold) {
			continue
		}
		if k := len(runs) - 1; k >= 0 && i-runs[k].to <= rule.Gap {
			runs[k].to = i + 1
		} else {
			runs = append(runs, run{i, i + 1})
		}
	}
	j.runs = runs
	kept, carrier := 0, len(j.tokUnsafe)
	for _, r := range runs {
		if r.to-r.from >= rule.MinTokens {
			kept++
		}
	}
	if kept == 0 {
		return nil, carrier
	}
	out := make([]schema.Span, 0, min(kept, maxUnsafeSpans+1))
	for _, r := range runs {
		if r.to-r.from < rule.MinTokens {
			continue
		}
		carrier -= r.to - r.from
		if len(out) > maxUnsafeSpans {
			continue // counted, but past mending
		}
		from, to := j.text.Original(int(j.toks.Start[r.from]), int(j.toks.End[r.to-1]))
		out = append(out, schema.Span{Start: j.offset + from, End: j.offset + to, Category: a.commonest(j, r)})
	}
	return out, carrier
}

// commonest returns the category that most tokens of r have.
func (a *Auditor) commonest(j *job, r run) schema.SpanCategory {
	var count [spanClasses]int
	best := uint8(0)
	for i := r.from; i < r.to; i++ {
		if j.tokUnsafe[i] < float32(a.set.Span.Threshold) {
			continue // a gap
		}
		c := j.tokCategory[i]
		if count[c]++; count[c] > count[best] || best == 0 {
			best = c
		}
	}
	return schema.SpanCategory(best)
}

// stub is how many words of a sentence may be left behind a span that was cut
// out of it: fewer say nothing to a reader, but may still steer a model. What
// stands before a span stays: it is as often a heading, a name or a bullet.
const stub = 3

// reach bounds how far widen looks, in bytes.
const reach = 48

// widen fits a span to whole words, without the signs before its first one,
// and to the end of its sentence, line or quoted string where it leaves only a
// stub of it.
func widen(payload string, s schema.Span) schema.Span {
	for s.Start > 0 {
		r, n := utf8.DecodeLastRuneInString(payload[:s.Start])
		if !wordRune(r) || !startsWord(payload[s.Start:]) {
			break
		}
		s.Start -= n
	}
	for s.End < len(payload) {
		last, _ := utf8.DecodeLastRuneInString(payload[:s.End])
		r, n := utf8.DecodeRuneInString(payload[s.End:])
		if !wordRune(r) || !wordRune(last) {
			break
		}
		s.End += n
	}
	if i := strings.IndexFunc(payload[s.Start:s.End], func(r rune) bool { return !leading(r) }); i > 0 {
		s.Start += i
	}
	if s.Category == schema.SpanSecret {
		return s // the sentence around it is no danger
	}
	right := payload[s.End:min(len(payload), s.End+reach)]
	i := strings.IndexFunc(right, bound)
	if i < 0 && s.End+len(right) == len(payload) {
		i = len(right)
	}
	if i < 0 || len(strings.Fields(right[:i])) > stub {
		return s
	}
	end := i
	if last := payload[s.End-1]; i < len(right) && strings.IndexByte(".!?", right[i]) >= 0 && (i > 0 || strings.IndexByte(".!?", last) < 0) {
		end = i + 1 // the sentence's own stop
	}
	s.End += len(strings.TrimRightFunc(right[:end], unicode.IsSpace))
	// What closes a comment, a string or an element stays: without it the rest
	// of the page would be part of what was cut.
	if n := len(strings.TrimRightFunc(payload[s.Start:s.End], closing)); n > 0 {
		s.End = s.Start + n
	}
	return s
}

// closing reports whether a span loses r behind its last word.
func closing(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("-*/\"'}])|<>", r) }

// leading reports whether a span loses r in front of its first word.
func leading(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(".,;:!?\"'>)]}|", r) }

func startsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return wordRune(r)
}

func wordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}

// bound reports whether a sentence, line, string or element ends at r.
func bound(r rune) bool {
	switch r {
	case '.', '!', '?', '\n', '\r', '"', '<', '>', '{', '}', '[', ']', '|', '。', '！', '？':
		return true
	}
	return false
}
