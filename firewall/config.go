package firewall

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"example.org/auditd/escalation"
	"example.org/auditd/inference"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

// Entry is what the decision log gets about one flow.
type Entry struct {
	// Decision is the decision without its ticket. It still holds text out of
	// the payload: the log must keep digests of it, or redact it.
	Decision *schema.Decision
	Flow     *schema.Flow // the original; the log keeps digests of its content
	// Redacted texts, to be kept apart with a retention of their own.
	RedactedPayload string
	RedactedRewrite string
	// Sent is the redacted record that left for the arbiter, as JSON; empty
	// when nothing left.
	Sent string
}

// Config is what a Firewall is made of. A function that is left nil denies, or
// gives no right: each says which.
type Config struct {
	// Check is the precheck. nil blocks every flow.
	Check func(*schema.Flow) *schema.Precheck
	// Redact replaces secrets in a text by placeholders and returns which
	// placeholder stands for what. nil keeps everything from the arbiter and
	// the log's texts empty.
	Redact func(string) (string, map[string]string)
	// Append writes to the log and returns when the entry is durable. nil
	// blocks every flow.
	Append func(context.Context, Entry) (int64, error)
	// Ask puts a question to a person and returns it with its ticket, or one
	// with the same binding that already waits, or one that was just denied,
	// with its answer and no ticket. nil blocks what would be asked.
	Ask func(context.Context, *schema.Question) (*schema.Question, error)
	// Redeem uses up a ticket. It must leave a ticket of another binding, or
	// one whose question still waits, as it is and return false. nil makes
	// tickets worthless.
	// When instead is set, the person has approved that text and not the
	// flow's.
	Redeem func(ctx context.Context, ticket string, binding schema.Digest) (ok bool, instead *string, err error)
	// Allowed looks for a wider grant of a person. hard says that a code was
	// raised for which none may count. nil means there are none.
	Allowed func(ctx context.Context, f *schema.Flow, hard bool) (grant string, ok bool, err error)
	// Orders returns the owner's standing orders that hold for a flow. nil
	// means there are none.
	Orders func(*schema.Flow, time.Time) []standing.Order
	// Policy returns the owner's policy as it now stands. nil, or a nil
	// policy, blocks every flow.
	Policy func() *policy.Policy

	Auditor inference.Auditor // nil blocks what would be audited
	Arbiter inference.Arbiter // nil does what the policy says

	// Deadline is the budget for one flow where the caller gives no shorter
	// one; Margin is the part of it that is kept for writing the answer.
	Deadline time.Duration // default 30 s
	Margin   time.Duration // default 250 ms

	MaxPayload   int // bytes; default schema.DefaultMaxPayload
	CacheEntries int // decisions kept; default 4096, negative for none
	Sessions     int // sessions whose labels are kept; default 65536

	Now     func() time.Time // must be set
	Logger  *slog.Logger     // must be set
	Metrics Metrics

	// Ablation switches parts of the procedure off to measure what they are
	// worth. Nothing that guards an agent sets it.
	Ablation Ablation
}

// Metrics are told what happens. Each may be nil; each must be quick and safe
// for concurrent use. Labels made from them come from the schema's words and
// this package's reasons, never from a payload.
type Metrics struct {
	Decided func(*schema.Decision)                    // once per decision, after the log
	Stage   func(schema.Stage, time.Duration)         // once per stage that ran
	Failed  func(stage schema.Stage, reason string)   // a stage that failed, by cause
	Cache   func(hit bool)                            // once per look-up
	Event   func(schema.Phase, schema.Action, string) // once per event, with its reason
}

// Ablation leaves out parts of the procedure. The zero value leaves out none.
type Ablation struct {
	NoRewrite  bool // a proposed rewrite is not applied
	NoFallback bool // no arbiter: the small report is enforced
	NoAuditor  bool // the arbiter judges everything that the precheck lets on
	LargeOnly  bool // the arbiter judges everything
	Escalation escalation.Config
}

// Firewall decides flows. It is safe for concurrent use.
type Firewall struct {
	cfg      Config
	stages   []stage
	tools    map[string]tool // never changed
	cache    *cache
	sessions *sessions
}

// New checks cfg and makes a Firewall.
func New(cfg Config) (*Firewall, error) {
	if cfg.Now == nil || cfg.Logger == nil {
		return nil, errors.New("firewall: Now and Logger must be set")
	}
	if cfg.Deadline == 0 {
		cfg.Deadline = 30 * time.Second
	}
	if cfg.Margin == 0 {
		cfg.Margin = 250 * time.Millisecond
	}
	if cfg.Deadline < 0 || cfg.Margin < 0 || cfg.Margin >= cfg.Deadline {
		return nil, errors.New("firewall: Margin must be less than Deadline, and neither negative")
	}
	if cfg.MaxPayload <= 0 {
		cfg.MaxPayload = schema.DefaultMaxPayload
	}
	if cfg.CacheEntries == 0 {
		cfg.CacheEntries = 4096
	}
	if cfg.Sessions <= 0 {
		cfg.Sessions = 65536
	}
	fw := &Firewall{cfg: cfg, tools: toolTable(), cache: newCache(cfg.CacheEntries), sessions: newSessions(cfg.Sessions)}
	// The order matters. What is certain and cheap comes first; a hard rule
	// comes before anything that a person or the owner's file could allow; what
	// the owner refused for good comes before what the owner's file allows;
	// nothing is remembered or asked of a model that a rule already decided;
	// a rewrite is judged before the flow that it makes; and the last stage
	// decides whatever still is undecided.
	fw.stages = []stage{
		{schema.StageInput, fw.canonicalise},
		{schema.StagePrecheck, fw.precheck},
		{schema.StageStanding, fw.refused},
		{schema.StagePolicy, fw.ownerRules},
		{schema.StageTicket, fw.ticket},
		{schema.StageCache, fw.recall},
		{schema.StageAuditor, fw.smallAudit},
		{schema.StageStanding, fw.lifted},
		{schema.StageRewrite, fw.acceptRewrite},
		{schema.StagePolicy, fw.reportRules},
		{schema.StageAuditor, fw.settleLocally},
		{schema.StageArbiter, fw.arbitrate},
	}
	return fw, nil
}
