package firewall

import (
	"strings"

	"example.org/auditd/policy"
	"example.org/auditd/schema"
)

// messageOf returns the sentence for a reason: what happened, and what the
// agent or its owner can do. No sentence quotes a payload. A reason without
// one of its own is a model call that failed, named by its cause.
func messageOf(reason string) string {
	switch reason {
	case "auditor_allow", "arbiter_allow":
		return "Allowed."
	case "auditor_rewrite", "arbiter_rewrite":
		return "Allowed with the unsafe parts taken out. Go on with the text given here."
	case "auditor_block", "arbiter_block":
		return "Blocked: the content would do harm at its destination. Do not retry it as it is; go on with the rest of the task or tell the owner."
	case "auditor_defer", "arbiter_defer":
		return "Waiting for the owner: this needs an explicit authorisation. Go on with something else and retry with the ticket once it was given."
	case "no_arbiter", "arbiter_not_ready":
		return "This needs a closer look than the local auditor can give, and no arbiter is available. The owner can approve it; retry with the ticket if one is given."
	case "auditor_not_ready":
		return "The auditor's model is missing or still being loaded. Retry in a while, or let the owner approve it."
	case "auditor_missing":
		return "Blocked: no auditor is configured. Ask the owner to run auditd doctor."
	case "rules_only":
		return "Allowed: no rule objects, and what is untrusted in it is isolated."
	case "isolated":
		return "The content is shown as symbols."
	case "approved":
		return "Allowed: the owner approved this very call."
	case "approved_edit":
		return "Allowed with the owner's own text in place of this one. Go on with the text given here."
	case "denied":
		return "Blocked: the owner was asked about this very call and said no. Do it another way, or talk to the owner."
	case "refused":
		return "Blocked: the owner has refused this and everything like it."
	case "suppressed":
		return "Allowed by a suppression of the owner's."
	case "hard_rule", "rewrite_hard_rule":
		return "Blocked by a hard rule."
	case "rewrite_riskier":
		return "Blocked: the proposed rewrite was judged riskier than the original."
	case "rewrite_invalid", "no_rewrite":
		return "Blocked: the content needs parts taken out, and that could not be done safely."
	case "no_credential":
		return "Refused: the caller has no valid credential."
	case "no_flow", "invalid_flow", "owner_authorized_refused":
		return "Refused: the flow is not valid."
	case "no_policy", "no_precheck", "no_report", "no_redaction", "redaction_failed", "rule_failed":
		return "Blocked: auditd is not completely configured. Ask the owner to run auditd doctor."
	case "ticket_failed":
		return "Blocked: the ticket could not be checked. Retry later."
	case "ask_missing", "ask_failed":
		return "Blocked: this needs the owner's word, and the question could not be put; perhaps too many wait already. Ask the owner to look at auditd pending and auditd doctor."
	case "log_failed":
		return "Blocked: the decision could not be recorded. Ask the owner to run auditd doctor; is the disk full?"
	case "undecided", "internal_error":
		return "Blocked by an internal error. The daemon's log has the details under this decision's id."
	}
	who := "the auditor"
	if strings.Contains(reason, "arbiter_") {
		who = "the arbiter"
	}
	_, cause, _ := strings.Cut(strings.TrimPrefix(reason, "second_"), "_")
	return "Blocked: " + who + " gave no usable answer (" + cause + "). Retry later; if it stays so, ask the owner to run auditd doctor."
}

// ownerSentence says which of the owner's rules decided.
func ownerSentence(m policy.Match) string {
	verb := "Blocked"
	switch m.Action {
	case schema.Allow, schema.RewriteAndContinue:
		verb = "Allowed"
	case schema.DeferToHuman:
		verb = "Waiting for the owner"
	}
	s := verb + " by the owner's rule " + m.Rule
	if m.Reason != "" {
		s += ": " + strings.TrimRight(m.Reason, ".")
	}
	return s + "."
}
