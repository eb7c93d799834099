package main

import (
	"fmt"
	"strings"
	"time"

	"example.org/auditd/auditlog"
	"example.org/auditd/escalation"
	"example.org/auditd/schema"
)

// story is one decision as a person reads it, from a live answer or from the
// log.
type story struct {
	d          schema.Decision
	flow       schema.Flow // without a payload when it comes from the log
	bytes      int         // of the payload
	payload    string      // redacted, when it is kept
	sent       string      // redacted, what left for the arbiter
	thresholds escalation.Thresholds
	place      []string // where it is in the log, and what proves that
}

// storyOf restores from a record, and from its redacted text when that is still
// there, what a decision said.
func storyOf(r *auditlog.Record, v *auditlog.Value) story {
	if v == nil {
		v = new(auditlog.Value)
	}
	s := story{payload: v.Payload}
	s.d.ID, s.d.Time, s.d.LogIndex = r.ID, r.Time, r.Index
	if f := r.Flow; f != nil {
		s.bytes = f.Payload.Bytes
		s.flow = schema.Flow{Surface: f.Surface, Boundary: f.Boundary, Intent: v.Intent, OwnerAuthorized: f.OwnerAuthorized,
			Source: schema.Source{Kind: f.SourceKind, ID: v.Source, Trust: f.SourceTrust},
			Sink: schema.Sink{Kind: f.SinkKind, ID: v.Sink, Tool: v.Tool, Action: v.ToolAction, Destination: v.Destination,
				Permissions: v.Permissions},
			Session: schema.Session{Agent: v.Agent, ID: v.Session, CallID: v.Call, Workspace: v.Workspace}}
	}
	d := r.Decision
	if d == nil {
		return s
	}
	s.d.Action, s.d.Mediation, s.d.Stage, s.d.Reason, s.d.Message = d.Action, d.Mediation, d.Stage, d.Reason, v.Message
	s.d.Observed, s.d.Cached, s.d.Residual, s.d.LatencyMS = d.Observed, d.Cached, d.Residual, d.LatencyMS
	s.d.Usage, s.d.Trace = d.Usage, d.Trace
	if v.Rewrite != "" {
		s.d.Payload = &v.Rewrite
	}
	s.d.Precheck = precheckOf(d.Precheck, v.Details)
	s.d.Report, s.d.Second = reportOf(d.Report, v.Evidence), reportOf(d.Second, v.Second)
	if a := reportOf(d.Arbiter, v.Arbiter); a != nil {
		s.d.Arbiter = &schema.ArbiterReport{Decision: a.Decision, Risk: a.Risk, ResidualRiskTypes: a.ResidualRiskTypes, Evidence: a.Evidence}
	}
	s.sent = v.Sent
	for i, code := range d.Escalation {
		e := schema.EscalationReason{Code: code}
		if i < len(v.Escalation) {
			e.Detail = v.Escalation[i]
		}
		s.d.Escalation = append(s.d.Escalation, e)
	}
	return s
}

func precheckOf(p *auditlog.Precheck, details []string) *schema.Precheck {
	if p == nil {
		return nil
	}
	out := &schema.Precheck{HardBlock: p.HardBlock, HardReason: p.HardReason, Risk: p.Risk, Exploitability: p.Exploitability, Impact: p.Impact,
		Coverage: schema.Coverage{Bytes: p.Bytes, Total: p.Total, Decoded: p.Decoded, Decoders: p.Decoders, Limits: p.Limits}}
	for i, x := range p.Signals {
		sig := schema.Signal{Code: x.Code, Severity: x.Severity, Rule: x.Rule, Spans: x.Spans, Via: x.Via}
		if i < len(details) {
			sig.Detail = details[i]
		}
		out.Signals = append(out.Signals, sig)
	}
	return out
}

func reportOf(r *auditlog.Report, evidence []string) *schema.Report {
	if r == nil {
		return nil
	}
	return &schema.Report{Decision: r.Decision, Risk: r.Risk, Uncertainty: r.Uncertainty, Exploitability: r.Exploitability, Impact: r.Impact,
		ResidualRiskTypes: r.ResidualRiskTypes, RewriteCompleteness: r.RewriteCompleteness, NeedsLargeReview: r.NeedsLargeReview, Evidence: evidence}
}

// verdict is the one word, its mark and its colour.
func verdict(a schema.Action) (mark, word string, s style) {
	switch a {
	case schema.Allow:
		return "✓", "ALLOWED", green
	case schema.RewriteAndContinue:
		return "✎", "REWRITTEN", yellow
	case schema.DeferToHuman:
		return "…", "WAITING FOR YOU", yellow
	default:
		return "✗", "BLOCKED", red
	}
}

