package onnx

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"example.org/auditd/schema"
)

// A rewrite must leave a carrier: this many tokens and this share of them.
const (
	minCarrier      = 6
	minCarrierShare = 0.10
)

// mendable reports whether taking the unsafe spans out can leave something
// worth forwarding. What will run, pay, or change who may do what is never
// mended: half a command is another command.
func mendable(f *schema.Flow, s *Scores) bool {
	if len(s.Spans) == 0 || len(s.Spans) > maxUnsafeSpans {
		return false
	}
	if s.Carrier < minCarrier || float64(s.Carrier) < minCarrierShare*float64(s.Tokens) {
		return false
	}
	if f == nil {
		return true
	}
	switch f.Sink.Kind {
	case schema.SinkExec, schema.SinkTool, schema.SinkPayment, schema.SinkIdentity, schema.SinkPolicy, schema.SinkConfig:
		return false
	default:
		return true
	}
}

// mend takes the unsafe spans out and audits what is left, and does so once
// more where the second audit finds another span. It returns the rewritten
// text, the spans of the payload that are gone from it, and what the last audit
// says about it.
func (a *Auditor) mend(ctx context.Context, f *schema.Flow, payload string, s *Scores, use *schema.Usage) (string, []schema.Span, Scores, error) {
	cut := slices.Clone(s.Spans)
	for round := 1; ; round++ {
		edits := masks(cut)
		marker := provenance(f, schema.ApplyEdits(payload, edits))
		text := marker + schema.ApplyEdits(payload, edits)
		left, err := a.score(ctx, f, text)
		if err != nil {
			return "", nil, Scores{}, err
		}
		use.PromptTokens += left.Tokens
		use.Windows += left.Encoded
		if round == rewriteRounds || left.Attack < a.stop || len(left.Spans) == 0 || len(cut)+len(left.Spans) > maxUnsafeSpans {
			return text, cut, left, nil
		}
		for _, found := range left.Spans {
			if sp := origin(edits, found, len(marker)); sp.Start < sp.End {
				cut = append(cut, widen(payload, sp))
			}
		}
		slices.SortFunc(cut, func(x, y schema.Span) int { return cmp.Compare(x.Start, y.Start) })
		cut = disjoint(cut)
	}
}

// masks are the edits that put a mask in the place of every span. Everything
// else stays byte for byte.
func masks(spans []schema.Span) []schema.Edit {
	edits := make([]schema.Edit, 0, len(spans))
	for _, s := range spans {
		mask := schema.MaskRemoved
		if s.Category == schema.SpanSecret {
			mask = schema.MaskSecret
		}
		edits = append(edits, schema.Edit{Start: s.Start, End: s.End, Mask: mask})
	}
	return edits
}

// origin maps a span of the rewritten text to the span of the payload that it
// stands for; what touches a mask stands for all that the mask covers. ahead is
// the length of the marker before the text.
func origin(edits []schema.Edit, found schema.Span, ahead int) schema.Span {
	back := func(at int, end bool) int {
		shift := 0 // payload offset less text offset, after the edits passed so far
		for _, e := range edits {
			from := e.Start - shift // where the mask stands in the text
			if at <= from {
				break
			}
			if at < from+len(e.Mask) {
				if end {
					return e.End
				}
				return e.Start
			}
			shift += e.End - e.Start - len(e.Mask)
		}
		return at + shift
	}
	return schema.Span{Start: back(max(0, found.Start-ahead), false), End: back(max(0, found.End-ahead), true), Category: found.Category}
}

// provenance is the marker that goes before a mended text which enters the
// agent's context. A text that a program parses gets none: it would break.
func provenance(f *schema.Flow, text string) string {
	if f != nil && f.Surface != schema.Context {
		return ""
	}
	if t := strings.TrimLeft(text, " \t\r\n"); t == "" || strings.ContainsRune("{[<", rune(t[0])) {
		return ""
	}
	return schema.MarkUntrusted
}

// disjoint joins ascending spans that widening has made meet.
func disjoint(spans []schema.Span) []schema.Span {
	out := spans[:0]
	for _, s := range spans {
		if k := len(out) - 1; k >= 0 && s.Start <= out[k].End {
			out[k].End = max(out[k].End, s.End)
			continue
		}
		out = append(out, s)
	}
	return out
}
