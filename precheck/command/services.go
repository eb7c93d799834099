package command

import "strings"

func systemctl(w *walker, c *call) {
	switch w.verb(c) {
	case "disable", "mask", "unload", "bootout", "remove", "delete":
		w.effect(ServiceDisable, true, c.start, c.end)
	case "poweroff", "reboot", "halt", "kexec", "emergency", "rescue":
		w.effect(ProcessKill, true, c.start, c.end)
	case "stop", "kill", "isolate":
		w.effect(ProcessKill, false, c.start, c.end)
	case "enable", "load", "bootstrap":
		w.effect(Persistence, false, c.start, c.end)
	}
}

func crontab(w *walker, c *call) {
	switch {
	case hasShort(c.args, 'r'):
		w.effect(ServiceDisable, true, c.start, c.end)
	case has(c.args, "-") || len(operands(c.args)) == 0 && (c.stdin.literal != "" || !c.stdin.known) && !hasShort(c.args, 'l') && !hasShort(c.args, 'e'):
		// A schedule that the text itself makes.
		w.effect(Persistence, true, c.start, c.end)
	case !hasShort(c.args, 'l'):
		w.effect(Persistence, false, c.start, c.end)
	}
}

func firewall(w *walker, c *call) {
	off := has(c.args, "disable", "reset", "-F", "--flush", "-X", "flush", "0", "permissive", "Permissive", "off") ||
		has(c.args, "-P") && has(c.args, "ACCEPT")
	if off {
		w.effect(ServiceDisable, true, c.start, c.end)
	}
}

func schtasks(w *walker, c *call) {
	for _, a := range c.args {
		switch strings.ToLower(a.s) {
		case "/delete", "delete":
			w.effect(ServiceDisable, true, c.start, c.end)
		case "/create", "add":
			w.effect(Persistence, false, c.start, c.end)
		}
	}
}

func packages(w *walker, c *call) {
	packageSource(w, c)
	switch verb := w.verb(c); {
	case verb == "unpublish", verb == "yank" && !has(c.args, "--undo"):
		w.effect(PublishDelete, true, c.start, c.end)
	case verb == "owner" && (has(c.args, "add", "-a", "--add")), verb == "access" && has(c.args, "grant"), verb == "token" && has(c.args, "create"):
		w.effect(AccessGrant, true, c.start, c.end)
	case verb == "owner" && has(c.args, "rm", "remove", "-r", "--remove"), verb == "access" && has(c.args, "revoke"):
		w.effect(AccessRevoke, true, c.start, c.end)
	case verb == "publish" && !has(c.args, "--dry-run"), verb == "upload":
		w.uploads(c)
	}
}

func gh(w *walker, c *call) {
	a, b := sub(c.args, 0), sub(c.args, 1)
	del := false
	for i, x := range c.args {
		if (x.s == "-X" || x.s == "--method") && i+1 < len(c.args) && strings.EqualFold(c.args[i+1].s, "DELETE") || strings.EqualFold(x.s, "-XDELETE") {
			del = true
		}
	}
	switch {
	case a == "repo" && (b == "delete" || b == "archive"), a == "release" && b == "delete", a == "api" && del, a == "project" && b == "delete", a == "secret" && b == "delete":
		w.effect(PublishDelete, true, c.start, c.end)
	case a == "api" && collaborators(c.args) && (has(c.args, "PUT", "put", "POST", "-XPUT")):
		w.effect(AccessGrant, true, c.start, c.end)
	case a == "repo" && b == "edit" && hasPrefix(c.args, "--visibility"), a == "ssh-key" && b == "add", a == "repo" && b == "deploy-key", a == "gpg-key" && b == "add":
		w.effect(AccessGrant, true, c.start, c.end)
	case a == "gist" && b == "create":
		w.uploads(c)
	}
}

func collaborators(args []arg) bool {
	for _, a := range args {
		if strings.Contains(a.s, "/collaborators/") || strings.Contains(a.s, "/memberships/") || strings.Contains(a.s, "/keys") || strings.Contains(a.s, "/invitations") {
			return true
		}
	}
	return false
}

func payment(w *walker, c *call) {
	for i, a := range c.args {
		switch strings.ToLower(a.s) {
		case "refunds", "payouts", "transfers", "charges", "payment_intents", "paymentintents":
			if i+1 < len(c.args) && (c.args[i+1].s == "create" || c.args[i+1].s == "confirm" || c.args[i+1].s == "cancel") {
				w.effect(Payment, true, c.start, c.end)
			}
		case "subscriptions", "customers", "invoices":
			if i+1 < len(c.args) && (c.args[i+1].s == "cancel" || c.args[i+1].s == "delete" || c.args[i+1].s == "void_invoice" || c.args[i+1].s == "pay") {
				w.effect(Payment, true, c.start, c.end)
			}
		}
	}
}

