package command

import (
	"strings"
)

// dispatch judges a command without wrappers. Its result says where its
// output comes from.
func (w *walker) dispatch(c *call, words origin) origin {
	w.guard(c)
	if inert[c.name] && len(w.res.Inert) < maxEffects {
		w.res.Inert = append(w.res.Inert, Arg{Start: c.start, End: c.end})
	}
	out := c.stdin.and(origin{fetched: words.fetched, decoded: words.decoded})
	out.literal, out.known = "", false
	out.secret = out.secret || words.secret || w.reveals(c)
	switch c.name {
	case "printf":
		return w.printf(c, words)
	case "echo":
		return w.echo(c, words)
	case "which", "type":
		if ops := operands(c.args); len(ops) == 1 && ops[0].known() {
			return origin{literal: "/usr/bin/" + ops[0].s, known: true}
		}
		return out
	case "expect":
		for i, a := range c.args {
			if a.s == "-c" && i+1 < len(c.args) {
				w.nested(c.args[i+1].s, c.args[i+1])
			}
		}
		return out
	case "cat", "tee", "head", "tail", "sed", "awk", "grep", "tr", "cut", "sort", "rev", "iconv", "uniq":
		if c.name == "tee" {
			for _, a := range c.args {
				w.writes(a, c.start, c.end)
				if c.stdin.fetched {
					w.leaves(a.s)
				}
			}
		}
		w.scripts(c)
		for _, a := range c.args {
			out.fetched = out.fetched || w.files[a.s]
		}
		if len(c.args) == 0 && c.name == "cat" {
			return c.stdin
		}
		out.decoded = out.decoded || c.name == "rev" || c.name == "tr" && c.stdin.literal != ""
		return out
	case "curl", "wget", "aria2c", "http", "https", "fetch", "lwp-request", "invoke-webrequest", "iwr", "invoke-restmethod", "irm":
		w.fetch(c)
		out.fetched = true
		return out
	case "openssl":
		if sub(c.args, 0) == "s_client" && (c.stdin.literal != "" || !c.stdin.known) {
			for i, a := range c.args {
				if a.s == "-connect" && i+1 < len(c.args) {
					w.host(c.args[i+1])
				}
			}
			w.uploads(c)
		}
		fallthrough
	case "base64", "base32", "xxd", "gpg", "uudecode", "certutil", "hex2bin", "basenc":
		if has(c.args, "-d", "-D", "--decode", "-r", "-decode", "enc", "--decrypt", "-decodehex") || c.name == "uudecode" || hasShort(c.args, 'd') || hasShort(c.args, 'r') {
			out.decoded = true
		}
		return out
	case "gunzip", "zcat", "gzip", "bunzip2", "xz", "xzcat", "zstdcat":
		out.decoded = out.decoded || c.stdin.decoded || c.stdin.literal != ""
		return out
	case "pwd":
		return origin{literal: ".", known: true}
	case "read", "mapfile", "readarray":
		for _, a := range operands(c.args) {
			if c.stdin.roots != nil {
				w.set(a.s, below(c.stdin.roots, c.stdin.some))
			} else {
				w.set(a.s, unknown)
			}
		}
		return c.stdin
	case "cd", "pushd":
		w.chdir(c)
		return out
	case "iex", "invoke-expression":
		w.input(c)
		w.code(c, join(c.args))
		return out
	}
	if h := handler(c.name); h != nil {
		h(w, c)
	} else if strings.HasPrefix(c.name, "mkfs") || strings.HasPrefix(c.name, "newfs") {
		w.effect(DiskWrite, true, c.start, c.end)
	} else if strings.HasPrefix(c.name, "python") {
		interpret(w, c)
	}
	return out
}

// inert commands do not connect to what they are given.
var inert = map[string]bool{"echo": true, "printf": true, "grep": true, "rg": true, "ag": true, "sed": true, "awk": true, "test": true, "[": true, "ls": true, "cat": true}

