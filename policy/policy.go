package policy

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"example.org/auditd/escalation"
	"example.org/auditd/schema"
)

//go:embed default.yaml
var defaultFile []byte

// Policy is one checked file. It is immutable and safe for concurrent use.
type Policy struct {
	file   File
	digest schema.Digest
	vars   map[string]Variable

	modes    []compiledMode
	trust    []compiledTrust
	early    []compiledRule // before the small auditor
	late     []compiledRule // after it
	suppress []compiledSuppression
}

type compiledMode struct {
	agent *regexp.Regexp
	mode  schema.Mode
}

type compiledTrust struct {
	kind  schema.SourceKind
	id    *regexp.Regexp // nil matches every id
	host  string         // "" matches every host
	trust schema.Trust
}

type compiledSuppression struct {
	Suppression
	path, source *regexp.Regexp
}

// Default returns the policy that holds without a file.
func Default() (*Policy, error) { return Parse(defaultFile) }

// Load reads a policy file.
func Load(path string) (*Policy, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	p, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", path, err)
	}
	return p, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("couldn't open the policy: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("couldn't read the policy %s: %w", path, err)
	}
	if len(data) > MaxFile {
		return nil, fmt.Errorf("policy %s is over %d bytes", path, MaxFile)
	}
	return data, nil
}

// Parse checks a policy file and makes it ready. Its error is the first of the
// problems that Check lists.
func Parse(data []byte) (*Policy, error) {
	p, problems := parse(data)
	if len(problems) > 0 {
		return nil, problems[0]
	}
	return p, nil
}

// Check reads a policy file and lists everything that is wrong with it.
func Check(path string) ([]Problem, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	_, problems := parse(data)
	return problems, nil
}

func parse(data []byte) (*Policy, []Problem) {
	if len(data) > MaxFile {
		return nil, []Problem{{0, fmt.Sprintf("the file is over %d bytes", MaxFile)}}
	}
	file := File{Thresholds: escalation.Default()}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		return nil, yamlProblems(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, []Problem{{0, "the file holds more than one document"}}
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, yamlProblems(err)
	}
	p := &Policy{file: file, digest: schema.DigestOf("policy", string(data))}
	b := builder{p: p, root: &root}
	b.build()
	if len(b.problems) > 0 {
		slices.SortStableFunc(b.problems, func(a, b Problem) int { return a.Line - b.Line })
		return nil, b.problems
	}
	return p, nil
}

var lineInText = regexp.MustCompile(`line (\d+): (.*)`)

// yamlProblems splits the decoder's error into one problem per line.
func yamlProblems(err error) []Problem {
	var p Problem
	if errors.As(err, &p) {
		return []Problem{p}
	}
	texts := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	var te *yaml.TypeError
	if errors.As(err, &te) {
		texts = te.Errors
	}
	var problems []Problem
	for _, text := range texts {
		if m := lineInText.FindStringSubmatch(text); m != nil {
			var line int
			fmt.Sscan(m[1], &line)
			problems = append(problems, Problem{line, m[2]})
			continue
		}
		problems = append(problems, Problem{0, text})
	}
	return problems
}

// Digest names the file's exact bytes.
func (p *Policy) Digest() schema.Digest { return p.digest }

// Thresholds returns the escalation thresholds.
func (p *Policy) Thresholds() escalation.Thresholds { return p.file.Thresholds }

// NoArbiter is what happens to a flow that needs a stronger judge when there
// is none: DeferToHuman or Block.
func (p *Policy) NoArbiter() schema.Action {
	if !p.file.NoArbiter.Set {
		return schema.DeferToHuman
	}
	return p.file.NoArbiter.Value
}

// LoopbackPorts, Recipients, Domains and Workspaces are what the precheck needs
// to know.
func (p *Policy) LoopbackPorts() []int { return slices.Clone(p.file.LoopbackPorts) }

// Recipients returns the recipients that the owner's agents write to as a
// matter of course.
func (p *Policy) Recipients() []string { return slices.Clone(p.file.Known.Recipients) }

// Domains returns the known domains.
func (p *Policy) Domains() []string { return slices.Clone(p.file.Known.Domains) }

// Workspaces returns the folders in which agents may change and delete files.
func (p *Policy) Workspaces() []string { return slices.Clone(p.file.Workspaces) }

// Mode returns what is done for an agent, named "host:agent".
func (p *Policy) Mode(agent string) schema.Mode {
	for _, m := range p.modes {
		if m.agent.MatchString(agent) {
			return m.mode
		}
	}
	return schema.ModeAudit
}

// Isolates lists the globs of the agents that are to be isolated, alone or
// beside being audited.
func (p *Policy) Isolates() []string {
	var agents []string
	for _, m := range p.file.Modes {
		if m.Mode.Value == schema.ModeIsolate || m.Mode.Value == schema.ModeBoth {
			agents = append(agents, m.Agent)
		}
	}
	return agents
}

// Decide runs the rules over the facts: those over the report when there is
// one, otherwise the others. An error means that a rule could not be
// evaluated, and the flow must stop: nobody knows what the rule would have
// said. The firewall asks only after the hard rules of the precheck.
func (p *Policy) Decide(f Facts) (Match, error) {
	rules := p.early
	if f.Report != nil {
		rules = p.late
	}
	if len(rules) == 0 {
		return Match{}, nil
	}
	if f.Flow == nil || f.Precheck == nil {
		return Match{}, errors.New("no flow or no precheck to decide about")
	}
	for _, r := range rules {
		if r.rule.Expires.past(f.Now) {
			continue
		}
		ok, err := r.holds(p.vars, &f)
		if err != nil {
			return Match{}, err
		}
		if ok {
			return Match{Matched: true, Action: r.rule.Then.Value, Rule: r.rule.Name, Reason: r.rule.Reason, Late: r.late}, nil
		}
	}
	return Match{}, nil
}

// Suppress returns the precheck's result without the signals that the owner
// suppressed for this flow, and the rules of those. The original is not
// changed. A result that blocks is returned as it is.
func (p *Policy) Suppress(f *schema.Flow, pre *schema.Precheck, now time.Time) (*schema.Precheck, []string) {
	if len(p.suppress) == 0 || pre.HardBlock {
		return pre, nil
	}
	return pre.Without(func(s schema.Signal) bool {
		return slices.ContainsFunc(p.suppress, func(x compiledSuppression) bool { return x.covers(f, s, now) })
	})
}

func (x compiledSuppression) covers(f *schema.Flow, s schema.Signal, now time.Time) bool {
	if x.Expires.past(now) || s.Code != x.Code.Value || s.Severity == schema.Hard {
		return false
	}
	if x.Tool != "" && x.Tool != f.Sink.Tool {
		return false
	}
	if x.source != nil && !matchID(x.source, f.Source.ID) {
		return false
	}
	if x.path != nil && !matchID(x.path, f.Sink.ID) && !(f.Source.Kind == schema.SourceFile && matchID(x.path, f.Source.ID)) {
		return false
	}
	return true
}

func matchID(re *regexp.Regexp, id string) bool {
	id, ok := cleanID(id)
	return ok && id != "" && re.MatchString(id)
}

// absolutePath is what a workspace must be.
func absolutePath(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == strings.TrimSuffix(path, "/") && path != "/"
}

// DefaultText returns the file behind Default, for whoever wants to start from
// it.
func DefaultText() []byte { return bytes.Clone(defaultFile) }
