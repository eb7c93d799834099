package auditor

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/auditd/schema"
)

// token is a word or a sign of a text.
type token struct{ start, end int }

// tokens cuts text into words and single other characters that are not space.
func tokens(text string) []token {
	var out []token
	word := -1
	for i, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			if word < 0 {
				word = i
			}
			continue
		}
		if word >= 0 {
			out = append(out, token{word, i})
			word = -1
		}
		if !unicode.IsSpace(r) {
			out = append(out, token{i, i + utf8.RuneLen(r)})
		}
	}
	if word >= 0 {
		out = append(out, token{word, len(text)})
	}
	return out
}

// spanF1 compares the marked spans with the true one, token by token.
func spanF1(payload string, start, end int, spans []schema.Span) float64 {
	both, want, got := 0, 0, 0
	for _, t := range tokens(payload) {
		in := t.start < end && t.end > start
		marked := false
		for _, s := range spans {
			if t.start < s.End && t.end > s.Start {
				marked = true
				break
			}
		}
		if in {
			want++
		}
		if marked {
			got++
		}
		if in && marked {
			both++
		}
	}
	if want+got == 0 {
		return 0
	}
	return 2 * float64(both) / float64(want+got)
}

// evidenceSpans finds evidence in the payload: quoted, or cited as "bytes 10-20".
func evidenceSpans(payload string, evidence []string) []schema.Span {
	var out []schema.Span
	for _, e := range evidence {
		var from, to int
		if n, _ := fmt.Sscanf(e, "bytes %d-%d", &from, &to); n == 2 && 0 <= from && from < to && to <= len(payload) {
			out = append(out, schema.Span{Start: from, End: to})
		} else if i := strings.Index(payload, e); e != "" && i >= 0 {
			out = append(out, schema.Span{Start: i, End: i + len(e)})
		}
	}
	return out
}

// shingle is how many words in a row make a piece of the span recognisable.
const shingle = 3

// spanGone reports whether a rewrite holds next to nothing of the span: fewer
// than a fifth of its word triples.
func spanGone(span, rewrite string) bool {
	words := strings.Fields(span)
	if len(words) < shingle {
		return !strings.Contains(rewrite, strings.TrimSpace(span))
	}
	text := " " + strings.Join(strings.Fields(rewrite), " ") + " "
	left := 0
	for i := 0; i+shingle <= len(words); i++ {
		if strings.Contains(text, " "+strings.Join(words[i:i+shingle], " ")+" ") {
			left++
		}
	}
	return left*5 < len(words)-shingle+1
}

// carrierKept is the share of the tokens outside the true span that stand in
// the rewrite. A rewrite only takes spans away and puts masks in their places,
// so the parts between the masks are found in the payload one after another.
func carrierKept(payload string, start, end int, rewrite string) float64 {
	var kept []schema.Span
	at := 0
	rewrite = strings.TrimPrefix(rewrite, schema.MarkUntrusted)
	parts := strings.Split(strings.ReplaceAll(rewrite, schema.MaskSecret, schema.MaskRemoved), schema.MaskRemoved)
	for k, part := range parts {
		i := strings.Index(payload[at:], part)
		if k == len(parts)-1 && strings.HasSuffix(payload[at:], part) {
			i = len(payload) - at - len(part) // the end must be the end
		}
		if i < 0 {
			return 0 // not made by taking away
		}
		kept = append(kept, schema.Span{Start: at + i, End: at + i + len(part)})
		at += i + len(part)
	}
	all, have := 0, 0
	for _, t := range tokens(payload) {
		if t.start < end && t.end > start {
			continue
		}
		all++
		for _, s := range kept {
			if t.start >= s.Start && t.end <= s.End {
				have++
				break
			}
		}
	}
	if all == 0 {
		return 1
	}
	return float64(have) / float64(all)
}
