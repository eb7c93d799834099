package command

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// maxExpanded bounds what variables and substitutions may add to one word.
const maxExpanded = 4 << 10

// word resolves a word as the shell would, as far as the text says, and
// follows the substitutions in it.
func (w *walker) word(word *syntax.Word) arg {
	var b strings.Builder
	start, end := w.span(word)
	a := arg{start: start, end: end}
	for i, part := range word.Parts {
		w.part(&b, part, &a, i == 0)
	}
	a.changed = a.changed || len(word.Parts) > 1
	a.s = b.String()
	return a
}

func (w *walker) part(b *strings.Builder, part syntax.WordPart, a *arg, first bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		if strings.IndexByte(p.Value, '\\') >= 0 {
			a.changed = true
			b.WriteString(unescape(p.Value))
			return
		}
		b.WriteString(p.Value)
	case *syntax.SglQuoted:
		if p.Dollar {
			a.changed = true
			b.WriteString(ansiC(p.Value))
			return
		}
		b.WriteString(p.Value)
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			w.part(b, q, a, first)
		}
	case *syntax.ParamExp:
		w.param(b, p, a)
	case *syntax.CmdSubst:
		a.changed = true
		o := w.list(p.Stmts, origin{})
		a.fetched, a.decoded = a.fetched || o.fetched, a.decoded || o.decoded
		a.roots, a.secret = o.roots, a.secret || o.secret
		if o.known && o.literal != "" && b.Len() < maxExpanded {
			b.WriteString(strings.TrimRight(o.literal, "\n"))
			return
		}
		a.computed = true
		b.WriteString(unknown)
	case *syntax.ArithmExp:
		a.changed = true
		if n, ok := w.arithmetic(p.X); ok {
			b.WriteString(strconv.FormatInt(n, 10))
			return
		}
		b.WriteString(unknown)
	case *syntax.ProcSubst:
		o := w.list(p.Stmts, origin{})
		a.roots, a.secret = o.roots, a.secret || o.secret
		a.fetched, a.decoded = a.fetched || o.fetched, a.decoded || o.decoded
		a.roots, a.secret = o.roots, a.secret || o.secret
		b.WriteString(unknown)
	case *syntax.ExtGlob:
		b.WriteString("*")
	default:
		b.WriteString(unknown)
	}
}

func (w *walker) param(b *strings.Builder, p *syntax.ParamExp, a *arg) {
	a.changed = true
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	a.secret = a.secret || w.secrets[name]
	plain := p.Exp == nil && p.Slice == nil && p.Repl == nil && p.Index == nil && !p.Excl && !p.Length
	switch v, ok := w.vars[name]; {
	case ok && plain && b.Len() < maxExpanded:
		a.computed = a.computed || strings.Contains(v, unknown)
		b.WriteString(v)
	case name == "HOME":
		b.WriteString("~")
	case xdg[name] != "":
		b.WriteString(xdg[name])
	case name == "PWD":
		b.WriteString(".")
	case name == "IFS":
		b.WriteString(" ") // ${IFS} as a blank is an old trick
	case p.Exp != nil && p.Exp.Word != nil && !ok:
		d := w.word(p.Exp.Word) // ${x:-default}
		a.fetched, a.decoded = a.fetched || d.fetched, a.decoded || d.decoded
		b.WriteString(d.s)
	default:
		b.WriteString(unknown)
	}
}

// xdg holds where the base directories are unless the environment moves them.
// Where it does, auditd's own directories are among the protected ones.
var xdg = map[string]string{"XDG_CONFIG_HOME": "~/.config", "XDG_STATE_HOME": "~/.local/state", "XDG_DATA_HOME": "~/.local/share",
	"XDG_CACHE_HOME": "~/.cache", "XDG_RUNTIME_DIR": "/run/user/0"}

// arithmetic evaluates what is made of numbers and of variables that hold
// them. The parser's nesting bounds its recursion.
func (w *walker) arithmetic(x syntax.ArithmExpr) (int64, bool) {
	switch x := x.(type) {
	case *syntax.Word:
		s := x.Lit()
		if v, ok := w.vars[s]; ok {
			s = v
		} else if s == "" && len(x.Parts) == 1 {
			if p, ok := x.Parts[0].(*syntax.ParamExp); ok && p.Param != nil {
				s = w.vars[p.Param.Value]
			}
		}
		n, err := strconv.ParseInt(s, 0, 64)
		return n, err == nil
	case *syntax.ParenArithm:
		return w.arithmetic(x.X)
	case *syntax.UnaryArithm:
		n, ok := w.arithmetic(x.X)
		switch x.Op {
		case syntax.Minus:
			return -n, ok
		case syntax.Plus:
			return n, ok
		}
	case *syntax.BinaryArithm:
		a, ok := w.arithmetic(x.X)
		b, ok2 := w.arithmetic(x.Y)
		if !ok || !ok2 {
			return 0, false
		}
		switch x.Op {
		case syntax.Add:
			return a + b, true
		case syntax.Sub:
			return a - b, true
		case syntax.Mul:
			return a * b, true
		case syntax.Quo:
			if b != 0 {
				return a / b, true
			}
		case syntax.Rem:
			if b != 0 {
				return a % b, true
			}
		case syntax.Xor:
			return a ^ b, true
		}
	}
	return 0, false
}

