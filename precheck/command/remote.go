package command

import "strings"

func database(w *walker, c *call) {
	for i, a := range c.args {
		if strings.HasPrefix(a.s, "-h") && len(a.s) > 2 {
			w.host(arg{s: a.s[2:], start: a.start, end: a.end})
		} else if (a.s == "-h" || a.s == "--host") && i+1 < len(c.args) {
			w.host(c.args[i+1])
		}
		w.sql(c, a.s)
	}
	w.sql(c, c.stdin.literal)
}

// sqlWord judges SQL that stands alone: an exec sink may be a database.
func sqlWord(w *walker, c *call) {
	var b strings.Builder
	b.WriteString(c.name)
	for _, a := range c.args {
		b.WriteByte(' ')
		b.WriteString(a.s)
	}
	w.sql(c, b.String())
}

// sql judges the statements in a text.
func (w *walker) sql(c *call, text string) {
	if hard, soft := SQL(text); hard || soft {
		w.effect(DatabaseDrop, hard, c.start, c.end)
	}
}

// SQL reports whether a text holds a statement that drops or empties a table,
// a schema or a database, or takes rights; soft ones change one thing.
func SQL(text string) (hard, soft bool) {
	if len(text) < 8 {
		return false, false
	}
	if low := strings.ToLower(text); strings.Contains(low, "dropdatabase(") || strings.Contains(low, ".drop(") || strings.Contains(low, "deletemany({})") {
		return true, false
	}
	for _, st := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == '`' }) {
		f := fields(st, 64)
		for i, word := range f {
			next := ""
			if i+1 < len(f) {
				next = f[i+1]
			}
			switch word {
			case "drop":
				switch next {
				case "table", "database", "schema", "keyspace", "collection", "view", "materialized", "owned", "user", "role", "tablespace":
					hard = true
				case "column", "index", "constraint", "function", "trigger", "policy":
					soft = true
				}
			case "truncate":
				hard = hard || i == 0 && next != "" || next == "table"
			case "delete":
				if next == "from" && i+2 < len(f) {
					if rest := strings.Join(f[i+3:], " "); !strings.Contains(" "+rest+" ", " where ") || alwaysTrue(rest) {
						hard = true
					} else {
						soft = true
					}
				}
			case "update":
				if i == 0 && contains(f, "set") && !contains(f, "where") {
					soft = true
				}
			case "grant", "revoke":
				if i == 0 && (contains(f, "to") || contains(f, "from")) && contains(f, "on") {
					hard = true
				}
			}
		}
	}
	return hard, soft
}

func alwaysTrue(rest string) bool {
	_, cond, _ := strings.Cut(" "+rest+" ", " where ")
	switch strings.ReplaceAll(strings.TrimSpace(cond), " ", "") {
	case "1=1", "true", "1", "'1'='1'":
		return true
	}
	return false
}

// fields splits the first most words of a statement, in lower case, without
// the comments and quotes that split a keyword for an attacker.
func fields(s string, most int) []string {
	const maxStatement = 4 << 10
	s = strings.ToLower(s[:min(len(s), maxStatement)])
	for {
		i := strings.Index(s, "/*")
		if i < 0 {
			break
		}
		j := strings.Index(s[i:], "*/")
		if j < 0 {
			break
		}
		s = s[:i] + " " + s[i+j+2:]
	}
	f := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"(),", r) })
	return f[:min(len(f), most)]
}

func contains(f []string, word string) bool {
	for _, w := range f {
		if w == word {
			return true
		}
	}
	return false
}

func mysqladmin(w *walker, c *call) {
	if has(c.args, "drop") {
		w.effect(DatabaseDrop, true, c.start, c.end)
	}
}

func redis(w *walker, c *call) {
	for i, a := range c.args {
		if strings.EqualFold(a.s, "flushall") || strings.EqualFold(a.s, "flushdb") {
			w.effect(DatabaseDrop, true, c.start, c.end)
		}
		if a.s == "-h" && i+1 < len(c.args) {
			w.host(c.args[i+1])
		}
	}
}

func kubectl(w *walker, c *call) {
	if hasPrefix(c.args, "--dry-run") && !has(c.args, "--dry-run=none") {
		return
	}
	switch verb := w.verb(c); {
	case verb == "delete" || verb == "replace" && has(c.args, "--force"):
		w.effect(ClusterDelete, true, c.start, c.end)
	case verb == "drain" || verb == "scale" || verb == "cordon" || verb == "taint":
		w.effect(ClusterDelete, false, c.start, c.end)
	case verb == "create" && (has(c.args, "clusterrolebinding", "rolebinding")) || verb == "adm" || verb == "certificate":
		w.effect(AccessGrant, true, c.start, c.end)
	}
}

