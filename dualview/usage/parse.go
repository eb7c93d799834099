package usage

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"example.org/auditd/dualview"
)

func fields(s string) []string { return strings.Fields(s) }

func has(list, s string) bool { return slices.Contains(strings.Fields(list), s) }

// quoting is how the place of a symbol in the text is quoted.
type quoting uint8

const (
	unplaced quoting = iota // not in any word: it cannot be resolved
	bare
	single
	double
	hereLiteral  // in a here-document whose delimiter is quoted
	hereExpanded // in one in which the shell expands
	comment      // stays a symbol: nobody reads it
)

// place is a symbol in the command's text and what was found out about it.
type place struct {
	start, end int
	symbol     dualview.Symbol
	quoting    quoting
	plain      bool // an argument that is data
	// leads says that the symbol begins its word, so that its value could make
	// the word an option; unless that was ruled out.
	leads  bool
	kind   Kind
	reason string
}

// argument is one word of a simple command.
type argument struct {
	text   string // without quotation; symbols stand in it as they are
	known  bool   // nothing in it is only known when it runs
	glob   bool   // it is a pattern for file names
	places []*place
	word   *syntax.Word
}

// analysis is the look at one parsed text.
type analysis struct {
	*tables
	places []*place
	// run are the files whose content would be run, as far as the text names
	// them.
	run []runFile
	// dynamic says that something is run of which the text is known only then:
	// every file that the command names may be its source.
	dynamic bool
	// unseen says why something is run that cannot be found out from the text.
	unseen string
	// dirs are the directories that the text goes to, dirUnseen that it goes to
	// one that is only known when it runs.
	dirs      []string
	dirUnseen bool
	// assigned are the variables that the text itself sets.
	assigned map[string]bool
	// functions are what the text defines, under whatever name: alias too.
	functions map[string]bool
}

type runFile struct {
	name string
	code bool // certainly run; else only if it exists
}

func (a *analysis) file(f *syntax.File) {
	a.functions, a.assigned = map[string]bool{}, map[string]bool{}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.FuncDecl:
			if x.Name != nil {
				a.functions[x.Name.Value] = true
			}
		case *syntax.Assign:
			if x.Name != nil {
				a.assigned[x.Name.Value] = true
			}
		case *syntax.WordIter:
			a.assigned[x.Name.Value] = true
		case *syntax.CallExpr:
			if len(x.Args) > 1 && x.Args[0].Lit() == "read" {
				for _, w := range x.Args[1:] {
					a.assigned[w.Lit()] = true
				}
			}
			if len(x.Args) > 1 && x.Args[0].Lit() == "alias" {
				for _, w := range x.Args[1:] {
					name, _, _ := strings.Cut((&analysis{tables: a.tables}).word(w).text, "=")
					a.functions[name] = true
				}
			}
		}
		return true
	})
	a.stmts(f.Stmts)
	syntax.Walk(f, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok {
			for _, p := range a.within(c) {
				p.quoting, p.plain, p.kind = comment, true, 0
			}
		}
		return true
	})
	if a.dynamic {
		a.filesIn(f)
	}
}

func (a *analysis) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		a.stmt(s)
	}
}

func (a *analysis) stmt(s *syntax.Stmt) {
	if s == nil {
		return
	}
	readsCode := a.command(s.Cmd)
	for _, r := range s.Redirs {
		a.redirect(r, readsCode)
	}
}