// tell prints the whole story.
func (o *painter) tell(s *story) {
	d := &s.d
	mark, word, st := verdict(d.Action)
	o.printf("%s  %s\n", o.paint(st, mark+" "+word), o.paint(dim, d.ID))
	if d.Message != "" {
		for _, line := range wrap(oneLine(d.Message, 600), o.width-4) {
			o.printf("  %s\n", line)
		}
	}
	if d.Observed != nil {
		_, would, ws := verdict(*d.Observed)
		o.printf("  %s\n", "This agent is only observed. Otherwise: "+o.paint(ws, would)+".")
	}
	o.printf("\n")
	o.where(s)
	o.text("Payload", fmt.Sprintf("%d bytes", s.bytes), s.payload)
	if d.Payload != nil {
		o.text("Forwarded", fmt.Sprintf("%d bytes instead", len(*d.Payload)), *d.Payload)
	}
	o.signals(d.Precheck)
	o.report("Auditor", d.Report, usageOf(d, 0), &s.thresholds, d.Residual)
	if d.Second != nil {
		o.report("Auditor, on the rewritten payload", d.Second, "", &s.thresholds, d.Residual)
	}
	if len(d.Escalation) > 0 {
		o.heading("Looked at again because", "")
		for _, e := range d.Escalation {
			o.printf("  • %s  %s\n", e.Code, o.paint(dim, oneLine(e.Detail, 200)))
		}
	}
	if a := d.Arbiter; a != nil {
		o.heading("Arbiter", a.Decision.String())
		o.printf("  %-15s %.2f %s\n", "risk", a.Risk, o.bar(a.Risk, riskStyle(a.Risk)))
		o.findings(a.ResidualRiskTypes, a.Evidence)
	}
	if s.sent != "" {
		o.text("sent out", fmt.Sprintf("%d bytes, secrets replaced", len(s.sent)), s.sent)
	}
	o.stages(d)
	if len(s.place) > 0 {
		o.heading("Recorded", "")
		for _, line := range s.place {
			o.printf("  %s\n", line)
		}
	}
}

func usageOf(d *schema.Decision, i int) string {
	if i >= len(d.Usage) {
		return ""
	}
	u := d.Usage[i]
	name := u.Model
	if name == "" || strings.HasPrefix(name, "hmac:") {
		name = u.Backend
	}
	text := name + ", " + millis(u.DurationMS)
	if u.PromptTokens > 0 {
		text += fmt.Sprintf(", %d+%d tokens", u.PromptTokens, u.OutputTokens)
	}
	if u.Windows > 1 {
		text += fmt.Sprintf(", %d windows", u.Windows)
	}
	return text
}

func millis(ms float64) string {
	switch {
	case ms >= 1000:
		return fmt.Sprintf("%.1f s", ms/1000)
	case ms >= 10:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.2f ms", ms)
	}
}

// where prints when, from where and to where.
func (o *painter) where(s *story) {
	d, f := &s.d, &s.flow
	when := d.Time.Local().Format(time.DateTime) + " · took " + millis(d.LatencyMS)
	if d.Cached {
		when += " · known from an identical flow"
	}
	o.field("when", when)
	if a := f.Session.Agent; a != "" || f.Session.ID != "" {
		who := oneLine(a, 60)
		if f.Session.ID != "" {
			who += "  " + o.paint(dim, "session "+oneLine(f.Session.ID, 60))
		}
		o.field("agent", who)
	}
	o.field("from", f.Source.Kind.String()+note(f.Source.ID)+"  "+o.paint(dim, f.Source.Trust.String()))
	to := f.Sink.Kind.String()
	for _, x := range []string{f.Sink.Tool, f.Sink.Action, f.Sink.ID, f.Sink.Destination} {
		to += note(x)
	}
	if f.Surface != schema.SurfaceUnset && f.Boundary != schema.BoundaryUnset {
		to += "  " + o.paint(dim, f.Surface.String()+" surface, "+f.Boundary.String()+" boundary")
	}
	o.field("to", to)
	if f.Intent != "" {
		o.field("asked for", oneLine(f.Intent, 200))
	}
	o.field("decided by", d.Stage.String()+" · "+d.Reason)
}

func note(s string) string {
	if s == "" {
		return ""
	}
	return " " + oneLine(s, 100)
}

// maxShown bounds how many lines of a payload are printed.
const maxShown = 10

// text prints a redacted text, every control character made harmless: it was
// written by whoever wrote the payload.
func (o *painter) text(label, size, text string) {
	o.field(strings.ToLower(label), size)
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i == maxShown {
			o.printf("    %s\n", o.paint(dim, fmt.Sprintf("… %d more lines", len(lines)-i)))
			break
		}
		o.printf("    %s %s\n", o.paint(dim, "│"), oneLine(line, o.width-8))
	}
}

