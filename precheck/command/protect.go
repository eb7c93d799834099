package command

import (
	"path"
	"strconv"
	"strings"
)

// protect reports every word that touches auditd's own files, socket or port:
// an agent runs as its owner's user and could otherwise switch its guard off.
func (w *walker) protect(a arg, start, end int) {
	if w.touches(a.s) {
		w.effect(SelfProtection, true, start, end)
	}
}

func (w *walker) touches(s string) bool {
	if len(s) < 4 {
		return false
	}
	for _, port := range w.ports() {
		if strings.Contains(s, ":"+port) && portEnds(s, port) {
			return true
		}
	}
	if TouchesFiles(s, w.env.Protected) {
		return true
	}
	if s[0] == '-' || strings.Contains(s, "://") && !strings.HasPrefix(s, "file://") {
		return false
	}
	if w.at == "" && !strings.ContainsAny(s, "/~") {
		return false // a file of the workspace
	}
	p := w.full(s)
	return p != s && TouchesFiles(p, w.env.Protected) || w.within(p)
}

// ports are those of the API and of the model proxy.
func (w *walker) ports() [2]string {
	if w.env.Port == 0 && w.env.ProxyPort == 0 {
		return [2]string{"7841", "7842"}
	}
	return [2]string{strconv.Itoa(pick(w.env.Port != 0, w.env.Port, DefaultPort)), strconv.Itoa(pick(w.env.ProxyPort != 0, w.env.ProxyPort, DefaultProxyPort))}
}

// DefaultPort is where auditd listens unless its owner says otherwise, and
// DefaultProxyPort where its model proxy does.
const (
	DefaultPort      = 7841
	DefaultProxyPort = 7842
)

func portEnds(s, port string) bool {
	i := strings.Index(s, ":"+port) + 1 + len(port)
	return i >= len(s) || s[i] < '0' || s[i] > '9'
}

// TouchesFiles reports whether a path, or a text that holds one, names auditd's
// own files: its configuration and state wherever XDG puts them, its socket,
// and the directories that the owner listed.
func TouchesFiles(s string, protected []string) bool {
	low := strings.ToLower(s)
	for _, dir := range []string{".config/", ".local/state/", ".local/share/", "xdg_config_home/", "xdg_state_home/", "xdg_config_home}/", "xdg_state_home}/", "xdg_runtime_dir/", "xdg_runtime_dir}/",
		"/etc/", "/var/lib/", "/run/", "/run/user/"} {
		for rest := low; ; {
			i := strings.Index(rest, dir)
			if i < 0 {
				break
			}
			rest = rest[i+len(dir):]
			if named(rest) {
				return true
			}
			if dir == "/run/user/" {
				if _, after, ok := strings.Cut(rest, "/"); ok && named(after) {
					return true
				}
			}
		}
	}
	if strings.Contains(low, "auditd.sock") || strings.Contains(low, "auditd.db") {
		return true
	}
	for _, p := range protected {
		if p != "" && strings.Contains(s, p) {
			return true
		}
	}
	// "/x//auditd", "/x/./auditd" and "/x/a/../auditd" are one file.
	if len(s) <= maxPath && (strings.Contains(s, "//") || strings.Contains(s, "/.")) {
		if c := path.Clean(s); c != s && c != strings.TrimSuffix(s, "/") {
			return TouchesFiles(c, protected)
		}
	}
	return false
}

// maxPath is PATH_MAX: no system takes a longer path.
const maxPath = 4096

// named reports whether the first path element of rest is auditd, or a glob
// that takes it in.
func named(rest string) bool {
	end := strings.IndexAny(rest, "/ \t\n\"'`;|&<>),")
	if end < 0 {
		end = len(rest)
	}
	first := rest[:min(end, 64)]
	if first == "auditd" {
		return true
	}
	if strings.ContainsAny(first, "*?[") && len(first) > 1 && first[0] == 'a' {
		ok, err := path.Match(first, "auditd")
		return err == nil && ok
	}
	return false
}

// reads are the subcommands of auditd that change nothing and show no secret.
var reads = map[string]bool{"status": true, "version": true, "doctor": true, "help": true, "completion": true, "schema": true,
	"--version": true, "--help": true, "-h": true, "models": true, "": true, "audit": true, "bench": true, "log": true, "pending": true}

// guard judges commands that are about auditd's process, program or CLI.
func (w *walker) guard(c *call) {
	first := ""
	for _, a := range c.args {
		if !strings.HasPrefix(a.s, "-") {
			first = a.s
			break
		}
	}
	switch c.name {
	case "auditd":
		if !reads[first] || len(c.args) > 0 && first == "" && !reads[c.args[0].s] {
			w.effect(SelfProtection, true, c.start, c.end)
		}
		return
	}
	w.processes(c)
	w.trees(c)
	for _, a := range c.args {
		base := strings.ToLower(path.Base(a.s))
		base = strings.TrimSuffix(strings.TrimSuffix(base, ".service"), ".socket")
		if base != "auditd" && !(strings.Contains(base, "auditd") && processTools[c.name]) {
			continue
		}
		switch c.name {
		case "pidof", "pgrep", "ps", "lsof", "fuser":
			w.pids.ours = true
		case "pkill", "killall", "systemctl", "service", "launchctl", "rc-service", "sc", "taskkill", "stop-process", "initctl":
			if first != "status" && first != "is-active" && first != "show" && first != "list" && !(len(c.args) > 1 && c.args[1].s == "status") {
				w.effect(SelfProtection, true, c.start, c.end)
			}
		case "rm", "mv", "cp", "ln", "chmod", "chown", "dd", "tee", "truncate", "shred", "install", "unlink", "setcap", "gdb", "strace", "chattr":
			if strings.Contains(a.s, "/") && strings.Contains(a.s, "bin/") {
				w.effect(SelfProtection, true, c.start, c.end)
			}
		}
	}
}

var processTools = map[string]bool{"pkill": true, "killall": true, "pgrep": true, "systemctl": true, "launchctl": true, "taskkill": true}
