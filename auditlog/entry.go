package auditlog

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"unicode/utf8"

	"example.org/auditd/schema"
)

const (
	maxValueText = 256 << 10             // bytes of one text kept in values/; the rest is cut
	maxValueLine = 16*maxValueText + 1e6 // bytes of one line there
)

// Entry is one decision to be recorded.
type Entry struct {
	Decision *schema.Decision
	Flow     *schema.Flow // the original flow
	// RedactedPayload and RedactedRewrite are the texts with their secrets
	// replaced; they alone are stored of both. Empty means not stored.
	RedactedPayload string
	RedactedRewrite string
	// Sent is the redacted record that left the machine for the arbiter, as
	// JSON; empty when nothing left.
	Sent string
}

// Decision is a schema.Decision without any text out of the payload.
type Decision struct {
	Action     schema.Action    `json:"action"`
	Mediation  schema.Mediation `json:"mediation"`
	Stage      schema.Stage     `json:"stage,omitzero"`
	Reason     string           `json:"reason"`
	Observed   *schema.Action   `json:"observed,omitempty"`
	Cached     bool             `json:"cached,omitempty"`
	Residual   float64          `json:"residual"`
	Payload    *Text            `json:"payload,omitempty"` // what went on instead
	Precheck   *Precheck        `json:"precheck,omitempty"`
	Report     *Report          `json:"report,omitempty"`
	Second     *Report          `json:"second_report,omitempty"`
	Escalation []string         `json:"escalation,omitempty"`
	// Suppressed is what the owner's word took away; Precheck is what was left.
	Suppressed   []schema.Suppressed `json:"suppressed,omitempty"`
	Arbiter      *Report             `json:"arbiter,omitempty"`
	Sent         *Text               `json:"sent,omitempty"` // what left for the arbiter
	Usage        []schema.Usage      `json:"usage,omitempty"`
	Trace        []schema.Trace      `json:"trace,omitempty"`
	PolicyDigest string              `json:"policy_digest,omitempty"`
	LatencyMS    float64             `json:"latency_ms"`
}

// Text stands for a text that is not in the record.
type Text struct {
	Digest Keyed `json:"digest"`
	Bytes  int   `json:"bytes"`
}

// Precheck is a schema.Precheck without details.
type Precheck struct {
	Signals        []Signal      `json:"signals,omitempty"`
	HardBlock      bool          `json:"hard_block,omitempty"`
	HardReason     string        `json:"hard_reason,omitempty"`
	Risk           float64       `json:"risk"`
	Exploitability float64       `json:"exploitability"`
	Impact         float64       `json:"impact"`
	Spans          []schema.Span `json:"spans,omitempty"`
	SpansLeftOut   int           `json:"spans_left_out,omitempty"`
	Bytes          int           `json:"bytes"`
	Total          int           `json:"total"`
	Decoded        int           `json:"decoded,omitempty"`
	Decoders       []string      `json:"decoders,omitempty"`
	Limits         []string      `json:"limits,omitempty"`
}

// Signal is a schema.Signal without its detail.
type Signal struct {
	Code         schema.Code     `json:"code"`
	Severity     schema.Severity `json:"severity"`
	Rule         string          `json:"rule,omitempty"`
	Spans        []schema.Span   `json:"spans,omitempty"`
	SpansLeftOut int             `json:"spans_left_out,omitempty"`
	Via          []string        `json:"via,omitempty"`
}

// Report is a report of the auditor or the arbiter without rewrite and
// evidence.
type Report struct {
	Decision            schema.Action         `json:"decision"`
	Rewrite             *Text                 `json:"rewrite,omitempty"`
	Risk                float64               `json:"risk"`
	Uncertainty         float64               `json:"uncertainty"`
	Exploitability      float64               `json:"exploitability"`
	Impact              float64               `json:"impact"`
	ResidualRiskTypes   []schema.ResidualRisk `json:"residual_risk_types,omitempty"`
	RewriteCompleteness float64               `json:"rewrite_completeness"`
	NeedsLargeReview    bool                  `json:"needs_large_review,omitempty"`
	Evidence            int                   `json:"evidence"` // entries; their text is in values/
}

