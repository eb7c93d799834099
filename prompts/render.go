package prompts

import (
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"example.org/auditd/schema"
)

//go:embed templates
var templates embed.FS

// ErrTooLong says that the record does not fit the model's context, also not
// in the windows that are allowed. It is never cut to fit.
var ErrTooLong = errors.New("the record does not fit the model's context")

// Config says what a prompt may cost.
type Config struct {
	// MaxTokens bounds the estimate of one prompt, system text included; 0
	// means no bound.
	MaxTokens int
	// MaxWindows is over how many prompts a long payload may be spread; 0
	// means 1.
	MaxWindows int
	// Rand makes the codes and fences; nil means crypto/rand.
	Rand io.Reader
}

// Renderer makes prompts. It is safe for concurrent use if its Rand is.
type Renderer struct {
	cfg              Config
	auditor, arbiter string
	surfaces         map[schema.Surface]string
	version          string
	auditorT         int // estimate of the auditor's system text
}

// Prompt is one model call: what to send, and what its answer is checked
// against.
type Prompt struct {
	System string // the same bytes for every call of one role
	User   string // starts with the criteria of the surface
	Schema []byte // JSON Schema of the answer

	Tokens   int // estimate for System and User
	Segments []Segment
	Window   Range // the part of the payload that Segments tile
	payload  string
	json     bool
	surface  schema.Surface
	arbiter  bool
	canary   string
	nonce    string
}

// New reads the embedded templates.
func New(cfg Config) (*Renderer, error) {
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	if cfg.MaxWindows < 1 {
		cfg.MaxWindows = 1
	}
	r := &Renderer{cfg: cfg, surfaces: map[schema.Surface]string{}}
	h := sha256.New()
	for _, f := range []struct {
		name string
		set  func(string)
	}{
		{"auditor", func(s string) { r.auditor = s }},
		{"arbiter", func(s string) { r.arbiter = s }},
		{"context", func(s string) { r.surfaces[schema.Context] = s }},
		{"authority", func(s string) { r.surfaces[schema.Authority] = s }},
		{"capability", func(s string) { r.surfaces[schema.Capability] = s }},
	} {
		text, err := fs.ReadFile(templates, "templates/"+f.name+".txt")
		if err != nil {
			return nil, fmt.Errorf("read prompt template: %w", err)
		}
		h.Write(text)
		f.set(string(text))
	}
	r.version = "p1-" + hex.EncodeToString(h.Sum(nil))[:12]
	r.auditorT = EstimateTokens(r.auditor)
	return r, nil
}

// Version names the templates: their format and a digest of their text. It is
// part of every backend's identity, because a report depends on it.
func (r *Renderer) Version() string { return r.version }

// Stable returns what every auditor's prompt starts with, and a message without
// a case, so that a server can be warmed up and its count of tokens learned.
func (r *Renderer) Stable() (system, user string, err error) {
	user, err = r.criteria(schema.Context)
	return r.auditor, user, err
}

// Audit renders the record for the small auditor: one prompt, or several over
// windows of a long payload.
func (r *Renderer) Audit(rec *schema.Record) ([]*Prompt, error) {
	s := newSegmenter(rec.Flow, rec.Precheck)
	whole := Range{0, len(rec.Flow.Payload)}
	p, err := r.audit(rec, s, whole, 1, 1)
	if err != nil {
		return nil, err
	}
	if r.cfg.MaxTokens <= 0 || p.Tokens <= r.cfg.MaxTokens {
		return []*Prompt{p}, nil
	}
	base, err := r.audit(rec, s, Range{}, 1, 1)
	if err != nil {
		return nil, err
	}
	// Numbers and quotes of the spans cost up to five tokens each.
	windows := s.windows(r.cfg.MaxTokens-base.Tokens-5*MaxSegments, r.cfg.MaxWindows)
	if windows == nil {
		return nil, ErrTooLong
	}
	var out []*Prompt
	for i, w := range windows {
		p, err := r.audit(rec, s, w, i+1, len(windows))
		if err != nil {
			return nil, err
		}
		if p.Tokens > r.cfg.MaxTokens {
			return nil, ErrTooLong
		}
		out = append(out, p)
	}
	return out, nil
}

