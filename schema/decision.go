package schema

import "time"

// EscalationReason is one reason why a flow must be looked at again.
type EscalationReason struct {
	Code   string `json:"code"`             // such as "context_prompt_control"
	Detail string `json:"detail,omitempty"` // the threshold compared, or what was named
}

// Trace is how long one stage took and what it said.
type Trace struct {
	Stage      Stage   `json:"stage"`
	Outcome    string  `json:"outcome"` // "next" or the action that it decided
	Reason     string  `json:"reason,omitempty"`
	DurationMS float64 `json:"duration_ms"`
}

// Suppressed is what the owner's word took out of a judgement.
type Suppressed struct {
	By        string   `json:"by"`                  // the standing order's id, or "policy"
	Rules     []string `json:"rules,omitempty"`     // whose soft findings were taken away
	Judgement bool     `json:"judgement,omitempty"` // the auditor's answer was not enforced
}

// Decision is the enforceable answer to one flow. Its zero value blocks.
type Decision struct {
	ID        string    `json:"decision_id"`
	Time      time.Time `json:"time"`
	Action    Action    `json:"action"`
	Mediation Mediation `json:"mediation"`
	Stage     Stage     `json:"stage"`
	// Reason is a stable word, Message a sentence that an agent or a person
	// can act on. Neither quotes the payload.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Payload is what may go on in place of the original; set exactly when
	// Action is rewrite_and_continue.
	Payload *string `json:"payload,omitempty"`
	// Diff says how Payload was made from the original, in ascending order.
	Diff []Edit `json:"diff,omitempty"`
	// Ticket lets a deferred flow be tried again after a person's answer;
	// Expires is when silence becomes a no.
	Ticket  string     `json:"ticket,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	// Question is what the person answers: auditd approve QUESTION.
	Question string `json:"question_id,omitempty"`

	Precheck   *Precheck          `json:"precheck,omitempty"`
	Report     *Report            `json:"report,omitempty"`
	Second     *Report            `json:"second_report,omitempty"` // audit of the rewritten payload
	Residual   float64            `json:"residual"`                // risk of the mediated payload
	Escalation []EscalationReason `json:"escalation,omitempty"`
	Suppressed []Suppressed       `json:"suppressed,omitempty"` // Precheck is what was left
	Arbiter    *ArbiterReport     `json:"arbiter,omitempty"`
	Usage      []Usage            `json:"usage,omitempty"`
	Trace      []Trace            `json:"trace,omitempty"`

	PolicyDigest Digest `json:"policy_digest,omitempty"`
	// Observed holds what would have been enforced when the agent is only
	// observed; Action is then allow.
	Observed *Action `json:"observed,omitempty"`
	Cached   bool    `json:"cached,omitempty"`

	LogIndex  int64   `json:"log_index"` // position in the decision log; -1 when it could not be written
	LatencyMS float64 `json:"latency_ms"`
}

// Credential says which rights a caller has.
type Credential uint8

// Credentials. The zero value has no rights.
const (
	CredentialNone  Credential = iota
	CredentialHook             // report and ask
	CredentialOwner            // approve, change policy, see originals
)

// Question is a deferred flow that waits for a person.
type Question struct {
	ID      string    `json:"id"`
	Ticket  string    `json:"-"` // secret: the holder may retry the call
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	// Binding is the digest of the exact payload and sink: the answer is good
	// for nothing else.
	Binding  Digest `json:"binding"`
	Decision string `json:"decision_id"`
	// Group is the same for questions that differ in their payload alone, so
	// that they can be shown and answered together.
	Group    Digest     `json:"group,omitempty"`
	Flow     *Flow      `json:"flow"`
	Report   *Report    `json:"report,omitempty"`
	Reasons  []string   `json:"reasons,omitempty"`
	Summary  string     `json:"summary"`           // what the agent wants to do, in one sentence of ours
	Rewrite  *string    `json:"rewrite,omitempty"` // proposed instead
	Hard     bool       `json:"hard,omitempty"`    // no wider grant may be made from it
	Answer   string     `json:"answer,omitempty"`  // approved, denied, expired, or empty while it waits
	Answered *time.Time `json:"answered,omitempty"`
	By       string     `json:"by,omitempty"`
}