// Flow is a schema.Flow without any text. Identifiers are keyed digests: a URL
// or a session name can hold payload, or tell who somebody is.
type Flow struct {
	Payload         Text              `json:"payload"`
	Binding         Keyed             `json:"binding"`
	Surface         schema.Surface    `json:"surface,omitzero"`
	Boundary        schema.Boundary   `json:"boundary,omitzero"`
	SourceKind      schema.SourceKind `json:"source_kind"`
	SourceID        Keyed             `json:"source_id,omitempty"`
	SourceTrust     schema.Trust      `json:"source_trust"`
	SinkKind        schema.SinkKind   `json:"sink_kind"`
	SinkID          Keyed             `json:"sink_id,omitempty"`
	SinkTool        Keyed             `json:"sink_tool,omitempty"`
	SinkAction      Keyed             `json:"sink_action,omitempty"`
	SinkDestination Keyed             `json:"sink_destination,omitempty"`
	Permissions     int               `json:"permissions,omitempty"`
	Agent           Keyed             `json:"agent,omitempty"`
	Session         Keyed             `json:"session,omitempty"`
	Call            Keyed             `json:"call,omitempty"`
	Workspace       Keyed             `json:"workspace,omitempty"`
	Intent          Keyed             `json:"intent,omitempty"`
	Spans           []schema.Span     `json:"spans,omitempty"`
	SpansLeftOut    int               `json:"spans_left_out,omitempty"`
	OwnerAuthorized bool              `json:"owner_authorized,omitempty"`
	Ticket          bool              `json:"ticket,omitempty"` // one was presented; the ticket itself is a secret
}

// Value is what lies in values/ for one record: redacted text. Salt keeps the
// digest in the record from telling what an erased text was.
type Value struct {
	ID      string `json:"decision_id"`
	Salt    string `json:"salt"`
	Payload string `json:"payload,omitempty"`
	Rewrite string `json:"rewrite,omitempty"`
	Sent    string `json:"sent,omitempty"` // to the arbiter
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"` // when it is not one word
	Intent  string `json:"intent,omitempty"`

	Source      string   `json:"source,omitempty"`
	Sink        string   `json:"sink,omitempty"`
	Tool        string   `json:"tool,omitempty"`
	ToolAction  string   `json:"tool_action,omitempty"`
	Destination string   `json:"destination,omitempty"`
	Permissions []string `json:"permissions,omitempty"`
	Agent       string   `json:"agent,omitempty"`
	Session     string   `json:"session,omitempty"`
	Call        string   `json:"call,omitempty"`
	Workspace   string   `json:"workspace,omitempty"`

	Details    []string `json:"details,omitempty"` // of the signals, in their order
	Evidence   []string `json:"evidence,omitempty"`
	Second     []string `json:"second_evidence,omitempty"`
	Arbiter    []string `json:"arbiter_evidence,omitempty"`
	Escalation []string `json:"escalation,omitempty"`

	// Masked lists what was left out because no redactor was configured, Cut
	// what was longer than is kept.
	Masked []string `json:"masked,omitempty"`
	Cut    []string `json:"cut,omitempty"`
}

// entryWriter turns an Entry into a record body and a value.
type entryWriter struct {
	mac    hash.Hash
	redact func(string) string
	v      Value
}

