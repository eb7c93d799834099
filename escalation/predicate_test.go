package escalation

import (
	"math"
	"slices"
	"strings"
	"testing"

	"example.org/auditd/schema"
)

// row is one line of the truth table. Fields that are not set stand for the
// quietest report: nothing named, all scores 0.
type row struct {
	name     string
	surface  schema.Surface
	sink     schema.SinkKind
	trust    schema.Trust // hostile unless the row says otherwise
	dest     string
	codes    []schema.Code
	decision schema.Action
	risk     float64
	u        float64
	exploit  float64
	complete float64
	residual float64
	named    []schema.ResidualRisk
	review   bool
	want     string // the reasons' codes, space separated; empty ends locally
}

const (
	below = -1e-9
	above = 1e-9
)

func (r row) decide(c Config) Outcome {
	named := r.named
	if named == nil {
		named = []schema.ResidualRisk{schema.ResidualNone}
	}
	pre := &schema.Precheck{}
	for _, code := range r.codes {
		pre.Signals = append(pre.Signals, schema.Signal{Code: code})
	}
	f := &schema.Flow{Surface: r.surface, Source: schema.Source{Trust: r.trust}, Sink: schema.Sink{Kind: r.sink, Destination: r.dest}}
	if f.Surface == schema.SurfaceUnset {
		f.Surface = r.sink.Surface()
	}
	f.Boundary = r.sink.Boundary()
	rep := &schema.Report{
		Decision: r.decision, Risk: r.risk, Uncertainty: r.u, Exploitability: r.exploit,
		RewriteCompleteness: r.complete, NeedsLargeReview: r.review, ResidualRiskTypes: named,
	}
	return c.Decide(f, pre, rep, r.residual, r.decision == schema.RewriteAndContinue)
}

func (r row) codesOf(o Outcome) string {
	var codes []string
	for _, x := range o.Reasons {
		codes = append(codes, x.Code)
	}
	return strings.Join(codes, " ")
}