// call follows a simple command.
func (w *walker) call(c *syntax.CallExpr, stdin origin, s *syntax.Stmt) origin {
	if len(c.Args) == 0 {
		w.assign(c.Assigns)
		return stdin
	}
	w.assign(c.Assigns)
	start, end := w.span(s)
	argv := make([]arg, 0, len(c.Args))
	var in origin
	for _, word := range c.Args {
		for _, b := range w.braces(word) {
			a := w.word(b)
			in.fetched, in.decoded, in.secret = in.fetched || a.fetched, in.decoded || a.decoded, in.secret || a.secret
			// An unquoted variable is split at blanks.
			if len(b.Parts) == 1 && a.changed && strings.IndexByte(a.s, ' ') >= 0 {
				if _, ok := b.Parts[0].(*syntax.ParamExp); ok {
					for _, f := range strings.Fields(a.s) {
						argv = append(argv, arg{s: f, start: a.start, end: a.end, changed: true})
					}
					continue
				}
			}
			argv = append(argv, a)
		}
	}
	// ${IFS} glues a whole command into one word.
	if len(argv) == 1 && argv[0].changed && strings.IndexByte(argv[0].s, ' ') > 0 && !quotedWord(c.Args[0]) {
		one := argv[0]
		argv = argv[:0]
		for _, f := range strings.Fields(one.s) {
			argv = append(argv, arg{s: f, start: one.start, end: one.end, changed: true})
		}
	}
	return w.run(argv, stdin, in, start, end)
}

func quotedWord(word *syntax.Word) bool {
	for _, p := range word.Parts {
		switch p.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		}
	}
	return false
}

// braces expands {a,b}. Only one flat brace is: more would multiply.
func (w *walker) braces(word *syntax.Word) []*syntax.Word {
	hasBrace := false
	for _, p := range word.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.IndexByte(l.Value, '{') >= 0 {
			hasBrace = true
		}
	}
	if !hasBrace {
		return []*syntax.Word{word}
	}
	split := *word
	split.Parts = append([]syntax.WordPart(nil), word.Parts...)
	if !syntax.SplitBraces(&split) {
		return []*syntax.Word{word}
	}
	for i, p := range split.Parts {
		be, ok := p.(*syntax.BraceExp)
		if !ok || be.Sequence {
			continue
		}
		var out []*syntax.Word
		for _, e := range be.Elems {
			v := &syntax.Word{}
			v.Parts = append(v.Parts, split.Parts[:i]...)
			v.Parts = append(v.Parts, e.Parts...)
			v.Parts = append(v.Parts, split.Parts[i+1:]...)
			out = append(out, v)
		}
		return out
	}
	return []*syntax.Word{word}
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansiC resolves the escapes of $'…'.
func ansiC(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		digits, base, most := "", 16, 2
		switch s[i] {
		case 'x':
			digits = s[i+1:]
		case 'u':
			digits, most = s[i+1:], 4
		case 'U':
			digits, most = s[i+1:], 8
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		default:
			if s[i] < '0' || s[i] > '7' {
				b.WriteByte(s[i])
				continue
			}
			digits, base, most = s[i:], 8, 3
			i--
		}
		if digits == "" {
			continue
		}
		n := 0
		for n < most && n < len(digits) && digit(digits[n], base) {
			n++
		}
		if v, err := strconv.ParseUint(digits[:n], base, 32); err == nil && v != 0 && v <= utf8.MaxRune {
			b.WriteRune(rune(v))
		}
		i += n
	}
	return b.String()
}

func digit(c byte, base int) bool {
	if base == 8 {
		return '0' <= c && c <= '7'
	}
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// words is the fallback for text that is no shell: it splits at separators,
// quotes and blanks and looks at each call.
func (w *walker) words(text string) {
	var argv []arg
	var stdin, out origin
	start, from := 0, -1
	quote := byte(0)
	var cur strings.Builder
	endWord := func(i int) {
		if from >= 0 {
			argv = append(argv, w.place(cur.String(), from, i))
			cur.Reset()
			from = -1
		}
	}
	endCall := func(i int, piped bool) {
		endWord(i)
		for len(argv) > 0 && (argv[0].s == "$" || argv[0].s == "#" || argv[0].s == ">" || argv[0].s == "-") {
			argv = argv[1:] // a prompt in front of an example
		}
		if len(argv) > 0 {
			s, e := start, i
			if w.fixed != nil {
				s, e = w.fixed[0], w.fixed[1]
			}
			out = w.run(argv, stdin, origin{}, s, e)
		}
		stdin = origin{known: true}
		if piped {
			stdin = out
		}
		argv = argv[:0]
		start = i + 1
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			cur.WriteByte(c)
		case c == '\'' || c == '"':
			if from < 0 {
				from = i
			}
			if strings.IndexByte(text[i+1:min(len(text), i+1+4096)], c) >= 0 {
				quote = c
			}
		case c == '\\' && i+1 < len(text):
			if from < 0 {
				from = i
			}
			i++
			cur.WriteByte(text[i])
		case c == ' ' || c == '\t' || c == '\r':
			endWord(i)
		case c == '\n' || c == ';' || c == '&' || c == '|' || c == '`' || c == '(' || c == ')' || c == '{' || c == '}':
			endCall(i, c == '|')
		default:
			if from < 0 {
				from = i
				if len(argv) == 0 {
					start = i
				}
			}
			cur.WriteByte(c)
		}
	}
	endCall(len(text), false)
}

func (w *walker) place(s string, start, end int) arg {
	if w.fixed != nil {
		return arg{s: s, start: w.fixed[0], end: w.fixed[1]}
	}
	return arg{s: s, start: start, end: end}
}