// windows cuts the payload into at most limit ranges of at most budget tokens,
// each starting a little before the end of the one before it, so that an
// instruction is not cut in two unseen. It returns nil when that is not possible.
func (s *segmenter) windows(budget, limit int) []Range {
	const overlap = 8 // part of a window that it shares with the next
	if budget < 64 {
		return nil
	}
	var out []Range
	ends := append(slices.Clone(s.bounds), len(s.payload))
	start, tokens, end := 0, 0, 0
	var costs []int // costs[j] belongs to the range that ends at ends[j]
	for i, e := range ends {
		from := 0
		if i > 0 {
			from = ends[i-1]
		}
		cost := EstimateTokens(Quote(s.payload[from:e])) + 1
		costs = append(costs, cost)
		if cost > budget {
			return nil
		}
		if tokens+cost > budget {
			out = append(out, Range{start, end})
			if len(out) >= limit {
				return nil
			}
			back, j := 0, i
			for j > 0 && ends[j-1] > start && back+costs[j-1]+cost <= budget && back+costs[j-1] <= budget/overlap {
				j--
				back += costs[j]
			}
			start, tokens = 0, back
			if j > 0 {
				start = ends[j-1]
			}
		}
		tokens += cost
		end = e
	}
	return append(out, Range{start, end})
}

func (r *Renderer) audit(rec *schema.Record, s *segmenter, w Range, part, parts int) (*Prompt, error) {
	p, err := r.start(rec.Flow, s, w, false)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	criteria, err := r.criteria(rec.Flow.Surface)
	if err != nil {
		return nil, err
	}
	fence, err := r.word(16)
	if err != nil {
		return nil, err
	}
	b.WriteString(criteria)
	fmt.Fprintf(&b, "\nCASE %s\n", p.canary)
	writeTransfer(&b, rec.Flow)
	writeFindings(&b, rec.Precheck, p)
	if parts > 1 {
		fmt.Fprintf(&b, "content: part %d of %d of a longer content; judge this part\n", part, parts)
	}
	writeSpans(&b, "content", fence, p)
	fmt.Fprintf(&b, "Judge this one transfer. Answer with the JSON object only; c is the word after CASE, spans are 1 to %d, n is %s\n", len(p.Segments), p.nonce)
	p.System, p.User = r.auditor, b.String()
	p.Schema = wireSchema(false, len(p.Segments))
	p.Tokens = r.auditorT + EstimateTokens(p.User)
	return p, nil
}

