package schema

import "fmt"

// enumText returns the word of v in names.
func enumText[T ~uint8](kind string, names []string, v T) ([]byte, error) {
	if int(v) >= len(names) || names[v] == "" {
		return nil, fmt.Errorf("invalid %s %d", kind, uint8(v))
	}
	return []byte(names[v]), nil
}

// enumParse sets *v to the value whose word is text. On an unknown word *v is
// left at its zero value, which for everything in this package is the most
// restrictive one. The word itself is quoted only when it is short: it may be
// a payload that somebody put in the wrong field.
func enumParse[T ~uint8](kind string, names []string, v *T, text []byte) error {
	*v = 0
	for i, name := range names {
		if name != "" && string(text) == name {
			*v = T(i)
			return nil
		}
	}
	if len(text) > 40 {
		return fmt.Errorf("unknown %s (%d bytes)", kind, len(text))
	}
	return fmt.Errorf("unknown %s %q", kind, text)
}

func enumString[T ~uint8](kind string, names []string, v T) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", kind, uint8(v))
}

// Action is what happens to a flow (token-flow paper, section 2). The zero
// Action blocks, so a forgotten assignment or half a reply is safe.
type Action uint8

// The four actions, the most restrictive first.
const (
	Block              Action = iota // end the transfer
	DeferToHuman                     // suspend until the owner authorises it
	RewriteAndContinue               // forward the mediated payload
	Allow                            // forward unchanged
)

var actionNames = []string{Block: "block", DeferToHuman: "defer_to_human", RewriteAndContinue: "rewrite_and_continue", Allow: "allow"}

func (a Action) String() string                { return enumString("Action", actionNames, a) }
func (a Action) MarshalText() ([]byte, error)  { return enumText("action", actionNames, a) }
func (a *Action) UnmarshalText(t []byte) error { return enumParse("action", actionNames, a, t) }

// Stops reports whether the original payload does not reach its sink now.
func (a Action) Stops() bool { return a == Block || a == DeferToHuman }

// Mediation says how a rewrite_and_continue decision changed the payload.
type Mediation uint8

// Kinds of mediation. Isolation stays one of the four actions: it is a
// rewrite whose mediation is symbols.
const (
	MediationNone    Mediation = iota // payload unchanged, or nothing forwarded
	MediationText                     // spans removed, masked or marked
	MediationSymbols                  // untrusted content replaced by symbols
)

var mediationNames = []string{MediationNone: "none", MediationText: "text", MediationSymbols: "symbols"}

func (m Mediation) String() string               { return enumString("Mediation", mediationNames, m) }
func (m Mediation) MarshalText() ([]byte, error) { return enumText("mediation", mediationNames, m) }
func (m *Mediation) UnmarshalText(t []byte) error {
	return enumParse("mediation", mediationNames, m, t)
}

// Surface is the kind of harm a flow could do (token-flow paper, section 3).
type Surface uint8

// The three surfaces. SurfaceUnset is completed from the sink.
const (
	SurfaceUnset Surface = iota
	Context              // content about to enter reasoning, memory, knowledge or skill state
	Authority            // a change of who is acted for, or where outputs and approvals go
	Capability           // content about to be used for an action or released
)

var surfaceNames = []string{Context: "context", Authority: "authority", Capability: "capability"}

func (s Surface) String() string                { return enumString("Surface", surfaceNames, s) }
func (s Surface) MarshalText() ([]byte, error)  { return enumText("surface", surfaceNames, s) }
func (s *Surface) UnmarshalText(t []byte) error { return enumParse("surface", surfaceNames, s, t) }

// Boundary is what a flow crosses.
type Boundary uint8

// Boundaries. BoundaryUnset is completed from the sink.
const (
	BoundaryUnset Boundary = iota
	BoundaryReasoning
	BoundaryPersistence
	BoundaryAuthority
	BoundaryExecution
	BoundaryDisclosure
)

var boundaryNames = []string{
	BoundaryReasoning: "reasoning", BoundaryPersistence: "persistence", BoundaryAuthority: "authority",
	BoundaryExecution: "execution", BoundaryDisclosure: "disclosure",
}

func (b Boundary) String() string                { return enumString("Boundary", boundaryNames, b) }
func (b Boundary) MarshalText() ([]byte, error)  { return enumText("boundary", boundaryNames, b) }
func (b *Boundary) UnmarshalText(t []byte) error { return enumParse("boundary", boundaryNames, b, t) }

// Trust is the integrity of content, totally ordered; combining contents takes
// the lowest. It comes from provenance and policy, never from the content.
type Trust uint8

// Trust levels, the least trusted first. The zero value is hostile.
const (
	Hostile Trust = iota
	Untrusted
	Derived
	Trusted
	Owner
)

var trustNames = []string{Hostile: "hostile", Untrusted: "untrusted", Derived: "derived", Trusted: "trusted", Owner: "owner"}