// verb returns the first operand behind options with values such as -n NAME.
func (w *walker) verb(c *call) string {
	for i := 0; i < len(c.args); i++ {
		s := c.args[i].s
		if s == "-n" || s == "--namespace" || s == "--context" || s == "--kubeconfig" || s == "--profile" || s == "--region" || s == "--project" || s == "-s" {
			i++
			continue
		}
		if !strings.HasPrefix(s, "-") {
			return strings.ToLower(s)
		}
	}
	return ""
}

func helm(w *walker, c *call) {
	switch w.verb(c) {
	case "uninstall", "delete", "del":
		if !has(c.args, "--dry-run") {
			w.effect(ClusterDelete, true, c.start, c.end)
		}
	case "rollback":
		w.effect(ClusterDelete, false, c.start, c.end)
	}
}

func terraform(w *walker, c *call) {
	switch verb := w.verb(c); {
	case verb == "destroy" || verb == "remove" || verb == "apply" && has(c.args, "-destroy", "--destroy"):
		w.effect(InfraDestroy, true, c.start, c.end)
	case verb == "state" && sub(c.args, 1) == "rm" || verb == "workspace" && sub(c.args, 1) == "delete" || verb == "stack" && sub(c.args, 1) == "rm":
		w.effect(InfraDestroy, true, c.start, c.end)
	case verb == "apply" && has(c.args, "-auto-approve", "--auto-approve"), verb == "run-all" && sub(c.args, 1) == "destroy":
		w.effect(InfraDestroy, verb == "run-all", c.start, c.end)
	}
}

func docker(w *walker, c *call) {
	a, b := sub(c.args, 0), sub(c.args, 1)
	switch {
	case a == "compose":
		compose(w, &call{name: c.name, args: c.args[1:], start: c.start, end: c.end})
	case a == "system" && b == "prune" && (hasShort(c.args, 'a') || has(c.args, "--all", "--volumes")),
		a == "volume" && (b == "rm" || b == "prune"), a == "system" && b == "reset", a == "swarm" && b == "leave", a == "stack" && b == "rm", a == "secret" && b == "rm":
		w.effect(ContainerPrune, true, c.start, c.end)
	case b == "prune", a == "rm" && hasShort(c.args, 'v'), a == "rmi" && hasShort(c.args, 'f'):
		w.effect(ContainerPrune, false, c.start, c.end)
	case (a == "run" || a == "exec") && (has(c.args, "--privileged") || has(c.args, "/:/host", "/:/mnt")):
		w.effect(AccessGrant, true, c.start, c.end)
	}
}

func compose(w *walker, c *call) {
	if has(c.args, "down", "rm") && (hasShort(c.args, 'v') || has(c.args, "--volumes")) {
		w.effect(ContainerPrune, true, c.start, c.end)
	}
}

func aws(w *walker, c *call) {
	service, op := w.verb(c), ""
	seen := false
	for _, a := range c.args {
		if seen && !strings.HasPrefix(a.s, "-") {
			op = strings.ToLower(a.s)
			break
		}
		seen = seen || strings.EqualFold(a.s, service)
	}
	dry := has(c.args, "--dry-run", "--dryrun", "--generate-cli-skeleton")
	switch {
	case dry:
	case service == "iam" || service == "sso-admin" || service == "organizations":
		for prefix, rule := range map[string]Rule{"attach-": AccessGrant, "put-": AccessGrant, "add-": AccessGrant, "create-access": AccessGrant, "create-login": AccessGrant, "update-assume": AccessGrant, "update-login": AccessGrant,
			"create-user": AccessGrant, "create-account": AccessGrant, "detach-": AccessRevoke, "delete-": AccessRevoke, "remove-": AccessRevoke, "deactivate-": AccessRevoke, "leave-": AccessRevoke} {
			if strings.HasPrefix(op, prefix) {
				w.effect(rule, true, c.start, c.end)
			}
		}
	case service == "s3" && (op == "rb" || op == "rm" && has(c.args, "--recursive")):
		w.effect(CloudDelete, true, c.start, c.end)
	case service == "s3" && (op == "rm" || op == "sync" && has(c.args, "--delete")):
		w.effect(CloudDelete, false, c.start, c.end)
	case service == "s3" && (op == "cp" || op == "mv" || op == "sync"):
		if ops := operands(c.args); len(ops) > 0 && strings.HasPrefix(ops[len(ops)-1].s, "s3://") {
			w.uploads(c)
		}
	case hasAny(op, "delete-", "terminate-", "deregister-", "remove-", "release-", "disable-", "purge-", "cancel-", "schedule-key-deletion", "reset-"):
		w.effect(CloudDelete, true, c.start, c.end)
	case hasAny(op, "put-bucket-policy", "put-bucket-acl", "authorize-", "put-resource-policy", "add-permission", "modify-image-attribute", "create-key-pair", "put-public-access", "modify-snapshot-attribute"):
		w.effect(AccessGrant, true, c.start, c.end)
	}
}

