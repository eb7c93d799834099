package policy

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"example.org/auditd/dualview"
	"example.org/auditd/schema"
)

//go:embed defaults/*.yaml
var defaults embed.FS

// Document is one policy file.
type Document struct {
	Version  int              `yaml:"version"` // 1
	Tools    map[string]*Tool `yaml:"tools,omitempty"`
	Webhooks map[string]*Rule `yaml:"webhooks,omitempty"` // by port: the schema of its payload
	Commands []*Command       `yaml:"commands,omitempty"`
	Origins  []*OriginRule    `yaml:"origins,omitempty"`
	Usage    []*UsageRule     `yaml:"usage,omitempty"`
	// Secrets are the sinks that credentials may go to. Without any, a secret
	// symbol resolves for nothing.
	Secrets []*SecretRule `yaml:"secrets,omitempty"`
	Inspect *InspectRule  `yaml:"inspect,omitempty"`
}

// SecretRule names a sink: a kind such as exec or web, the tool, and, where the
// tool names one, the destination, exactly or "*.example.com".
type SecretRule struct {
	Sink        SinkKind `yaml:"sink"`
	Tool        string   `yaml:"tool"`
	Destination string   `yaml:"destination,omitempty"`
}

// SinkKind is schema.SinkKind in YAML.
type SinkKind struct{ schema.SinkKind }

// UnmarshalYAML reads the word of a sink kind.
func (k *SinkKind) UnmarshalYAML(n *yaml.Node) error { return k.UnmarshalText([]byte(n.Value)) }

// View is where a tool works.
type View uint8

// Views. The zero view resolves symbols and trusts nothing that comes back.
const (
	HumanView View = iota
	AgentView      // works on the agent's files, where untrusted content is symbols
	LocalView      // neither needs originals nor returns foreign text
)

// UnmarshalYAML reads the word of a view.
func (v *View) UnmarshalYAML(n *yaml.Node) error {
	switch n.Value {
	case "human":
		*v = HumanView
	case "agent":
		*v = AgentView
	case "local":
		*v = LocalView
	default:
		return fmt.Errorf("line %d: view must be human, agent or local", n.Line)
	}
	return nil
}

// Tool is the rule for one tool.
type Tool struct {
	View   View        `yaml:"view"`
	Source SourceKind  `yaml:"source,omitempty"`
	Origin *ToolOrigin `yaml:"origin,omitempty"`
	// Result is the rule for what the tool returns; nil means untrusted.
	Result *Rule `yaml:"result,omitempty"`
	// Destinations are parameters that say where something goes or who gets
	// it: dotted paths, "[]" for the elements of an array.
	Destinations []string `yaml:"destinations,omitempty"`
	// Paths are parameters that name files and are rewritten to the agent's
	// tree. Directory says that the first of them may be missing and then means
	// the workspace. Writes says that the tool changes what it names.
	Paths     []string `yaml:"paths,omitempty"`
	Directory bool     `yaml:"directory,omitempty"`
	Writes    bool     `yaml:"writes,omitempty"`
	// Executes names the parameter that holds a command line.
	Executes string `yaml:"executes,omitempty"`
	// Contexts says how a parameter is escaped; raw where it is not listed.
	Contexts map[string]string `yaml:"contexts,omitempty"`
}

// ToolOrigin says which parameter names the origin of a result.
type ToolOrigin struct {
	Kind  string `yaml:"kind"`
	Param string `yaml:"param"`
	// Final is the path of the result's field with the address that the
	// content came from in the end.
	Final string `yaml:"final,omitempty"`
}

// SourceKind is schema.SourceKind in YAML.
type SourceKind struct{ schema.SourceKind }

// UnmarshalYAML reads the word of a source kind.
func (k *SourceKind) UnmarshalYAML(n *yaml.Node) error {
	return k.UnmarshalText([]byte(n.Value))
}

// Command is the schema of a command's output. It applies to a command line
// that is nothing but this one command.
type Command struct {
	// Run is the command's words: "*" for any one word, "..." at the end for
	// any more words.
	Run string `yaml:"run"`
	// JSON is the rule for output that is one JSON document; JSONLines for one
	// document a line.
	JSON      *Rule `yaml:"json,omitempty"`
	JSONLines *Rule `yaml:"json_lines,omitempty"`
	// Line is a regular expression for every line; Fields gives the rule for
	// each of its named groups. Outside the groups it may hold fixed text only.
	Line   string           `yaml:"line,omitempty"`
	Fields map[string]*Rule `yaml:"fields,omitempty"`

	words []string
	line  *regexp.Regexp
}

