package firewall

import (
	"context"

	"example.org/auditd/schema"
)

// Review audits a text that a person would send in place of a flow's. It asks
// nobody, remembers nothing and gives no right: the answer says what the rules
// and the auditor find, and is recorded like every decision.
func (fw *Firewall) Review(ctx context.Context, f *schema.Flow, text string) schema.Decision {
	candidate := f.WithPayload(text)
	candidate.Ticket, candidate.OwnerAuthorized = "", false
	t := &transfer{id: newID(), cred: schema.CredentialHook, start: fw.cfg.Now(), margin: fw.cfg.Margin, original: candidate, flow: candidate}
	budget := fw.cfg.Deadline
	if d, ok := ctx.Deadline(); ok {
		budget = min(budget, d.Sub(t.start))
	}
	t.margin = min(t.margin, max(budget, 0)/4)
	t.deadline = t.start.Add(budget)
	work, cancel := context.WithTimeout(ctx, budget-t.margin)
	defer cancel()
	t.stage, t.verdict = schema.StageUnset, stop("undecided", "")
	for _, s := range []stage{
		{schema.StageInput, fw.canonicalise},
		{schema.StagePrecheck, fw.precheck},
		{schema.StageAuditor, fw.smallAudit},
		{schema.StageHuman, fw.reviewed},
	} {
		if v := fw.runStage(work, t, s); !v.undecided {
			t.verdict, t.stage = v, s.name
			break
		}
	}
	t.mode = schema.ModeAudit // whether the agent is only observed makes no difference here
	if t.verdict.action == schema.DeferToHuman {
		t.verdict = stop(t.verdict.reason, "")
	}
	return fw.settle(ctx, t)
}

// reviewed puts the auditor's answer as a decision about the text.
func (fw *Firewall) reviewed(_ context.Context, t *transfer) verdict {
	if t.report != nil && t.report.Decision == schema.Allow {
		return verdict{action: schema.Allow, reason: "edit_fine", message: "The auditor would let this text pass. It goes on only when you approve it."}
	}
	return stop("edit_doubtful", "The auditor would not let this text pass as it is.")
}
