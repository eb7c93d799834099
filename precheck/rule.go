package precheck

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"example.org/auditd/precheck/keyword"
	"example.org/auditd/precheck/normalise"
	"example.org/auditd/schema"
)

// Rule is one thing that the precheck looks for. A rule with Words is matched
// against the folded, lower-case text: wherever one of its words stands, its
// Pattern is tried there. A rule without Words is raised by code (a parsed
// command, a host, a decoder) and is listed for its description and examples.
type Rule struct {
	Name string
	Code schema.Code
	// Words are tried at word boundaries, folded as package normalise folds:
	// lower case, no accents on Latin letters.
	Words []string
	// Pattern is an RE2 expression anchored where the word starts; empty means
	// that the word is enough.
	Pattern string
	// Needs holds words of which one must stand within Ahead, or the pattern
	// is not tried: looking for a word costs a hundredth of an expression.
	Needs []string
	// Ahead is how many bytes Pattern may look at; 0 means defaultAhead.
	Ahead int
	// Inner allows the word to start inside another word.
	Inner bool
	// Check judges a match further: text is folded, [start,end) the match. It
	// returns the part to report.
	Check func(text string, start, end int) (int, int, bool)
	// When says for which flows the rule holds; nil means all.
	When func(*schema.Flow) bool
	// Span is what the matched text is to the segmentation.
	Span schema.SpanCategory
	// Tags name the rule in public taxonomies (OWASP LLM Top 10 2025, MITRE ATLAS).
	Tags []string

	Hit, Miss []Example
}

// Example is a flow that a rule must raise, or must not. Sink and source
// default to an untrusted page on its way into the model's context.
type Example struct {
	Text        string
	Sink        schema.SinkKind
	Source      schema.SourceKind
	Trust       schema.Trust
	Tool        string
	Action      string
	Destination string
}

// text makes examples of plain texts.
func text(s ...string) []Example {
	var out []Example
	for _, t := range s {
		out = append(out, Example{Text: t, Sink: schema.SinkReasoning, Source: schema.SourceWeb, Trust: schema.Untrusted})
	}
	return out
}

// run makes examples of commands about to be executed.
func run(s ...string) []Example {
	var out []Example
	for _, t := range s {
		out = append(out, Example{Text: t, Sink: schema.SinkExec, Source: schema.SourceAgent, Trust: schema.Untrusted})
	}
	return out
}

// Flow makes the flow that the example describes.
func (e Example) Flow() *schema.Flow {
	f := &schema.Flow{Payload: e.Text, Source: schema.Source{Kind: e.Source, Trust: e.Trust},
		Sink:    schema.Sink{Kind: e.Sink, Tool: e.Tool, Action: e.Action, Destination: e.Destination},
		Session: schema.Session{Workspace: "/home/u/project"}}
	if err := f.Complete(0); err != nil {
		panic("precheck: internal error: example of a rule: " + err.Error())
	}
	return f
}

// Rules returns every rule, in a stable order.
func Rules() []Rule {
	var all []Rule
	for _, group := range [][]Rule{
		controlRules(), languageRules(), standingRules(), poisoningRules(), authorityRules(), recipientRules(), personalRules(), financialRules(),
		externalRules(), secretRules(), pathRules(), persistentRules(), sideEffectRules(), commandRules(), endpointRules(), encodedRules(),
	} {
		all = append(all, group...)
	}
	return all
}

// defaultAhead is how far a pattern may look: two long lines of prose.
const defaultAhead = 192

// compiled is a rule ready to run.
type compiled struct {
	Rule
	regex *regexp.Regexp
	ahead int
}

// ruleSet is the automaton over all words and what each word stands for.
type ruleSet struct {
	words   *keyword.Set
	owners  [][]int32 // word -> rules; negative numbers are secrets' keywords and scanners
	rules   []compiled
	control *keyword.Set // words of the rules that are tried on rewritten views too
	ctlOwn  [][]int32
}