// Arbitrate renders the record for the large arbiter. Secrets have been taken
// out of it by the caller.
func (r *Renderer) Arbitrate(rec *schema.ArbiterRecord) (*Prompt, error) {
	pre := rec.Precheck
	if rec.Original != nil && rec.Original.Payload != rec.Current.Payload {
		pre = nil // its offsets are those of the original
	}
	s := newSegmenter(rec.Current, pre)
	p, err := r.start(rec.Current, s, Range{0, len(rec.Current.Payload)}, true)
	if err != nil {
		return nil, err
	}
	criteria, err := r.criteria(rec.Current.Surface)
	if err != nil {
		return nil, err
	}
	var fences [2]string
	for i := range fences {
		if fences[i], err = r.word(16); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	b.WriteString(criteria)
	fmt.Fprintf(&b, "\nCASE %s\n", p.canary)
	writeTransfer(&b, rec.Current)
	writeFindings(&b, rec.Precheck, p)
	if rep := rec.Report; rep != nil {
		fmt.Fprintf(&b, "auditor: %s, risk %.2f, uncertainty %.2f, exploitability %.2f, impact %.2f, completeness of its rewrite %.2f, left %s\n",
			rep.Decision, rep.Risk, rep.Uncertainty, rep.Exploitability, rep.Impact, rep.RewriteCompleteness, joinStrings(rep.ResidualRiskTypes))
		for _, e := range rep.Evidence {
			fmt.Fprintf(&b, "auditor's evidence: %s\n", Quote(e))
		}
	} else {
		b.WriteString("auditor: gave no report\n")
	}
	for i, reason := range rec.Reasons {
		if i == 16 {
			break
		}
		fmt.Fprintf(&b, "asked because: %s\n", Quote(reason))
	}
	writeSpans(&b, "content", fences[0], p)
	if rec.Original != nil && rec.Original.Payload != rec.Current.Payload {
		fmt.Fprintf(&b, "%s original\n%s\n%s end\n", fences[1], Quote(rec.Original.Payload), fences[1])
	}
	fmt.Fprintf(&b, "Decide on the content as it stands now. Answer with the JSON object only; c is the word after CASE, spans are 1 to %d, n is %s\n", len(p.Segments), p.nonce)
	p.System, p.User = r.arbiter, b.String()
	p.Schema = wireSchema(true, len(p.Segments))
	p.Tokens = EstimateTokens(p.System) + EstimateTokens(p.User)
	if r.cfg.MaxTokens > 0 && p.Tokens > r.cfg.MaxTokens {
		return nil, ErrTooLong
	}
	return p, nil
}

func (r *Renderer) start(f *schema.Flow, s *segmenter, w Range, arbiter bool) (*Prompt, error) {
	p := &Prompt{Segments: s.segments(w), Window: w, payload: s.payload, json: s.json, surface: f.Surface, arbiter: arbiter}
	var err error
	if p.canary, err = r.word(6); err != nil {
		return nil, err
	}
	if p.nonce, err = r.word(6); err != nil {
		return nil, err
	}
	return p, nil
}

func (r *Renderer) criteria(s schema.Surface) (string, error) {
	text, ok := r.surfaces[s]
	if !ok {
		return "", errors.New("the record has no surface")
	}
	return text, nil
}

// word draws n letters. A chance of one in 22^6, about 10^8, to guess a code is
// enough: every wrong guess is a blocked flow.
func (r *Renderer) word(n int) (string, error) {
	const letters = "abcdefghjkmnpqrstvwxyz" // no i, l, o, u: read apart by models and people
	buf := make([]byte, n)
	for i := range buf {
		for {
			if _, err := io.ReadFull(r.cfg.Rand, buf[i:i+1]); err != nil {
				return "", fmt.Errorf("draw a code: %w", err)
			}
			if buf[i] < 242 { // 11*22: no letter more likely than another
				break
			}
		}
		buf[i] = letters[buf[i]%22]
	}
	return string(buf), nil
}

func writeTransfer(b *strings.Builder, f *schema.Flow) {
	fmt.Fprintf(b, "boundary: %s\n", orUnknown(f.Boundary))
	fmt.Fprintf(b, "source: %s, trust %s", f.Source.Kind, f.Source.Trust)
	writeName(b, "id", f.Source.ID)
	fmt.Fprintf(b, "\nsink: %s", f.Sink.Kind)
	writeName(b, "id", f.Sink.ID)
	writeName(b, "tool", f.Sink.Tool)
	writeName(b, "action", f.Sink.Action)
	writeName(b, "destination", f.Sink.Destination)
	if f.Sink.Kind.Persistent() {
		b.WriteString(", persists")
	}
	b.WriteByte('\n')
	if len(f.Sink.Permissions) > 0 {
		b.WriteString("permissions:")
		for _, p := range f.Sink.Permissions {
			b.WriteByte(' ')
			b.WriteString(Quote(p))
		}
		b.WriteByte('\n')
	}
	if f.Intent != "" {
		fmt.Fprintf(b, "owner asked: %s\n", Quote(f.Intent))
	} else {
		b.WriteString("owner asked: not known\n")
	}
	if f.OwnerAuthorized {
		b.WriteString("owner authorised: this very effect\n")
	} else {
		b.WriteString("owner authorised: nothing beyond that\n")
	}
}

func orUnknown(b schema.Boundary) string {
	if b == schema.BoundaryUnset {
		return "not known"
	}
	return b.String()
}

func writeName(b *strings.Builder, name, value string) {
	if value != "" {
		fmt.Fprintf(b, ", %s %s", name, Quote(value))
	}
}

// writeFindings names each code once, with the spans it was found in.
func writeFindings(b *strings.Builder, pre *schema.Precheck, p *Prompt) {
	if pre == nil || len(pre.Signals) == 0 {
		b.WriteString("scanner: found nothing\n")
		return
	}
	fmt.Fprintf(b, "scanner: risk %.2f, exploitability %.2f, impact %.2f\n", pre.Risk, pre.Exploitability, pre.Impact)
	for _, code := range pre.Codes() {
		fmt.Fprintf(b, "scanner found %s", code)
		n := 0
		for i, seg := range p.Segments {
			if slices.Contains(seg.Codes, code) && n < 8 {
				sep := " in spans "
				if n > 0 {
					sep = ","
				}
				fmt.Fprintf(b, "%s%d", sep, i+1)
				n++
			}
		}
		if via := decoders(pre, code); via != "" {
			fmt.Fprintf(b, " after decoding %s", via)
		}
		b.WriteByte('\n')
	}
}

// decoders names what hid the code's matches. The words are the precheck's.
func decoders(pre *schema.Precheck, code schema.Code) string {
	var names []string
	for _, s := range pre.Signals {
		if s.Code != code {
			continue
		}
		for _, v := range s.Via {
			if !slices.Contains(names, v) && len(names) < 8 {
				names = append(names, v)
			}
		}
	}
	return strings.Join(names, ", ")
}

func writeSpans(b *strings.Builder, what, fence string, p *Prompt) {
	fmt.Fprintf(b, "%s %s\n", fence, what)
	for i, s := range p.Segments {
		fmt.Fprintf(b, "%d %s\n", i+1, Quote(p.payload[s.Start:s.End]))
	}
	fmt.Fprintf(b, "%s end\n", fence)
}

func joinStrings[T fmt.Stringer](list []T) string {
	var out []string
	for _, x := range list {
		out = append(out, x.String())
	}
	return strings.Join(out, ", ")
}
