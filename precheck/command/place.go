package command

import (
	"path"
	"strings"
)

// place says where a path lies, as far as losing it matters.
type place uint8

const (
	inside     place = iota // in the workspace or a temporary directory
	rebuilt                 // in the workspace, and a build makes it again
	outside                 // elsewhere in the home or another ordinary place
	broad                   // a root, a home, a system directory, the workspace itself, its history
	unresolved              // only the running shell knows
)

// abs makes a path of a word: "~/x" for the home, an absolute path, or one
// relative to the workspace.
func (w *walker) abs(p string) string {
	p = strings.TrimPrefix(p, "file://")
	for _, h := range []string{"${HOME}", "$HOME", "%USERPROFILE%", "%HOMEPATH%", "$env:USERPROFILE"} {
		if rest, ok := strings.CutPrefix(p, h); ok {
			p = "~" + rest
			break
		}
	}
	if h := w.env.Home; h != "" && (p == h || strings.HasPrefix(p, h+"/")) {
		p = "~" + p[len(h):]
	}
	switch {
	case strings.HasPrefix(p, "~"):
		if i := strings.IndexByte(p, '/'); i > 0 {
			return "~" + clean("/" + p[i:])[0:] // ~user is a home too
		}
		return "~"
	case strings.HasPrefix(p, "/"):
		return path.Clean(p)
	case w.cwd == "":
		return path.Clean(p)
	case strings.HasPrefix(w.cwd, "~"):
		return "~" + clean("/"+w.cwd[1:]+"/"+p)
	default:
		return path.Clean(w.cwd + "/" + p)
	}
}

func clean(p string) string {
	p = path.Clean(p)
	if p == "/" {
		return ""
	}
	return p
}

// buildOutput names directories that a build makes again.
var buildOutput = map[string]bool{
	"node_modules": true, "dist": true, "build": true, "target": true, "out": true, "coverage": true, ".cache": true, "__pycache__": true,
	".next": true, ".nuxt": true, ".venv": true, "venv": true, "tmp": true, "temp": true, "obj": true, ".pytest_cache": true, ".mypy_cache": true,
	".tox": true, ".gradle": true, ".terraform": true, ".turbo": true, ".parcel-cache": true, "htmlcov": true, "_build": true, "site": true,
	".coverage": true, ".nyc_output": true, "debug": true, "release": true, "logs": true, "bin": true, "package-lock.json": true, ".angular": true,
	".svelte-kit": true, ".eggs": true, ".ruff_cache": true, "yarn.lock": true, ".DS_Store": true, "vendor": true, ".output": true, "cache": true,
}

// systemRoots are directories whose loss breaks a machine.
var systemRoots = []string{"/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/var", "/dev", "/sys", "/proc", "/root", "/opt",
	"/srv", "/System", "/Library", "/Applications", "/mnt", "/media", "/run", "/private"}

// where classifies a word that names something to be deleted or changed.
func (w *walker) where(a arg) place {
	s := a.s
	if i := strings.Index(s, unknown); i >= 0 {
		head := s[:i]
		if j := strings.LastIndexByte(head, '/'); j > 0 && !strings.Contains(s[i:], "..") {
			if p := w.where(arg{s: head[:j] + "/x"}); p == inside || p == rebuilt || p == outside {
				return p
			}
		}
		return unresolved
	}
	if len(s) >= 2 && s[1] == ':' && letter(s[0]) || strings.HasPrefix(s, `\\`) || strings.HasPrefix(s, "%") {
		return broad // a Windows drive or share
	}
	if strings.ContainsAny(w.cwd, unknown) && !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "~") {
		return unresolved
	}
	p := w.abs(s)
	// A glob that takes everything is as broad as the directory it is in.
	for dir, last := path.Split(p); all(last); dir, last = path.Split(p) {
		p = path.Clean("./" + dir)
		if strings.HasPrefix(dir, "/") {
			p = path.Clean(dir)
		}
	}
	switch {
	case p == "/" || p == "." || p == "~" || p == ".." || strings.HasPrefix(p, "../"):
		return broad
	case strings.HasPrefix(p, "~/"):
		return w.inHome(p)
	case strings.HasPrefix(p, "/"):
		return w.absolute(p)
	}
	return relative(p)
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// all reports whether a last path element matches everything.
func all(last string) bool {
	switch last {
	case "*", ".*", "{*,.*}", "*.*", "**", ".[!.]*", "?*", "..?*", "*/":
		return true
	}
	return false
}

func relative(p string) place {
	first, rest, _ := strings.Cut(p, "/")
	if first == ".git" && (rest == "" || strings.HasPrefix(rest, "objects") || strings.HasPrefix(rest, "refs")) {
		return broad
	}
	for _, part := range strings.Split(p, "/") {
		if buildOutput[part] {
			return rebuilt
		}
	}
	last := path.Base(p)
	for _, suffix := range []string{".pyc", ".o", ".log", ".tmp", ".egg-info", ".class", ".bak", ".swp"} {
		if strings.HasSuffix(last, suffix) {
			return rebuilt
		}
	}
	return inside
}

func (w *walker) inHome(p string) place {
	for _, ws := range w.env.Workspaces {
		if ws = w.abs(ws); strings.HasPrefix(ws, "~/") {
			if p == ws {
				return broad
			}
			if rest, ok := strings.CutPrefix(p, ws+"/"); ok {
				return relative(rest)
			}
		}
	}
	first, rest, _ := strings.Cut(p[2:], "/")
	switch {
	case first == ".cache" && rest != "", first == ".npm", first == "tmp" && rest != "":
		return rebuilt
	case strings.HasPrefix(first, ".") || rest == "" && path.Ext(first) == "":
		return broad // settings, keys, or a whole folder of documents
	}
	return outside
}

func (w *walker) absolute(p string) place {
	for _, tmp := range []string{"/tmp/", "/var/tmp/", "/private/tmp/", "/dev/shm/"} {
		if strings.HasPrefix(p, tmp) {
			return inside
		}
	}
	for _, ws := range w.env.Workspaces {
		if ws = path.Clean(ws); ws == "/" || ws == "." {
			continue
		}
		if p == ws || strings.HasPrefix(ws, p+"/") {
			return broad
		}
		if rest, ok := strings.CutPrefix(p, ws+"/"); ok {
			return relative(rest)
		}
	}
	for _, r := range systemRoots {
		if p == r || strings.HasPrefix(p, r+"/") {
			return broad
		}
	}
	// /home, /home/user and /home/user/folder are broad, what is deeper is not.
	if strings.Count(p, "/") <= 3 {
		return broad
	}
	return outside
}
