package quarantine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"example.org/auditd/dualview"
	"example.org/auditd/dualview/policy"
	"example.org/auditd/inference"
	"example.org/auditd/schema"
)

// Tool is the name under which hosts offer inspections to their models, and the
// sink that values are resolved into.
const Tool = "inspect_symbol"

// Config is what a Quarantine is made of.
type Config struct {
	Table *dualview.Table
	Model inference.Completer // nil: there is none, and every inspection fails
	// Policy returns the policy in force.
	Policy func() *policy.Policy
	Owner  string

	Timeout    time.Duration // of one inspection, all its calls together; 0 means a minute
	Calls      int           // of the model for one inspection, tries included; 0 means 16
	Tries      int           // of one call that failed; 0 means 2
	Pause      time.Duration // before a busy model is asked again; 0 means a quarter of a second
	Concurrent int           // calls at once; 0 means 2
	Waiting    int           // inspections at once, those that wait included; 0 means 32
	Output     int           // tokens of an answer at most; 0 means 1024
	CacheBytes int           // of answers; 0 means 4 MiB

	Rand   io.Reader        // of the fences' codes; nil means crypto/rand
	Now    func() time.Time // nil means time.Now
	Logger *slog.Logger     // nil means silence
}

// Quarantine answers inspections. It is safe for concurrent use.
type Quarantine struct {
	cfg   Config
	cache *cache
	slots chan struct{} // one token for each running call
	turns chan struct{} // one token for each inspection
}

