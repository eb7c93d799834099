// Package secret finds credentials in text with the rules of gitleaks, which
// are kept by people who watch how vendors' tokens look, and two rules of our
// own for passwords without a vendor. The rules run only around their
// keywords: the whole set over a whole text would cost milliseconds, and an
// attacker could make it seconds.
//
// Unlike gitleaks' own detector this one honours no "gitleaks:allow" comment
// (the text is an attacker's), keeps no state between calls, and compiles an
// expression only when its keyword was seen for the first time.
package secret

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
)

// Bounds.
const (
	// lookBehind and lookAhead are how far around its keyword a rule is tried:
	// gitleaks' expressions allow 50 characters in front of a keyword, 20
	// behind it, and values up to about 150.
	lookBehind = 24
	lookAhead  = 240
	// longAhead is for rules whose value has no bound: private keys, JSON web
	// tokens, curl command lines.
	longAhead = 8 << 10
	// maxFindings bounds what one text can yield.
	maxFindings = 256
	// workFactor bounds the bytes that all expressions together read, as a
	// multiple of the text: a text made of nothing but keywords would
	// otherwise be read two hundred times.
	workFactor = 2
	workFloor  = 128 << 10
)

// LimitWork is the limit that Findings names when workFactor was reached.
const LimitWork = "secret-rules"

// Finding is one credential.
type Finding struct {
	Rule       string // gitleaks' id of the rule, or one of ours
	Start, End int    // the secret itself
}

// Scanner holds the rules. It is immutable and may be used concurrently.
type Scanner struct {
	rules    []*rule
	keywords []string
	byWord   [][]int16 // rules of a keyword
	generic  *rule
	global   []*allow
	scans    sync.Pool
}

type rule struct {
	id      string
	source  string
	group   int
	entropy float64
	ahead   int
	assigns bool // "keyword = value": tried only where an operator follows
	// tokens says, for the short keywords that begin a token, how many token
	// characters follow at least: "ey" and "s." stand in every sentence.
	tokens map[string]int
	allows []*allow

	once  sync.Once
	regex *regexp.Regexp
}

// file is the part of gitleaks' rule file that is read.
type file struct {
	Allowlist  allowFile
	Allowlists []allowFile
	Rules      []struct {
		ID          string
		Regex       string
		SecretGroup int `toml:"secretGroup"`
		Entropy     float64
		Keywords    []string
		Path        string
		Allowlist   *allowFile
		Allowlists  []allowFile
	}
}

type allowFile struct {
	Condition   string
	RegexTarget string `toml:"regexTarget"`
	Regexes     []string
	StopWords   []string `toml:"stopwords"`
	Paths       []string
}

const (
	assignPrefix      = `(?i)[\w.-]{0,50}?`
	assignPrefixTwice = `[\w.-]{0,50}?(?i:[\w.-]{0,50}?`
)

// shortToken is what the shortest token of a gitleaks rule with a keyword of
// up to five bytes has behind the keyword.
const shortToken = 8

// inText are the rules whose short keyword is not the beginning of the token.
var inText = map[string]bool{"curl-auth-header": true, "curl-auth-user": true, "intra42-client-secret": true,
	"sourcegraph-access-token": true, "maxmind-license-key": true}

// longTokens gives the minimum for keywords that are common in words.
var longTokens = map[string]map[string]int{"jwt": {"ey": 17}, "vault-service-token": {"s.": 24}, "twilio-api-key": {"sk": 32}}

// longRules need more text behind their keyword.
var longRules = map[string]bool{"private-key": true, "jwt": true, "jwt-base64": true, "curl-auth-header": true, "curl-auth-user": true,
	"1password-service-account-token": true, "kubernetes-secret-yaml": true, "flyio-access-token": true}

// broadPaths are rules that gitleaks ties to a file name, which a payload has
// not, and that hold without it.
var broadPaths = map[string]bool{"kubernetes-secret-yaml": true, "nuget-config-password": true, "freemius-secret-key": true}

// New reads gitleaks' rules. It compiles no expression.
func New() (*Scanner, error) {
	var f file
	if err := toml.Unmarshal([]byte(config.DefaultConfig), &f); err != nil {
		return nil, fmt.Errorf("reading gitleaks' rules: %w", err)
	}
	s := new(Scanner)
	words := map[string]int{}
	add := func(word string, r int) {
		i, ok := words[word]
		if !ok {
			i = len(s.keywords)
			words[word] = i
			s.keywords = append(s.keywords, word)
			s.byWord = append(s.byWord, nil)
		}
		s.byWord[i] = append(s.byWord[i], int16(r))
	}
	for _, fr := range f.Rules {
		if fr.Regex == "" || fr.Path != "" && !broadPaths[fr.ID] || len(fr.Keywords) == 0 {
			continue
		}
		r := &rule{id: fr.ID, source: fr.Regex, group: fr.SecretGroup, entropy: fr.Entropy, ahead: lookAhead}
		if longRules[fr.ID] {
			r.ahead = longAhead
		}
		// Most of gitleaks' rules read "up to 50 characters, the vendor's name,
		// up to 20, an operator, the value". The characters in front say
		// nothing and make the expression slow.
		if rest, ok := strings.CutPrefix(fr.Regex, assignPrefix); ok {
			r.source, r.assigns = "(?i)"+rest, true
		} else if rest, ok := strings.CutPrefix(fr.Regex, assignPrefixTwice); ok {
			r.source, r.assigns = "(?i:"+rest, true
		} else if !inText[fr.ID] {
			r.tokens = map[string]int{}
			for _, k := range fr.Keywords {
				if k = strings.ToLower(k); len(k) <= 5 {
					r.tokens[k] = shortToken
				}
			}
			for k, n := range longTokens[fr.ID] {
				r.tokens[k] = n
			}
		}
		if fr.Allowlist != nil {
			fr.Allowlists = append(fr.Allowlists, *fr.Allowlist)
		}
		for _, a := range fr.Allowlists {
			r.allows = append(r.allows, newAllow(a))
		}
		if fr.ID == "generic-api-key" {
			s.generic = r
			continue
		}
		s.rules = append(s.rules, r)
		for _, k := range fr.Keywords {
			add(strings.ToLower(k), len(s.rules)-1)
		}
	}
	if s.generic == nil || len(s.rules) < 150 {
		return nil, fmt.Errorf("reading gitleaks' rules: only %d were found", len(s.rules))
	}
	for _, a := range append(f.Allowlists, f.Allowlist) {
		s.global = append(s.global, newAllow(a))
	}
	for _, k := range assignWords {
		add(k, genericRule)
	}
	for _, k := range []string{"://"} {
		add(k, userinfoRule)
	}
	for _, k := range []string{"bearer ", "authorization"} {
		add(k, bearerRule)
	}
	s.scans.New = func() any { return &Scan{s: s, windows: make([]window, len(s.rules))} }
	return s, nil
}

