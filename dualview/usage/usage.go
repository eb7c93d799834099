package usage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/syntax"

	"example.org/auditd/dualview"
	"example.org/auditd/schema"
)

// Kind says what a use of a symbol is.
type Kind uint8

// Kinds of uses.
const (
	_            Kind = iota
	Command           // the word that names the command
	Code              // code for a shell or another interpreter, or a decision about which
	Script            // a file that would be run holds it
	HereDocument      // in a here-document
	Variable          // in a variable or an environment
	Destination       // where something goes: a path, a host, a recipient
	Unclear           // in a construct that this package does not take for an argument
)

func (k Kind) String() string {
	return [...]string{"none", "command", "code", "script", "here-document", "variable", "destination", "unclear"}[min(k, Unclear)]
}

// Use is a symbol in a place that waits for a person.
type Use struct {
	Kind   Kind
	Symbol dualview.Symbol // empty when a file could not be looked at
	File   string          // of a Script
	Reason string          // our own sentence
	Info   dualview.Info
}

// Limits of one command.
const (
	maxText  = 256 << 10 // bytes of a command line
	maxFiles = 256       // files that are looked at
	maxFile  = 4 << 20   // bytes of one of them
	maxDepth = 5         // scripts that run scripts
)

// Config is what a Checker is made of.
type Config struct {
	Table *dualview.Table
	// ReadFile returns a file as the agent sees it, with symbols in place of
	// untrusted content. For a file that is not there it must return an error
	// that is fs.ErrNotExist, for a directory one that is syscall.EISDIR; after
	// any other error the file counts as unsafe.
	// Nil makes every file that would be run unsafe.
	ReadFile func(ctx context.Context, path string) ([]byte, error)
}

// Checker looks at command lines. It is safe for concurrent use.
type Checker struct {
	table  *dualview.Table
	read   func(ctx context.Context, path string) ([]byte, error)
	tables *tables
}

// New returns a checker.
func New(cfg Config) (*Checker, error) {
	if cfg.Table == nil {
		return nil, errors.New("usage: Config needs Table")
	}
	return &Checker{cfg.Table, cfg.ReadFile, newTables()}, nil
}

// Request is a command that an agent wants to run with originals.
type Request struct {
	Owner string
	Text  string
	Dir   string // absolute
	Home  string // what ~ means; when it is empty a file below it cannot be looked at
}

// Plan is a checked command. Its zero value resolves nothing.
type Plan struct {
	checker *Checker
	request Request
	places  []*place
	uses    []Use
	whole   bool // the command is nothing but one symbol
}

// Uses returns what waits for a person: each needs an answer before Resolve
// does anything.
func (p *Plan) Uses() []Use { return p.uses }

// Binding is what a person's answer is bound to.
func (p *Plan) Binding() schema.Digest {
	return schema.DigestOf("command", p.request.Owner, p.request.Dir, p.request.Text)
}

// Check parses a command and finds where its symbols stand. A command that
// cannot be parsed is an error, and does not run.
func (c *Checker) Check(ctx context.Context, r Request) (*Plan, error) {
	if len(r.Text) > maxText {
		return nil, fmt.Errorf("the command is %d bytes, the limit is %d", len(r.Text), maxText)
	}
	if strings.ContainsRune(r.Text, 0) {
		return nil, errors.New("the command holds a NUL byte")
	}
	a, err := c.analyse(r.Text)
	if err != nil {
		return nil, err
	}
	p := &Plan{checker: c, request: r, places: a.places}
	p.whole = len(a.places) == 1 && strings.TrimSpace(r.Text) == r.Text[a.places[0].start:a.places[0].end]
	for _, at := range a.places {
		if at.plain {
			continue
		}
		u := Use{Kind: at.kind, Symbol: at.symbol, Reason: at.reason}
		if u.Kind == 0 {
			u.Kind, u.Reason = Unclear, "it does not stand where a plain argument stands"
		}
		if u.Info, err = c.table.Info(ctx, r.Owner, at.symbol); err != nil {
			return nil, fmt.Errorf("look at a symbol of the command: %w", err)
		}
		p.uses = append(p.uses, u)
	}
	s := &search{ctx: ctx, checker: c, request: r, seen: map[string]bool{}}
	s.files(a.run, a.directoriesFrom(r), 0)
	if a.unseen != "" {
		s.use(Use{Kind: Script, Reason: a.unseen})
	}
	if a.dirUnseen && s.relative {
		s.use(Use{Kind: Script, Reason: "in which directory it would be run is known only when it runs"})
	}
	if s.err != nil {
		return nil, s.err
	}
	p.uses = append(p.uses, s.uses...)
	return p, nil
}

