package precheck

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"example.org/auditd/precheck/command"
	"example.org/auditd/precheck/secret"
	"example.org/auditd/schema"
)

// Config is what the owner says about the machine and its people. The zero
// Config knows nobody, allows no loopback port and has the default bounds.
type Config struct {
	// LoopbackPorts are ports of this machine that flows may use. auditd's own
	// port is never one of them.
	LoopbackPorts []int
	// Workspaces are absolute directories in which agents work, beside the one
	// that a flow names.
	Workspaces []string
	// Home is the absolute home directory of the agents' user; empty: unknown.
	Home string
	// Recipients are addresses, and Domains their domains, to which content
	// may go without being called external.
	Recipients []string
	Domains    []string
	// Protected are auditd's own directories and socket, beside the usual ones.
	Protected []string
	// Guarded are absolute paths of files that agents may read and not change:
	// auditd's program, and the settings by which agents call it.
	Guarded []string
	// Port is auditd's own port; 0 means command.DefaultPort. ProxyPort is its
	// model proxy's; 0 means command.DefaultProxyPort.
	Port      int
	ProxyPort int
	// MaxDecodeDepth bounds decoders within decoders; 0 means 3: nobody wraps a
	// text three times for a good reason.
	MaxDecodeDepth int
	// MaxDecoded bounds the bytes that all decoders together yield for one
	// payload; 0 means 1 MiB, the size of the largest payload. It is what stops
	// a decompression bomb.
	MaxDecoded int
}

// Checker is the compiled precheck. It is immutable and may be used concurrently.
type Checker struct {
	cfg     Config
	rules   *ruleSet
	byName  map[string]*Rule
	secrets *secret.Scanner
	checks  sync.Pool
}

// New compiles the rules.
func New(cfg Config) (*Checker, error) {
	if cfg.MaxDecodeDepth < 0 || cfg.MaxDecoded < 0 || cfg.Port < 0 || cfg.Port > 65535 || cfg.ProxyPort < 0 || cfg.ProxyPort > 65535 {
		return nil, fmt.Errorf("precheck: a bound or the port is negative or too large")
	}
	for _, ws := range cfg.Workspaces {
		if !strings.HasPrefix(ws, "/") && !strings.Contains(ws, ":") {
			return nil, fmt.Errorf("precheck: workspace %q is not an absolute path", ws)
		}
	}
	if cfg.MaxDecodeDepth == 0 {
		cfg.MaxDecodeDepth = 3
	}
	if cfg.MaxDecoded == 0 {
		cfg.MaxDecoded = schema.DefaultMaxPayload
	}
	if cfg.Port == 0 {
		cfg.Port = command.DefaultPort
	}
	if cfg.ProxyPort == 0 {
		cfg.ProxyPort = command.DefaultProxyPort
	}
	for i, d := range cfg.Domains {
		cfg.Domains = slices.Clone(cfg.Domains)
		cfg.Domains[i] = strings.ToLower(strings.TrimPrefix(d, "@"))
	}
	sc, err := secret.New()
	if err != nil {
		return nil, fmt.Errorf("precheck: %w", err)
	}
	rules := Rules()
	set, err := newRuleSet(rules, sc.Keywords())
	if err != nil {
		return nil, fmt.Errorf("precheck: %w", err)
	}
	c := &Checker{cfg: cfg, rules: set, secrets: sc, byName: map[string]*Rule{}}
	for i := range rules {
		if c.byName[rules[i].Name] != nil {
			return nil, fmt.Errorf("precheck: two rules are called %s", rules[i].Name)
		}
		c.byName[rules[i].Name] = &rules[i]
	}
	c.checks.New = func() any { return new(check) }
	return c, nil
}

// Check looks at one completed flow. It never fails: a bound that is reached
// is reported in the coverage and raises ENCODED_PAYLOAD.
func (c *Checker) Check(f *schema.Flow) *schema.Precheck {
	k := c.checks.Get().(*check)
	k.begin(c, f)
	k.structure()
	k.scan(piece{text: f.Payload, exact: true, end: len(f.Payload)})
	k.commands()
	k.settle()
	out := k.finish()
	k.reset()
	c.checks.Put(k)
	return out
}

// Redact replaces every secret in text by a placeholder such as ⟦SECRET_1⟧ and
// returns what each placeholder stands for. Equal secrets share one. A
// placeholder that the text already holds is never used.
func (c *Checker) Redact(text string) (string, map[string]string) {
	placeholders, byValue := map[string]string{}, map[string]string{}
	var b strings.Builder
	at, n := 0, 0
	for _, s := range c.Secrets(text) {
		value := text[s[0]:s[1]]
		name, ok := byValue[value]
		for !ok {
			n++
			name = fmt.Sprintf("⟦SECRET_%d⟧", n)
			ok = !strings.Contains(text, name)
		}
		byValue[value], placeholders[name] = name, value
		b.WriteString(text[at:s[0]])
		b.WriteString(name)
		at = s[1]
	}
	b.WriteString(text[at:])
	return b.String(), placeholders
}

// Secrets returns where the secrets of a text are, as pairs of offsets in
// ascending order that do not overlap.
func (c *Checker) Secrets(text string) [][2]int {
	f := &schema.Flow{Payload: text, Sink: schema.Sink{Kind: schema.SinkReasoning}}
	k := c.checks.Get().(*check)
	k.begin(c, f)
	k.scan(piece{text: text, exact: true, end: len(text)})
	var spans []schema.Span
	for _, s := range k.spans {
		if s.Category == schema.SpanSecret {
			spans = append(spans, s)
		}
	}
	k.reset()
	c.checks.Put(k)
	slices.SortFunc(spans, func(a, b schema.Span) int { return a.Start - b.Start })
	var out [][2]int
	for _, s := range spans {
		if n := len(out); n > 0 && s.Start < out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], s.End)
			continue
		}
		out = append(out, [2]int{s.Start, s.End})
	}
	return out
}
