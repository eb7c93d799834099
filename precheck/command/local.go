package command

import (
	"strings"
)

// handler returns the function that judges the command called name (lower
// case, wrappers off), or nil. It is a switch and not a map because judging a
// command may need to judge another.
func handler(name string) func(*walker, *call) {
	switch name {
	case "rm", "unlink":
		return remove
	case "del", "erase", "rd", "remove-item", "ri":
		return winRemove
	case "git":
		return git
	case "dd":
		return dd
	case "shred", "srm", "wipe":
		return shred
	case "truncate":
		return truncate
	case "mv":
		return move
	case "cp", "install", "ln":
		return copies
	case "pip", "pip3", "pipx", "uv", "uvx", "npx", "pnpx", "bunx", "go":
		return packageSource
	case "vim", "vi", "nvim", "ex", "view", "less", "man", "tar", "bsdtar", "zip", "ed":
		return embedded
	case "init", "telinit":
		return initLevel
	case "wipefs", "blkdiscard", "sgdisk", "mkswap", "fdisk", "sfdisk", "parted", "diskpart", "format", "clear-disk", "format-volume", "lvremove", "vgremove", "pvremove":
		return disk
	case "cryptsetup":
		return cryptsetup
	case "zpool", "zfs":
		return zfs
	case "vssadmin", "wbadmin", "diskutil", "cipher", "btrfs":
		return vss
	case "psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "mongo", "mongosh", "clickhouse-client", "duckdb", "cqlsh", "snowsql", "bq", "sqlplus", "cockroach":
		return database
	case "dropdb":
		return hardly(DatabaseDrop)
	case "dropuser", "userdel", "deluser":
		return hardly(AccessRevoke)
	case "mysqladmin":
		return mysqladmin
	case "redis-cli":
		return redis
	case "drop", "truncate-table", "delete", "alter":
		return sqlWord
	case "kubectl", "oc", "k":
		return kubectl
	case "helm", "etcdctl":
		return helm
	case "terraform", "tofu", "terragrunt", "pulumi", "cdk", "vagrant", "serverless", "sls":
		return terraform
	case "docker", "podman", "nerdctl":
		return docker
	case "docker-compose":
		return compose
	case "aws":
		return aws
	case "gcloud", "gsutil":
		return gcloud
	case "az":
		return az
	case "doctl", "heroku", "flyctl", "fly", "vercel", "netlify", "firebase", "linode-cli", "hcloud", "ibmcloud", "oci", "scw", "vultr-cli", "wrangler", "railway", "supabase", "eksctl":
		return cloud
	case "chmod":
		return chmod
	case "chown", "icacls", "takeown":
		return chown
	case "usermod":
		return usermod
	case "gpasswd":
		return grantIf("-a")
	case "adduser", "addgroup", "useradd":
		return adduser
	case "visudo", "passwd", "chpasswd", "ssh-copy-id", "new-localuser", "add-localgroupmember":
		return hardly(AccessGrant)
	case "net", "dscl":
		return netUser
	case "systemctl", "launchctl", "sc":
		return systemctl
	case "service", "kill", "pkill", "killall", "shutdown", "reboot", "halt", "poweroff", "taskkill", "stop-computer", "history":
		return softly(ProcessKill)
	case "crontab":
		return crontab
	case "ufw", "iptables", "ip6tables", "nft", "setenforce", "netsh":
		return firewall
	case "set-mppreference", "wevtutil":
		return hardly(ServiceDisable)
	case "schtasks", "reg":
		return schtasks
	case "at":
		return softly(Persistence)
	case "npm", "pnpm", "yarn", "cargo", "gem", "twine":
		return packages
	case "gh", "glab", "hub":
		return gh
	case "stripe", "paypal", "plaid":
		return payment
	case "nc", "ncat", "netcat", "socat":
		return netcat
	case "telnet", "ping", "nmap", "ftp", "dig", "nslookup":
		return connect
	case "sftp", "scp", "rclone":
		return upload
	case "rsync":
		return rsync
	case "mail", "sendmail", "mutt":
		return func(w *walker, c *call) { w.uploads(c) }
	case "python", "perl", "ruby", "node", "nodejs", "php", "deno", "lua", "osascript", "bun":
		return interpret
	case "apt", "apt-get", "yum", "dnf", "pacman":
		return purge
	}
	return nil
}

