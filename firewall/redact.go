package firewall

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"example.org/auditd/schema"
)

// placeholderMark starts every placeholder that Redact makes.
const placeholderMark = "⟦SECRET_"

// outbound is what leaves the machine for the arbiter, and what is needed to
// put secrets back into its answer. The secrets themselves never leave.
type outbound struct {
	record  *schema.ArbiterRecord
	json    string
	current string            // the redacted current payload
	secrets map[string]string // placeholder to secret
	forged  bool              // the payload brought placeholders of its own
}

// redactRecord builds the arbiter's record out of texts without secrets.
// Positions go, because they point into texts that stay here.
func (fw *Firewall) redactRecord(t *transfer) (outbound, error) {
	// Both payloads are redacted as one text, so that a secret has the same
	// placeholder in both. The fence is random: a payload cannot hold it.
	fence := "\n" + rand.Text() + "\n"
	text, secrets := fw.cfg.Redact(t.original.Payload + fence + t.flow.Payload)
	original, current, ok := strings.Cut(text, fence)
	if !ok || strings.Contains(current, fence) {
		return outbound{}, errors.New("the fence between the payloads was redacted")
	}
	out := outbound{
		current: current, secrets: secrets,
		forged: strings.Contains(t.original.Payload, placeholderMark),
	}
	short := func(s string) string {
		redacted, _ := fw.cfg.Redact(s)
		return redacted
	}
	clean := func(f *schema.Flow, payload string) *schema.Flow {
		g := *f
		g.Payload, g.Spans, g.Ticket = payload, nil, ""
		g.Source.ID, g.Intent = short(g.Source.ID), short(g.Intent)
		g.Sink.ID, g.Sink.Action, g.Sink.Destination = short(g.Sink.ID), short(g.Sink.Action), short(g.Sink.Destination)
		g.Session = schema.Session{Agent: short(g.Session.Agent)}
		return &g
	}
	pre := *t.pre
	pre.Spans, pre.Signals = nil, nil
	for _, s := range t.pre.Signals {
		s.Spans = nil
		pre.Signals = append(pre.Signals, s)
	}
	rep := schema.Report{Uncertainty: 1, Decision: schema.DeferToHuman, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}}
	if t.judged != nil {
		rep = *t.judged
	}
	if rep.Rewrite != nil {
		rep.Rewrite = &out.current
	}
	rep.Evidence = nil
	if t.judged != nil {
		for _, e := range t.judged.Evidence {
			// A quote may be half a secret, which redaction cannot see. What
			// stands in the redacted text as it is may go.
			if strings.Contains(original, e) || strings.Contains(current, e) {
				rep.Evidence = append(rep.Evidence, e)
			}
		}
	}
	reasons := make([]string, 0, len(t.escalation))
	for _, r := range t.escalation {
		reasons = append(reasons, strings.TrimSuffix(r.Code+": "+r.Detail, ": "))
	}
	out.record = &schema.ArbiterRecord{
		Original: clean(t.original, original), Current: clean(t.flow, current), Precheck: &pre, Report: &rep, Reasons: reasons,
	}
	data, err := schema.Encode(out.record)
	if err != nil {
		return outbound{}, fmt.Errorf("couldn't encode the arbiter's record: %w", err)
	}
	out.json = string(data)
	return out, nil
}

// Why placeholders make a rewrite invalid.
var (
	errPlaceholder = errors.New("a redacted secret is missing from it or stands in it more often than before")
	errForged      = errors.New("the payload holds texts that look like redacted secrets")
)

// restore puts the secrets back. Every placeholder must stand in the rewrite
// as often as it did in the text that was sent: a missing one may be a secret
// that was moved into words, a doubled one a secret sent to a second place.
func (o outbound) restore(rewrite string) (string, error) {
	if o.forged {
		return "", errForged
	}
	known := 0
	pairs := make([]string, 0, 2*len(o.secrets))
	for p, secret := range o.secrets {
		n := strings.Count(o.current, p)
		if p == "" || strings.Count(rewrite, p) != n {
			return "", errPlaceholder
		}
		known += n
		pairs = append(pairs, p, secret)
	}
	if strings.Count(rewrite, placeholderMark) != known {
		return "", errPlaceholder
	}
	return strings.NewReplacer(pairs...).Replace(rewrite), nil
}

// localEvidence turns evidence about the text that was sent into evidence about
// the text that stayed here: positions move by what redaction changed, and
// placeholders in quotes become what they stand for.
func (o outbound) localEvidence(evidence []string) []string {
	type shift struct{ sent, here, sentLen, hereLen int }
	var shifts []shift
	moved := 0
	for at := 0; ; {
		i := strings.Index(o.current[at:], placeholderMark)
		if i < 0 {
			break
		}
		start := at + i
		at = start + len(placeholderMark)
		for p, secret := range o.secrets {
			if strings.HasPrefix(o.current[start:], p) {
				shifts = append(shifts, shift{start, start + moved, len(p), len(secret)})
				moved += len(secret) - len(p)
				at = start + len(p)
				break
			}
		}
	}
	// A position inside a placeholder is moved to that end which takes in more.
	here := func(pos int, end bool) int {
		for k := len(shifts) - 1; k >= 0; k-- {
			x := shifts[k]
			switch {
			case pos >= x.sent+x.sentLen:
				return pos - x.sent - x.sentLen + x.here + x.hereLen
			case pos > x.sent && end:
				return x.here + x.hereLen
			case pos > x.sent:
				return x.here
			}
		}
		return pos
	}
	pairs := make([]string, 0, 2*len(o.secrets))
	for p, secret := range o.secrets {
		pairs = append(pairs, p, secret)
	}
	back := strings.NewReplacer(pairs...)
	out := make([]string, 0, len(evidence))
	for _, e := range evidence {
		if start, end, ok := citedBytes(e); ok {
			out = append(out, fmt.Sprintf("bytes %d-%d", here(start, false), here(end, true)))
			continue
		}
		out = append(out, back.Replace(e))
	}
	return out
}