// Scanners that are called where one of their words stands.
const (
	ownURL     int32 = -1
	ownHost    int32 = -2
	ownAt      int32 = -3
	ownCommand int32 = -4
	ownSecret  int32 = -1000 // and below: -1000 - keyword id
)

func newRuleSet(rules []Rule, secretWords []string) (*ruleSet, error) {
	s := new(ruleSet)
	ids, ctlIDs := map[string]int{}, map[string]int{}
	var words, ctlWords []string
	add := func(word string, owner int32) {
		id, ok := ids[word]
		if !ok {
			id = len(words)
			ids[word] = id
			words = append(words, word)
			s.owners = append(s.owners, nil)
		}
		s.owners[id] = append(s.owners[id], owner)
	}
	for _, r := range rules {
		c := compiled{Rule: r, ahead: r.Ahead}
		if c.ahead == 0 {
			c.ahead = defaultAhead
		}
		if r.Pattern != "" {
			re, err := regexp.Compile("^(?:" + norm.NFKC.String(r.Pattern) + ")")
			if err != nil {
				return nil, fmt.Errorf("rule %s: %w", r.Name, err)
			}
			c.regex = re
		}
		s.rules = append(s.rules, c)
		own := int32(len(s.rules) - 1)
		for _, w := range r.Words {
			w = normalise.Fold(w).Lower
			add(w, own)
			if r.Code == schema.PromptControl {
				id, ok := ctlIDs[w]
				if !ok {
					id = len(ctlWords)
					ctlIDs[w] = id
					ctlWords = append(ctlWords, w)
					s.ctlOwn = append(s.ctlOwn, nil)
				}
				s.ctlOwn[id] = append(s.ctlOwn[id], own)
			}
		}
	}
	add("://", ownURL)
	for _, w := range hostWords {
		add(w, ownHost)
	}
	add("@", ownAt)
	for _, w := range commandWords {
		add(w, ownCommand)
	}
	for i, w := range secretWords {
		add(w, ownSecret-int32(i))
	}
	var err error
	if s.words, err = keyword.New(words); err != nil {
		return nil, fmt.Errorf("rules' words: %w", err)
	}
	if s.control, err = keyword.New(ctlWords); err != nil {
		return nil, fmt.Errorf("rules' words: %w", err)
	}
	return s, nil
}

// effort counts how often each rule's expression ran over one piece. A text
// made of a rule's words would otherwise run it a hundred thousand times.
type effort struct {
	tries   []int32
	limited bool
}

// spend reports whether rule own may run once more.
func (e *effort) spend(own int32, size int) bool {
	const floor, perBytes = 384, 512 // one try per half KiB: prose has one per ten
	if e.tries[own]++; int(e.tries[own]) > floor+size/perBytes {
		e.limited = true
		return false
	}
	return true
}

// try runs rule own where its word stands at start. It returns the part of
// text that matched.
func (s *ruleSet) try(work *effort, own int32, text string, start, end int) (int, int, bool) {
	r := &s.rules[own]
	if !r.Inner && start > 0 && wordByte(text[start]) && wordByte(text[start-1]) {
		return 0, 0, false
	}
	if r.regex != nil {
		near := text[start:min(len(text), start+r.ahead)]
		if len(r.Needs) > 0 && !slices.ContainsFunc(r.Needs, func(w string) bool { return strings.Contains(near, w) }) {
			return 0, 0, false
		}
		if !work.spend(own, len(text)) {
			return 0, 0, false
		}
		m := r.regex.FindStringIndex(near)
		if m == nil {
			return 0, 0, false
		}
		end = start + m[1]
	}
	if end < len(text) && wordByte(text[end-1]) && wordByte(text[end]) {
		return 0, 0, false
	}
	if r.Check != nil {
		return r.Check(text, start, end)
	}
	return start, end, true
}

func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
