package precheck

import (
	"strings"

	"example.org/auditd/precheck/normalise"
	"example.org/auditd/schema"
)

// scan runs every rule over one piece, then over what is encoded in it.
func (k *check) scan(p piece) {
	if p.text == "" {
		return
	}
	t := normalise.Fold(p.text)
	for _, f := range t.Folds {
		k.decoder(f)
	}
	k.marks(&p, t)
	k.match(&p, t)
	k.views(&p, t)
	k.decode(&p)
}

// marks reports what folding found hidden, and scans what it spelled.
func (k *check) marks(p *piece, t *normalise.Text) {
	zeroWidth := 0
	for _, m := range t.Marks {
		start, end := p.at(m.Start, m.End)
		switch m.Kind {
		case normalise.FoldTags:
			k.raise("hidden-tags", false, start, end, p.via)
		case normalise.FoldVariation:
			k.raise("hidden-variation-selectors", false, start, end, p.via)
			k.child(p, m.Decoded, start, end, normalise.FoldVariation)
		case normalise.FoldBidi:
			k.raise("hidden-bidi", false, start, end, p.via)
		case normalise.FoldInvisible:
			// One may have come with a copy from a page; three split words.
			if zeroWidth++; zeroWidth >= 3 {
				k.raise("hidden-zero-width", false, start, end, p.via)
			}
		}
	}
}

// match runs the rules, the secret scanner and the address scanners over the
// folded text in one pass over its words.
func (k *check) match(p *piece, t *normalise.Text) {
	s := k.c.rules
	secrets := k.c.secrets.Begin(t.Text)
	lastURL, lastLine := 0, 0
	evidence := !k.acts || p.depth > 0
	s.words.Scan(t.Lower, func(id, start, end int) {
		for _, own := range s.owners[id] {
			switch {
			case own >= 0:
				k.tryRule(p, t, own, start, end)
			case own <= ownSecret:
				secrets.Hit(int(ownSecret-own), start, end)
			case own == ownURL:
				lastURL = k.url(p, t, start, lastURL)
			case own == ownHost:
				k.bareHost(p, t, start, end)
			case own == ownAt:
				k.email(p, t, start)
			case own == ownCommand && evidence:
				lastLine = k.commandInText(p, t, start, lastLine)
			}
		}
	})
	found, limited := secrets.Findings()
	if limited {
		k.limit("secret-rules")
	}
	for _, f := range found {
		start, end := p.at(t.Span(f.Start, f.End))
		rule := "secret-gitleaks"
		switch f.Rule {
		case "generic-api-key", "generic-password", "url-password", "authorization-header":
			rule = "secret-generic"
		}
		k.raise(rule, false, start, end, via(p, t, f.Start, f.End))
		k.detail(rule, f.Rule)
	}
	k.numbers(p, t)
}

// detail names what the last signal of a rule matched; never the text itself.
func (k *check) detail(rule, what string) {
	for i := len(k.signals) - 1; i >= 0; i-- {
		if k.signals[i].Rule == rule {
			if k.signals[i].Detail == "" {
				k.signals[i].Detail = what
			}
			return
		}
	}
}

func (k *check) tryRule(p *piece, t *normalise.Text, own int32, start, end int) {
	r := &k.c.rules.rules[own]
	if r.When != nil && !r.When(k.f) {
		return
	}
	if k.full(r.Name) {
		return
	}
	a, b, ok := k.c.rules.try(own, t.Lower, start, end)
	if !ok {
		return
	}
	from, to := p.at(t.Span(a, b))
	k.raiseRule(k.c.byName[r.Name], false, from, to, via(p, t, a, b), true)
	if r.Name == "authority-grant" {
		k.grant(from, to, p.via)
	}
}

// full reports whether a rule has said all that it may: a text made of nothing
// but matches costs no more than one with a few.
func (k *check) full(rule string) bool {
	for i := range k.signals {
		if k.signals[i].Rule == rule {
			return len(k.signals[i].Spans) >= maxSpansPerSignal
		}
	}
	return false
}

// grant judges a grant that is about to be written into identity or policy.
func (k *check) grant(start, end int, via []string) {
	switch k.f.Sink.Kind {
	case schema.SinkIdentity, schema.SinkPolicy:
		if k.f.Source.Trust < schema.Trusted {
			k.raise("authority-grant-sink", !k.f.OwnerAuthorized, start, end, via)
		}
	}
}

// child scans something that was decoded from p, within the bounds.
func (k *check) child(p *piece, text string, start, end int, decoder string) bool {
	if p.depth >= k.c.cfg.MaxDecodeDepth {
		k.limit("decode-depth")
		return false
	}
	if k.decoded+len(text) > k.c.cfg.MaxDecoded {
		k.limit("decode-size")
		return false
	}
	// maxPieces bounds the fixed cost of many tiny pieces.
	const maxPieces = 512
	if k.pieces++; k.pieces > maxPieces {
		k.limit("decode-pieces")
		return false
	}
	k.decoded += len(text)
	k.decoder(decoder)
	via := make([]string, 0, len(p.via)+1)
	via = append(append(via, p.via...), decoder)
	k.scan(piece{text: text, start: start, end: end, depth: p.depth + 1, via: via})
	return true
}

// views tries the rules about control on readings that a model sees through
// and an expression does not: words split by tags, letters written as digits,
// letters written apart. Then on what HTML hides.
func (k *check) views(p *piece, t *normalise.Text) {
	if strings.IndexByte(t.Lower, '<') >= 0 {
		k.hiddenHTML(p, t)
		if v := withoutTags(t.Lower); v != nil {
			k.control(p, t, v)
		}
	}
	if v := leet(t.Lower); v != nil {
		k.control(p, t, v)
	}
	if v := spaced(t.Lower); v != nil {
		k.control(p, t, v)
	}
}

// control runs the rules about control over a view.
func (k *check) control(p *piece, t *normalise.Text, v *view) {
	s := k.c.rules
	s.control.Scan(v.text, func(id, start, end int) {
		for _, own := range s.ctlOwn[id] {
			r := &s.rules[own]
			a, b, ok := s.try(own, v.text, start, end)
			if !ok || !v.changed(a, b) || k.full(r.Name) {
				continue
			}
			from, to := p.at(t.Span(v.at(a), v.at(b-1)+1))
			names := append(append([]string(nil), p.via...), v.name)
			k.decoder(v.name)
			k.raiseRule(k.c.byName[r.Name], false, from, to, names, true)
			k.raise("hidden-letters", false, from, to, names)
		}
	})
}
