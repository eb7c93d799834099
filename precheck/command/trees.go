package command

import (
	"path"
	"strings"
)

// full makes a path absolute wherever cd led, for comparing it with auditd's
// own. It resolves no links: the text is all there is.
func (w *walker) full(s string) string {
	p := w.abs(s)
	if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") {
		return p
	}
	base := w.at
	if base == "" && len(w.env.Workspaces) > 0 {
		base = w.abs(w.env.Workspaces[len(w.env.Workspaces)-1])
	}
	switch {
	case base == "" || strings.Contains(base, unknown):
		return p
	case strings.HasPrefix(base, "~"):
		// Out of the home by "..": the home's own path says where that is.
		if h := w.env.Home; h != "" {
			return w.abs(path.Clean(h + base[1:] + "/" + p))
		}
		return "~" + clean("/"+base[1:]+"/"+p)
	}
	return w.abs(path.Clean(base + "/" + p))
}

// ownFiles are the files in auditd's directories whose names are worth guessing.
var ownFiles = []string{"hook.token", "auditd.db", "config.yaml", "policy.yaml", "auditd.sock"}

// ownPaths are auditd's directories and socket as abs writes paths.
func (w *walker) ownPaths() []string {
	if w.own == nil {
		w.own = []string{"~/.config/auditd", "~/.local/state/auditd", "~/.local/share/auditd"}
		for _, p := range w.env.Protected {
			if strings.HasPrefix(p, "/") {
				w.own = append(w.own, w.abs(p))
			}
		}
	}
	return w.own
}

// within reports whether p is one of auditd's paths, lies below one, or is a
// glob that names one in part: "/x/audit?/hook.*".
func (w *walker) within(p string) bool {
	glob := strings.ContainsAny(p, "*?[")
	for _, own := range w.ownPaths() {
		if p == own || strings.HasPrefix(p, own+"/") {
			return true
		}
		if glob && globbed(p, own, false) {
			return true
		}
	}
	if !glob || !strings.Contains(w.at, unknown) {
		return false
	}
	last := path.Base(p) // who knows where: only the name is left
	ok, err := path.Match(last, "hook.token")
	return err == nil && ok && strings.Trim(last, "*?") != ""
}

// globbed reports whether the glob p takes in own or a known file in it. A bare
// "*" is written for many reasons and counts with stars only.
func globbed(p, own string, stars bool) bool {
	if len(p) > maxPath {
		return false
	}
	ps, os := strings.Split(p, "/"), strings.Split(own, "/")
	if len(ps) < len(os) {
		return false
	}
	precise := true
	for i, o := range os {
		ok, err := path.Match(ps[i], o)
		if err != nil || !ok {
			return false
		}
		precise = precise && strings.Trim(ps[i], "*") != ""
	}
	if precise || stars && len(ps) == len(os) {
		return true
	}
	if len(ps) != len(os)+1 || strings.Trim(ps[len(os)], "*") == "" {
		return false
	}
	for _, f := range ownFiles {
		if ok, err := path.Match(ps[len(os)], f); err == nil && ok {
			return true
		}
	}
	return false
}

// above says how many levels p lies above one of auditd's paths; 0 is not.
func (w *walker) above(p string) int {
	nearest := 0
	for _, own := range w.ownPaths() {
		n := 0
		switch {
		case p == own:
			continue
		case p == "/" || strings.HasPrefix(own, p+"/"):
			n = strings.Count(own[len(strings.TrimSuffix(p, "/")):], "/")
		}
		if n > 0 && (nearest == 0 || n < nearest) {
			nearest = n
		}
	}
	return nearest
}

// Touches reports whether a path that a tool would use is one of auditd's.
func Touches(s string, env *Env) bool {
	if TouchesFiles(s, env.Protected) {
		return true
	}
	if len(s) < 4 || len(s) > maxPath || strings.Contains(s, "://") && !strings.HasPrefix(s, "file://") {
		return false
	}
	w := &walker{env: env}
	return w.within(w.full(s))
}

// Changes reports whether a path is one that agents may only read.
func Changes(s string, env *Env) bool {
	w := &walker{env: env, res: new(Result)}
	w.changes(arg{s: s}, 0, 0)
	return len(w.res.Effects) > 0
}

// trees judges commands that move, remove or cover a directory in which
// auditd's own lies, or that read all of it.
func (w *walker) trees(c *call) {
	ops := operands(c.args)
	recursive := hasShort(c.args, 'r') || hasShort(c.args, 'R') || has(c.args, "--recursive", "--archive") || hasShort(c.args, 'a')
	move, read := false, false
	switch c.name {
	case "rm", "rmdir", "shred":
		move = recursive || c.name == "rmdir"
	case "mv", "rename", "umount", "mount", "chattr", "bindfs", "srm", "wipe":
		move = true
	case "chmod", "chown", "setfacl", "chgrp":
		move = true
		if len(ops) > 0 {
			ops = ops[1:]
		}
	case "cp", "rsync", "scp":
		read = recursive
	case "ln":
		read = true // another name for all that lies below
	case "grep", "egrep", "fgrep", "chcon":
		read = recursive
	case "tar", "zip", "7z", "7za", "rg", "ag", "cpio", "ditto", "bsdtar", "restic", "borg", "rclone":
		read = !hasShort(c.args, 'x') && !(len(c.args) > 0 && strings.ContainsAny(c.args[0].s[:min(2, len(c.args[0].s))], "xt") && c.name != "rg" && c.name != "ag")
	default:
		w.guardedFile(c, ops)
		return
	}
	w.guardedFile(c, ops)
	w.tree(c, ops, move, read, recursive)
}

