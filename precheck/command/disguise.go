package command

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// below is a path that stands for what find prints of roots: everything below
// the broadest, or only something there.
func below(roots []string, some bool) string {
	if len(roots) == 0 {
		return ""
	}
	root := roots[0]
	for _, r := range roots[1:] {
		if r == "/" || r == "~" {
			root = r
		}
	}
	return strings.TrimSuffix(root, "/") + pick(some, "/found", "/*")
}

// xargs judges what a list of files is handed to.
func (w *walker) xargs(c *call, name string) {
	if name != "rm" && name != "unlink" && name != "shred" && name != "srm" && name != "wipe" {
		return
	}
	for _, r := range c.stdin.roots {
		w.deletes(c, arg{s: r, start: c.start, end: c.end}, !c.stdin.some, c.stdin.some)
	}
}

// lands notes the files into which a statement's output goes: it was
// downloaded or decoded. Only plain names, so that no word is followed twice.
func (w *walker) lands(s *syntax.Stmt) {
	for _, r := range s.Redirs {
		if r.Word != nil && (r.Op == syntax.RdrOut || r.Op == syntax.AppOut || r.Op == syntax.RdrClob || r.Op == syntax.RdrAll) {
			w.leaves(r.Word.Lit())
		}
	}
}

// commandVariables hold command lines that other programs run.
var commandVariables = map[string]bool{"GIT_SSH_COMMAND": true, "GIT_SSH": true, "GIT_EXTERNAL_DIFF": true, "GIT_PAGER": true, "PAGER": true, "EDITOR": true,
	"GIT_EDITOR": true, "VISUAL": true, "GIT_SEQUENCE_EDITOR": true, "LESSOPEN": true, "MANPAGER": true, "PROMPT_COMMAND": true, "GIT_ASKPASS": true, "SSH_ASKPASS": true,
	"BROWSER": true, "GIT_PROXY_COMMAND": true, "RSYNC_RSH": true}

// environment judges a variable that a command is given.
func (w *walker) environment(name string, v arg) {
	switch {
	case commandVariables[name] && v.s != "":
		w.nested(strings.ReplaceAll(v.s, unknown, "_"), v)
	case name == "LD_PRELOAD", name == "DYLD_INSERT_LIBRARIES", name == "LD_AUDIT", name == "BASH_ENV", name == "PERL5OPT":
		if v.s != "" {
			w.effect(LibraryPreload, false, v.start, v.end)
		}
	}
}

// gitSetting judges key=value: some values are command lines.
func (w *walker) gitSetting(c *call, a arg) {
	key, v, ok := strings.Cut(a.s, "=")
	if !ok {
		return
	}
	key = strings.ToLower(key)
	if text, ok := strings.CutPrefix(v, "!"); ok {
		w.nested(text, a)
		return
	}
	switch {
	case key == "core.hookspath":
		w.effect(Persistence, false, c.start, c.end)
	case key == "core.fsmonitor" && (v == "true" || v == "false"):
	case strings.HasSuffix(key, "command"), strings.HasSuffix(key, "pager"), strings.HasSuffix(key, "editor"), key == "core.fsmonitor",
		strings.HasSuffix(key, ".external"), strings.HasSuffix(key, ".textconv"), strings.HasSuffix(key, ".clean"), strings.HasSuffix(key, ".smudge"), strings.HasSuffix(key, "askpass"):
		w.nested(v, a)
	}
}

// scripts judges the commands that sed and awk run.
func (w *walker) scripts(c *call) {
	for i, a := range c.args {
		switch {
		case c.name == "awk":
			w.program(c, a)
			if _, text, ok := strings.Cut(a.s, "|"); ok {
				w.piped(text, a)
			}
			if j := strings.Index(a.s, "| getline"); j > 0 {
				w.piped(a.s[:j], a)
			} else if j := strings.Index(a.s, "|getline"); j > 0 {
				w.piped(a.s[:j], a)
			}
		case c.name == "sed" && (i > 0 || !strings.HasPrefix(a.s, "-")):
			for _, part := range strings.FieldsFunc(a.s, func(r rune) bool { return r == ';' || r == '\n' || r == '{' }) {
				part = strings.TrimLeft(part, " 0123456789,$")
				if strings.HasPrefix(part, "/") {
					if j := strings.IndexByte(part[1:], '/'); j >= 0 {
						part = strings.TrimLeft(part[j+2:], " ")
					}
				}
				if text, ok := strings.CutPrefix(part, "e "); ok {
					w.nested(text, a)
				}
				// s/x/command/e runs what the replacement spells.
				if len(part) > 4 && part[0] == 's' && strings.HasSuffix(part, part[1:2]+"e") {
					if f := strings.Split(part, part[1:2]); len(f) == 4 {
						w.nested(f[2], a)
					}
				}
			}
		}
	}
}