func (w *entryWriter) encode(e *Entry, now recordRest) (body, value []byte, err error) {
	if e.Decision == nil || e.Flow == nil {
		return nil, nil, errors.New("record a decision: decision or flow is missing")
	}
	if !isWord(e.Decision.ID) {
		return nil, nil, errors.New("record a decision: its id is empty, too long or not one word")
	}
	now.Kind = KindDecision
	now.Flow = w.flow(e.Flow)
	now.Decision = w.decision(e.Decision)
	w.v.ID = e.Decision.ID
	salt := make([]byte, 16)
	rand.Read(salt) // never fails
	w.v.Salt = hex.EncodeToString(salt)
	w.v.Payload = w.cut("payload", e.RedactedPayload)
	w.v.Rewrite = w.cut("rewrite", e.RedactedRewrite)
	w.v.Sent = w.text("sent", e.Sent)
	if e.Sent != "" {
		now.Decision.Sent = w.ref("sent", &e.Sent)
	}
	if body, err = schema.Encode(now); err != nil {
		return nil, nil, fmt.Errorf("encode a record: %w", err)
	}
	if value, err = schema.Encode(w.v); err != nil {
		return nil, nil, fmt.Errorf("encode a record's value: %w", err)
	}
	if len(body) > maxLine-1024 || len(value) > maxValueLine {
		return nil, nil, fmt.Errorf("a record of %d bytes with a value of %d is over the limit", len(body), len(value))
	}
	return body, value, nil
}

func (w *entryWriter) flow(f *schema.Flow) *Flow {
	k := w.keyed
	r := &Flow{
		Payload: Text{k("payload", f.Payload), len(f.Payload)}, Binding: k("binding", string(f.Binding())),
		Surface: f.Surface, Boundary: f.Boundary,
		SourceKind: f.Source.Kind, SourceID: k("source", f.Source.ID), SourceTrust: f.Source.Trust,
		SinkKind: f.Sink.Kind, SinkID: k("sink", f.Sink.ID), SinkTool: k("tool", f.Sink.Tool),
		SinkAction: k("action", f.Sink.Action), SinkDestination: k("destination", f.Sink.Destination),
		Permissions: len(f.Sink.Permissions),
		Agent:       k("agent", f.Session.Agent), Session: k("session", f.Session.ID), Call: k("call", f.Session.CallID),
		Workspace: k("workspace", f.Session.Workspace), Intent: k("intent", f.Intent),
		OwnerAuthorized: f.OwnerAuthorized, Ticket: f.Ticket != "",
	}
	r.Spans, r.SpansLeftOut = bound(f.Spans)
	v := &w.v
	v.Intent, v.Source, v.Sink = w.text("intent", f.Intent), w.text("source", f.Source.ID), w.text("sink", f.Sink.ID)
	v.Tool, v.ToolAction = w.text("tool", f.Sink.Tool), w.text("tool_action", f.Sink.Action)
	v.Destination, v.Permissions = w.text("destination", f.Sink.Destination), w.texts("permissions", f.Sink.Permissions)
	v.Agent, v.Session = w.text("agent", f.Session.Agent), w.text("session", f.Session.ID)
	v.Call, v.Workspace = w.text("call", f.Session.CallID), w.text("workspace", f.Session.Workspace)
	return r
}

func (w *entryWriter) decision(d *schema.Decision) *Decision {
	r := &Decision{
		Action: d.Action, Mediation: d.Mediation, Stage: d.Stage, Reason: w.word("reason", d.Reason), Observed: d.Observed,
		Cached: d.Cached, Residual: d.Residual, Payload: w.ref("rewrite", d.Payload), Precheck: w.precheck(d.Precheck),
		PolicyDigest: w.word("policy", string(d.PolicyDigest)), LatencyMS: d.LatencyMS,
	}
	r.Report, w.v.Evidence = w.report("evidence", d.Report)
	r.Second, w.v.Second = w.report("second_evidence", d.Second)
	if a := d.Arbiter; a != nil {
		r.Arbiter = &Report{Decision: a.Decision, Rewrite: w.ref("rewrite", a.Rewrite), Risk: a.Risk,
			ResidualRiskTypes: a.ResidualRiskTypes, Evidence: len(a.Evidence)}
		w.v.Arbiter = w.texts("arbiter_evidence", a.Evidence)
	}
	for _, x := range d.Escalation {
		r.Escalation = append(r.Escalation, w.word("escalation", x.Code))
		w.v.Escalation = append(w.v.Escalation, w.text("escalation", x.Detail))
	}
	for _, x := range d.Suppressed {
		x.By, x.Rules = w.word("suppressed", x.By), w.words("rule", x.Rules)
		r.Suppressed = append(r.Suppressed, x)
	}
	for _, u := range d.Usage {
		u.Backend, u.Model, u.Digest = w.word("backend", u.Backend), w.word("model", u.Model), w.word("model", u.Digest)
		r.Usage = append(r.Usage, u)
	}
	for _, t := range d.Trace {
		t.Outcome, t.Reason = w.word("outcome", t.Outcome), w.word("reason", t.Reason)
		r.Trace = append(r.Trace, t)
	}
	if !isWord(d.Reason) {
		w.v.Reason = w.text("reason", d.Reason)
	}
	w.v.Message = w.text("message", d.Message)
	return r
}