func (w *walker) tree(c *call, ops []arg, move, read, recursive bool) {
	const near = 2 // levels: what is further up holds a whole home
	var target string
	copies := c.name == "mv" || c.name == "ln" || c.name == "cp" || c.name == "rsync" || c.name == "scp"
	if copies && len(ops) > 1 {
		target = w.full(ops[len(ops)-1].s)
		ops = ops[:len(ops)-1] // what comes into the directory harms nothing but what it is called
	}
	for _, a := range ops {
		p := w.full(a.s)
		if strings.Contains(p, unknown) {
			continue
		}
		if target != "" && w.within(strings.TrimSuffix(target, "/")+"/"+path.Base(p)) {
			w.effect(SelfProtection, true, c.start, c.end)
		}
		if strings.ContainsAny(p, "*?[") {
			for _, own := range w.ownPaths() {
				if (move || read) && w.coveredBy(p, own) {
					w.effect(SelfProtection, true, c.start, c.end)
				}
			}
			continue
		}
		n := w.above(p)
		perms := c.name[0] == 'c' && move // chmod, chown: a home's own mode is the user's business
		switch {
		case n == 0, p == "/", p == "~", strings.HasPrefix(w.env.Home, p+"/"), w.isWorkspace(p): // a whole home or machine is judged as such
		case move && (!perms || recursive || n <= near), read && n <= near:
			w.effect(SelfProtection, true, c.start, c.end)
		}
	}
}

// seeks judges a search by name for auditd's own files.
func (w *walker) seeks(c *call, roots []arg) {
	for i, a := range c.args {
		if i == 0 || c.args[i-1].s != "-name" && c.args[i-1].s != "-iname" || len(a.s) > maxPath || strings.Trim(a.s, "*?") == "" {
			continue
		}
		for _, name := range []string{"hook.token", "auditd.db", "auditd"} {
			ok, err := path.Match(a.s, name)
			if err != nil || !ok || name != "hook.token" && a.s != name {
				continue
			}
			for _, r := range roots {
				if w.above(w.full(r.s)) > 0 {
					w.effect(SelfProtection, true, c.start, c.end)
				}
			}
		}
	}
}

// coveredBy reports whether a glob takes in own or a directory just above it.
func (w *walker) coveredBy(p, own string) bool {
	if p == "~/*" || p == "/*" {
		return false // a whole home: judged as such
	}
	return globbed(p, own, true) || strings.Count(own, "/") > 2 && globbed(p, path.Dir(own), true)
}

func (w *walker) isWorkspace(p string) bool {
	for _, ws := range w.env.Workspaces {
		if w.abs(ws) == p {
			return true
		}
	}
	return false
}

// guardedFile judges commands that would change, or copy away, a file that
// agents may only read.
func (w *walker) guardedFile(c *call, ops []arg) {
	switch c.name {
	case "rm", "mv", "ln", "chmod", "chown", "chattr", "truncate", "shred", "unlink", "install", "setcap", "dd", "patchelf", "ed", "objcopy":
	case "tee":
		return // judged as writing
	case "cp", "rsync":
		if len(ops) > 1 {
			w.changes(ops[len(ops)-1], c.start, c.end)
			for _, a := range ops[:len(ops)-1] {
				if program(w.full(a.s), w.env.Guarded, w) {
					w.effect(SelfProtection, true, c.start, c.end)
				}
			}
		}
		return
	case "sed", "perl":
		if !hasShort(c.args, 'i') && !hasPrefix(c.args, "--in-place") {
			return
		}
	default:
		return
	}
	for _, a := range ops {
		w.changes(a, c.start, c.end)
	}
}

// program reports whether p is a guarded program: its copy would obey nobody's
// name.
func program(p string, guarded []string, w *walker) bool {
	for _, g := range guarded {
		if w.abs(g) == p && path.Ext(g) == "" {
			return true
		}
	}
	return false
}

// changes reports a file that agents may only read.
func (w *walker) changes(a arg, start, end int) {
	if strings.Contains(a.s, unknown) || len(a.s) > maxPath {
		return
	}
	p := w.full(strings.TrimPrefix(a.s, "of="))
	if Guards(p) {
		w.effect(SelfProtection, true, start, end)
		return
	}
	for _, g := range w.env.Guarded {
		if w.abs(g) == p {
			w.effect(SelfProtection, true, start, end)
			return
		}
	}
}

// Guards reports whether a path is that of the settings by which an agent
// calls auditd: whoever writes them switches it off.
func Guards(p string) bool {
	p = path.Clean(strings.ToLower(p))
	for _, name := range []string{".claude/settings.json", ".claude/settings.local.json", ".claude.json", "managed-settings.json", ".openclaw/openclaw.json"} {
		if p == name || strings.HasSuffix(p, "/"+name) {
			return true
		}
	}
	return false
}
