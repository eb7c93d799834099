package command

import (
	"path"
	"strings"
)

// call is one simple command, without its wrappers.
type call struct {
	name       string // base name, lower case, without .exe
	args       []arg
	stdin      origin
	start, end int
}

// run looks at one command line and returns where its output comes from.
func (w *walker) run(argv []arg, stdin, words origin, start, end int) origin {
	if w.res.Calls++; w.res.Calls > maxCalls {
		w.limit(LimitCalls)
		return stdin
	}
	w.resolved(argv, start, end)
	w.attached(argv, start, end)
	for _, a := range argv {
		w.protect(a, start, end)
	}
	for range 16 { // wrappers within wrappers
		if len(argv) == 0 {
			return stdin
		}
		c := call{name: commandName(argv[0].s), args: argv[1:], stdin: stdin, start: start, end: end}
		if argv[0].computed && strings.Contains(c.name, unknown) {
			w.effect(CommandComputed, false, start, end)
		}
		if w.files[argv[0].s] {
			w.effect(RemoteCode, true, start, end)
		}
		if argv[0].fetched || argv[0].decoded {
			w.effect(pick(argv[0].fetched, RemoteCode, DecodedCode), true, start, end)
		}
		rest, done := w.unwrap(&c)
		if done {
			return c.stdin
		}
		if rest == nil {
			return w.dispatch(&c, words)
		}
		argv = rest
	}
	return stdin
}

func pick[T any](cond bool, a, b T) T {
	if cond {
		return a
	}
	return b
}

func commandName(s string) string {
	if i := strings.LastIndexByte(s, '\\'); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimSuffix(strings.ToLower(path.Base(s)), ".exe")
}

// resolved keeps the command as the shell reads it, when the text reads
// otherwise: r\m, "/e"tc/"pas"swd.
func (w *walker) resolved(argv []arg, start, end int) {
	const maxResolved = 32
	changed, n := false, 0
	for _, a := range argv {
		changed = changed || a.changed
		n += len(a.s) + 1
	}
	if !changed || len(w.res.Resolved) >= maxResolved || n > maxExpanded {
		return
	}
	var b strings.Builder
	for i, a := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strings.ReplaceAll(a.s, unknown, "?"))
	}
	w.res.Resolved = append(w.res.Resolved, Arg{Text: b.String(), Start: start, End: end})
}

// valued lists the options of a wrapper that take a value of their own.
var valued = map[string]string{
	"sudo": "ughpCcrTtUD", "doas": "uC", "env": "uCS", "timeout": "sk", "nice": "n", "ionice": "cnp", "stdbuf": "ioe",
	"xargs": "InPLsEda", "ssh": "bcDEeFIiJLlmOopQRSWw", "watch": "n", "chroot": "", "exec": "a", "command": "", "nohup": "",
	"setsid": "", "time": "fo", "builtin": "", "strace": "eopsuP", "flock": "wE", "parallel": "jSNI", "busybox": "", "toybox": "",
	"unshare": "", "nsenter": "tSGrw", "chrt": "TPD", "taskset": "", "caffeinate": "tw", "pkexec": "", "fakeroot": "", "ltrace": "eo",
	"proot": "rbw", "firejail": "", "systemd-run": "uptM", "run0": "", "script": "cTE",
	"spawn": "", "unbuffer": "", "rlwrap": "", "chronic": "", "dbus-run-session": "", "xvfb-run": "", "start-stop-daemon": "pxanug",
}

// commandOptions returns what is given as a command line to su and script: after
// -c, behind other letters (-qc), or as --command with or without "=".
func commandOptions(args []arg) []arg {
	var out []arg
	for i, a := range args {
		if text, ok := strings.CutPrefix(a.s, "--command="); ok {
			a.s = text
			out = append(out, a)
			continue
		}
		short := strings.HasPrefix(a.s, "-") && !strings.HasPrefix(a.s, "--") && strings.HasSuffix(a.s, "c")
		if (short || a.s == "--command") && i+1 < len(args) {
			out = append(out, args[i+1])
		}
	}
	return out
}