func (w *walker) echo(c *call, words origin) origin {
	o := origin{known: true, fetched: words.fetched, decoded: words.decoded, secret: words.secret}
	var b strings.Builder
	for i, a := range c.args {
		if i == 0 && strings.HasPrefix(a.s, "-") && len(a.s) <= 3 {
			continue
		}
		if !a.known() {
			o.known = false
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if b.Len()+len(a.s) > MaxText {
			break
		}
		b.WriteString(a.s)
	}
	o.literal = strings.ReplaceAll(strings.ReplaceAll(b.String(), unknown, "_"), `\n`, "\n")
	return o
}

func (w *walker) chdir(c *call) {
	for _, a := range c.args {
		if strings.HasPrefix(a.s, "-") && a.s != "-" {
			continue
		}
		if !a.known() || a.s == "-" {
			w.cwd, w.at = unknown, unknown
			return
		}
		p := w.abs(a.s)
		w.at = w.full(a.s)
		// Coming back into a workspace makes relative paths ordinary again.
		for _, ws := range w.env.Workspaces {
			if p == w.abs(ws) {
				w.cwd = ""
				return
			}
		}
		if w.cwd == "" && !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "~") {
			if strings.HasPrefix(p, "..") {
				w.cwd = unknown
			} else if p != "." {
				w.cwd = "" // a directory of the workspace
			}
			return
		}
		w.cwd = p
		return
	}
	w.cwd, w.at = "~", "~"
}

func has(args []arg, names ...string) bool {
	for _, a := range args {
		for _, n := range names {
			if a.s == n {
				return true
			}
		}
	}
	return false
}

func hasPrefix(args []arg, prefix string) bool {
	for _, a := range args {
		if strings.HasPrefix(a.s, prefix) {
			return true
		}
	}
	return false
}

// hasShort reports whether a cluster of short options holds c.
func hasShort(args []arg, c byte) bool {
	for _, a := range args {
		if len(a.s) > 1 && a.s[0] == '-' && a.s[1] != '-' && strings.IndexByte(a.s, c) > 0 {
			return true
		}
	}
	return false
}

// operands returns what is no option; everything behind "--" is.
func operands(args []arg) []arg {
	var out []arg
	for i, a := range args {
		if a.s == "--" {
			return append(out, args[i+1:]...)
		}
		if !strings.HasPrefix(a.s, "-") || a.s == "-" {
			out = append(out, a)
		}
	}
	return out
}

// sub returns the i-th operand in lower case, or "".
func sub(args []arg, i int) string {
	for _, a := range args {
		if strings.HasPrefix(a.s, "-") {
			continue
		}
		if i == 0 {
			return strings.ToLower(a.s)
		}
		i--
	}
	return ""
}

// deletes judges one deletion.
func (w *walker) deletes(c *call, a arg, recursive, filtered bool) {
	switch w.where(a) {
	case broad:
		switch {
		case recursive:
			w.effect(DeleteBroad, true, c.start, c.end)
		case filtered: // only what matches a name: ordinary in the workspace
			if p := w.abs(a.s); !strings.HasPrefix(p, ".") || strings.HasPrefix(p, "..") {
				w.effect(DeleteBroad, true, c.start, c.end)
			}
		default:
			p := w.abs(a.s)
			hard := strings.ContainsAny(p, "*?") || strings.HasPrefix(p, "/etc") || strings.HasPrefix(p, "/usr") || strings.HasPrefix(p, "/boot") ||
				strings.HasPrefix(p, "/bin") || strings.HasPrefix(p, "/lib") || strings.HasPrefix(p, "/var/lib") || strings.HasPrefix(p, "~/.")
			w.effect(pick(hard, DeleteBroad, DeleteUnknown), hard, c.start, c.end)
		}
	case outside:
		w.effect(pick(recursive, DeleteBroad, DeleteUnknown), recursive, c.start, c.end)
	case unresolved:
		w.effect(DeleteUnknown, false, c.start, c.end)
	case inside:
		if recursive && !strings.HasPrefix(w.abs(a.s), "/tmp/") {
			w.effect(DeleteWorkspace, false, c.start, c.end)
		}
	}
}