// redirect looks at one redirection. Only a here-string into a program that
// takes its input as data is a plain place.
func (a *analysis) redirect(r *syntax.Redirect, readsCode bool) {
	w := a.word(r.Word)
	if r.Hdoc != nil {
		a.mark(a.within(r.Hdoc), HereDocument, "it stands in a here-document")
		a.words(r.Hdoc)
		in := hereExpanded
		for _, part := range r.Word.Parts {
			if lit, ok := part.(*syntax.Lit); !ok || strings.Contains(lit.Value, `\`) {
				in = hereLiteral
			}
		}
		for _, p := range a.within(r.Hdoc) {
			if p.quoting == bare {
				p.quoting = in
			}
		}
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
	case syntax.WordHdoc:
		if readsCode || a.nested(r.Word) {
			a.mark(w.places, Code, "an interpreter would read it as code")
		} else {
			a.allow(w.places)
		}
	case syntax.RdrIn, syntax.RdrInOut:
		a.mark(w.places, Destination, "it would say which file is used")
		if readsCode && w.known {
			a.run = append(a.run, runFile{w.text, true})
		}
	default:
		a.mark(w.places, Destination, "it would say which file is written")
	}
}

// command looks at a command and reports whether what it reads from its
// standard input is code, or becomes a command's arguments.
func (a *analysis) command(c syntax.Command) (readsCode bool) {
	switch x := c.(type) {
	case *syntax.CallExpr:
		return a.call(x)
	case *syntax.BinaryCmd:
		a.stmt(x.X)
		if x.Op != syntax.Pipe && x.Op != syntax.PipeAll {
			return a.stmtReads(x.Y)
		}
		if a.stmtReads(x.Y) {
			a.mark(a.within(x.X), Code, "it would be piped into an interpreter")
			a.filesIn(x.X)
		}
		return a.readsCode(x.X)
	case *syntax.Subshell:
		return a.stmtsRead(x.Stmts)
	case *syntax.Block:
		return a.stmtsRead(x.Stmts)
	case *syntax.IfClause:
		for i := x; i != nil; i = i.Else {
			readsCode = a.stmtsRead(i.Cond) || readsCode
			readsCode = a.stmtsRead(i.Then) || readsCode
		}
		return readsCode
	case *syntax.WhileClause:
		return a.stmtsRead(x.Cond) || a.stmtsRead(x.Do)
	case *syntax.ForClause:
		a.mark(a.within(x.Loop), Variable, "it would be put into a variable")
		a.words(x.Loop)
		return a.stmtsRead(x.Do)
	case *syntax.CaseClause:
		a.words(x.Word)
		for _, item := range x.Items {
			for _, p := range item.Patterns {
				a.words(p)
			}
			readsCode = a.stmtsRead(item.Stmts) || readsCode
		}
		return readsCode
	case *syntax.FuncDecl:
		a.stmt(x.Body)
	case *syntax.TimeClause:
		return x.Stmt != nil && a.stmtReads(x.Stmt)
	case *syntax.CoprocClause:
		return a.stmtReads(x.Stmt)
	case *syntax.DeclClause:
		a.mark(a.within(x), Variable, "it would be put into a variable")
		a.words(x)
	case nil:
	default: // arithmetic, tests, and whatever a later parser knows
		a.mark(a.within(x), Unclear, "it stands where the shell evaluates it")
		a.words(x)
	}
	return false
}

func (a *analysis) stmtReads(s *syntax.Stmt) bool {
	a.stmt(s)
	return a.readsCode(s)
}

func (a *analysis) stmtsRead(list []*syntax.Stmt) (reads bool) {
	for _, s := range list {
		reads = a.stmtReads(s) || reads
	}
	return reads
}

// readsCode reports whether any command of a statement takes its input for
// code. It is asked more than once, so it changes nothing.
func (a *analysis) readsCode(s *syntax.Stmt) bool {
	found := false
	b := &analysis{tables: a.tables}
	syntax.Walk(s, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && b.call(c) {
			found = true
		}
		return !found
	})
	return found
}

// call looks at one simple command.
func (a *analysis) call(x *syntax.CallExpr) bool {
	for _, as := range x.Assigns {
		a.mark(a.within(as), Variable, "it would be put into a variable")
		a.words(as)
	}
	args := make([]argument, len(x.Args))
	for i, w := range x.Args {
		args[i] = a.word(w)
	}
	if len(args) == 0 {
		return false
	}
	return a.argv(args, 0)
}

// words gives the symbols below a node their quotation, without allowing them.
func (a *analysis) words(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.Word:
			a.word(x)
			return false
		case *syntax.Stmt:
			a.stmt(x)
			return false
		}
		return true
	})
}

// word reads one word: its text as far as it is fixed, its symbols and how they
// are quoted.
func (a *analysis) word(w *syntax.Word) argument {
	arg := argument{known: true, word: w}
	if w == nil {
		return arg
	}
	var text strings.Builder
	a.parts(w.Parts, bare, &arg, &text)
	arg.text = text.String()
	if len(arg.places) > 0 {
		arg.places[0].leads = strings.HasPrefix(strings.ToLower(arg.text), strings.ToLower(string(arg.places[0].symbol)))
	}
	return arg
}

func (a *analysis) parts(parts []syntax.WordPart, q quoting, arg *argument, text *strings.Builder) {
	for _, part := range parts {
		switch x := part.(type) {
		case *syntax.Lit:
			a.place(x, q, arg)
			arg.glob = arg.glob || q == bare && globbing(x.Value)
			text.WriteString(unescape(x.Value, q))
		case *syntax.SglQuoted:
			if x.Dollar {
				arg.known = false
				a.place(x, unplaced, arg)
				continue
			}
			a.place(x, single, arg)
			text.WriteString(x.Value)
		case *syntax.DblQuoted:
			if x.Dollar {
				arg.known = false
				a.place(x, unplaced, arg)
				continue
			}
			a.parts(x.Parts, double, arg, text)
		case *syntax.CmdSubst:
			arg.known = false
			a.stmts(x.Stmts)
			a.mark(a.within(x), Code, "a command's output would be used in its place")
		case *syntax.ProcSubst:
			arg.known = false
			a.stmts(x.Stmts)
		default:
			arg.known = false
			a.mark(a.within(x), Unclear, "it stands where the shell evaluates it")
			a.words(x)
		}
	}
}

// place records the quotation of the symbols in a node.
func (a *analysis) place(n syntax.Node, q quoting, arg *argument) {
	for _, p := range a.within(n) {
		p.quoting = q
		arg.places = append(arg.places, p)
	}
}

// globbing reports whether the shell would take text for a pattern.
func globbing(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		case '{':
			return strings.ContainsAny(s[i:], ",.") && strings.Contains(s[i:], "}")
		}
	}
	return false
}

func unescape(s string, q quoting) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (q == bare || strings.IndexByte("\\\"$`\n", s[i+1]) >= 0) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// within returns the symbols that stand in a node.
func (a *analysis) within(n syntax.Node) []*place {
	if n == nil || len(a.places) == 0 {
		return nil
	}
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	var in []*place
	for _, p := range a.places {
		if p.start >= from && p.end <= to {
			in = append(in, p)
		}
	}
	return in
}

// nested reports whether a word holds a command whose output it uses.
func (a *analysis) nested(w *syntax.Word) bool {
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}

// mark makes symbols uses. A mark is never taken back: allow leaves it.
func (a *analysis) mark(places []*place, kind Kind, reason string) {
	for _, p := range places {
		if p.kind == 0 {
			p.kind, p.reason = kind, reason
		}
		p.plain = false
	}
}

// allow makes symbols plain arguments, unless something has spoken against them.
func (a *analysis) allow(places []*place) {
	for _, p := range places {
		if p.kind == 0 && p.quoting != unplaced {
			p.plain = true
		}
	}
}

// filesIn adds every fixed word below a node as a file that may be run: it is
// the source of what an interpreter reads.
func (a *analysis) filesIn(n syntax.Node) {
	b := &analysis{tables: a.tables}
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			arg := b.word(w)
			switch {
			case arg.glob:
				a.unseen = "what would be run is named by a pattern"
			case arg.known && arg.text != "" && !strings.HasPrefix(arg.text, "-"):
				a.run = append(a.run, runFile{arg.text, false})
			}
		}
		return true
	})
}

func baseName(name string) string {
	name = path.Base(name)
	// python3.11, node-18, gcc-12: the version says nothing.
	if i := strings.IndexFunc(name, func(r rune) bool { return r == '.' || r == '-' }); i > 0 && strings.Trim(name[i:], ".-0123456789") == "" {
		name = name[:i]
	}
	return name
}
