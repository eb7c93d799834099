package policy

import (
	"strings"

	"example.org/auditd/dualview"
)

// part is a stretch of a text: shown as it is, or a symbol that is being made.
type part struct {
	text   string
	symbol *node
}

// join makes one text of parts, once their symbols are known.
func (w *walk) join(parts []part) *node {
	if len(parts) == 1 && parts[0].symbol != nil {
		return parts[0].symbol
	}
	out := str("")
	w.rebuild = append(w.rebuild, func() error {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p.text)
			if p.symbol != nil {
				b.WriteString(p.symbol.text)
			}
		}
		out.text = b.String()
		return nil
	})
	return out
}

// maxSecrets bounds the secrets that are told apart in one text. A text with
// more of them is a secret as a whole.
const maxSecrets = 16

// apart cuts a text at its secrets. Each becomes a secret symbol, and what lies
// between them is what rest makes of it.
func (w *walk) apart(text, field string, rest func(text string) part) []part {
	var spans [][2]int
	if w.call.Secrets != nil {
		spans = w.call.Secrets(text)
	}
	if len(spans) > maxSecrets {
		spans = [][2]int{{0, len(text)}}
	}
	var parts []part
	at := 0
	for _, s := range spans {
		if s[0] < at || s[1] <= s[0] || s[1] > len(text) {
			continue // overlaps the one before
		}
		if s[0] > at {
			parts = append(parts, rest(text[at:s[0]]))
		}
		parts = append(parts, part{symbol: w.secret(text[s[0]:s[1]], field)})
		at = s[1]
	}
	if at < len(text) {
		parts = append(parts, rest(text[at:]))
	}
	return parts
}

// secret returns a node that will hold a symbol which resolves for the sinks
// that the owner named and for no others.
func (w *walk) secret(value, field string) *node {
	n := w.symbol(value, field)
	if n.item > 0 {
		it := &w.items[n.item-1]
		it.Secret, it.Sinks = true, w.policy.secrets
	}
	return n
}

// clear is a stretch that is shown.
func (w *walk) clear(text string) part {
	w.shown.WriteString(text)
	return part{text: text}
}

// cover makes symbols of a text, around the symbols that stand in it already:
// one that became part of another's value would stay a token when that is
// resolved.
func (w *walk) cover(text, field string) *node {
	hide := func(text string) part { return part{symbol: w.symbol(text, field)} }
	var spans [][2]int
	// In the agent's own view the symbols are the view's: a file that a rule
	// calls untrusted has become symbols there already.
	if w.call.Distrusted || w.call.Attested {
		spans = w.table.Spans(text)
	}
	var parts []part
	at := 0
	for _, s := range append(spans, [2]int{len(text), len(text)}) {
		switch between := text[at:s[0]]; {
		case between == "":
		case len(spans) > 0 && strings.TrimSpace(between) == "":
			parts = append(parts, part{text: between})
		default:
			parts = append(parts, w.apart(between, field, hide)...)
		}
		parts = append(parts, part{text: text[s[0]:s[1]]})
		at = s[1]
	}
	return w.join(parts[:len(parts)-1]) // the last is empty
}

// reveal shows a text but for what is known to be untrusted or secret in it.
func (w *walk) reveal(text, field string, pieces []dualview.Piece) *node {
	var parts []part
	at := 0
	for _, p := range pieces {
		parts = append(parts, w.apart(text[at:p.Start], field, w.clear)...)
		parts = append(parts, part{text: string(p.Symbol)})
		w.recognised = append(w.recognised, p.Symbol)
		at = p.End
	}
	parts = append(parts, w.apart(text[at:], field, w.clear)...)
	w.shown.WriteByte('\n')
	return w.join(parts)
}