func (t Trust) String() string                { return enumString("Trust", trustNames, t) }
func (t Trust) MarshalText() ([]byte, error)  { return enumText("trust", trustNames, t) }
func (t *Trust) UnmarshalText(x []byte) error { return enumParse("trust", trustNames, t, x) }

// SourceKind is the fixed label of where content comes from.
type SourceKind uint8

// Source kinds.
const (
	SourceOther SourceKind = iota
	SourceUser
	SourceFile
	SourceWeb
	SourceTool
	SourceAgent
	SourceMemory
	SourceEmail
	SourceWebhook
	SourceSkill
)

var sourceNames = []string{
	SourceOther: "other", SourceUser: "user", SourceFile: "file", SourceWeb: "web", SourceTool: "tool", SourceAgent: "agent",
	SourceMemory: "memory", SourceEmail: "email", SourceWebhook: "webhook", SourceSkill: "skill",
}

func (k SourceKind) String() string               { return enumString("SourceKind", sourceNames, k) }
func (k SourceKind) MarshalText() ([]byte, error) { return enumText("source kind", sourceNames, k) }
func (k *SourceKind) UnmarshalText(t []byte) error {
	return enumParse("source kind", sourceNames, k, t)
}

// SinkKind is the fixed label of where content goes.
type SinkKind uint8

// Sink kinds.
const (
	SinkOther     SinkKind = iota
	SinkReasoning          // the model's context
	SinkMemory             // long-term agent memory
	SinkFile               // a file write
	SinkWeb                // a request to a web server or API
	SinkTool               // an agent tool's arguments
	SinkExec               // a command line or code that will run
	SinkMessage            // a message to a person or channel
	SinkIdentity           // who the agent is or acts for
	SinkPolicy             // rules and approvals
	SinkSkill              // skill or plugin text
	SinkConfig             // configuration
	SinkPlan               // plans, schedules, cron entries
	SinkPayment            // money moves
)

var sinkNames = []string{
	SinkOther: "other", SinkReasoning: "reasoning", SinkMemory: "memory", SinkFile: "file", SinkWeb: "web", SinkTool: "tool",
	SinkExec: "exec", SinkMessage: "message", SinkIdentity: "identity", SinkPolicy: "policy", SinkSkill: "skill",
	SinkConfig: "config", SinkPlan: "plan", SinkPayment: "payment",
}

func (k SinkKind) String() string                { return enumString("SinkKind", sinkNames, k) }
func (k SinkKind) MarshalText() ([]byte, error)  { return enumText("sink kind", sinkNames, k) }
func (k *SinkKind) UnmarshalText(t []byte) error { return enumParse("sink kind", sinkNames, k, t) }

// Surface returns the surface that a flow into k has unless its caller says
// otherwise.
func (k SinkKind) Surface() Surface {
	switch k {
	case SinkReasoning, SinkMemory, SinkSkill, SinkPlan:
		return Context
	case SinkIdentity, SinkPolicy, SinkConfig:
		return Authority
	default:
		return Capability
	}
}

// Boundary returns the boundary that a flow into k crosses unless its caller
// says otherwise.
func (k SinkKind) Boundary() Boundary {
	switch k {
	case SinkReasoning:
		return BoundaryReasoning
	case SinkMemory, SinkSkill, SinkPlan, SinkFile, SinkConfig, SinkPolicy:
		return BoundaryPersistence
	case SinkIdentity:
		return BoundaryAuthority
	case SinkWeb, SinkMessage:
		return BoundaryDisclosure
	default:
		return BoundaryExecution
	}
}

// Persistent reports whether what is written to k can steer later sessions.
func (k SinkKind) Persistent() bool {
	switch k {
	case SinkMemory, SinkIdentity, SinkPolicy, SinkSkill, SinkConfig, SinkPlan:
		return true
	default:
		return false
	}
}

// SpanCategory is what a span of the payload is (token-flow paper, section 3).
type SpanCategory uint8

// The five span categories.
const (
	SpanUnset SpanCategory = iota
	SpanSecret
	SpanEndpoint // path or endpoint
	SpanRecipient
	SpanInstruction
	SpanToolArgument
)

var spanNames = []string{
	SpanSecret: "secret", SpanEndpoint: "endpoint", SpanRecipient: "recipient",
	SpanInstruction: "instruction", SpanToolArgument: "tool_argument",
}

func (c SpanCategory) String() string               { return enumString("SpanCategory", spanNames, c) }
func (c SpanCategory) MarshalText() ([]byte, error) { return enumText("span category", spanNames, c) }
func (c *SpanCategory) UnmarshalText(t []byte) error {
	return enumParse("span category", spanNames, c, t)
}

// Code is a precheck rule code (token-flow paper, Table 4).
type Code uint8