// unwrap takes a wrapper off. It returns the wrapped command; nil when c is no
// wrapper; done when the wrapped text has been followed already.
func (w *walker) unwrap(c *call) (rest []arg, done bool) {
	switch c.name {
	case "eval":
		w.code(c, join(c.args))
		return nil, true
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "rbash", "mksh", "cmd", "powershell", "pwsh":
		return nil, w.interpreter(c)
	case "source", ".":
		if len(c.args) > 0 {
			w.runsFile(c, c.args[0])
		}
		return nil, true
	case "su", "runuser":
		for _, a := range commandOptions(c.args) {
			w.code(c, []arg{a})
		}
		return nil, true
	case "find", "fd", "fdfind":
		w.find(c)
		return nil, true
	case "docker", "podman", "kubectl", "oc", "nerdctl", "lxc":
		w.mounts(c)
		return inContainer(c.args), false
	case "trap", "alias":
		for _, a := range c.args {
			if _, v, ok := strings.Cut(a.s, "="); ok && c.name == "alias" {
				a.s = v
				w.nested(a.s, a)
			} else if c.name == "trap" && strings.IndexByte(a.s, ' ') > 0 {
				w.nested(a.s, a)
			}
		}
		return nil, true
	}
	options, ok := valued[c.name]
	if !ok {
		return nil, false
	}
	i := skipOptions(c.args, options)
	switch c.name {
	case "env", "sudo", "doas":
		for ; i < len(c.args) && strings.IndexByte(c.args[i].s, '=') > 0; i++ {
			name, v, _ := strings.Cut(c.args[i].s, "=")
			w.environment(name, arg{s: v, start: c.args[i].start, end: c.args[i].end})
		}
		if c.name != "env" && (hasShort(c.args[:i], 'i') || hasShort(c.args[:i], 's') || i < len(c.args) && commandName(c.args[i].s) == "su") {
			w.effect(AccessGrant, false, c.start, c.end) // a root shell
		}
		for j, a := range c.args[:i] {
			if c.name == "env" && a.s == "-S" && j+1 < len(c.args) {
				w.nested(c.args[j+1].s, c.args[j+1])
			}
		}
	case "timeout", "chroot", "flock", "chrt", "taskset":
		i++ // duration, directory, lock
	case "script":
		for _, a := range commandOptions(c.args) {
			w.nested(a.s, a)
		}
		return nil, true
	case "ssh":
		if i < len(c.args) {
			w.host(c.args[i])
		}
		for _, a := range c.args[:min(i, len(c.args))] {
			key, v, _ := strings.Cut(a.s, "=")
			if key = strings.ToLower(strings.TrimPrefix(key, "-o")); key == "proxycommand" || key == "localcommand" {
				w.nested(v, a)
			}
		}
		if c.stdin.secret {
			w.uploads(c)
		}
		if i++; i < len(c.args) { // the remote side runs a shell on it
			w.remote(c, c.args[i:])
		} else if c.stdin.literal != "" {
			w.nested(c.stdin.literal, arg{start: c.start, end: c.end})
		}
		return nil, true
	case "watch", "parallel":
		if i < len(c.args) {
			w.code(c, join(c.args[i:]))
		}
		return nil, true
	}
	if i >= len(c.args) {
		if c.name == "env" {
			c.stdin = origin{secret: true}
		}
		return nil, true
	}
	rest = c.args[i:]
	if c.name == "xargs" { // what it appends comes from its input
		input := strings.Fields(c.stdin.literal)
		if len(input) == 0 || len(input) > 64 {
			input = []string{unknown}
			if c.stdin.roots != nil {
				input = []string{below(c.stdin.roots, true)}
				w.xargs(c, commandName(rest[0].s))
			}
		}
		rest = append([]arg(nil), rest...)
		for _, f := range input {
			rest = append(rest, arg{s: f, start: c.start, end: c.end, fetched: c.stdin.fetched, decoded: c.stdin.decoded})
		}
	}
	return rest, false
}

func skipOptions(args []arg, valued string) int {
	i := 0
	for i < len(args) {
		s := args[i].s
		if s == "--" {
			return i + 1
		}
		if len(s) < 2 || s[0] != '-' {
			return i
		}
		i++
		if s[1] != '-' && strings.IndexByte(valued, s[len(s)-1]) >= 0 && len(s) == 2 {
			i++
		}
	}
	return i
}

// remote follows a command that another machine's shell would run: paths there
// are never in the workspace.
func (w *walker) remote(c *call, args []arg) {
	outer := w.cwd
	w.cwd = "~"
	w.code(c, join(args))
	w.cwd = outer
}

func join(args []arg) []arg {
	if len(args) == 0 {
		return nil
	}
	a := args[0]
	for _, b := range args[1:] {
		if len(a.s) > MaxText {
			break
		}
		a.s += " " + b.s
		a.end = max(a.end, b.end)
		a.start = min(a.start, b.start)
		a.fetched, a.decoded = a.fetched || b.fetched, a.decoded || b.decoded
	}
	return []arg{a}
}

// code follows text that is handed to a shell as an argument.
func (w *walker) code(c *call, args []arg) {
	for _, a := range args {
		if a.fetched || a.decoded {
			w.effect(pick(a.fetched, RemoteCode, DecodedCode), true, c.start, c.end)
		}
		w.nested(strings.ReplaceAll(a.s, unknown, "_"), a)
	}
}

