package policy

import (
	"time"

	"cel.dev/cel-go/cel"

	"example.org/auditd/schema"
)

// Facts are what rules look at. Report is nil before the small auditor has run.
type Facts struct {
	Flow     *schema.Flow
	Precheck *schema.Precheck
	Report   *schema.Report
	Now      time.Time
}

// Variable is one name that a rule's expression may use.
type Variable struct {
	Name, Type, Doc string
	// naming: a comparison of it with a constant says what a rule allows.
	naming  bool
	celType *cel.Type
	value   func(*Facts) any
}

// Variables lists every name that an expression may use. The payload is among
// them: attackers write it, so whatever compares it pays for its length out of
// the expression's cost limit, and a rule that runs out stops the flow.
func Variables() []Variable {
	text, number, truth, list := cel.StringType, cel.DoubleType, cel.BoolType, cel.ListType(cel.StringType)
	return []Variable{
		{"payload", "string", "the content itself", true, text, func(f *Facts) any { return f.Flow.Payload }},
		{"payload_bytes", "int", "its length", false, cel.IntType, func(f *Facts) any { return int64(len(f.Flow.Payload)) }},
		{"surface", "string", "context, authority, capability", false, text, func(f *Facts) any { return f.Flow.Surface.String() }},
		{"boundary", "string", "reasoning, persistence, authority, execution, disclosure", false, text, func(f *Facts) any { return f.Flow.Boundary.String() }},
		{"owner_authorized", "bool", "the owner authorised this very effect", false, truth, func(f *Facts) any { return f.Flow.OwnerAuthorized }},

		{"source.kind", "string", "user, file, web, tool, agent, memory, email, webhook, skill, other", false, text, func(f *Facts) any { return f.Flow.Source.Kind.String() }},
		{"source.id", "string", "URL, path, tool or sender", true, text, func(f *Facts) any { return idOf(f.Flow.Source.ID) }},
		{"source.host", "string", "the host of source.id where that is a URL, else empty", true, text, func(f *Facts) any { return hostOf(f.Flow.Source.ID) }},
		{"source.trust", "string", "hostile, untrusted, derived, trusted, owner", false, text, func(f *Facts) any { return f.Flow.Source.Trust.String() }},
		{"source.trust_level", "int", "the same from 0 to 4", false, cel.IntType, func(f *Facts) any { return int64(f.Flow.Source.Trust) }},

		{"sink.kind", "string", "reasoning, memory, file, web, tool, exec, message, identity, policy, skill, config, plan, payment, other", false, text, func(f *Facts) any { return f.Flow.Sink.Kind.String() }},
		{"sink.id", "string", "path, component or channel", true, text, func(f *Facts) any { return idOf(f.Flow.Sink.ID) }},
		{"sink.tool", "string", "the tool that would act", true, text, func(f *Facts) any { return f.Flow.Sink.Tool }},
		{"sink.action", "string", "what it would do, in the host's word", true, text, func(f *Facts) any { return f.Flow.Sink.Action }},
		{"sink.destination", "string", "where content would leave to", true, text, func(f *Facts) any { return idOf(f.Flow.Sink.Destination) }},
		{"sink.host", "string", "the host of sink.destination where that is a URL, else empty", true, text, func(f *Facts) any { return hostOf(f.Flow.Sink.Destination) }},
		{"sink.persistent", "bool", "what is written there can steer later sessions", false, truth, func(f *Facts) any { return f.Flow.Sink.Kind.Persistent() }},
		{"sink.permissions", "list(string)", "permissions of the tool", false, list, func(f *Facts) any { return f.Flow.Sink.Permissions }},

		{"session.agent", "string", "the agent's name", false, text, func(f *Facts) any { return f.Flow.Session.Agent }},
		{"session.id", "string", "the session's id", false, text, func(f *Facts) any { return f.Flow.Session.ID }},
		{"session.workspace", "string", "the project's folder", false, text, func(f *Facts) any { return f.Flow.Session.Workspace }},

		{"precheck.codes", "list(string)", "codes that were raised, such as CRED_SECRET", false, list, func(f *Facts) any { return codeWords(f.Precheck) }},
		{"precheck.rules", "list(string)", "names of the rules that matched", false, list, func(f *Facts) any { return ruleNames(f.Precheck) }},
		{"precheck.risk", "double", "coarse hint from 0 to 1", false, number, func(f *Facts) any { return f.Precheck.Risk }},
		{"precheck.complete", "bool", "every byte was looked at", false, truth, func(f *Facts) any {
			return f.Precheck.Coverage.Bytes >= f.Precheck.Coverage.Total && len(f.Precheck.Coverage.Limits) == 0
		}},

		{"report.decision", "string", "what the small auditor decided", false, text, func(f *Facts) any { return f.Report.Decision.String() }},
		{"report.risk", "double", "from 0 to 1", false, number, func(f *Facts) any { return f.Report.Risk }},
		{"report.uncertainty", "double", "from 0 to 1", false, number, func(f *Facts) any { return f.Report.Uncertainty }},
		{"report.exploitability", "double", "from 0 to 1", false, number, func(f *Facts) any { return f.Report.Exploitability }},
		{"report.impact", "double", "from 0 to 1", false, number, func(f *Facts) any { return f.Report.Impact }},
		{"report.residual", "list(string)", "residual risk types, without none", false, list, func(f *Facts) any { return residualWords(f.Report) }},
	}
}

// reportPrefix marks the variables that exist only after the small auditor.
const reportPrefix = "report."

// activation gives the evaluator one flow's facts, each made only when an
// expression asks for it.
type activation struct {
	vars  map[string]Variable
	facts *Facts
}

func (a activation) ResolveName(name string) (any, bool) {
	v, ok := a.vars[name]
	if !ok {
		return nil, false
	}
	return v.value(a.facts), true
}

func (a activation) Parent() cel.Activation { return nil }

// idOf resolves "." and "..", so that a rule over a folder cannot be climbed
// out of.
func idOf(id string) string {
	if clean, ok := cleanID(id); ok {
		return clean
	}
	return id
}

func codeWords(p *schema.Precheck) []string {
	words := []string{}
	for _, c := range p.Codes() {
		words = append(words, c.String())
	}
	return words
}

func ruleNames(p *schema.Precheck) []string {
	names := []string{}
	for _, s := range p.Signals {
		names = append(names, s.Rule)
	}
	return names
}

func residualWords(r *schema.Report) []string {
	words := []string{}
	for _, x := range r.Residuals() {
		words = append(words, x.String())
	}
	return words
}