// netcat judges the tools that tie a program to a socket.
func netcat(w *walker, c *call) {
	for i, a := range c.args {
		low := strings.ToLower(a.s)
		if c.name != "socat" && (a.s == "-e" || a.s == "-c" || a.s == "--exec" || a.s == "--sh-exec") && i+1 < len(c.args) ||
			strings.HasPrefix(low, "exec:") || strings.HasPrefix(low, "system:") {
			w.effect(RemoteShell, true, c.start, c.end)
		}
	}
	if c.name == "socat" {
		return
	}
	if ops := operands(c.args); len(ops) > 0 {
		w.host(ops[0])
		if c.stdin.literal != "" || !c.stdin.known {
			w.uploads(c)
		}
	}
}

func connect(w *walker, c *call) {
	for _, a := range operands(c.args) {
		if a.secret {
			w.uploads(c)
		}
		if strings.ContainsAny(a.s, ".:") || a.s == "localhost" {
			w.host(a)
		}
	}
}

// upload judges copies to another machine.
func upload(w *walker, c *call) {
	ops := operands(c.args)
	for i, a := range ops {
		host, _, ok := strings.Cut(a.s, ":")
		if !ok || strings.Contains(host, "/") || len(host) < 2 {
			continue
		}
		w.host(arg{s: host, start: a.start, end: a.end})
		if i == len(ops)-1 {
			w.uploads(c)
		}
	}
}

func rsync(w *walker, c *call) {
	if ops := operands(c.args); hasPrefix(c.args, "--delete") && len(ops) > 1 {
		w.deletes(c, ops[len(ops)-1], true, false)
	}
	for i, a := range c.args {
		if i > 0 && (c.args[i-1].s == "-e" || c.args[i-1].s == "--rsh") {
			w.nested(a.s, a)
		}
	}
	upload(w, c)
}

func purge(w *walker, c *call) {
	switch verb := w.verb(c); {
	case verb == "purge", verb == "remove", verb == "autoremove", verb == "erase", strings.HasPrefix(verb, "-r"):
		w.effect(DeleteWorkspace, false, c.start, c.end)
	}
}

// interpret judges program text given to an interpreter of another language,
// and the strings in it that are shell commands.
func interpret(w *walker, c *call) {
	reads := true // its program comes from standard input
	for _, a := range operands(c.args) {
		reads = reads && (a.s == "-" || a.s == "/dev/stdin")
	}
	if c.stdin.fetched && reads {
		w.effect(RemoteCode, true, c.start, c.end)
	}
	if c.stdin.decoded && reads {
		w.effect(DecodedCode, true, c.start, c.end)
	}
	for i, a := range c.args {
		code := i > 0 && codeOption(c.args[i-1].s)
		if !code && len(a.s) > 6 && a.s[0] == '-' && a.s[1] != '-' && strings.IndexByte("ceE", a.s[1]) >= 0 {
			code, a.s = true, a.s[2:] // -c'code'
		}
		switch {
		case code:
			if a.fetched || a.decoded {
				w.effect(pick(a.fetched, RemoteCode, DecodedCode), true, c.start, c.end)
			}
			w.program(c, a)
		case a.s == "-m" && i+1 < len(c.args):
			in := call{name: c.args[i+1].s, args: c.args[i+2:], stdin: c.stdin, start: c.start, end: c.end}
			packageSourceOf(w, &in)
			return
		case i == 0 && !strings.HasPrefix(a.s, "-"):
			w.runsFile(c, a)
			return
		}
	}
	if c.stdin.literal != "" {
		w.program(c, arg{s: c.stdin.literal, start: c.start, end: c.end})
	}
}

// codeOption reports whether an option takes program text: -c, -e, -ne, --eval.
func codeOption(s string) bool {
	switch s {
	case "-r", "--eval", "--exec", "--print", "-p", "-pe", "eval":
		return true
	}
	return len(s) > 1 && len(s) <= 5 && s[0] == '-' && s[1] != '-' && strings.IndexByte("ceE", s[len(s)-1]) >= 0
}