// piped follows the string literals of a piece of awk.
func (w *walker) piped(text string, a arg) {
	if s := quotedArguments(text); s != "" {
		w.nested(s, a)
	}
}

// embedded judges the commands in the options of programs that can run some.
func embedded(w *walker, c *call) {
	for i, a := range c.args {
		var text string
		switch c.name {
		case "vim", "vi", "nvim", "ex", "view", "less", "ed":
			s := a.s
			plus := strings.HasPrefix(s, "+")
			if !plus && (i == 0 || c.args[i-1].s != "-c" && c.args[i-1].s != "--cmd") {
				continue
			}
			if _, after, ok := strings.Cut(s, "!"); ok && strings.Trim(s[:len(s)-len(after)-1], "+:%silent ") == "" {
				text = after
			} else {
				w.program(c, a)
			}
		case "man":
			if i > 0 && c.args[i-1].s == "-P" {
				text = a.s
			}
		case "zip":
			if i > 0 && (c.args[i-1].s == "-TT" || c.args[i-1].s == "--unzip-command") {
				text = a.s
			}
		default: // tar
			for _, p := range []string{"--checkpoint-action=exec=", "--to-command=", "--use-compress-program=", "--rsh-command=", "--info-script=", "--new-volume-script="} {
				if v, ok := strings.CutPrefix(a.s, p); ok {
					text = v
				}
			}
			if i > 0 && (c.args[i-1].s == "-I" || c.args[i-1].s == "-F" || c.args[i-1].s == "--to-command") {
				text = a.s
			}
			if i > 0 && c.args[i-1].s == "--checkpoint-action" {
				text = strings.TrimPrefix(a.s, "exec=")
			}
		}
		if text != "" {
			w.nested(text, a)
		}
	}
}

// copies judges where cp, install and ln write, and follows a downloaded file.
func copies(w *walker, c *call) {
	ops := operands(c.args)
	if len(ops) < 2 {
		return
	}
	target := ops[len(ops)-1]
	w.writes(target, c.start, c.end)
	for _, a := range ops[:len(ops)-1] {
		if w.files[a.s] {
			w.leaves(target.s)
		}
	}
}

// mounts judges the parts of the machine that a container gets.
func (w *walker) mounts(c *call) {
	if v := sub(c.args, 0); v != "run" && v != "create" && v != "compose" && v != "container" {
		return
	}
	for _, a := range c.args {
		s := a.s
		for _, p := range []string{"--volume=", "-v=", "-v", "--mount="} {
			s = strings.TrimPrefix(s, p)
		}
		if strings.HasPrefix(s, "/:/") || strings.Contains(s, "docker.sock:") || strings.Contains(s, "source=/,") || strings.Contains(s, "src=/,") || s == "--privileged" || s == "--pid=host" && has(c.args, "--privileged") {
			w.effect(AccessGrant, true, c.start, c.end)
			return
		}
	}
}

func initLevel(w *walker, c *call) {
	if s := sub(c.args, 0); s == "0" || s == "6" || s == "1" {
		w.effect(ProcessKill, true, c.start, c.end)
	}
}

// packageSource judges packages that come from no registry, or from one that
// the command line names.
func packageSource(w *walker, c *call) { packageSourceOf(w, c) }

func packageSourceOf(w *walker, c *call) {
	switch path.Base(c.name) {
	case "pip", "pip3", "pipx", "uv", "uvx", "npx", "pnpx", "bunx", "npm", "pnpm", "yarn", "cargo", "gem":
	default:
		return
	}
	for _, a := range c.args {
		s, _, _ := strings.Cut(a.s, "=")
		switch {
		case strings.HasPrefix(a.s, "git+"), strings.HasPrefix(a.s, "git://"), strings.HasPrefix(a.s, "http://"), strings.HasPrefix(a.s, "https://"),
			strings.Contains(a.s, "@git+"), strings.Contains(a.s, "@https://"),
			s == "--index-url", s == "--extra-index-url", s == "-i" && c.name[0] == 'p' && w.verb(c) == "install" && c.name != "pnpm", s == "--registry", s == "--default-index", s == "--source", s == "--git":
			w.effect(PackageSource, false, c.start, c.end)
			return
		}
	}
}