// thresholdRows walks every boundary of Table 5 at equality and just beside it.
func thresholdRows() []row {
	allow, block, wait, rewrite := schema.Allow, schema.Block, schema.DeferToHuman, schema.RewriteAndContinue
	mem := schema.SinkReasoning
	return []row{
		{name: "quiet allow", sink: mem, decision: allow},
		{name: "allow, risk at max", sink: mem, decision: allow, risk: .20},
		{name: "allow, risk above max", sink: mem, decision: allow, risk: .20 + above, want: "unclear_allow"},
		{name: "allow, uncertainty at max", sink: mem, decision: allow, u: .25},
		{name: "allow, uncertainty above max", sink: mem, decision: allow, u: .25 + above, want: "unclear_allow"},
		{name: "allow, residual at max", sink: mem, decision: allow, residual: .20},
		{name: "allow, residual above max", sink: mem, decision: allow, residual: .20 + above, want: "unclear_allow"},
		{name: "allow, review wanted", sink: mem, decision: allow, review: true, want: "needs_large_review"},
		{name: "allow with everything against it", sink: mem, decision: allow, risk: 1, u: 1, exploit: 1, residual: 1,
			want: "unclear_allow high_residual high_uncertainty gray_zone"},

		{name: "block, risk at min", sink: mem, decision: block, risk: .75},
		{name: "block, risk below min", sink: mem, decision: block, risk: .75 + below, want: "unclear_block"},
		{name: "block, uncertainty at max", sink: mem, decision: block, risk: .9, u: .30},
		{name: "block, uncertainty above max", sink: mem, decision: block, risk: .9, u: .30 + above, want: "unclear_block"},
		{name: "clear block ends though review is wanted", sink: mem, decision: block, risk: .9, review: true},

		{name: "defer, risk at min", sink: mem, decision: wait, risk: .55},
		{name: "defer, risk below min", sink: mem, decision: wait, risk: .55 + below, want: "unclear_defer"},
		{name: "defer, uncertainty at max", sink: mem, decision: wait, risk: .6, u: .35},
		{name: "defer, uncertainty above max", sink: mem, decision: wait, risk: .6, u: .35 + above, want: "unclear_defer high_uncertainty"},
		{name: "clear defer ends though review is wanted", sink: mem, decision: wait, risk: .6, review: true},

		{name: "rewrite, completeness at min", sink: mem, decision: rewrite, complete: .90, risk: .9},
		{name: "rewrite, completeness below min", sink: mem, decision: rewrite, complete: .90 + below, want: "incomplete_rewrite"},
		{name: "rewrite, residual at max", sink: mem, decision: rewrite, complete: 1, residual: .15},
		{name: "rewrite, residual above max", sink: mem, decision: rewrite, complete: 1, residual: .15 + above, want: "incomplete_rewrite"},
		{name: "rewrite, uncertainty at max", sink: mem, decision: rewrite, complete: 1, u: .25},
		{name: "rewrite, uncertainty above max", sink: mem, decision: rewrite, complete: 1, u: .25 + above, want: "incomplete_rewrite"},
		{name: "rewrite, review wanted", sink: mem, decision: rewrite, complete: 1, review: true, want: "needs_large_review incomplete_rewrite"},

		{name: "high residual at min", sink: mem, decision: allow, residual: .45, want: "unclear_allow high_residual"},
		{name: "high residual below min", sink: mem, decision: allow, residual: .45 + below, want: "unclear_allow"},
		{name: "high uncertainty at min", sink: mem, decision: allow, u: .35, want: "unclear_allow high_uncertainty"},
		{name: "high uncertainty below min", sink: mem, decision: allow, u: .35 + below, want: "unclear_allow"},
		{name: "gray, all at min by exploitability", sink: mem, decision: allow, risk: .35, exploit: .50, want: "unclear_allow gray_zone"},
		{name: "gray, risk below min", sink: mem, decision: allow, risk: .35 + below, exploit: .50, want: "unclear_allow"},
		{name: "gray, exploitability below min", sink: mem, decision: allow, risk: .35, exploit: .50 + below, want: "unclear_allow"},
		{name: "gray, residual at min", sink: mem, decision: allow, risk: .35, residual: .25, want: "unclear_allow gray_zone"},
		{name: "gray, residual below min", sink: mem, decision: allow, risk: .35, residual: .25 + below, want: "unclear_allow"},

		{name: "NaN risk", sink: mem, decision: allow, risk: math.NaN(), want: "unclear_allow"},
		{name: "NaN uncertainty", sink: mem, decision: block, risk: 1, u: math.NaN(), want: "unclear_block"},
		{name: "NaN residual", sink: mem, decision: rewrite, complete: 1, residual: math.NaN(), want: "incomplete_rewrite"},
		{name: "no such decision", sink: mem, decision: 9, want: "unknown_decision"},
	}
}