func hardly(r Rule) func(*walker, *call) {
	return func(w *walker, c *call) {
		if len(c.args) > 0 && !has(c.args, "--help", "-h", "/?", "--version") {
			w.effect(r, true, c.start, c.end)
		}
	}
}

func softly(r Rule) func(*walker, *call) {
	return func(w *walker, c *call) {
		if r == ProcessKill && (c.name == "service" && sub(c.args, 1) != "stop" || c.name == "history" && !hasShort(c.args, 'c') ||
			c.name == "kill" && hasShort(c.args, 'l') || c.name == "shutdown" && has(c.args, "-c", "--help")) {
			return
		}
		switch c.name {
		case "shutdown", "reboot", "halt", "poweroff", "stop-computer":
			w.effect(r, !has(c.args, "--help", "-h", "--version", "--wtmp-only", "-w") || c.name == "shutdown", c.start, c.end)
			return
		}
		w.effect(r, false, c.start, c.end)
	}
}

func grantIf(option string) func(*walker, *call) {
	return func(w *walker, c *call) {
		if has(c.args, option) {
			w.effect(AccessGrant, true, c.start, c.end)
		}
	}
}

func remove(w *walker, c *call) {
	recursive := hasShort(c.args, 'r') || hasShort(c.args, 'R') || has(c.args, "--recursive", "--no-preserve-root")
	for _, a := range operands(c.args) {
		w.deletes(c, a, recursive, false)
	}
}

func winRemove(w *walker, c *call) {
	recursive := false
	var paths []arg
	for _, a := range c.args {
		s := strings.ToLower(a.s)
		switch {
		case s == "/s" || strings.HasPrefix("-recurse", s) && len(s) > 1 && s[0] == '-':
			recursive = true
		case s != "" && s[0] != '-' && !(s[0] == '/' && len(s) == 2):
			paths = append(paths, a)
		}
	}
	for _, a := range paths {
		w.deletes(c, a, recursive, false)
	}
}

func git(w *walker, c *call) {
	args, dir := c.args, w.cwd
	for len(args) > 0 && strings.HasPrefix(args[0].s, "-") { // git -C dir -c key=value
		if args[0].s == "-c" && len(args) > 1 {
			w.gitSetting(c, args[1])
		} else if args[0].s == "-C" && len(args) > 1 {
			dir = w.abs(args[1].s)
		}
		n := pick(args[0].s == "-C" || args[0].s == "-c" || args[0].s == "--git-dir" || args[0].s == "--work-tree", 2, 1)
		args = args[min(n, len(args)):]
	}
	if len(args) == 0 {
		return
	}
	verb, args := args[0].s, args[1:]
	discard := false
	switch verb {
	case "push":
		w.gitPush(c, args)
	case "reset":
		discard = has(args, "--hard")
	case "clean":
		if discard = (hasShort(args, 'f') || has(args, "--force")) && !hasShort(args, 'n') && !has(args, "--dry-run"); discard && (dir == "~" || dir == "/") {
			w.effect(DeleteBroad, true, c.start, c.end)
		}
	case "config":
		if key := operands(args); len(key) > 1 {
			w.gitSetting(c, arg{s: key[len(key)-2].s + "=" + key[len(key)-1].s, start: c.start, end: c.end})
		}
	case "checkout", "restore":
		discard = has(args, ".", "--") && !has(args, "--staged")
	case "branch":
		discard = hasShort(args, 'D')
	case "stash":
		discard = has(args, "clear", "drop")
	case "filter-branch", "filter-repo", "reflog", "gc", "prune", "update-ref":
		discard = verb[0] == 'f' || has(args, "expire", "--prune=now", "--aggressive", "-d", "delete")
	case "remote":
		if sub(args, 0) == "set-url" || sub(args, 0) == "add" {
			w.uploads(c)
		}
	}
	if discard {
		w.effect(GitDiscard, false, c.start, c.end)
	}
}

