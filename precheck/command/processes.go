package command

import (
	"path"
	"regexp"
	"strings"
)

// processIDs is what the text so far has asked of the process table.
type processIDs struct {
	listed bool // processes or sockets were listed
	ours   bool // and auditd's picked out
}

// serving is auditd's command line, for the patterns of pkill -f.
const serving = "auditd serve"

// matches reports whether a pattern that picks processes takes auditd's in.
func (w *walker) matches(pattern string, full bool) bool {
	const longest = 128
	if pattern == "" || len(pattern) > longest || strings.Contains(pattern, unknown) {
		return false
	}
	if strings.Count(pattern, "{") > 1 {
		return true // repetitions multiply, and nobody needs them for a name
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return strings.Contains(serving, pattern)
	}
	return re.MatchString("auditd") || full && (re.MatchString(serving) || re.MatchString("/usr/local/bin/"+serving))
}

// namesPort reports whether a word names auditd's port: 7841/tcp, :7841, 7841.
func (w *walker) namesPort(s string) bool {
	for _, port := range w.ports() {
		i := strings.LastIndex(s, port)
		if i < 0 || i > 0 && '0' <= s[i-1] && s[i-1] <= '9' {
			continue
		}
		if rest := s[i+len(port):]; rest == "" || rest[0] < '0' || rest[0] > '9' {
			return true
		}
	}
	return false
}

// processes judges what ends processes or looks for those to be ended.
func (w *walker) processes(c *call) {
	ops := operands(c.args)
	self, some := false, false
	switch c.name {
	case "ps", "top", "netstat", "ss", "lsof", "fuser", "pidof", "pgrep":
		w.pids.listed = true
		for _, a := range c.args {
			w.pids.ours = w.pids.ours || c.name != "ps" && w.namesPort(a.s)
		}
		if c.name == "pgrep" {
			w.pids.ours = w.pids.ours || w.picks(c, ops)
		}
		if some = c.name == "fuser" && (hasShort(c.args, 'k') || has(c.args, "--kill")); some {
			self = w.pids.ours
		}
	case "grep", "egrep", "awk", "rg":
		if w.pids.listed && len(ops) > 0 {
			pattern := ops[0].s
			if c.name == "awk" {
				_, pattern, _ = strings.Cut(pattern, "/")
				pattern, _, _ = strings.Cut(pattern, "/")
			}
			w.pids.ours = w.pids.ours || w.matches(pattern, true) || w.namesPort(ops[0].s)
		}
	case "kill":
		n := len(c.args)
		self = w.pids.ours || n > 1 && c.args[n-1].s == "-1"
	case "pkill":
		self = w.picks(c, ops)
	case "killall":
		self = has(c.args, "-u", "--user") && len(ops) < 2
		for _, a := range ops {
			ok, err := path.Match(a.s, "auditd")
			self = self || err == nil && ok || hasShort(c.args, 'r') && w.matches(a.s, false)
		}
	}
	if self {
		w.effect(SelfProtection, true, c.start, c.end)
	} else if some {
		w.effect(ProcessKill, false, c.start, c.end)
	}
}

// picks reports whether pkill or pgrep would take auditd in: by its pattern, or
// because it has none and a user's every process is meant.
func (w *walker) picks(c *call, ops []arg) bool {
	// Of options with values only -u and its like are common; their value is
	// an operand here.
	values := 0
	for _, a := range c.args {
		switch a.s {
		case "-u", "-U", "-g", "-G", "-P", "-t", "-s", "--signal", "--euid", "--uid", "--pgroup", "--session", "--parent":
			values++
		}
	}
	wide := has(c.args, "-u", "-U", "--euid", "--uid") || hasPrefix(c.args, "-u") || hasPrefix(c.args, "--euid=") || hasPrefix(c.args, "--uid=")
	if wide && len(ops) <= values {
		return true
	}
	return len(ops) > 0 && w.matches(ops[len(ops)-1].s, hasShort(c.args, 'f') || has(c.args, "--full"))
}

// attached judges debuggers that attach to a process, and its memory as a file.
func (w *walker) attached(argv []arg, start, end int) {
	if len(argv) == 0 {
		return
	}
	name := commandName(argv[0].s)
	switch name {
	case "gdb", "strace", "ltrace", "lldb", "gcore", "reptyr", "criu", "ptrace":
		if has(argv[1:], "-p", "--pid", "attach") || name == "gcore" || hasPrefix(argv[1:], "-p") || hasPrefix(argv[1:], "--pid=") {
			w.effect(pick(w.pids.ours, SelfProtection, ProcessKill), w.pids.ours, start, end)
		}
	}
	for _, a := range argv {
		rest, ok := strings.CutPrefix(a.s, "/proc/")
		if i := strings.LastIndexByte(a.s, '='); !ok && i > 0 {
			rest, ok = strings.CutPrefix(a.s[i+1:], "/proc/")
		}
		pid, file, _ := strings.Cut(rest, "/")
		if !ok || file != "mem" && !strings.HasSuffix(file, "/mem") {
			continue
		}
		all := strings.ContainsAny(pid, "*?[") || w.pids.ours
		w.effect(pick(all, SelfProtection, ProcessKill), all, start, end)
	}
}