// surfaceRows has, for every surface condition, a row where it holds against
// the clearest allow and rows where one of its parts is missing.
func surfaceRows() []row {
	allow := schema.Allow
	is := func(r ...schema.ResidualRisk) []schema.ResidualRisk { return r }
	raised := func(c ...schema.Code) []schema.Code { return c }
	return []row{
		{name: "memory write that names nothing", sink: schema.SinkMemory, decision: allow, codes: raised(schema.PersistentContextUntrusted)},
		{name: "skill write that names nothing", sink: schema.SinkSkill, decision: allow},
		{name: "config write that names nothing", sink: schema.SinkConfig, decision: allow, codes: raised(schema.AuthorityCrossing)},
		{name: "command that names nothing", sink: schema.SinkExec, decision: allow, codes: raised(schema.DangerousSideEffect, schema.SensitiveFilePath)},
		{name: "message that names nothing", sink: schema.SinkMessage, dest: "a@example.com", decision: allow, codes: raised(schema.ExternalSink, schema.PIIContact)},

		// Two findings of the precheck ground these without a residual type.
		{name: "credential to an outside place", sink: schema.SinkExec, decision: allow, codes: raised(schema.SensitiveFilePath, schema.ExternalSink), want: "capability_secret_to_external"},
		{name: "secret in a message that names an outside place", sink: schema.SinkMessage, decision: allow, codes: raised(schema.CredSecret, schema.ExternalSink), want: "capability_secret_to_external"},
		{name: "credential to an outside place, by the owner", sink: schema.SinkExec, trust: schema.Owner, decision: allow, codes: raised(schema.SensitiveFilePath, schema.ExternalSink)},
		{name: "credential alone", sink: schema.SinkExec, decision: allow, codes: raised(schema.SensitiveFilePath)},
		{name: "steering text into memory", sink: schema.SinkMemory, decision: allow, codes: raised(schema.PromptControl), want: "context_steering_to_persist"},
		{name: "change of authority into memory", sink: schema.SinkMemory, trust: schema.Derived, decision: allow, codes: raised(schema.AuthorityCrossing), want: "context_steering_to_persist"},
		{name: "steering text into memory, by the owner", sink: schema.SinkMemory, trust: schema.Owner, decision: allow, codes: raised(schema.PromptControl)},
		{name: "steering text into reasoning", sink: schema.SinkReasoning, decision: allow, codes: raised(schema.PromptControl)},
		{name: "steering text that names a secret", sink: schema.SinkReasoning, decision: allow, codes: raised(schema.PromptControl, schema.SensitiveFilePath), want: "context_steering_with_effect"},
		{name: "steering text that names a secret, by the owner", sink: schema.SinkReasoning, trust: schema.Owner, decision: allow, codes: raised(schema.PromptControl, schema.SensitiveFilePath)},
		{name: "steering text into identity", sink: schema.SinkIdentity, decision: allow, codes: raised(schema.ToolOutputPoisoning), want: "authority_steering_to_persist"},

		{name: "context, prompt control", sink: schema.SinkReasoning, decision: allow, named: is(schema.ResidualPromptControl), want: "context_prompt_control_residue"},
		{name: "context, tool induction", sink: schema.SinkReasoning, decision: allow, named: is(schema.ResidualToolInduction), want: "context_tool_induction"},
		{name: "memory, prompt control", sink: schema.SinkMemory, decision: allow, named: is(schema.ResidualPromptControl),
			want: "context_prompt_control_residue context_persistent_poisoning"},
		{name: "memory, authority", sink: schema.SinkMemory, decision: allow, named: is(schema.ResidualAuthority), want: "context_persistent_poisoning"},
		{name: "reasoning, authority", sink: schema.SinkReasoning, decision: allow, named: is(schema.ResidualAuthority)},
		{name: "plan, side effect", sink: schema.SinkPlan, decision: allow, named: is(schema.ResidualSideEffect), want: "context_state_update"},
		{name: "reasoning, side effect", sink: schema.SinkReasoning, decision: allow, named: is(schema.ResidualSideEffect)},
		{name: "reasoning marked persistent, sensitive span", sink: schema.SinkReasoning, decision: allow, named: is(schema.ResidualSensitiveSpan),
			codes: raised(schema.PersistentContextUntrusted), want: "context_state_update"},
		{name: "context, encoded", sink: schema.SinkReasoning, decision: allow, codes: raised(schema.EncodedPayload), want: "context_encoded_payload"},
		{name: "capability, encoded", sink: schema.SinkExec, decision: allow, codes: raised(schema.EncodedPayload)},
		{name: "context, recipient", sink: schema.SinkReasoning, decision: allow, named: is(schema.ResidualRecipient)},

		{name: "authority, recipient", sink: schema.SinkPolicy, decision: allow, named: is(schema.ResidualRecipient), want: "authority_recipient_rebinding"},
		{name: "authority, crossing", sink: schema.SinkIdentity, decision: allow, named: is(schema.ResidualAuthority), want: "authority_crossing"},
		{name: "authority, prompt control", sink: schema.SinkConfig, decision: allow, named: is(schema.ResidualPromptControl), want: "authority_approval_bypass"},
		{name: "authority, external with destination", sink: schema.SinkConfig, dest: "https://example.com", decision: allow, named: is(schema.ResidualExternalSink), want: "authority_destination_mismatch"},
		{name: "authority, external without destination", sink: schema.SinkConfig, decision: allow, named: is(schema.ResidualExternalSink)},
		{name: "authority on another sink", surface: schema.Authority, sink: schema.SinkMessage, decision: allow, named: is(schema.ResidualRecipient), want: "authority_recipient_rebinding"},

		{name: "capability, irreversible", sink: schema.SinkExec, decision: allow, named: is(schema.ResidualIrreversible), want: "capability_irreversible"},
		{name: "capability, side effect with code", sink: schema.SinkExec, decision: allow, named: is(schema.ResidualSideEffect), codes: raised(schema.DangerousSideEffect), want: "capability_destructive"},
		{name: "capability, side effect without code", sink: schema.SinkExec, decision: allow, named: is(schema.ResidualSideEffect)},
		{name: "payment, side effect", sink: schema.SinkPayment, decision: allow, named: is(schema.ResidualSideEffect), want: "capability_payment"},
		{name: "capability, authority", sink: schema.SinkTool, decision: allow, named: is(schema.ResidualAuthority), want: "capability_approval_bypass"},
		{name: "capability, sensitive path", sink: schema.SinkExec, decision: allow, named: is(schema.ResidualSensitiveSpan), codes: raised(schema.SensitiveFilePath), want: "capability_private_workspace"},
		{name: "capability, credential", sink: schema.SinkExec, decision: allow, named: is(schema.ResidualSensitiveSpan), codes: raised(schema.CredSecret), want: "capability_credential_access"},
		{name: "capability, sensitive span alone", sink: schema.SinkFile, decision: allow, named: is(schema.ResidualSensitiveSpan)},
		{name: "capability, tool induction", sink: schema.SinkExec, decision: allow, named: is(schema.ResidualToolInduction), want: "capability_induced_action"},
		{name: "capability, disclosure", sink: schema.SinkExec, decision: allow, named: is(schema.ResidualExternalSink), want: "capability_external_disclosure"},
		{name: "message, sensitive span", sink: schema.SinkMessage, decision: allow, named: is(schema.ResidualSensitiveSpan), want: "capability_sensitive_to_external"},
		{name: "file with destination, recipient", sink: schema.SinkFile, dest: "s3://x", decision: allow, named: is(schema.ResidualRecipient), want: "capability_sensitive_to_external"},
		{name: "file, recipient", sink: schema.SinkFile, decision: allow, named: is(schema.ResidualRecipient)},

		{name: "surface outranks a clear allow but not a clear block", sink: schema.SinkReasoning, decision: schema.Block, risk: .9, named: is(schema.ResidualPromptControl)},
		{name: "nor a clear defer", sink: schema.SinkReasoning, decision: schema.DeferToHuman, risk: .6, named: is(schema.ResidualPromptControl)},
		{name: "nor a complete rewrite", sink: schema.SinkReasoning, decision: schema.RewriteAndContinue, complete: 1, named: is(schema.ResidualPromptControl)},
		{name: "an unclear block names its surface too", sink: schema.SinkReasoning, decision: schema.Block, risk: .5, named: is(schema.ResidualPromptControl),
			want: "context_prompt_control_residue unclear_block"},
		{name: "surface and review", sink: schema.SinkReasoning, decision: allow, review: true, named: is(schema.ResidualPromptControl),
			want: "context_prompt_control_residue needs_large_review"},
	}
}