func (w *walker) gitPush(c *call, args []arg) {
	if has(args, "--dry-run", "-n") {
		return
	}
	hard := has(args, "--force", "--mirror", "--delete", "--prune") || hasShort(args, 'f') || hasShort(args, 'd')
	for i, a := range operands(args) {
		if i > 0 && (strings.HasPrefix(a.s, "+") || strings.HasPrefix(a.s, ":")) {
			hard = true
		}
	}
	switch {
	case hard:
		w.effect(GitForcePush, true, c.start, c.end)
	case hasPrefix(args, "--force-with-lease") || hasPrefix(args, "--force-if-includes"):
		w.effect(GitForcePush, false, c.start, c.end)
	}
}

func dd(w *walker, c *call) {
	for _, a := range c.args {
		if of, ok := strings.CutPrefix(a.s, "of="); ok {
			if blockDevice(w.abs(of)) {
				w.effect(DiskWrite, true, c.start, c.end)
			} else if w.where(arg{s: of}) == broad {
				w.effect(DiskWrite, !strings.HasPrefix(of, "/dev/"), c.start, c.end)
			}
		}
	}
}

func disk(w *walker, c *call) {
	if len(c.args) == 0 || has(c.args, "-l", "--list", "-p", "--print", "print", "--help", "-n", "--no-act") || (c.name == "wipefs" && !hasShort(c.args, 'a') && !has(c.args, "--all")) {
		return
	}
	w.effect(DiskWrite, true, c.start, c.end)
}

func cryptsetup(w *walker, c *call) {
	if s := sub(c.args, 0); s == "luksformat" || s == "erase" || s == "luksremovekey" || s == "lukskillslot" {
		w.effect(DiskWrite, true, c.start, c.end)
	}
}

func zfs(w *walker, c *call) {
	if s := sub(c.args, 0); s == "destroy" || s == "rollback" || s == "labelclear" {
		w.effect(DiskWrite, true, c.start, c.end)
	}
}

func vss(w *walker, c *call) {
	for _, a := range c.args {
		switch s := strings.ToLower(a.s); {
		case s == "delete", strings.HasPrefix(s, "erase"), s == "secureerase", strings.HasPrefix(s, "/w"), s == "zerodisk":
			w.effect(DiskWrite, true, c.start, c.end)
		}
	}
}

func shred(w *walker, c *call) {
	for _, a := range operands(c.args) {
		p := w.where(a)
		w.effect(FileShred, p == broad || p == outside || blockDevice(w.abs(a.s)), c.start, c.end)
	}
}

func truncate(w *walker, c *call) {
	if sub(c.args, 0) == "table" {
		sqlWord(w, c)
		return
	}
	for _, a := range operands(c.args) {
		if p := w.where(a); p == broad {
			w.effect(FileShred, true, c.start, c.end)
		}
	}
}

func move(w *walker, c *call) {
	ops := operands(c.args)
	if len(ops) < 2 {
		return
	}
	target := w.abs(ops[len(ops)-1].s)
	for _, a := range ops[:len(ops)-1] {
		if target == "/dev/null" {
			w.deletes(c, a, true, false)
		} else if p := w.abs(a.s); w.where(a) == broad && (p == "/" || p == "~" || p == "/*" || p == "~/*" || p == "~/.*" || strings.HasPrefix(p, "/etc") || strings.HasPrefix(p, "/usr")) {
			w.effect(DeleteBroad, true, c.start, c.end)
		}
	}
	w.writes(ops[len(ops)-1], c.start, c.end)
}
