package command

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unknown stands in a resolved word for what only the running shell knows.
const unknown = "\x00"

// arg is one resolved word.
type arg struct {
	s          string
	start, end int
	changed    bool // the source reads differently
	secret     bool // what is put there are credentials
	computed   bool // a substitution that only the running shell knows is in it
	// What a substitution in the word puts there.
	fetched, decoded bool
	roots            []string // it is a list of what lies below these, as find prints it
}

// origin is that of an input which is the word itself.
func (a arg) origin() origin {
	return origin{literal: a.s, known: true, fetched: a.fetched, decoded: a.decoded, roots: a.roots, secret: a.secret}
}

func (a arg) known() bool { return !strings.Contains(a.s, unknown) }

// origin says where a command's standard input, or a substitution's text,
// comes from.
type origin struct {
	fetched bool     // downloaded
	decoded bool     // decoded or decrypted
	literal string   // written in the command itself
	known   bool     // literal is all of it
	roots   []string // it lists what lies below these paths
	some    bool     // of which only what has a name
	secret  bool     // credentials, or the environment, which holds them
}

func (o origin) and(p origin) origin {
	o.fetched = o.fetched || p.fetched
	o.decoded = o.decoded || p.decoded
	o.secret = o.secret || p.secret
	if len(o.roots) == 0 {
		o.roots, o.some = p.roots, p.some
	}
	return o
}

// walker follows one text's commands in the order in which they are written.
type walker struct {
	env     *Env
	src     string
	fixed   *[2]int // where everything lies, inside a nested text
	depth   int
	vars    map[string]string
	cwd     string          // "" is the workspace; unknown after cd to who knows where
	files   map[string]bool // files that this text downloaded or decoded
	at      string          // the directory that cd led to, for comparing paths; "" is the workspace
	pids    processIDs
	secrets map[string]bool // variables that hold credentials
	own     []string        // auditd's own paths, as abs writes them
	res     *Result
}

func (w *walker) effect(rule Rule, hard bool, start, end int) {
	if len(w.res.Effects) >= maxEffects && !hard {
		return
	}
	for i := range w.res.Effects {
		if e := &w.res.Effects[i]; e.Rule == rule && e.Start == start {
			e.Hard = e.Hard || hard
			return
		}
	}
	if len(w.res.Effects) < 2*maxEffects {
		w.res.Effects = append(w.res.Effects, Effect{Rule: rule, Hard: hard, Start: start, End: end})
	}
}

func (w *walker) span(n syntax.Node) (int, int) {
	if w.fixed != nil {
		return w.fixed[0], w.fixed[1]
	}
	return int(n.Pos().Offset()), min(int(n.End().Offset()), len(w.src))
}

// nested analyses text that is written inside the argument a.
func (w *walker) nested(text string, a arg) {
	if w.depth >= maxDepth {
		w.limit(LimitNesting)
		return
	}
	if w.res.nested += len(text); w.res.nested > maxNested || w.res.Calls > maxCalls {
		w.limit(LimitCalls)
		return
	}
	in := *w
	in.src, in.fixed, in.depth = text, &[2]int{a.start, a.end}, w.depth+1
	in.shell(text)
	w.pids = in.pids
}

func (w *walker) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		w.stmt(s, origin{known: true})
	}
}

// stmt follows one statement and returns where its output comes from.
func (w *walker) stmt(s *syntax.Stmt, stdin origin) origin {
	stdin = w.redirects(s, stdin)
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		o := w.call(c, stdin, s)
		if o.fetched || o.decoded {
			w.lands(s)
		}
		return o
	case *syntax.BinaryCmd:
		left := w.stmt(c.X, stdin)
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			return w.stmt(c.Y, left).and(left)
		}
		return left.and(w.stmt(c.Y, stdin))
	case *syntax.Subshell:
		cwd, at := w.cwd, w.at
		o := w.list(c.Stmts, stdin)
		w.cwd, w.at = cwd, at
		return o
	case *syntax.Block:
		return w.list(c.Stmts, stdin)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			w.stmts(c.Cond)
			stdin = stdin.and(w.list(c.Then, stdin))
		}
	case *syntax.WhileClause:
		w.list(c.Cond, stdin)
		return w.list(c.Do, stdin)
	case *syntax.ForClause:
		return w.loop(c, stdin)
	case *syntax.CaseClause:
		w.word(c.Word)
		for _, item := range c.Items {
			stdin = stdin.and(w.list(item.Stmts, stdin))
		}
	case *syntax.FuncDecl:
		if w.forkBomb(c) {
			start, end := w.span(s)
			w.effect(ForkBomb, true, start, end)
		}
		return w.stmt(c.Body, stdin)
	case *syntax.DeclClause:
		w.assign(c.Args)
		if len(c.Args) == 0 || len(c.Args) == 1 && c.Args[0].Value != nil && c.Args[0].Naked && c.Args[0].Value.Lit() == "-p" {
			return origin{secret: true}
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return w.stmt(c.Stmt, stdin)
		}
	case *syntax.CoprocClause:
		return w.stmt(c.Stmt, stdin)
	}
	return stdin
}

func (w *walker) list(list []*syntax.Stmt, stdin origin) origin {
	out := origin{known: len(list) == 1}
	for _, s := range list {
		o := w.stmt(s, stdin)
		out = out.and(o)
		if len(list) == 1 {
			out.literal, out.known = o.literal, o.known
		}
	}
	return out
}