func TestTruthTable(t *testing.T) {
	for _, r := range append(thresholdRows(), surfaceRows()...) {
		t.Run(r.name, func(t *testing.T) {
			got := r.decide(Config{Thresholds: Default()})
			if codes := r.codesOf(got); codes != r.want {
				t.Errorf("reasons %q, want %q", codes, r.want)
			}
			if got.Escalate != (r.want != "") {
				t.Errorf("escalate %v with reasons %v", got.Escalate, got.Reasons)
			}
		})
	}
}

func TestEveryConditionHasARow(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range surfaceRows() {
		for _, code := range strings.Fields(r.want) {
			seen[code] = true
		}
	}
	for _, c := range conditions() {
		if !seen[c.code] {
			t.Errorf("no row of the truth table makes %s hold", c.code)
		}
		if c.residual == nil && !slices.Equal(c.codes, []schema.Code{schema.EncodedPayload}) && (c.codes == nil || c.sink == nil) {
			t.Errorf("%s needs neither a residual type nor two findings", c.code)
		}
	}
}

func TestMissingInputEscalates(t *testing.T) {
	f, pre, rep := &schema.Flow{}, &schema.Precheck{}, &schema.Report{Decision: schema.Allow}
	for name, o := range map[string]Outcome{
		"no flow":     Decide(Default(), nil, pre, rep, 0, false),
		"no precheck": Decide(Default(), f, nil, rep, 0, false),
		"no report":   Decide(Default(), f, pre, nil, 0, false),
		"rewrite that was not applied": Decide(Default(), f, pre,
			&schema.Report{Decision: schema.RewriteAndContinue, RewriteCompleteness: 1}, 0, false),
		"allow of a rewritten flow": Decide(Default(), f, pre, rep, 0, true),
	} {
		if !o.Escalate || len(o.Reasons) == 0 {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestSwitches(t *testing.T) {
	surface := row{sink: schema.SinkReasoning, decision: schema.Allow, named: []schema.ResidualRisk{schema.ResidualPromptControl}}
	unsure := row{sink: schema.SinkReasoning, decision: schema.Allow, u: .9}
	for _, tt := range []struct {
		name           string
		c              Config
		surface, score bool // whether the two rows escalate
	}{
		{"full", Config{}, true, true},
		{"without surface", Config{WithoutSurface: true}, false, true},
		{"without uncertainty", Config{WithoutUncertainty: true}, true, false},
		{"decision only", Config{DecisionOnly: true}, false, false},
	} {
		tt.c.Thresholds = Default()
		if got := surface.decide(tt.c).Escalate; got != tt.surface {
			t.Errorf("%s: surface row escalates %v", tt.name, got)
		}
		if got := unsure.decide(tt.c).Escalate; got != tt.score {
			t.Errorf("%s: uncertain row escalates %v", tt.name, got)
		}
	}
}

func TestResidual(t *testing.T) {
	named := &schema.Report{Risk: .6, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualSideEffect}}
	none := &schema.Report{Risk: .6, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualNone}}
	for _, tt := range []struct {
		name        string
		rep, second *schema.Report
		want        float64
	}{
		{"named", named, nil, .6}, {"none named", none, nil, 0}, {"second audit", named, &schema.Report{Risk: .1}, .1}, {"nothing", nil, nil, 0},
	} {
		if got := Residual(tt.rep, tt.second); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestThresholdsValidate(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Thresholds){
		"over one":     func(t *Thresholds) { t.HighResidual = 1.01 },
		"negative":     func(t *Thresholds) { t.Gray.RiskMin = -.1 },
		"NaN":          func(t *Thresholds) { t.SmallAllow.RiskMax = math.NaN() },
		"allow over":   func(t *Thresholds) { t.SmallAllow.RiskMax = .6 },
		"defer higher": func(t *Thresholds) { t.SmallDefer.RiskMin = .8 },
	} {
		th := Default()
		change(&th)
		if th.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if (Thresholds{}).Validate() == nil {
		t.Error("the zero thresholds are accepted")
	}
}

func BenchmarkDecide(b *testing.B) {
	r := surfaceRows()[7]
	b.ReportAllocs()
	for b.Loop() {
		r.decide(Config{Thresholds: Default()})
	}
}