func hasAny(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func gcloud(w *walker, c *call) {
	for _, a := range c.args {
		switch strings.ToLower(a.s) {
		case "delete", "rb", "destroy":
			w.effect(CloudDelete, true, c.start, c.end)
		case "rm":
			w.effect(CloudDelete, hasShort(c.args, 'r') || has(c.args, "--recursive"), c.start, c.end)
		case "add-iam-policy-binding", "set-iam-policy", "add-members", "iam", "acl", "create-keys":
			if a.s == "iam" && !has(c.args, "create", "set", "ch") || a.s == "acl" && !has(c.args, "set", "ch") {
				continue
			}
			w.effect(AccessGrant, true, c.start, c.end)
		case "remove-iam-policy-binding":
			w.effect(AccessRevoke, true, c.start, c.end)
		}
	}
}

func az(w *walker, c *call) {
	for _, a := range c.args {
		switch strings.ToLower(a.s) {
		case "delete", "purge":
			if has(c.args, "role", "ad") {
				w.effect(AccessRevoke, true, c.start, c.end)
			} else {
				w.effect(CloudDelete, true, c.start, c.end)
			}
		case "create", "add":
			if has(c.args, "assignment") || has(c.args, "member") || has(c.args, "create-for-rbac") {
				w.effect(AccessGrant, true, c.start, c.end)
			}
		case "create-for-rbac":
			w.effect(AccessGrant, true, c.start, c.end)
		}
	}
}

// cloud judges the many command lines whose verb says it all.
func cloud(w *walker, c *call) {
	for _, a := range c.args {
		s := strings.ToLower(a.s)
		if i := strings.LastIndexByte(s, ':'); i >= 0 && c.name != "scw" {
			s = s[i+1:]
		}
		switch s {
		case "delete", "destroy", "purge", "terminate", "remove", "rm", "reset":
			w.effect(CloudDelete, true, c.start, c.end)
		case "access", "collaborators":
			if has(c.args, "add") {
				w.effect(AccessGrant, true, c.start, c.end)
			}
		}
	}
	if c.name == "heroku" && hasPrefix(c.args, "access:add") {
		w.effect(AccessGrant, true, c.start, c.end)
	}
}

func chmod(w *walker, c *call) {
	mode := ""
	for _, a := range operands(c.args) {
		if mode == "" {
			mode = a.s
			continue
		}
		open := mode == "777" || mode == "0777" || mode == "666" || mode == "a+rwx" || mode == "ugo+rwx" || mode == "o+w" || mode == "a+w" || mode == "+w" || mode == "000"
		setuid := strings.Contains(mode, "+s") || len(mode) == 4 && strings.ContainsAny(mode[:1], "4267")
		place := w.where(a)
		switch {
		case place == broad && (open || setuid) && (w.abs(a.s) != "." || setuid):
			w.effect(PermissionBroad, true, c.start, c.end)
		case setuid, open:
			w.effect(PermissionBroad, false, c.start, c.end)
		}
	}
}

func chown(w *walker, c *call) {
	recursive := hasShort(c.args, 'R') || has(c.args, "--recursive", "/t", "/T", "/r")
	for _, a := range operands(c.args) {
		if w.where(a) == broad && recursive && strings.ContainsAny(a.s, "/~\\") && w.abs(a.s) != "." {
			w.effect(PermissionBroad, true, c.start, c.end)
		}
	}
}

// powerful names the groups whose members own the machine.
var powerful = map[string]bool{"sudo": true, "wheel": true, "admin": true, "root": true, "docker": true, "lxd": true, "disk": true, "shadow": true, "adm": true, "administrators": true}

func usermod(w *walker, c *call) {
	for _, a := range c.args {
		for _, g := range strings.Split(a.s, ",") {
			if powerful[strings.ToLower(g)] {
				w.effect(AccessGrant, true, c.start, c.end)
			}
		}
	}
	if hasShort(c.args, 'L') || hasShort(c.args, 'p') || has(c.args, "-u", "-o") {
		w.effect(AccessGrant, true, c.start, c.end)
	}
}

func adduser(w *walker, c *call) {
	for _, a := range operands(c.args) {
		if powerful[strings.ToLower(a.s)] {
			w.effect(AccessGrant, true, c.start, c.end)
			return
		}
	}
	if hasShort(c.args, 'o') || has(c.args, "0") {
		w.effect(AccessGrant, true, c.start, c.end)
		return
	}
	w.effect(AccessGrant, false, c.start, c.end)
}

func netUser(w *walker, c *call) {
	if has(c.args, "/add", "-append", "-create") {
		w.effect(AccessGrant, true, c.start, c.end)
	}
	if has(c.args, "/delete", "-delete") {
		w.effect(AccessRevoke, true, c.start, c.end)
	}
}
