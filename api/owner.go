package api

import (
	"time"

	"example.org/auditd/marks"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

// Orders are the owner's standing orders, the newest first.
type Orders struct {
	Now    time.Time        `json:"now"`
	Orders []standing.Order `json:"orders"`
}

// NewOrder is a standing order that is to hold.
type NewOrder struct {
	Effect    standing.Effect       `json:"effect"` // suppress or deny
	Scope     standing.Scope        `json:"scope"`
	Reason    string                `json:"reason"`
	Rules     []string              `json:"rules,omitempty"`     // whose soft findings are taken away
	Judgement bool                  `json:"judgement,omitempty"` // the auditor's stop is not enforced either
	Residuals []schema.ResidualRisk `json:"residuals,omitempty"` // while it finds nothing but these
	Decision  string                `json:"decision_id,omitempty"`
	Expires   time.Time             `json:"expires,omitzero"`
}

// Order makes a standing order of it.
func (o *NewOrder) Order() standing.Order {
	return standing.Order{Effect: o.Effect, Scope: o.Scope, Reason: o.Reason, Rules: o.Rules, Judgement: o.Judgement, Residuals: o.Residuals,
		Decision: o.Decision, Expires: o.Expires, By: "owner"}
}

// Suggestion is the narrowest suppression that would have let a decision's flow
// pass, or why there is none.
type Suggestion struct {
	Order   *NewOrder `json:"order,omitempty"`
	Problem string    `json:"problem,omitempty"`
}

// Mark says that a decision was wrong.
type Mark struct {
	Decision string `json:"decision_id"`
	What     string `json:"what"`              // false_alarm, miss or withdrawn
	Note     string `json:"note,omitempty"`    // the owner's words
	Payload  bool   `json:"payload,omitempty"` // keep the text with the case
	Family   string `json:"family,omitempty"`  // of the benchmark's; guessed when it is left out
	Part     string `json:"part,omitempty"`    // of a miss: what should not have got through
}

// Marks are the owner's, the newest first.
type Marks struct {
	Marks []marks.Mark `json:"marks"`
}

// Remember makes a no last: further flows like the one refused are blocked
// without a question.
type Remember struct {
	Exact   bool      `json:"exact"` // only this very payload
	Reason  string    `json:"reason,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // zero: until it is revoked
}

// NewPolicy is a policy that is to hold, or one to be checked.
type NewPolicy struct {
	Text string        `json:"text"`           // as YAML
	Base schema.Digest `json:"base,omitempty"` // of the policy that it was made from
}

// PolicyProblem is one thing that is wrong with a policy.
type PolicyProblem struct {
	Line    int    `json:"line"` // 0 when it is about the whole
	Problem string `json:"problem"`
}

// PolicyCheck lists everything that is wrong with a policy.
type PolicyCheck struct {
	Problems []PolicyProblem `json:"problems"`
}

// PolicyHistory are earlier policies, the newest first.
type PolicyHistory struct {
	Policies []policy.Past `json:"policies"`
}