func (o *painter) signals(p *schema.Precheck) {
	if p == nil {
		return
	}
	c := p.Coverage
	rest := fmt.Sprintf("%d of %d bytes looked at", c.Bytes, c.Total)
	if c.Decoded > 0 {
		rest += fmt.Sprintf(", and %d decoded", c.Decoded)
	}
	if len(c.Decoders) > 0 {
		rest += " (" + strings.Join(c.Decoders, ", ") + ")"
	}
	if len(c.Limits) > 0 {
		rest += "; stopped by " + strings.Join(c.Limits, ", ")
	}
	o.heading("Precheck", rest)
	if len(p.Signals) == 0 {
		o.printf("  nothing found\n")
		return
	}
	for _, x := range p.Signals {
		mark := o.paint(yellow, "soft")
		if x.Severity == schema.Hard {
			mark = o.paint(red, "hard")
		}
		line := fmt.Sprintf("  %s  %-28s %s", mark, x.Code, o.paint(dim, x.Rule))
		if n := len(x.Spans); n > 0 {
			line += o.paint(dim, fmt.Sprintf(" at %d–%d", x.Spans[0].Start, x.Spans[0].End))
			if n > 1 {
				line += o.paint(dim, fmt.Sprintf(" and %d more", n-1))
			}
		}
		if len(x.Via) > 0 {
			line += o.paint(blue, " via "+strings.Join(x.Via, " → "))
		}
		o.printf("%s\n", line)
		if x.Detail != "" {
			o.printf("        %s\n", oneLine(x.Detail, o.width-10))
		}
	}
	if p.HardBlock {
		o.printf("  %s\n", o.paint(red, "The hard rule "+p.HardReason+" stopped the flow."))
	}
}

func riskStyle(v float64) style {
	switch {
	case v >= 0.55:
		return red
	case v >= 0.35:
		return yellow
	default:
		return green
	}
}

// report prints the numbers with the thresholds that they are compared with.
func (o *painter) report(title string, r *schema.Report, usage string, t *escalation.Thresholds, residual float64) {
	if r == nil {
		return
	}
	o.heading(title, strings.TrimSuffix("says "+r.Decision.String()+" · "+usage, " · "))
	row := func(name string, v float64, s style, compared string) {
		o.printf("  %-15s %.2f %s  %s\n", name, v, o.bar(v, s), o.paint(dim, compared))
	}
	row("risk", r.Risk, riskStyle(r.Risk), fmt.Sprintf("allow ≤ %.2f · defer ≥ %.2f · block ≥ %.2f", t.SmallAllow.RiskMax, t.SmallDefer.RiskMin, t.SmallBlock.RiskMin))
	row("uncertainty", r.Uncertainty, blue, fmt.Sprintf("sure enough to allow ≤ %.2f, to block ≤ %.2f", t.SmallAllow.UncertaintyMax, t.SmallBlock.UncertaintyMax))
	row("residual", residual, riskStyle(residual), fmt.Sprintf("allow ≤ %.2f", t.SmallAllow.ResidualMax))
	row("exploitability", r.Exploitability, blue, fmt.Sprintf("gray ≥ %.2f", t.Gray.ExploitabilityMin))
	row("impact", r.Impact, blue, "")
	if r.Decision == schema.RewriteAndContinue || r.RewriteCompleteness > 0 {
		row("completeness", r.RewriteCompleteness, blue, fmt.Sprintf("complete ≥ %.2f", t.CompleteRewrite.CompletenessMin))
	}
	if r.NeedsLargeReview {
		o.printf("  asks for a stronger judge\n")
	}
	o.findings(r.ResidualRiskTypes, r.Evidence)
}

func (o *painter) findings(residuals []schema.ResidualRisk, evidence []string) {
	var names []string
	for _, x := range residuals {
		names = append(names, x.String())
	}
	o.printf("  %-15s %s\n", "left in it", strings.Join(names, ", "))
	for i, e := range evidence {
		label := ""
		if i == 0 {
			label = "because"
		}
		o.printf("  %-15s %s\n", label, oneLine(e, o.width-20))
	}
}

func (o *painter) stages(d *schema.Decision) {
	if len(d.Trace) == 0 {
		return
	}
	o.heading("Stages", "")
	var parts []string
	for _, t := range d.Trace {
		part := t.Stage.String() + " " + o.paint(dim, millis(t.DurationMS))
		if t.Outcome != "next" {
			part = o.paint(bold, t.Stage.String()) + " " + o.paint(dim, millis(t.DurationMS)) + " " + t.Outcome
		}
		parts = append(parts, part)
	}
	o.printf("  %s\n", strings.Join(parts, o.paint(dim, " ▸ ")))
}