// UsageRule is a rule about where symbols may go.
type UsageRule struct {
	From struct {
		Source SourceKind `yaml:"source,omitempty"`
		Tool   string     `yaml:"tool,omitempty"`
		Origin string     `yaml:"origin,omitempty"` // exact, or with a * at its end
	} `yaml:"from,omitempty"` // empty: every symbol
	Into struct {
		Tool  string `yaml:"tool"`
		Param string `yaml:"param,omitempty"` // empty: any parameter
	} `yaml:"into"`
	Action string `yaml:"action"` // ask or block
}

const (
	maxDocument = 1 << 20
	maxRules    = 10000
)

// Parse reads one document strictly: an unknown key, a second document, a
// missing version and any rule that does not make sense are errors.
func Parse(data []byte) (*Document, error) {
	if len(data) > maxDocument {
		return nil, fmt.Errorf("policy: %d bytes, the limit is %d", len(data), maxDocument)
	}
	d := new(Document)
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(d); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); err != io.EOF {
		return nil, errors.New("policy: more than one document")
	}
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return d, nil
}

func (d *Document) validate() error {
	if d.Version != 1 {
		return errors.New("version must be 1")
	}
	if len(d.Tools)+len(d.Webhooks)+len(d.Commands)+len(d.Origins)+len(d.Usage)+len(d.Secrets) > maxRules {
		return fmt.Errorf("more than %d rules", maxRules)
	}
	for name, t := range d.Tools {
		if t == nil || name == "" {
			return fmt.Errorf("tool %q has no rule", name)
		}
		if err := t.validate(); err != nil {
			return fmt.Errorf("tool %q: %w", name, err)
		}
	}
	for port, r := range d.Webhooks {
		if r == nil || port == "" {
			return fmt.Errorf("webhook %q has no rule", port)
		}
	}
	for _, c := range d.Commands {
		if err := c.compile(); err != nil {
			return fmt.Errorf("command %q: %w", c.Run, err)
		}
	}
	for i, o := range d.Origins {
		if err := o.validate(); err != nil {
			return fmt.Errorf("origin %d: %w", i+1, err)
		}
	}
	for i, u := range d.Usage {
		if u.Into.Tool == "" || u.Action != "ask" && u.Action != "block" {
			return fmt.Errorf("usage rule %d: must name a tool and the action ask or block", i+1)
		}
	}
	for i, s := range d.Secrets {
		if s == nil || s.Tool == "" || s.Sink.SinkKind == schema.SinkOther || s.Sink.SinkKind == schema.SinkReasoning {
			return fmt.Errorf("secrets rule %d: must name a sink and a tool", i+1)
		}
	}
	if d.Inspect != nil {
		return d.Inspect.validate()
	}
	return nil
}

func (t *Tool) validate() error {
	if o := t.Origin; o != nil {
		if !slices.Contains([]string{"url", "file", "agent", "sender", "webhook"}, o.Kind) || o.Param == "" {
			return errors.New("origin needs a kind and a parameter")
		}
	}
	for p, c := range t.Contexts {
		if _, err := contextNamed(c); err != nil {
			return fmt.Errorf("parameter %q: %w", p, err)
		}
	}
	return nil
}

func (c *Command) compile() error {
	c.words = strings.Fields(c.Run)
	if len(c.words) == 0 || strings.HasPrefix(c.words[0], "*") || c.words[0] == "..." {
		return errors.New("must begin with the name of the command")
	}
	n := 0
	for _, set := range []bool{c.JSON != nil, c.JSONLines != nil, c.Line != ""} {
		if set {
			n++
		}
	}
	if n != 1 {
		return errors.New("must have exactly one of json, json_lines and line")
	}
	if c.Line == "" {
		return nil
	}
	parsed, err := syntax.Parse(c.Line, syntax.Perl)
	if err != nil {
		return err
	}
	if !fixedOutsideGroups(parsed) {
		return errors.New("line matches text outside its groups that is not fixed")
	}
	if c.line, err = regexp.Compile(`^(?:` + c.Line + `)$`); err != nil {
		return err
	}
	for _, name := range c.line.SubexpNames()[1:] {
		r := c.Fields[name]
		if r == nil {
			return fmt.Errorf("group %q has no rule in fields", name)
		}
		if r.kind == object || r.kind == array || r.kind == blocks || r.kind == stdout || r.kind == view {
			return fmt.Errorf("the rule of group %q is not for a word", name)
		}
	}
	return nil
}

