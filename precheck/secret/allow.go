package secret

import (
	"math"
	"regexp"
	"strings"
	"sync"

	"example.org/auditd/precheck/keyword"
)

// allow is one of gitleaks' allow-lists: what looks like a secret and is none.
type allow struct {
	all     bool // every condition must hold
	target  string
	sources []string
	words   []string
	paths   bool

	once  sync.Once
	regex *regexp.Regexp
	stop  *keyword.Set
}

func newAllow(f allowFile) *allow {
	return &allow{all: strings.EqualFold(f.Condition, "and"), target: f.RegexTarget, sources: f.Regexes, words: f.StopWords, paths: len(f.Paths) > 0}
}

func (a *allow) holds(value, match string) bool {
	if len(a.sources) == 0 && len(a.words) == 0 || a.all && a.paths {
		return false // about files only
	}
	a.once.Do(func() {
		if len(a.sources) > 0 {
			a.regex = regexp.MustCompile("(?:" + strings.Join(a.sources, ")|(?:") + ")")
		}
		if len(a.words) > 0 {
			a.stop, _ = keyword.New(a.words)
		}
	})
	byRegex := a.regex != nil && a.regex.MatchString(pickTarget(a.target, value, match))
	byWord := false
	if a.stop != nil && (!byRegex || a.all) {
		a.stop.Scan(value, func(int, int, int) { byWord = true })
	}
	if a.all {
		return (a.regex == nil || byRegex) && (a.stop == nil || byWord)
	}
	return byRegex || byWord
}

func pickTarget(target, value, match string) string {
	if target == "match" || target == "line" {
		return match
	}
	return value
}

// documented are credentials that vendors print in their documentation, and
// marks of a placeholder. Whoever writes them leaks nothing.
var documented = []string{
	"EXAMPLE", "example_", "_example", "-example", "XXXXXX", "xxxxxx", "******", "......", "000000000", "123456789012345678", "abcdefghij",
	"YOUR_", "your_", "your-", "YOUR-", "YourS", "changeme", "CHANGEME", "change_me", "change-me", "placeholder", "PLACEHOLDER", "REDACTED", "redacted",
	"4eC39HqLyjWDarjtT1zdp7dc", "TYooMQauvdEDq54NiTphI7jx", // Stripe's documentation
	"SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c", // jwt.io
	"deadbeef", "DEADBEEF", "dummy", "DUMMY", "insert_", "INSERT_", "replace_", "REPLACE_", "_here", "_HERE", "-here",
}

// Documented reports whether a value is known from documentation or is
// visibly a placeholder.
func Documented(value string) bool {
	for _, d := range documented {
		if strings.Contains(value, d) {
			return true
		}
	}
	if value == "" {
		return true
	}
	switch value[0] {
	case '<', '$', '{', '%', '[', '@':
		return true
	}
	return false
}

func (c *Scan) allowed(r *rule, value, match string) bool {
	if Documented(value) {
		return true
	}
	for _, a := range c.s.global {
		if a.holds(value, match) {
			return true
		}
	}
	for _, a := range r.allows {
		if a.holds(value, match) {
			return true
		}
	}
	return false
}

// entropy is Shannon's, in bits a character.
func entropy(s string) float64 {
	if s == "" {
		return 0
	}
	var n [256]int
	for i := 0; i < len(s); i++ {
		n[s[i]]++
	}
	e := 0.0
	for _, k := range n {
		if k > 0 {
			p := float64(k) / float64(len(s))
			e -= p * math.Log2(p)
		}
	}
	return e
}