// interpreter follows sh -c CODE, sh FILE and sh < input; true when c is done.
func (w *walker) interpreter(c *call) bool {
	for i, a := range c.args {
		s := strings.ToLower(a.s)
		switch {
		case len(s) >= 2 && s[0] == '-' && s[1] != '-' && c.name != "powershell" && c.name != "pwsh" && strings.IndexByte(s, 'c') > 0,
			s == "/c", s == "/k", s == "-command", s == "-c":
			if i+1 < len(c.args) {
				if c.name == "cmd" || strings.HasPrefix(c.name, "p") {
					w.code(c, join(c.args[i+1:]))
				} else {
					w.code(c, c.args[i+1:i+2])
				}
			}
			return true
		case strings.HasPrefix("-encodedcommand", s) && len(s) > 2:
			w.effect(DecodedCode, true, c.start, c.end)
			return true
		case s != "" && s[0] != '-' && s[0] != '+' && s[0] != '/' || s != "" && s[0] == '/' && c.name != "cmd":
			w.runsFile(c, a)
			return true
		}
	}
	w.input(c)
	return true
}

// runsFile judges running a file: one that was downloaded here, or a stream.
func (w *walker) runsFile(c *call, a arg) {
	if a.fetched || w.files[a.s] {
		w.effect(RemoteCode, true, c.start, c.end)
	}
	if a.decoded {
		w.effect(DecodedCode, true, c.start, c.end)
	}
	if a.s == "/dev/stdin" || a.s == "-" {
		w.input(c)
	}
}

// input judges an interpreter that reads its program from standard input.
func (w *walker) input(c *call) {
	if c.stdin.fetched {
		w.effect(RemoteCode, true, c.start, c.end)
	}
	if c.stdin.decoded {
		w.effect(DecodedCode, true, c.start, c.end)
	}
	if c.stdin.literal != "" {
		w.nested(c.stdin.literal, arg{start: c.start, end: c.end})
	}
}

// find judges what find deletes, and the commands that it runs.
func (w *walker) find(c *call) {
	var roots []arg
	filtered := false
	i := 0
	for ; i < len(c.args) && !strings.HasPrefix(c.args[i].s, "-") && c.args[i].s != "(" && c.args[i].s != "!"; i++ {
		roots = append(roots, c.args[i])
	}
	if len(roots) == 0 {
		roots = []arg{{s: ".", start: c.start, end: c.end}}
	}
	if c.name != "find" { // fd PATTERN [PATH]
		filtered = true
		if roots = roots[min(1, len(roots)):]; len(roots) == 0 {
			roots = []arg{{s: ".", start: c.start, end: c.end}}
		}
	}
	for j, a := range c.args {
		switch a.s {
		case "-name", "-iname", "-path", "-regex", "-mtime", "-mmin", "-newer", "-size", "-empty", "-wholename", "-e", "-atime", "-ctime":
			filtered = filtered || j+1 >= len(c.args) || c.args[j+1].s != "*"
		}
	}
	c.stdin = origin{some: filtered}
	for _, r := range roots[:min(len(roots), 16)] { // each is judged again by what reads the list
		c.stdin.roots = append(c.stdin.roots, r.s)
	}
	w.seeks(c, roots)
	if has(c.args, "-delete", "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch") {
		w.tree(c, roots, has(c.args, "-delete"), true, true)
	}
	for j, a := range c.args {
		switch a.s {
		case "-delete":
			for _, r := range roots {
				w.deletes(c, r, !filtered, filtered)
			}
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			var inner []arg
			for _, b := range c.args[j+1:] {
				if b.s == ";" || b.s == "+" {
					break
				}
				if strings.Contains(b.s, "{}") {
					for _, r := range roots {
						b.s = strings.ReplaceAll(b.s, "{}", pick(filtered, strings.TrimSuffix(r.s, "/")+"/found", r.s))
						inner = append(inner, b)
					}
					continue
				}
				inner = append(inner, b)
			}
			if len(inner) > 0 {
				if name := commandName(inner[0].s); !filtered && (name == "rm" || name == "unlink" || name == "shred") {
					for _, r := range roots {
						w.deletes(c, r, true, false)
					}
				}
				w.run(inner, origin{}, origin{}, c.start, c.end)
			}
		}
	}
}

// inContainer returns the command that docker run, docker exec or kubectl exec
// runs, when there is one.
func inContainer(args []arg) []arg {
	sub := -1
	for i, a := range args {
		if a.s == "exec" || a.s == "run" {
			sub = i
			break
		}
		if !strings.HasPrefix(a.s, "-") {
			return nil
		}
	}
	if sub < 0 {
		return nil
	}
	for i := sub + 1; i < len(args); i++ {
		if args[i].s == "--" && i+1 < len(args) {
			return args[i+1:]
		}
	}
	// Without "--" the option values are unknown; a shell word is a good sign.
	for i := sub + 1; i < len(args); i++ {
		switch commandName(args[i].s) {
		case "sh", "bash", "rm", "psql", "mysql", "redis-cli", "mongosh", "mongo", "dd", "find":
			return args[i:]
		}
	}
	return nil
}
