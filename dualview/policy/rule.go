package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// ruleKind is what a node of a result rule is.
type ruleKind uint8

// Kinds of rules. The zero kind makes a symbol of whatever stands there.
const (
	untrusted ruleKind = iota
	object             // members, each with its own rule
	array              // elements, all with one rule
	boolean
	integer // within a range
	number
	timestamp // RFC 3339, or milliseconds since 1970
	hexadecimal
	identifier // made by the local runtime: [A-Za-z0-9_.:-], at most 64
	word       // of a closed list
	echo       // equal to an argument of the call
	local      // text made by the local runtime
	view       // text that came out of the agent's view, if the runner says so
	stdout     // output of the command in the call
	blocks     // a list of content blocks
	dropped    // left out
)

var ruleWords = map[string]ruleKind{
	"untrusted": untrusted, "bool": boolean, "int": integer, "number": number, "time": timestamp, "hex": hexadecimal, "id": identifier,
	"word": word, "echo": echo, "local": local, "view": view, "stdout": stdout, "blocks": blocks, "drop": dropped,
}

// Rule says what may be trusted of one place in a result. In YAML it is a
// mapping for an object, a list of one rule for an array, or a text:
//
//	untrusted         a symbol, whatever it is
//	bool              true or false
//	int [MIN..MAX]    a whole number, within ±2^53 or the range
//	number            any finite number
//	time              a point in time
//	hex               up to 64 hexadecimal digits and hyphens
//	id                an identifier that the local runtime made
//	word A B C        one of these words; _ stands for a single space
//	echo PARAM        what the caller itself gave as PARAM
//	local             text that the local runtime made, up to 4096 bytes
//	view              text out of the agent's view
//	stdout PARAM      output of the command line in PARAM, by the command's schema
//	blocks [FIELD]    content blocks; with FIELD their text is that field, written again
//	drop              left out
type Rule struct {
	kind     ruleKind
	members  map[string]*Rule
	element  *Rule
	min, max float64
	words    []string
	param    string // of echo and stdout; the field of blocks
}

// UnmarshalYAML reads a rule strictly: a word that is not known is an error.
func (r *Rule) UnmarshalYAML(n *yaml.Node) error {
	left := maxRuleNodes
	return r.read(n, 0, &left)
}

const (
	maxRuleDepth = 16
	maxRuleNodes = 10_000 // aliases can make a short document long
)

func (r *Rule) read(n *yaml.Node, depth int, left *int) error {
	if *left--; depth > maxRuleDepth || *left < 0 {
		return fmt.Errorf("line %d: rules are nested deeper than %d or more than %d", n.Line, maxRuleDepth, maxRuleNodes)
	}
	switch n.Kind {
	case yaml.MappingNode:
		r.kind, r.members = object, map[string]*Rule{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if _, ok := r.members[name]; ok || name == "" || name == otherMember {
				return fmt.Errorf("line %d: member %q stands there twice or is not possible", n.Content[i].Line, name)
			}
			m := new(Rule)
			if err := m.read(n.Content[i+1], depth+1, left); err != nil {
				return err
			}
			r.members[name] = m
		}
		return nil
	case yaml.SequenceNode:
		if len(n.Content) != 1 {
			return fmt.Errorf("line %d: a list of exactly one rule describes an array", n.Line)
		}
		r.kind, r.element = array, new(Rule)
		return r.element.read(n.Content[0], depth+1, left)
	case yaml.AliasNode:
		return r.read(n.Alias, depth+1, left)
	case yaml.ScalarNode:
		if err := r.readText(n.Value); err != nil {
			return fmt.Errorf("line %d: rule %q: %w", n.Line, n.Value, err)
		}
		return nil
	}
	return fmt.Errorf("line %d: a rule is a text, a mapping or a list", n.Line)
}

func (r *Rule) readText(text string) error {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return errors.New("is empty")
	}
	kind, ok := ruleWords[fields[0]]
	if !ok {
		return errors.New("begins with no known word")
	}
	args := fields[1:]
	r.kind = kind
	switch kind {
	case integer:
		r.min, r.max = -(1 << 53), 1<<53
		if len(args) == 1 {
			lo, hi, ok := strings.Cut(args[0], "..")
			var err1, err2 error
			r.min, err1 = strconv.ParseFloat(lo, 64)
			r.max, err2 = strconv.ParseFloat(hi, 64)
			if !ok || err1 != nil || err2 != nil || r.min > r.max {
				return errors.New("needs a range such as 0..255")
			}
			args = nil
		}
	case word:
		if len(args) == 0 {
			return errors.New("needs the words")
		}
		for _, a := range args {
			if a == "_" {
				a = " " // the one word that cannot be written here
			}
			r.words = append(r.words, a)
		}
		args = nil
	case echo, stdout:
		if len(args) != 1 {
			return errors.New("needs the name of a parameter")
		}
		r.param, args = args[0], nil
	case blocks:
		if len(args) == 1 {
			r.param, args = args[0], nil
		}
	}
	if len(args) > 0 {
		return errors.New("has too many words")
	}
	return nil
}

var (
	hexForm = regexp.MustCompile(`^[0-9a-fA-F-]{1,64}$`)
	idForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$`)
)

const maxLocal = 4096

// bits says how much a trusted value of this rule can tell the reader: the
// residual channel that a page has through the fields it influences.
func (r *Rule) bits(value string) float64 {
	switch r.kind {
	case boolean:
		return 1
	case integer:
		return RangeBits(r.min, r.max)
	case number:
		return 64
	case timestamp:
		return 42
	case hexadecimal:
		return 4 * float64(len(value))
	case word:
		return WordBits(len(r.words))
	}
	return 0 // the caller's own words, or the local runtime's
}
