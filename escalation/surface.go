package escalation

import (
	"slices"
	"strings"

	"example.org/auditd/schema"
)

// condition is one surface condition (token-flow paper, B.3). It holds when
// the report names one of residual and, where codes are given, the precheck
// raised one of them, and, where sink is given, the sink is such a one. The
// conditions without residual types are that for encoded payloads and those
// that two independent findings of the precheck ground by themselves: there a
// model that sees no risk is overruled by what is in the text.
type condition struct {
	surface  schema.Surface
	code     string
	residual []schema.ResidualRisk
	codes    []schema.Code
	sink     func(*schema.Flow, *schema.Precheck) bool
}

// conditions returns the table. The order is that of the reasons.
func conditions() []condition {
	type risks = []schema.ResidualRisk
	type codes = []schema.Code
	return []condition{
		{schema.Context, "context_prompt_control_residue", risks{schema.ResidualPromptControl}, nil, nil},
		{schema.Context, "context_tool_induction", risks{schema.ResidualToolInduction}, nil, nil},
		{schema.Context, "context_persistent_poisoning",
			risks{schema.ResidualPromptControl, schema.ResidualToolInduction, schema.ResidualAuthority}, nil, persistent},
		{schema.Context, "context_state_update",
			risks{schema.ResidualSensitiveSpan, schema.ResidualExternalSink, schema.ResidualSideEffect, schema.ResidualIrreversible, schema.ResidualRecipient}, nil, persistent},
		{schema.Context, "context_encoded_payload", nil, codes{schema.EncodedPayload}, nil},
		{schema.Context, "context_steering_with_effect", nil, codes{schema.PromptControl}, untrustedEffect},
		{schema.Context, "context_steering_to_persist", nil,
			codes{schema.PromptControl, schema.AuthorityCrossing, schema.ToolOutputPoisoning}, untrustedPersistent},

		{schema.Authority, "authority_recipient_rebinding", risks{schema.ResidualRecipient}, nil, nil},
		{schema.Authority, "authority_crossing", risks{schema.ResidualAuthority}, nil, nil},
		{schema.Authority, "authority_approval_bypass",
			risks{schema.ResidualPromptControl, schema.ResidualToolInduction, schema.ResidualSideEffect, schema.ResidualIrreversible}, nil, nil},
		{schema.Authority, "authority_steering_to_persist", nil,
			codes{schema.PromptControl, schema.ToolOutputPoisoning}, untrustedPersistent},
		{schema.Authority, "authority_destination_mismatch", risks{schema.ResidualExternalSink, schema.ResidualSensitiveSpan}, nil, external},

		{schema.Capability, "capability_irreversible", risks{schema.ResidualIrreversible}, nil, nil},
		{schema.Capability, "capability_destructive", risks{schema.ResidualSideEffect},
			codes{schema.DangerousSideEffect, schema.FinancialData}, nil},
		{schema.Capability, "capability_payment", risks{schema.ResidualSideEffect}, nil, payment},
		{schema.Capability, "capability_approval_bypass", risks{schema.ResidualAuthority}, nil, nil},
		{schema.Capability, "capability_private_workspace", risks{schema.ResidualSensitiveSpan},
			codes{schema.SensitiveFilePath, schema.PrivateEndpoint}, nil},
		{schema.Capability, "capability_credential_access", risks{schema.ResidualSensitiveSpan}, codes{schema.CredSecret}, nil},
		{schema.Capability, "capability_induced_action", risks{schema.ResidualPromptControl, schema.ResidualToolInduction}, nil, nil},
		{schema.Capability, "capability_secret_to_external", nil, codes{schema.SensitiveFilePath, schema.CredSecret}, untrustedExternal},
		{schema.Capability, "capability_external_disclosure", risks{schema.ResidualExternalSink}, nil, nil},
		{schema.Capability, "capability_sensitive_to_external", risks{schema.ResidualSensitiveSpan, schema.ResidualRecipient}, nil, external},
	}
}

// surfaceReasons returns the surface conditions that hold.
func surfaceReasons(f *schema.Flow, pre *schema.Precheck, rep *schema.Report) []schema.EscalationReason {
	var reasons []schema.EscalationReason
	for _, c := range conditions() {
		// A flow without a surface is held to the conditions of all three.
		if f.Surface != schema.SurfaceUnset && c.surface != f.Surface {
			continue
		}
		var named []string
		if c.residual != nil {
			i := slices.IndexFunc(c.residual, rep.HasResidual)
			if i < 0 {
				continue
			}
			named = append(named, c.residual[i].String())
		}
		if c.codes != nil {
			i := slices.IndexFunc(c.codes, pre.Has)
			if i < 0 {
				continue
			}
			named = append(named, c.codes[i].String())
		}
		if c.sink != nil {
			if !c.sink(f, pre) {
				continue
			}
			named = append(named, "sink "+f.Sink.Kind.String())
		}
		reasons = append(reasons, reason(c.code, strings.Join(named, ", ")))
	}
	return reasons
}

// persistent: what is written there can steer later sessions.
func persistent(f *schema.Flow, pre *schema.Precheck) bool {
	return f.Sink.Kind.Persistent() || pre.Has(schema.PersistentContextUntrusted)
}

// untrustedPersistent: somebody who is not trusted wrote what would steer later
// sessions.
func untrustedPersistent(f *schema.Flow, _ *schema.Precheck) bool {
	return f.Source.Trust < schema.Trusted && f.Sink.Kind.Persistent()
}

// untrustedEffect: the text, which nobody who is trusted wrote, also names what
// an obedient agent would leak, or where to, or what it should do.
func untrustedEffect(f *schema.Flow, pre *schema.Precheck) bool {
	return f.Source.Trust < schema.Trusted && (pre.Has(schema.ExternalSink) || pre.Has(schema.SensitiveFilePath) ||
		pre.Has(schema.CredSecret) || pre.Has(schema.ToolOutputPoisoning))
}

// untrustedExternal: the text itself names a place outside the machine, and
// nobody who is trusted wrote it.
func untrustedExternal(f *schema.Flow, pre *schema.Precheck) bool {
	return f.Source.Trust < schema.Trusted && pre.Has(schema.ExternalSink)
}

// external: the content can reach somebody outside the runtime.
func external(f *schema.Flow, pre *schema.Precheck) bool {
	switch f.Sink.Kind {
	case schema.SinkWeb, schema.SinkMessage, schema.SinkPayment:
		return true
	}
	return f.Sink.Destination != "" || f.Boundary == schema.BoundaryDisclosure ||
		pre.Has(schema.ExternalSink) || pre.Has(schema.RecipientAmbiguity)
}

func payment(f *schema.Flow, _ *schema.Precheck) bool { return f.Sink.Kind == schema.SinkPayment }