// loop follows a loop's body once for each of the first few literal items.
func (w *walker) loop(c *syntax.ForClause, stdin origin) origin {
	const maxItems = 4 // more would let nested loops multiply
	it, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		return w.list(c.Do, stdin)
	}
	var out origin
	n := 0
	for _, item := range it.Items {
		a := w.word(item)
		if n++; n > maxItems || w.depth >= 2 {
			continue
		}
		w.set(it.Name.Value, pick(len(a.roots) > 0, below(a.roots, false), a.s))
		w.depth++
		out = out.and(w.list(c.Do, stdin))
		w.depth--
	}
	if n == 0 || n > maxItems || w.depth >= 2 {
		w.set(it.Name.Value, unknown)
		out = out.and(w.list(c.Do, stdin))
	}
	return out
}

// forkBomb recognises a function that pipes itself into itself.
func (w *walker) forkBomb(f *syntax.FuncDecl) bool {
	calls := 0
	if f.Name == nil {
		return false
	}
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == f.Name.Value {
			calls++
		}
		return true
	})
	return calls >= 2
}

func (w *walker) set(name, value string) {
	if w.vars == nil {
		w.vars = map[string]string{}
	}
	// A variable may hold others: without these bounds a short text doubles
	// itself into gigabytes.
	const maxVars, maxValue = 256, 256
	if len(w.vars) < maxVars && len(value) <= maxValue {
		w.vars[name] = value
	}
}

func (w *walker) assign(list []*syntax.Assign) {
	for _, a := range list {
		if a.Value != nil && a.Name != nil {
			v := w.word(a.Value)
			if a.Append {
				v.s = w.vars[a.Name.Value] + v.s
			}
			w.set(a.Name.Value, v.s)
			w.environment(a.Name.Value, v)
			if v.secret && len(w.secrets) < 64 {
				if w.secrets == nil {
					w.secrets = map[string]bool{}
				}
				w.secrets[a.Name.Value] = true
			}
		}
		if a.Array != nil {
			for _, e := range a.Array.Elems {
				if e.Value != nil {
					w.word(e.Value)
				}
			}
		}
	}
}

// redirects looks at where a statement writes, and returns its input.
func (w *walker) redirects(s *syntax.Stmt, stdin origin) origin {
	for _, r := range s.Redirs {
		start, end := w.span(r)
		switch {
		case r.Hdoc != nil:
			stdin = w.word(r.Hdoc).origin()
		case r.Op == syntax.WordHdoc && r.Word != nil:
			stdin = w.word(r.Word).origin()
		case r.Word == nil:
		case r.Op == syntax.RdrIn:
			a := w.word(r.Word)
			w.protect(a, start, end)
			stdin = origin{fetched: a.fetched || w.files[a.s], decoded: a.decoded, roots: a.roots, secret: a.secret || Sensitive(a.s)}
			w.devTCP(a, start, end)
		default:
			a := w.word(r.Word)
			w.protect(a, start, end)
			w.writes(a, start, end)
			w.devTCP(a, start, end)
		}
	}
	return stdin
}

func (w *walker) devTCP(a arg, start, end int) {
	if strings.HasPrefix(a.s, "/dev/tcp/") || strings.HasPrefix(a.s, "/dev/udp/") {
		w.effect(RemoteShell, true, start, end)
		if p := strings.Split(a.s, "/"); len(p) > 3 && p[3] != "" {
			w.res.Hosts = append(w.res.Hosts, Arg{Text: p[3], Start: a.start, End: a.end})
		}
	}
}

// writes judges a file that is written over or added to.
func (w *walker) writes(a arg, start, end int) {
	p := w.abs(a.s)
	w.changes(a, start, end)
	switch {
	case blockDevice(p):
		w.effect(DiskWrite, true, start, end)
	case p == "/etc/passwd", p == "/etc/shadow", p == "/etc/sudoers", strings.HasPrefix(p, "/etc/sudoers.d/"),
		strings.HasSuffix(p, "/.ssh/authorized_keys"), strings.HasPrefix(p, "/etc/pam.d/"):
		w.effect(AccessGrant, true, start, end)
	case strings.HasPrefix(p, "/boot/"), strings.HasPrefix(p, "/sys/"), p == "/proc/sysrq-trigger":
		w.effect(DiskWrite, true, start, end)
	case strings.HasPrefix(p, "/etc/cron"), strings.HasPrefix(p, "/var/spool/cron"), strings.HasPrefix(p, "/etc/systemd/"),
		strings.HasPrefix(p, "/etc/profile"), strings.HasPrefix(p, "/etc/ld.so.preload"), shellStart[path.Base(p)] && strings.HasPrefix(p, "~"):
		w.effect(Persistence, false, start, end)
	}
}

var shellStart = map[string]bool{".bashrc": true, ".bash_profile": true, ".profile": true, ".zshrc": true, ".zshenv": true, ".zprofile": true, ".bash_login": true}

func blockDevice(p string) bool {
	d, ok := strings.CutPrefix(p, "/dev/")
	if !ok {
		return false
	}
	for _, prefix := range []string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "loop", "mem", "kmem", "dm-"} {
		if strings.HasPrefix(d, prefix) {
			return true
		}
	}
	return false
}