// fixedOutsideGroups reports whether everything that the expression matches
// outside its groups is text that the policy itself spells, or white space. Else
// a line could carry foreign text between its fields.
func fixedOutsideGroups(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpCapture, syntax.OpLiteral, syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return re.Op != syntax.OpLiteral || re.Flags&syntax.FoldCase == 0
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if r != ' ' && r != '\t' {
					return false
				}
			}
		}
		return true
	case syntax.OpConcat, syntax.OpQuest, syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		for _, sub := range re.Sub {
			if !fixedOutsideGroups(sub) {
				return false
			}
		}
		return true
	}
	return false
}

// Policy is the merged, checked form of the shipped documents and the owner's.
// It is immutable.
type Policy struct {
	tools    map[string]*Tool
	webhooks map[string]*Rule
	commands []*Command
	origins  []*OriginRule
	usage    []*UsageRule
	secrets  []dualview.SinkRule
	inspect  *InspectRule
	digest   schema.Digest
}

// New returns the policy made of the shipped defaults and the owner's documents.
// A later document's rule for a tool, a webhook, a command or inspections replaces an
// earlier one's; origin and usage rules add up.
func New(owner ...[]byte) (*Policy, error) {
	p := &Policy{tools: map[string]*Tool{}, webhooks: map[string]*Rule{}}
	var parts []string
	add := func(name string, data []byte) error {
		d, err := Parse(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		parts = append(parts, string(data))
		for n, t := range d.Tools {
			p.tools[n] = t
		}
		for n, w := range d.Webhooks {
			p.webhooks[n] = w
		}
		p.commands = append(slices.Clone(d.Commands), p.commands...) // the first match counts
		p.origins = append(p.origins, d.Origins...)
		p.usage = append(p.usage, d.Usage...)
		for _, s := range d.Secrets {
			p.secrets = append(p.secrets, dualview.SinkRule{Kind: s.Sink.SinkKind, Tool: s.Tool, Destination: s.Destination})
		}
		if d.Inspect != nil {
			p.inspect = d.Inspect
		}
		return nil
	}
	names, err := fs.Glob(defaults, "defaults/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := fs.ReadFile(defaults, name)
		if err != nil {
			return nil, err
		}
		if err := add(name, data); err != nil {
			return nil, err
		}
	}
	for i, data := range owner {
		if err := add(fmt.Sprintf("the owner's document %d", i+1), data); err != nil {
			return nil, err
		}
	}
	p.digest = schema.DigestOf(parts...)
	return p, nil
}

// Digest names this policy.
func (p *Policy) Digest() schema.Digest { return p.digest }

// Tool returns the rule for a tool, and whether it is listed. A tool that is
// not listed works in the human view and returns nothing that is trusted.
func (p *Policy) Tool(name string) (Tool, bool) {
	if t, ok := p.tools[name]; ok {
		return *t, true
	}
	return Tool{}, false
}

// FileTrust says what the origin rules say about a file: "trusted",
// "untrusted", or nothing.
func (p *Policy) FileTrust(file, workspace string) string {
	return p.originTrust(origin{"file", file, workspace})
}

// AgentTrusted reports whether another agent may hold symbols: only if the owner
// says so.
func (p *Policy) AgentTrusted(agent string) bool {
	return p.originTrust(origin{kind: "agent", value: agent}) == "trusted"
}

// AgentBarred reports whether the owner says that an agent is untrusted, by its
// name or by "host:name": nothing is resolved for it.
func (p *Policy) AgentBarred(host, agent string) bool {
	for _, name := range []string{agent, host + ":" + agent} {
		if p.originTrust(origin{kind: "agent", value: name}) == "untrusted" {
			return true
		}
	}
	return false
}

// originTrust applies the precedence: untrusted beats trusted.
func (p *Policy) originTrust(from origin) string {
	trust := ""
	for _, o := range p.origins {
		if o.matches(from) {
			if o.Trust == "untrusted" {
				return "untrusted"
			}
			trust = o.Trust
		}
	}
	return trust
}
