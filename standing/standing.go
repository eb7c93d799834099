// Package standing keeps the owner's standing orders: "this finding is wrong
// in that place" (a suppression) and "never again" (a refusal). A person gives
// them while looking at one decision; they hold until a day, or until they are
// revoked, and every decision says which of them it followed.
//
// What an order cannot do is fixed here. It never lifts a hard block or
// self-protection, because the firewall asks only after those. A suppression
// names a place: whatever else an attacker brings there, a finding or a harm
// that the owner did not see when giving it stops the flow as before. Where
// something runs or money moves, a suppression covers one exact payload.
package standing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.org/auditd/policy"
	"example.org/auditd/schema"
)

// Effect says what an order does. Its zero value does nothing.
type Effect string

// Effects.
const (
	Suppress Effect = "suppress" // findings and judgements in a place are not enforced
	Deny     Effect = "deny"     // flows of the scope are blocked
)

// Limits of one order.
const (
	maxText        = 1024                 // bytes of a reason or a glob
	maxRules       = 64                   // rules of one suppression
	MaxSuppression = 366 * 24 * time.Hour // how far away its end may be
)

// ErrForm is wrapped by every refusal of an order's form.
var ErrForm = errors.New("the standing order is not valid")

// Scope is what an order covers: flows where all of its set fields match.
type Scope struct {
	Agent       string            `json:"agent,omitempty"`       // exact
	Workspace   string            `json:"workspace,omitempty"`   // exact
	SinkKind    schema.SinkKind   `json:"sink_kind"`             // always compared
	Tool        string            `json:"tool,omitempty"`        // exact
	Action      string            `json:"action,omitempty"`      // exact
	Sink        string            `json:"sink,omitempty"`        // the sink's id, or with a * a glob over it
	Destination string            `json:"destination,omitempty"` // exact
	SourceKind  schema.SourceKind `json:"source_kind,omitzero"`  // other stands for any
	Source      string            `json:"source,omitempty"`      // the source's id, or a glob
	// Payload is the digest of one exact payload, see Store.Digest.
	Payload string `json:"payload,omitempty"`
}

// Order is one standing order.
type Order struct {
	ID     string `json:"id"`
	Effect Effect `json:"effect"`
	Scope  Scope  `json:"scope"`
	Reason string `json:"reason"` // the owner's words
	// Rules are those whose soft findings a suppression takes away.
	Rules []string `json:"rules,omitempty"`
	// Judgement: the auditor's stop is not enforced either, while it finds
	// nothing but Residuals.
	Judgement bool                  `json:"judgement,omitempty"`
	Residuals []schema.ResidualRisk `json:"residuals,omitempty"`

	Decision string     `json:"decision_id,omitempty"` // that it was given for
	Created  time.Time  `json:"created"`
	Expires  time.Time  `json:"expires,omitzero"` // zero, for a refusal: when it is revoked
	Revoked  *time.Time `json:"revoked,omitempty"`
	By       string     `json:"by,omitempty"`
}

// Active reports whether the order holds at now.
func (o *Order) Active(now time.Time) bool {
	return o.Revoked == nil && (o.Effect == Deny && o.Expires.IsZero() || now.Before(o.Expires))
}

// Dropped reports whether a suppression takes a finding away. Codes that can
// block by themselves stay, whatever an order says.
func (o *Order) Dropped(s schema.Signal) bool {
	return o.Effect == Suppress && s.Severity == schema.Soft && !s.Code.Hard() && slices.Contains(o.Rules, s.Rule)
}

// Lifts reports whether a suppression keeps the auditor's report from being
// enforced: it finds no harm that the owner did not see.
func (o *Order) Lifts(r *schema.Report) bool {
	return o.Effect == Suppress && o.Judgement && !slices.ContainsFunc(r.Residuals(), func(x schema.ResidualRisk) bool { return !slices.Contains(o.Residuals, x) })
}

// compiled is an order that can be matched.
type compiled struct {
	Order
	sink, source policy.Glob
}

