package onnx

import (
	"context"
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
// text and what the last audit says about it.
func (a *Auditor) mend(ctx context.Context, f *schema.Flow, payload string, s *Scores, use *schema.Usage) (string, Scores, error) {
	spans := s.Spans
	text := payload
	var left Scores
	for round := range rewriteRounds {
		text = rewrite(text, spans)
		if round == 0 {
			text = provenance(f, text) + text
		}
		var err error
		if left, err = a.score(ctx, f, text); err != nil {
			return "", Scores{}, err
		}
		use.PromptTokens += left.Tokens
		use.Windows += left.Encoded
		if left.Attack < a.stop || len(left.Spans) == 0 || len(left.Spans) > maxUnsafeSpans {
			break
		}
		spans = left.Spans
		for i := range spans {
			spans[i] = widen(text, spans[i])
		}
		spans = disjoint(spans)
	}
	return text, left, nil
}

// rewrite puts a mask in the place of every span. Everything else stays byte
// for byte.
func rewrite(payload string, spans []schema.Span) string {
	edits := make([]schema.Edit, 0, len(spans))
	for _, s := range spans {
		mask := schema.MaskRemoved
		if s.Category == schema.SpanSecret {
			mask = schema.MaskSecret
		}
		edits = append(edits, schema.Edit{Start: s.Start, End: s.End, Mask: mask})
	}
	return schema.ApplyEdits(payload, edits)
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