// New checks the configuration.
func New(cfg Config) (*Quarantine, error) {
	if cfg.Table == nil || cfg.Policy == nil || cfg.Owner == "" {
		return nil, errors.New("quarantine: Config needs Table, Policy and Owner")
	}
	for _, d := range []struct {
		value *int
		def   int
	}{{&cfg.Calls, 16}, {&cfg.Tries, 2}, {&cfg.Concurrent, 2}, {&cfg.Waiting, 32}, {&cfg.Output, 1024}, {&cfg.CacheBytes, 4 << 20}} {
		if *d.value < 0 {
			return nil, fmt.Errorf("quarantine: a limit is %d", *d.value)
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.Pause <= 0 {
		cfg.Pause = time.Second / 4
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Rand = orRandom(cfg.Rand)
	return &Quarantine{cfg: cfg, cache: newCache(cfg.CacheBytes), slots: make(chan struct{}, cfg.Concurrent), turns: make(chan struct{}, cfg.Waiting)}, nil
}

// Request is one inspection, as the deciding model asks for it.
type Request struct {
	Host     string            `json:"host"`
	Agent    string            `json:"agent"`
	Session  string            `json:"session"`
	CallID   string            `json:"call_id,omitempty"`
	Symbols  []dualview.Symbol `json:"symbols"`
	Question string            `json:"question"`
	// Schema is the answer's form in a small part of JSON Schema; none means
	// one text.
	Schema json.RawMessage `json:"schema,omitempty"`
	// AgentTrusted says that the owner trusts the agent with symbols. The
	// caller finds that out; without it nothing is inspected.
	AgentTrusted bool `json:"-"`
}

// Limits of a request.
const (
	maxInspected = 32
	maxQuestion  = 2000 // bytes
	// outcomeBits is what it tells that an inspection succeeded, failed or was
	// too large: a value can have a say in that.
	outcomeBits = 2
)

// Result is an answer as the deciding model may read it.
type Result struct {
	JSON    json.RawMessage // {"result": …} in the form that was asked for
	Symbols []dualview.Symbol
	Bits    float64 // what it tells at most
	Cached  bool
}

// RequestError says what is wrong with a request. It quotes nothing of it.
type RequestError struct{ Field, Problem string }

func (e *RequestError) Error() string { return e.Field + " " + e.Problem }

func refused(field, format string, args ...any) error {
	return &RequestError{field, fmt.Sprintf(format, args...)}
}

var (
	// ErrBudget means that the session has been told as much as it may.
	ErrBudget = errors.New("the session has been told as much as the policy allows")
	// ErrTooLarge means that the values do not fit into the calls that are allowed.
	ErrTooLarge = errors.New("the values are too large to be inspected")

	errBusy  = errors.New("too many inspections wait")
	errPanic = errors.New("the model's client panicked")
	errModel = errors.New("no model is configured for inspections")
)

// Event answers a request in the words of a host. The zero outcome stops, and
// so does every failure.
func (q *Quarantine) Event(ctx context.Context, r *Request) schema.Outcome {
	res, err := q.Inspect(ctx, r)
	if err != nil {
		q.cfg.Logger.WarnContext(ctx, "an inspection failed", "session", r.Session, "call", r.CallID, "symbols", len(r.Symbols), "err", err)
		var bad *RequestError
		switch {
		case errors.As(err, &bad):
			return schema.Outcome{Action: schema.Block, Reason: "inspect_refused", Message: "Refused: " + bad.Error() + "."}
		case errors.Is(err, ErrBudget):
			return schema.Outcome{Action: schema.Block, Reason: "inspect_budget", Message: "Refused: " + ErrBudget.Error() + "."}
		case errors.Is(err, ErrTooLarge):
			return schema.Outcome{Action: schema.Block, Reason: "inspect_too_large", Message: "Withheld: " + ErrTooLarge.Error() + "."}
		case errors.Is(err, context.DeadlineExceeded):
			return schema.Outcome{Action: schema.Block, Reason: "inspect_late", Message: "Withheld: the model has not answered in time. Ask the same again in a while."}
		}
		return schema.Outcome{Action: schema.Block, Reason: "inspect_failed", Message: "Withheld: the inspection failed. The symbols can still be passed on."}
	}
	return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "inspected", Message: "Answered by the quarantined model.", Result: res.JSON}
}

// Inspect asks the quarantined model. On an error nothing of an answer may be
// shown.
func (q *Quarantine) Inspect(ctx context.Context, r *Request) (*Result, error) {
	if q.cfg.Model == nil {
		return nil, errModel
	}
	select {
	case q.turns <- struct{}{}:
		defer func() { <-q.turns }()
	default:
		return nil, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, q.cfg.Timeout)
	defer cancel()
	f, from, err := q.check(ctx, r)
	if err != nil {
		return nil, err
	}
	question := q.named(r)
	rule := q.cfg.Policy().Inspect()
	clear, bits, err := q.charge(ctx, r, f, rule)
	if err != nil {
		return nil, err
	}
	parts := []string{q.cfg.Owner, q.cfg.Model.Identity(), string(f.text), question}
	for _, s := range r.Symbols {
		parts = append(parts, string(s))
	}
	a, cached, err := q.cache.get(ctx, schema.DigestOf(parts...), func(ctx context.Context) (answer, int, error) {
		ctx, cancel := context.WithTimeout(ctx, q.cfg.Timeout)
		defer cancel()
		return q.answer(ctx, r, f, question)
	})
	if err != nil {
		return nil, err
	}
	res, err := q.symbolise(ctx, f, a, clear, from)
	if err != nil {
		return nil, err
	}
	res.Bits, res.Cached = bits, cached
	return res, nil
}

// check validates a request, and returns the answer's form and the provenance
// of what is made of the answer.
func (q *Quarantine) check(ctx context.Context, r *Request) (*form, dualview.Provenance, error) {
	from := dualview.Provenance{Kind: schema.SourceTool, Tool: Tool, Agent: r.Agent, Session: r.Session, CallID: r.CallID, Trust: schema.Derived, Parents: r.Symbols}
	if r.Host == "" || r.Session == "" {
		return nil, from, refused("host, session", "must both be set")
	}
	for _, n := range []struct{ field, value string }{{"host", r.Host}, {"agent", r.Agent}, {"session", r.Session}, {"call_id", r.CallID}} {
		if len(n.value) > schema.MaxName || !utf8.ValidString(n.value) {
			return nil, from, refused(n.field, "is not UTF-8 or over %d bytes", schema.MaxName)
		}
	}
	if len(r.Symbols) == 0 || len(r.Symbols) > maxInspected {
		return nil, from, refused("symbols", "are %d, it must be 1 to %d", len(r.Symbols), maxInspected)
	}
	if !r.AgentTrusted {
		return nil, from, refused("agent", "is not trusted with symbols")
	}
	if r.Question == "" || len(r.Question) > maxQuestion || !utf8.ValidString(r.Question) {
		return nil, from, refused("question", "is empty, not UTF-8 or over %d bytes", maxQuestion)
	}
	if err := q.foreign(ctx, "question", r.Question, r.Symbols); err != nil {
		return nil, from, err
	}
	if err := q.foreign(ctx, "schema", string(r.Schema), nil); err != nil {
		return nil, from, err
	}
	for i, s := range r.Symbols {
		info, err := q.cfg.Table.Info(ctx, q.cfg.Owner, s)
		if errors.Is(err, dualview.ErrUnknown) {
			return nil, from, refused(fmt.Sprintf("symbols[%d]", i), "does not exist, or belongs to somebody else")
		}
		if err != nil {
			return nil, from, err
		}
		if info.Symbol != s || slices.Contains(r.Symbols[:i], s) {
			return nil, from, refused(fmt.Sprintf("symbols[%d]", i), "is in capitals or stands there twice")
		}
		if info.Secret {
			return nil, from, refused(fmt.Sprintf("symbols[%d]", i), "is a secret, which no model reads")
		}
		from.Trust = min(from.Trust, info.Provenance.Trust)
	}
	s, err := parseShape(r.Schema)
	if err != nil {
		return nil, from, err
	}
	f, err := newForm(s)
	return f, from, err
}

// foreign refuses a text that holds another symbol than those that are
// inspected, or words that are known to come from a value. Such words would be
// an attacker's instructions to the quarantined model.
func (q *Quarantine) foreign(ctx context.Context, field, text string, inspected []dualview.Symbol) error {
	known := map[dualview.Symbol]bool{}
	for _, s := range inspected {
		known[s] = true
	}
	for _, s := range q.cfg.Table.Symbols(text) {
		if !known[s] {
			return refused(field, "holds a symbol that is not among symbols")
		}
	}
	spans, err := q.cfg.Table.Known(ctx, []byte(text))
	if err != nil {
		return err
	}
	if len(spans) > 0 {
		return refused(field, "holds text that comes from a symbol's content")
	}
	return nil
}

// named returns the question with the values' names in the prompt in place of
// their symbols.
func (q *Quarantine) named(r *Request) string {
	var b strings.Builder
	at := 0
	for i, span := range q.cfg.Table.Spans(r.Question) {
		s := q.cfg.Table.Symbols(r.Question)[i]
		b.WriteString(r.Question[at:span[0]])
		fmt.Fprintf(&b, "value %d", 1+slices.Index(r.Symbols, s))
		at = span[1]
	}
	b.WriteString(r.Question[at:])
	return b.String()
}

// charge decides which fields are given in clear, and books what the answer will
// tell before anything is asked. Where the session's budget does not last for
// clear fields, they become symbols.
func (q *Quarantine) charge(ctx context.Context, r *Request, f *form, rule policy.InspectRule) (map[*shape]bool, float64, error) {
	account := r.Host + "\x00" + r.Session
	if rule.Clear {
		clear, bits := f.shape.plan(rule.Bits)
		fits, err := q.cfg.Table.Tell(ctx, q.cfg.Owner, account, bits+outcomeBits, rule.SessionBits)
		if err != nil || fits {
			return clear, bits + outcomeBits, err
		}
	}
	fits, err := q.cfg.Table.Tell(ctx, q.cfg.Owner, account, outcomeBits, rule.SessionBits)
	if err == nil && !fits {
		err = ErrBudget
	}
	return nil, outcomeBits, err
}

// symbolise makes of an answer what the deciding model may read.
func (q *Quarantine) symbolise(ctx context.Context, f *form, a answer, clear map[*shape]bool, from dualview.Provenance) (*Result, error) {
	var items []dualview.Item
	if _, err := f.shape.leaves("", map[string]any(a), func(field string, s *shape, v any) ([]byte, error) {
		if clear[s] {
			return s.encodeClear(v)
		}
		text, ok := v.(string)
		if !ok {
			enc, err := schema.Encode(v)
			if err != nil {
				return nil, errAnswer
			}
			text = string(enc)
		}
		p := from
		p.Field = field
		items = append(items, dualview.Item{Value: []byte(text), Provenance: p})
		return []byte("null"), nil
	}); err != nil {
		return nil, err
	}
	symbols, err := q.cfg.Table.SymboliseAll(ctx, q.cfg.Owner, items)
	if err != nil {
		return nil, err
	}
	next := 0
	out, err := f.shape.leaves("", map[string]any(a), func(_ string, s *shape, v any) ([]byte, error) {
		if clear[s] {
			return s.encodeClear(v)
		}
		next++
		return schema.Encode(string(symbols[next-1]))
	})
	if err != nil {
		return nil, err
	}
	return &Result{JSON: out, Symbols: symbols}, nil
}