// The thirteen codes.
const (
	CodeUnset Code = iota
	CredSecret
	PIIContact
	FinancialData
	ExternalSink
	PrivateEndpoint // hard
	AuthorityCrossing
	PersistentContextUntrusted
	DangerousSideEffect // hard
	RecipientAmbiguity
	PromptControl
	EncodedPayload
	ToolOutputPoisoning
	SensitiveFilePath
)

var codeNames = []string{
	CredSecret: "CRED_SECRET", PIIContact: "PII_CONTACT", FinancialData: "FINANCIAL_DATA", ExternalSink: "EXTERNAL_SINK",
	PrivateEndpoint: "PRIVATE_ENDPOINT", AuthorityCrossing: "AUTHORITY_CROSSING",
	PersistentContextUntrusted: "PERSISTENT_CONTEXT_UNTRUSTED", DangerousSideEffect: "DANGEROUS_SIDE_EFFECT",
	RecipientAmbiguity: "RECIPIENT_AMBIGUITY", PromptControl: "PROMPT_CONTROL", EncodedPayload: "ENCODED_PAYLOAD",
	ToolOutputPoisoning: "TOOL_OUTPUT_POISONING", SensitiveFilePath: "SENSITIVE_FILE_PATH",
}

func (c Code) String() string                { return enumString("Code", codeNames, c) }
func (c Code) MarshalText() ([]byte, error)  { return enumText("code", codeNames, c) }
func (c *Code) UnmarshalText(t []byte) error { return enumParse("code", codeNames, c, t) }

// Hard reports whether the code can stop a flow by itself, when its invariant
// holds.
func (c Code) Hard() bool { return c == PrivateEndpoint || c == DangerousSideEffect }

// ResidualRisk is a kind of risk that the auditor says is left (token-flow
// paper, section 4).
type ResidualRisk uint8

// The residual risk types. "none" is the absence of the other eight.
const (
	ResidualUnset ResidualRisk = iota
	ResidualSensitiveSpan
	ResidualExternalSink
	ResidualSideEffect
	ResidualIrreversible
	ResidualAuthority
	ResidualRecipient
	ResidualPromptControl
	ResidualToolInduction
	ResidualNone
)

var residualNames = []string{
	ResidualSensitiveSpan: "sensitive_span", ResidualExternalSink: "external_sink", ResidualSideEffect: "side_effect",
	ResidualIrreversible: "irreversible_action", ResidualAuthority: "authority_crossing", ResidualRecipient: "recipient_ambiguity",
	ResidualPromptControl: "prompt_control", ResidualToolInduction: "tool_induction", ResidualNone: "none",
}

func (r ResidualRisk) String() string               { return enumString("ResidualRisk", residualNames, r) }
func (r ResidualRisk) MarshalText() ([]byte, error) { return enumText("residual", residualNames, r) }
func (r *ResidualRisk) UnmarshalText(t []byte) error {
	return enumParse("residual", residualNames, r, t)
}

// Stage names the step of the procedure that decided.
type Stage uint8

// Stages in the order in which they run.
const (
	StageUnset     Stage = iota
	StageInput           // the flow could not be read
	StagePrecheck        // a hard invariant
	StagePolicy          // a rule of the owner
	StageStanding        // a standing order of the owner
	StageTicket          // a person's earlier answer
	StageCache           // an identical flow was decided before
	StageAuditor         // the small auditor
	StageRewrite         // a rewrite that was refused
	StageArbiter         // the large arbiter
	StageHuman           // a person
	StageIsolation       // the two-view half
	StageLog             // the decision could not be recorded
)

var stageNames = []string{
	StageInput: "input", StagePrecheck: "precheck", StagePolicy: "policy", StageStanding: "standing", StageTicket: "ticket", StageCache: "cache",
	StageAuditor: "auditor", StageRewrite: "rewrite", StageArbiter: "arbiter", StageHuman: "human",
	StageIsolation: "isolation", StageLog: "log",
}

func (s Stage) String() string                { return enumString("Stage", stageNames, s) }
func (s Stage) MarshalText() ([]byte, error)  { return enumText("stage", stageNames, s) }
func (s *Stage) UnmarshalText(t []byte) error { return enumParse("stage", stageNames, s, t) }

// Mode is what auditd does for one agent.
type Mode uint8

// Modes. The zero mode is both halves at once.
const (
	ModeBoth    Mode = iota // isolate what is untrusted, audit what acts
	ModeAudit               // token-flow auditing alone
	ModeIsolate             // two-view isolation alone
	ModeObserve             // decide and log, never stop
)

var modeNames = []string{ModeBoth: "both", ModeAudit: "audit", ModeIsolate: "isolate", ModeObserve: "observe"}

func (m Mode) String() string                { return enumString("Mode", modeNames, m) }
func (m Mode) MarshalText() ([]byte, error)  { return enumText("mode", modeNames, m) }
func (m *Mode) UnmarshalText(t []byte) error { return enumParse("mode", modeNames, m, t) }