// analyse parses a text and classifies the symbols in it.
func (c *Checker) analyse(text string) (*analysis, error) {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, errors.New("the command is not valid shell syntax") // the parser's text would quote it
	}
	a := &analysis{tables: c.tables}
	spans := c.table.Spans(text)
	for i, s := range c.table.Symbols(text) {
		a.places = append(a.places, &place{start: spans[i][0], end: spans[i][1], symbol: s})
	}
	a.file(f)
	return a, nil
}

// directoriesFrom returns the directories that a relative name may be meant in:
// where the command begins, and wherever it goes.
func (a *analysis) directoriesFrom(r Request) []string {
	dirs := []string{r.Dir}
	at := r.Dir
	for _, d := range a.dirs {
		d = expandHome(d, r.Home)
		if filepath.IsAbs(d) {
			at = d
		} else {
			dirs = append(dirs, filepath.Join(r.Dir, d))
			at = filepath.Join(at, d)
		}
		dirs = append(dirs, at)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func expandHome(name, home string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok && home != "" {
		return filepath.Join(home, rest)
	}
	if name == "~" && home != "" {
		return home
	}
	return name
}

// search follows the files that a command would run.
type search struct {
	ctx     context.Context
	checker *Checker
	request Request
	seen    map[string]bool // files that were looked at, and whether as certain code
	full    bool            // a bound was reached, and said so
	// relative says that a name was looked for in the command's directories.
	relative bool
	uses     []Use
	err      error
}

func (s *search) files(run []runFile, dirs []string, depth int) {
	for _, f := range run {
		for _, name := range s.candidates(f, dirs) {
			s.file(name, f, depth)
		}
	}
}

// candidates returns the paths that a name can mean. What the system itself
// installed is nobody's untrusted data.
func (s *search) candidates(f runFile, dirs []string) []string {
	name := expandHome(f.name, s.request.Home)
	if name == "" || len(name) > 4096 || strings.ContainsRune(name, '\n') && !f.code {
		return nil
	}
	if strings.HasPrefix(name, "~") && strings.Contains(name, "/") {
		s.use(Use{Kind: Script, File: name, Reason: "the file that would be run lies in a home that is not known"})
		return nil
	}
	if !filepath.IsAbs(name) {
		s.relative = s.relative || f.code
		paths := make([]string, len(dirs))
		for i, d := range dirs {
			paths[i] = filepath.Join(d, name)
		}
		return paths
	}
	name = filepath.Clean(name)
	for _, system := range []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/"} {
		if strings.HasPrefix(name, system) && !strings.HasPrefix(name, "/usr/local/") {
			return nil
		}
	}
	return []string{name}
}

func (s *search) file(name string, f runFile, depth int) {
	if code, ok := s.seen[name]; s.full || ok && (code || !f.code) {
		return
	}
	if len(s.seen) >= maxFiles || depth > maxDepth {
		s.full = true
		s.use(Use{Kind: Script, File: name, Reason: "too many files run each other to look at all of them"})
		return
	}
	s.seen[name] = f.code
	if s.checker.read == nil {
		if f.code {
			s.use(Use{Kind: Script, File: name, Reason: "the file that would be run cannot be looked at"})
		}
		return
	}
	content, err := s.checker.read(s.ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		if f.code || !errors.Is(err, syscall.EISDIR) {
			s.use(Use{Kind: Script, File: name, Reason: "the file that would be run cannot be looked at"})
		}
		return
	case len(content) > maxFile:
		s.use(Use{Kind: Script, File: name, Reason: "the file that would be run is too large to look at"})
		return
	}
	found := s.checker.table.Symbols(string(content))
	for i, sym := range found {
		if i >= 8 {
			break // a person does not need more of one file
		}
		info, err := s.checker.table.Info(s.ctx, s.request.Owner, sym)
		if err != nil {
			s.use(Use{Kind: Script, File: name, Symbol: sym, Reason: "a file that would be run holds a symbol that is not known"})
			continue
		}
		s.use(Use{Kind: Script, File: name, Symbol: sym, Reason: "a file that would be run holds it", Info: info})
	}
	if len(found) == 0 {
		s.inside(name, content, depth)
	}
}

func (s *search) use(u Use) { s.uses = append(s.uses, u) }

var (
	pythonImport = regexp.MustCompile(`(?m)^[ \t]*(?:from|import)[ \t]+([A-Za-z_][A-Za-z0-9_.]*)`)
	nodeImport   = regexp.MustCompile(`(?:require\(|from|import)[ \t]*["'](\.{1,2}/[^"'\n]{1,200})["']`)
)

// inside follows what a script runs in its turn: commands of a shell script, of a
// makefile and of package.json, modules beside a Python or JavaScript file.
func (s *search) inside(name string, content []byte, depth int) {
	dir := filepath.Dir(name)
	switch {
	case filepath.Base(name) == "package.json":
		var pkg struct {
			Scripts map[string]string `json:"scripts"`
		}
		if json.Unmarshal(content, &pkg) == nil {
			for _, script := range pkg.Scripts {
				s.commands(script, dir, depth)
			}
		}
	case has("Makefile makefile GNUmakefile justfile Justfile", filepath.Base(name)) || filepath.Ext(name) == ".mk":
		for line := range strings.SplitSeq(string(content), "\n") {
			if recipe, ok := strings.CutPrefix(line, "\t"); ok {
				s.commands(strings.NewReplacer("$(", "$ (", "$$", "$").Replace(strings.TrimLeft(recipe, "@-+")), dir, depth)
			}
			if included, ok := strings.CutPrefix(line, "include "); ok {
				s.files([]runFile{{strings.TrimSpace(included), false}}, []string{dir}, depth+1)
			}
		}
	case isShell(name, content):
		s.commands(string(content), dir, depth)
	case strings.HasSuffix(name, ".py") || bytes.HasPrefix(content, []byte("#!")) && bytes.Contains(firstLine(content), []byte("python")):
		for _, m := range pythonImport.FindAllSubmatch(content, maxFiles) {
			mod := strings.ReplaceAll(string(m[1]), ".", "/")
			s.files([]runFile{{mod + ".py", false}, {mod + "/__init__.py", false}}, []string{dir}, depth+1)
		}
	case has(".js .mjs .cjs .ts .mts .jsx .tsx", filepath.Ext(name)):
		for _, m := range nodeImport.FindAllSubmatch(content, maxFiles) {
			p := string(m[1])
			s.files([]runFile{{p, false}, {p + ".js", false}, {p + ".ts", false}, {p + "/index.js", false}}, []string{dir}, depth+1)
		}
	}
}

// commands follows the files that shell code in a file would run.
func (s *search) commands(code, dir string, depth int) {
	a, err := s.checker.analyse(code)
	if err != nil {
		return // not shell code after all
	}
	for i := range a.run {
		a.run[i].code = false // whether it is reached is not known
	}
	r := s.request
	dirs := a.directoriesFrom(r)
	r.Dir = dir
	s.files(a.run, append(dirs, a.directoriesFrom(r)...), depth+1)
}

func firstLine(content []byte) []byte {
	line, _, _ := bytes.Cut(content[:min(len(content), 200)], []byte("\n"))
	return line
}

func isShell(name string, content []byte) bool {
	if bytes.HasPrefix(content, []byte("#!")) {
		return bytes.Contains(firstLine(content), []byte("sh"))
	}
	return has(".sh .bash .zsh .ksh", filepath.Ext(name)) || filepath.Ext(name) == "" && len(content) < 64<<10 && !bytes.ContainsRune(content, 0)
}

// Resolve puts the originals into the command. With uses it needs the answer of
// a person that is bound to this command.
func (p *Plan) Resolve(ctx context.Context, g dualview.Grant) (dualview.Original, error) {
	if p.checker == nil {
		return dualview.Original{}, errors.New("resolve a command: it was not checked")
	}
	if len(p.uses) > 0 && (g.By != dualview.ByPerson || g.Binding != p.Binding()) {
		return dualview.Original{}, fmt.Errorf("resolve a command: %w: a person has to see it first", dualview.ErrNoGrant)
	}
	var b strings.Builder
	at := 0
	for _, pl := range p.places {
		o, err := p.checker.table.Resolve(ctx, string(pl.symbol), dualview.Raw, g)
		if err != nil {
			return dualview.Original{}, fmt.Errorf("resolve a command: %w", err)
		}
		repl, err := p.quote(pl, o.Reveal())
		if err != nil {
			return dualview.Original{}, fmt.Errorf("resolve a command: %w", err)
		}
		b.WriteString(p.request.Text[at:pl.start])
		b.WriteString(repl)
		at = pl.end
	}
	b.WriteString(p.request.Text[at:])
	if err := p.sameShape(b.String()); err != nil {
		return dualview.Original{}, fmt.Errorf("resolve a command: %w", err)
	}
	return dualview.OriginalText(b.String()), nil
}

// quote returns a value as it has to stand in a symbol's place.
func (p *Plan) quote(pl *place, value string) (string, error) {
	if strings.ContainsRune(value, 0) {
		return "", fmt.Errorf("%w: a shell argument cannot hold a NUL byte", dualview.ErrContext)
	}
	if pl.quoting == comment {
		return p.request.Text[pl.start:pl.end], nil
	}
	if p.whole {
		return value, nil // a person has seen it and wants it to be the command
	}
	if pl.leads && strings.HasPrefix(value, "-") {
		return "", fmt.Errorf("%w: the value begins with a dash and would be an option: write the symbol after --, or join it to the option's name", dualview.ErrContext)
	}
	switch pl.quoting {
	case bare:
		return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'", nil
	case single:
		return strings.ReplaceAll(value, "'", `'\''`), nil
	case double: // not !, which means something to interactive shells only
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(value), nil
	}
	if pl.quoting == hereLiteral {
		return value, nil // that it does not end the document is checked on the whole
	}
	if pl.quoting == hereExpanded {
		return strings.NewReplacer(`\`, `\\`, "$", `\$`, "`", "\\`").Replace(value), nil
	}
	return "", fmt.Errorf("%w: the symbol does not stand in a word", dualview.ErrContext)
}

// sameShape checks that the resolved command is the command that was checked:
// the same tree, in which only words have changed.
func (p *Plan) sameShape(resolved string) error {
	if p.whole {
		return nil
	}
	before, err1 := shape(p.request.Text)
	after, err2 := shape(resolved)
	if err1 != nil || err2 != nil || before != after {
		return fmt.Errorf("%w: it would change what the command does", dualview.ErrContext)
	}
	return nil
}

// shape writes down the kinds of the nodes of a command, and nothing of its
// text. Adjacent literal parts count as one.
func shape(text string) (string, error) {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n.(type) {
		case nil:
			b.WriteByte(')')
		case *syntax.Lit, *syntax.SglQuoted, *syntax.Comment:
			return false
		case *syntax.DblQuoted:
			// What it holds beside text shows; that it is there does not.
		default:
			fmt.Fprintf(&b, "%T(", n)
		}
		return true
	})
	return b.String(), nil
}
