// Package command says what a shell command line would do. It parses the text
// as a shell does (quotes, expansions, pipes, substitutions, here-documents,
// wrappers such as sudo or xargs) and looks at the commands that would really
// run, with the paths that they would really touch: a pattern over the text
// would stop "rm -rf ./node_modules" and let "r\m -rf $H" pass. Nothing is
// executed and no file is read.
package command

import (
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds on what is parsed: the text is an attacker's. Over a bound the text is
// split into words instead, and the result says so.
const (
	// MaxText is what one command line may hold: half of what Linux allows for
	// one argument (MAX_ARG_STRLEN, 128 KiB).
	MaxText = 64 << 10
	// maxNesting bounds brackets, blocks and keywords within each other: the
	// parser recurses on each, and nobody types ten.
	maxNesting = 60
	// maxDepth bounds commands within arguments of commands (sh -c "sh -c …").
	maxDepth = 6
	// maxCalls bounds the simple commands looked at in one text.
	maxCalls = 4096
	// maxNested bounds the bytes of all texts within arguments together: they are
	// parsed again, and several options may hand the same one on.
	maxNested = 8 * MaxText
	// maxEffects bounds what is reported; the first ones decide.
	maxEffects = 64
)

// Limits that a Result can name.
const (
	LimitSize    = "shell-size"
	LimitNesting = "shell-nesting"
	LimitCalls   = "shell-calls"
)

// Effect is something that a command would do to the world.
type Effect struct {
	Rule       Rule
	Hard       bool // destructive, irreversible or a grant, beyond doubt
	Start, End int  // the call in the text
}

// Arg is a resolved word of a command.
type Arg struct {
	Text       string
	Start, End int
}

// Result is what was found out about one text.
type Result struct {
	Effects []Effect
	// Parsed is false when the text is not valid shell, or over a bound, and
	// was split into words instead.
	Parsed bool
	Limits []string
	// Hosts are the words that network commands would connect to.
	Hosts []Arg
	// Resolved are the command lines that read differently once quotes,
	// escapes and variables are resolved.
	Resolved []Arg
	// Inert are the calls that only print, search or record their words, so
	// that an address in them is text.
	Inert []Arg
	// Calls is the number of simple commands.
	Calls int

	nested int // bytes of the texts within arguments
}

// Env is what the owner says about the machine.
type Env struct {
	Workspaces []string // absolute directories in which deleting is ordinary work
	Home       string   // absolute; empty when unknown
	Protected  []string // auditd's own directories and socket
	Guarded    []string // files that agents may read but not change: auditd's program, the settings that call it
	Port       int      // auditd's own port
	ProxyPort  int      // its model proxy's
}

// parsers are costly to make and keep nothing of the text that matters.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// Shell analyses text as a command line or script.
func Shell(text string, env *Env) *Result {
	w := &walker{env: env, src: text, res: new(Result)}
	w.shell(text)
	return w.res
}

// Words analyses text without parsing it: separators split it into calls,
// blanks into words. It is for text that is not shell, or only may be.
func Words(text string, env *Env) *Result {
	w := &walker{env: env, src: text, res: new(Result)}
	w.words(text)
	return w.res
}

func (w *walker) shell(text string) {
	switch {
	case len(text) > MaxText:
		w.limit(LimitSize)
	case nesting(text) > maxNesting:
		w.limit(LimitNesting)
	default:
		p := parsers.Get().(*syntax.Parser)
		file, err := p.Parse(strings.NewReader(text), "")
		parsers.Put(p)
		if err == nil {
			w.res.Parsed = w.depth == 0 || w.res.Parsed
			w.stmts(file.Stmts)
			return
		}
	}
	w.res.Parsed = false
	w.words(text)
}

func (w *walker) limit(name string) {
	for _, l := range w.res.Limits {
		if l == name {
			return
		}
	}
	w.res.Limits = append(w.res.Limits, name)
}

// nesting is an upper bound of how deep the parser would recurse on text: it
// counts what opens something and takes off what closes, in quotes too.
func nesting(text string) int {
	depth, deepest, ticks, run := 0, 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth = max(depth-1, 0)
		case '`':
			// Backquotes nest by backslashes in front of them.
			if i > 0 && text[i-1] == '\\' {
				ticks++
			}
		case '!', '~', '-', '+', '?', '=', ':': // arithmetic recurses on these
			if run++; run > deepest {
				deepest = min(run, maxNesting*8)
			}
			continue
		case ' ', '\t':
			continue
		case 'i', 'w', 'u', 'f', 'c', 's', 't', 'd', 'e':
			if i == 0 || separator(text[i-1]) {
				depth += keyword(text[i:])
				depth = max(depth, 0)
			}
		}
		run = 0
		deepest = max(deepest, depth)
	}
	return max(deepest, ticks/2)
}

func separator(c byte) bool { return strings.IndexByte(" \t\n;&|({)`", c) >= 0 }

// keyword says how a word at the start of s changes the nesting.
func keyword(s string) int {
	n := 0
	for n < len(s) && n < 9 && 'a' <= s[n] && s[n] <= 'z' {
		n++
	}
	if n < len(s) && !separator(s[n]) {
		return 0
	}
	switch s[:n] {
	case "if", "while", "until", "for", "case", "select", "time", "coproc", "function":
		return 1
	case "fi", "done", "esac":
		return -1
	}
	return 0
}