// host notes a word that a network command connects to.
func (w *walker) host(a arg) {
	const maxHosts = 64
	s := a.s
	if i := strings.LastIndexByte(s, '@'); i >= 0 && !strings.Contains(s, "://") {
		s = s[i+1:]
	}
	if i := strings.Index(s, unknown); i > 0 && s[i-1] == ':' {
		s = s[:i-1] // a port that only the running shell knows
	}
	if s != "" && len(w.res.Hosts) < maxHosts && !strings.Contains(s, unknown) {
		w.res.Hosts = append(w.res.Hosts, Arg{Text: s, Start: a.start, End: a.end})
	}
}

// fetch judges curl, wget and their like: what they connect to, send and leave.
func (w *walker) fetch(c *call) {
	upload := false
	for i, a := range c.args {
		upload = upload || a.secret
		next := arg{}
		if i+1 < len(c.args) {
			next = c.args[i+1]
		}
		switch {
		case a.s == "-d", a.s == "--data", a.s == "--data-binary", a.s == "--data-raw", a.s == "--data-urlencode", a.s == "-F", a.s == "--form",
			a.s == "-T", a.s == "--upload-file", strings.HasPrefix(a.s, "--post-file"), strings.HasPrefix(a.s, "--post-data"), strings.HasPrefix(a.s, "--body-file"),
			strings.HasPrefix(a.s, "-d@"), strings.HasPrefix(a.s, "-T"), strings.HasPrefix(a.s, "-F"), strings.HasPrefix(a.s, "--data-binary="), strings.HasPrefix(a.s, "--upload-file="), strings.HasPrefix(a.s, "--form="), a.s == "--json", strings.HasPrefix(a.s, "--data="):
			upload = true
		case strings.EqualFold(a.s, "-X") || strings.EqualFold(a.s, "--request") || strings.EqualFold(a.s, "-Method"):
			if strings.EqualFold(next.s, "DELETE") {
				w.effect(CloudDelete, false, c.start, c.end)
			}
			upload = upload || strings.EqualFold(next.s, "POST") || strings.EqualFold(next.s, "PUT")
		case a.s == "-o" || a.s == "-O" && c.name == "wget" || a.s == "--output" || a.s == "--output-document" || a.s == "-OutFile":
			w.leaves(next.s)
		case a.s == "-O" || a.s == "--remote-name" || c.name == "wget" && !strings.HasPrefix(a.s, "-"):
			for _, b := range operands(c.args) {
				w.leaves(lastElement(b.s))
			}
		case a.s == "--unix-socket", a.s == "--abstract-unix-socket":
			w.res.Hosts = append(w.res.Hosts, Arg{Text: "localhost", Start: a.start, End: next.end})
		}
		if strings.HasPrefix(a.s, "-o") && len(a.s) > 2 && c.name == "curl" {
			w.leaves(a.s[2:])
		}
		if len(a.s) > 2 && a.s[0] == '-' && a.s[1] != '-' && c.name == "curl" && a.s[len(a.s)-1] == 'o' {
			w.leaves(next.s)
		}
	}
	for _, a := range operands(c.args) {
		if strings.ContainsAny(a.s, ".:") || strings.HasPrefix(a.s, "localhost") {
			w.host(a)
		}
	}
	if upload || c.stdin.literal != "" && has(c.args, "@-") {
		w.uploads(c)
	}
}

func lastElement(u string) string {
	u, _, _ = strings.Cut(u, "?")
	return u[strings.LastIndexByte(u, '/')+1:]
}

// leaves notes a file that was downloaded.
func (w *walker) leaves(name string) {
	if name == "" || name == "-" || len(w.files) > 64 {
		return
	}
	if w.files == nil {
		w.files = map[string]bool{}
	}
	w.files[name] = true
	w.files["./"+name] = true
}