func compile(o Order, now time.Time) (compiled, error) {
	c := compiled{Order: o}
	refuse := func(field, format string, args ...any) (compiled, error) {
		return c, fmt.Errorf("%w: %s: %s", ErrForm, field, fmt.Sprintf(format, args...))
	}
	s := &o.Scope
	for _, t := range []struct{ field, text string }{
		{"reason", o.Reason}, {"agent", s.Agent}, {"workspace", s.Workspace}, {"tool", s.Tool}, {"action", s.Action}, {"sink", s.Sink},
		{"destination", s.Destination}, {"source", s.Source}, {"decision_id", o.Decision}, {"by", o.By}, {"payload", s.Payload},
	} {
		if len(t.text) > maxText {
			return refuse(t.field, "has %d bytes, the limit is %d", len(t.text), maxText)
		}
	}
	if strings.TrimSpace(o.Reason) == "" {
		return refuse("reason", "is missing")
	}
	for _, g := range []struct {
		field, text string
		to          *policy.Glob
	}{{"sink", s.Sink, &c.sink}, {"source", s.Source, &c.source}} {
		if g.text == "" {
			continue
		}
		if strings.Trim(g.text, "*/?:.") == "" {
			return refuse(g.field, "matches everything, so that it names nothing")
		}
		if !strings.Contains(g.text, "*") {
			continue // a "?" in it is that of a URL
		}
		var err error
		if *g.to, err = policy.NewGlob(g.text); err != nil {
			return refuse(g.field, "%v", err)
		}
	}
	named := s.Sink != "" || s.Destination != "" || s.Source != "" || s.Payload != ""
	switch o.Effect {
	case Deny:
		if !named && s.Agent == "" && s.Tool == "" {
			return refuse("scope", "name an agent, a tool, a target, a source or a payload")
		}
		if len(o.Rules) > 0 || o.Judgement || len(o.Residuals) > 0 {
			return refuse("rules", "belong to a suppression")
		}
	case Suppress:
		switch {
		case !named:
			return refuse("scope", "name a target, a source or a payload: a suppression holds in one place")
		case len(o.Rules) == 0 && !o.Judgement:
			return refuse("rules", "name findings, or judgement")
		case len(o.Rules) > maxRules:
			return refuse("rules", "has %d entries, the limit is %d", len(o.Rules), maxRules)
		case !o.Judgement && len(o.Residuals) > 0:
			return refuse("residuals", "go with judgement")
		case o.Judgement && acts(s.SinkKind) && s.Payload == "":
			return refuse("payload", "is missing: where something runs, money moves or rules change, a suppression covers one exact payload")
		case o.Expires.IsZero():
			return refuse("expires", "is missing")
		case o.Expires.Sub(o.Created) > MaxSuppression:
			return refuse("expires", "is more than a year away")
		}
	default:
		return refuse("effect", "must be suppress or deny")
	}
	if !o.Expires.IsZero() && !o.Expires.After(now) {
		return refuse("expires", "is over")
	}
	return c, nil
}

// acts reports whether what goes into k takes effect at once.
func acts(k schema.SinkKind) bool {
	switch k {
	case schema.SinkExec, schema.SinkPayment, schema.SinkIdentity, schema.SinkPolicy, schema.SinkConfig:
		return true
	default:
		return false
	}
}

// covers compares a flow with the scope.
func (c *compiled) covers(f *schema.Flow, payload func() string) bool {
	s := &c.Scope
	same := func(want, got string) bool { return want == "" || want == got }
	return s.SinkKind == f.Sink.Kind && same(s.Agent, f.Session.Agent) && same(s.Workspace, f.Session.Workspace) &&
		same(s.Tool, f.Sink.Tool) && same(s.Action, f.Sink.Action) && same(s.Destination, f.Sink.Destination) &&
		(s.SourceKind == schema.SourceOther || s.SourceKind == f.Source.Kind) &&
		(same(s.Sink, f.Sink.ID) || c.sink.Match(f.Sink.ID)) && (same(s.Source, f.Source.ID) || c.source.Match(f.Source.ID)) &&
		(s.Payload == "" || s.Payload == payload())
}