// Rules of our own, as indices that no rule of gitleaks has.
const (
	genericRule = -1 - iota
	userinfoRule
	bearerRule
)

// Keywords returns the words to look for. Their indices are what Hit takes.
func (s *Scanner) Keywords() []string { return s.keywords }

type window struct{ start, end int32 }

// Scan is one text being scanned. It is used by one goroutine and ends with
// Findings.
type Scan struct {
	s        *Scanner
	text     string
	windows  []window // of each rule: where to try it; empty when end is 0
	active   []int16  // rules with a window
	findings []Finding
	work     int
	limited  bool
}

// Begin starts a scan of text.
func (s *Scanner) Begin(text string) *Scan {
	c := s.scans.Get().(*Scan)
	c.text = text
	c.work = max(workFloor, workFactor*len(text))
	return c
}

// Hit says that keyword id stands at [start,end). Hits come in order.
func (c *Scan) Hit(id, start, end int) {
	for _, r := range c.s.byWord[id] {
		switch r {
		case genericRule:
			c.assigned(start, end)
			continue
		case userinfoRule:
			c.userinfo(start, end)
			continue
		case bearerRule:
			c.bearer(start, end)
			continue
		}
		if rule := c.s.rules[r]; rule.assigns && !c.operatorFollows(end) {
			continue
		} else if n := rule.tokens[c.s.keywords[id]]; n > 0 && !c.tokenFollows(end, n) {
			continue
		}
		w := &c.windows[r]
		from, to := int32(max(0, start-lookBehind)), int32(min(len(c.text), end+c.s.rules[r].ahead))
		switch {
		case w.end == 0:
			*w = window{from, to}
			c.active = append(c.active, r)
		case from <= w.end:
			w.end = to
		default:
			c.try(c.s.rules[r], *w)
			*w = window{from, to}
		}
	}
}

// Findings runs what is left and returns the credentials, in order and without
// overlaps; limited says that the bound on work was reached. The Scan must not
// be used again.
func (c *Scan) Findings() (found []Finding, limited bool) {
	for _, r := range c.active {
		c.try(c.s.rules[r], c.windows[r])
		c.windows[r] = window{}
	}
	found, limited = merge(c.findings), c.limited
	*c = Scan{s: c.s, windows: c.windows, active: c.active[:0]}
	c.s.scans.Put(c)
	return found, limited
}

func merge(f []Finding) []Finding {
	slices.SortStableFunc(f, func(a, b Finding) int { return a.Start - b.Start })
	var out []Finding
	for _, x := range f {
		if n := len(out); n > 0 && x.Start < out[n-1].End {
			if x.End > out[n-1].End {
				out[n-1].End = x.End
			}
			if strings.HasPrefix(out[n-1].Rule, "generic") {
				out[n-1].Rule = x.Rule
			}
			continue
		}
		out = append(out, x)
	}
	return out
}

func (c *Scan) try(r *rule, w window) {
	if c.work -= int(w.end - w.start); c.work < 0 {
		c.limited = true
		return
	}
	r.once.Do(func() { r.regex = regexp.MustCompile(r.source) }) // gitleaks' own tests compile them all; so does ours
	text := c.text[w.start:w.end]
	for _, m := range r.regex.FindAllStringSubmatchIndex(text, maxFindings) {
		start, end := m[0], m[1]
		if r.group > 0 && 2*r.group+1 < len(m) && m[2*r.group] >= 0 {
			start, end = m[2*r.group], m[2*r.group+1]
		} else {
			for g := 2; g+1 < len(m); g += 2 { // the first group that took part
				if m[g] >= 0 && m[g+1] > m[g] {
					start, end = m[g], m[g+1]
					break
				}
			}
		}
		value := text[start:end]
		if r.entropy > 0 && entropy(value) <= r.entropy {
			continue
		}
		if c.allowed(r, value, text[m[0]:m[1]]) {
			continue
		}
		c.add(r.id, int(w.start)+start, int(w.start)+end)
	}
}

func (c *Scan) add(id string, start, end int) {
	if len(c.findings) < maxFindings {
		c.findings = append(c.findings, Finding{Rule: id, Start: start, End: end})
	}
}