func (w *entryWriter) precheck(p *schema.Precheck) *Precheck {
	if p == nil {
		return nil
	}
	r := &Precheck{HardBlock: p.HardBlock, HardReason: w.word("reason", p.HardReason), Risk: p.Risk,
		Exploitability: p.Exploitability, Impact: p.Impact, Bytes: p.Coverage.Bytes, Total: p.Coverage.Total,
		Decoded: p.Coverage.Decoded, Decoders: w.words("decoder", p.Coverage.Decoders), Limits: w.words("limit", p.Coverage.Limits)}
	r.Spans, r.SpansLeftOut = bound(p.Spans)
	for _, s := range p.Signals {
		x := Signal{Code: s.Code, Severity: s.Severity, Rule: w.word("rule", s.Rule), Via: w.words("decoder", s.Via)}
		x.Spans, x.SpansLeftOut = bound(s.Spans)
		r.Signals = append(r.Signals, x)
		w.v.Details = append(w.v.Details, w.text("details", s.Detail))
	}
	return r
}

func (w *entryWriter) report(name string, p *schema.Report) (*Report, []string) {
	if p == nil {
		return nil, nil
	}
	return &Report{Decision: p.Decision, Rewrite: w.ref("rewrite", p.Rewrite), Risk: p.Risk, Uncertainty: p.Uncertainty,
		Exploitability: p.Exploitability, Impact: p.Impact, ResidualRiskTypes: p.ResidualRiskTypes,
		RewriteCompleteness: p.RewriteCompleteness, NeedsLargeReview: p.NeedsLargeReview, Evidence: len(p.Evidence),
	}, w.texts(name, p.Evidence)
}

func (w *entryWriter) keyed(kind, text string) Keyed { return keyed(w.mac, kind, text) }

func (w *entryWriter) ref(kind string, s *string) *Text {
	if s == nil {
		return nil
	}
	return &Text{w.keyed(kind, *s), len(*s)}
}

// word lets through what is one of our own words; anything else could be
// payload and becomes a digest.
func (w *entryWriter) word(kind, s string) string {
	if s == "" || isWord(s) {
		return s
	}
	return string(w.keyed(kind, s))
}

func (w *entryWriter) words(kind string, list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, w.word(kind, s))
	}
	return out
}

// text redacts a text for values/. Without a redactor it is left out.
func (w *entryWriter) text(name, s string) string {
	if s == "" {
		return ""
	}
	if w.redact == nil {
		if !slices.Contains(w.v.Masked, name) {
			w.v.Masked = append(w.v.Masked, name)
		}
		return ""
	}
	return w.cut(name, w.redact(s))
}

func (w *entryWriter) texts(name string, list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, w.text(name, s))
	}
	return out
}

func (w *entryWriter) cut(name, s string) string {
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // invalid bytes become U+FFFD: the file stays JSON
	}
	if len(s) <= maxValueText {
		return s
	}
	w.v.Cut = append(w.v.Cut, name)
	end := maxValueText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

func bound(spans []schema.Span) ([]schema.Span, int) {
	if len(spans) <= maxSpans {
		return spans, 0
	}
	return spans[:maxSpans], len(spans) - maxSpans
}

func valueDigest(line []byte) schema.Digest {
	sum := sha256.Sum256(line)
	return schema.Digest("sha256:" + hex.EncodeToString(sum[:]))
}