// program judges program text of any language.
func (w *walker) program(c *call, a arg) {
	low := strings.ToLower(a.s)
	w.sends(c, low)
	for _, p := range []string{"shutil.rmtree", "rmsync(", "fs.rm(", "rimraf", "fileutils.rm_rf", "remove_tree", "rmtree(", "deltree", "fs.rmdirsync", "os.removedirs"} {
		if i := strings.Index(low, p); i >= 0 {
			// A variable may hold what is named elsewhere.
			literal := strings.IndexByte("'\"`", firstByte(strings.TrimLeft(low[i+len(p):], "( "))) >= 0
			w.effect(CodeDelete, broadString(low[i:]) || !literal && broadAnywhere(low), c.start, c.end)
		}
	}
	for _, p := range []string{"os.remove(", "unlink(", "unlinksync(", "unlink glob", "unlink <", "file.delete", "os.rmdir(", "rm_f", "rm_r"} {
		if i := strings.Index(low, p); i >= 0 {
			all := strings.Contains(low, "glob") || strings.Contains(low, "walk(") || strings.Contains(low, "iterdir") || strings.Contains(low, "readdir") ||
				strings.Contains(low, "listdir") || strings.Contains(low, "scandir") || strings.Contains(low, "find(") || strings.Contains(low, "dir[") || strings.HasPrefix(p, "unlink <")
			hard := all && broadAnywhere(low)
			w.effect(CodeDelete, hard, c.start, c.end)
			if s := quotedArguments(a.s[i+len(p):]); s != "" && strings.HasSuffix(p, "(") {
				w.deletes(c, arg{s: s}, false, false)
			}
		}
	}
	if c.name == "ruby" || c.name == "perl" || c.name == "php" {
		if _, s, ok := strings.Cut(a.s, "`"); ok {
			if s, _, ok = strings.Cut(s, "`"); ok {
				w.nested(s, a)
			}
		}
	}
	if strings.Contains(low, "exec(base64") || strings.Contains(low, "b64decode") && (strings.Contains(low, "exec(") || strings.Contains(low, "eval(")) || strings.Contains(low, "eval(atob") {
		w.effect(DecodedCode, true, c.start, c.end)
	}
	if (strings.Contains(low, "urlopen(") || strings.Contains(low, "requests.get(")) && (strings.Contains(low, "exec(") || strings.Contains(low, "eval(")) {
		w.effect(RemoteCode, true, c.start, c.end)
	}
	if strings.Contains(low, "socket") && (strings.Contains(low, "dup2") || strings.Contains(low, "/bin/sh") || strings.Contains(low, "/bin/bash")) {
		w.effect(RemoteShell, true, c.start, c.end)
	}
	for _, p := range []string{"os.system(", "subprocess.", "os.popen(", "exec(", "execsync(", "system(", "spawn(", "popen(", "do shell script", "exec ", "system ", "%x(", "qx(", "qx{", "spawnsync(", "shell_exec("} {
		for rest, n := low, 0; n < 8; n++ {
			i := strings.Index(rest, p)
			if i < 0 {
				break
			}
			at := len(low) - len(rest) + i + len(p)
			rest = rest[i+len(p):]
			if s := quotedArguments(a.s[min(at, len(a.s)):]); s != "" {
				w.nested(s, a)
			}
		}
	}
	if w.pids.ours && strings.Contains(low, "kill") {
		w.effect(SelfProtection, true, c.start, c.end)
	}
	w.sql(c, a.s)
}

// broadString reports whether the first string literal names a root or a home.
func broadString(s string) bool {
	s = s[:min(len(s), 200)]
	for _, q := range []string{`"/"`, `'/'`, `"~`, `'~`, "expanduser", "home()", "homedir", "'/home", `"/home`, `<~`, `</home`, `"$home`, "glob ~", `'/root`, `"/root`, `'/etc`, `"/etc`, `'/usr`, `"/usr`, "'/var", `"/var`, `("c:`, "('c:", "path.home", "env.home", "environ['home", `environ["home`} {
		if strings.Contains(s, q) {
			return true
		}
	}
	return false
}

func firstByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

// broadAnywhere is broadString for the first kilobytes of a program.
func broadAnywhere(s string) bool {
	const longest, step = 4 << 10, 160
	s = s[:min(len(s), longest)]
	for i := 0; i < len(s); i += step {
		if broadString(s[i:]) {
			return true
		}
	}
	return false
}

// quotedArguments joins the string literals up to the closing bracket:
// system("rm -rf ~") and run(["rm", "-rf", "/"]) read alike.
func quotedArguments(s string) string {
	const longest = 2 << 10
	s = s[:min(len(s), longest)]
	var out []string
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'', '"', '`':
			j := strings.IndexByte(s[i+1:], c)
			if j < 0 {
				return strings.Join(out, " ")
			}
			out = append(out, s[i+1:i+1+j])
			i += j + 1
		case ')', ';', '\n':
			return strings.Join(out, " ")
		}
	}
	return strings.Join(out, " ")
}
