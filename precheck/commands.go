package precheck

import (
	"strings"

	"example.org/auditd/precheck/command"
	"example.org/auditd/precheck/normalise"
	"example.org/auditd/schema"
)

// Bounds on commands looked for in text that is no command.
const (
	maxLines = 96  // lines looked at in one payload
	maxLine  = 512 // bytes of one
)

// shellTools are parts of the names of tools whose text parameter is a shell's.
var shellTools = []string{"bash", "shell", "terminal", "exec", "command", "powershell", "sh"}

// commands judges what the sink would run.
func (k *check) commands() {
	if !k.acts {
		return
	}
	whole := field{value: k.f.Payload, end: len(k.f.Payload), exact: true}
	exec := k.f.Sink.Kind == schema.SinkExec
	switch {
	case k.isJSON:
		k.fieldCommands(exec)
	case exec && !codeTool(k.f.Sink.Tool):
		k.shell(whole, true)
	case exec || shellTool(k.f.Sink.Tool):
		k.shell(whole, false)
	default:
		k.words(whole)
		k.sql(whole)
	}
}

// fieldCommands judges the string parameters of a tool call.
func (k *check) fieldCommands(exec bool) {
	shell := exec || shellTool(k.f.Sink.Tool)
	found := false
	for i := 0; i < len(k.fields); i++ {
		f := k.fields[i]
		switch {
		case commandKeys[f.key]:
			found = true
			for f.element && i+1 < len(k.fields) && k.fields[i+1].element && k.fields[i+1].key == f.key {
				i++ // argv: one word each
				f.value += " " + k.fields[i].value
				f.end, f.exact = k.fields[i].end, false
			}
			k.shell(f, false)
		case sqlKeys[f.key] && !shell:
			k.sql(f)
		case f.key == "input" && shell:
			found = true
			k.shell(f, false)
		}
		if !shell && (k.guarded(f.value) || pathKeys[f.key] && !reading(k.f.Sink.Tool) && !reading(k.f.Sink.Action) && command.Changes(f.value, &k.env)) {
			k.raise(string(command.SelfProtection), true, f.start, f.end, nil)
		}
	}
	if writing(k.f.Sink.Tool) && !shell {
		for _, f := range k.fields {
			if pathKeys[f.key] && command.Startup(f.value) {
				k.startup(f.start, f.end)
			}
		}
	}
	if !found && shell {
		for _, f := range k.fields {
			k.words(f)
		}
	}
}

func shellTool(tool string) bool {
	low := strings.ToLower(tool)
	for _, w := range shellTools {
		if low == w || len(w) > 2 && strings.Contains(low, w) {
			return true
		}
	}
	return false
}

func codeTool(tool string) bool {
	low := strings.ToLower(tool)
	for _, w := range []string{"python", "node", "javascript", "sql", "jupyter", "notebook", "ruby"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// guarded reports a path of auditd in a parameter; texts are longer.
func (k *check) guarded(s string) bool {
	return len(s) <= schema.MaxName && command.Touches(s, &k.env)
}

// writing reports whether a tool's name says that it writes files.
func writing(tool string) bool {
	for _, w := range split(tool[:min(len(tool), schema.MaxName)]) {
		switch w {
		case "write", "edit", "create", "save", "append", "patch", "replace", "update", "put", "copy", "move":
			return true
		}
	}
	return false
}

// reading reports whether a tool's or an action's name says that it changes nothing.
func reading(name string) bool {
	for _, w := range split(name[:min(len(name), schema.MaxName)]) {
		if readVerbs[w] {
			return true
		}
	}
	return false
}

// shell judges one command line.
func (k *check) shell(f field, strict bool) {
	r := command.Shell(f.value, &k.env)
	k.effects(&f, r, true)
	for _, l := range r.Limits {
		k.limit(l)
	}
	if !r.Parsed && strict && len(r.Limits) == 0 {
		k.raise("shell-unparsable", false, f.start, f.end, nil)
	}
	for _, h := range r.Hosts {
		start, end := f.at(h.Start, h.End)
		k.host(h.Text, start, end, nil, k.bridges())
	}
	for _, a := range r.Inert {
		start, end := f.at(a.Start, a.End)
		k.inert = append(k.inert, command.Arg{Start: start, End: end})
	}
	p := piece{text: f.value}
	for _, a := range r.Resolved {
		start, end := f.at(a.Start, a.End)
		if !strings.Contains(f.value, a.Text) {
			k.child(&p, a.Text, start, end, "shell")
		}
	}
}

func (f *field) at(start, end int) (int, int) {
	if f.exact {
		return f.start + start, f.start + end
	}
	return f.start, f.end
}

func (k *check) effects(f *field, r *command.Result, acts bool) {
	for _, e := range r.Effects {
		start, end := f.at(e.Start, e.End)
		self := e.Rule == command.SelfProtection
		name := string(e.Rule)
		if e.Rule == command.NetworkUpload {
			name = "external-upload-command"
		}
		k.raise(name, acts && e.Hard && (self || !k.f.OwnerAuthorized), start, end, nil)
		switch e.Rule {
		case command.AccessGrant, command.AccessRevoke:
			k.raise("authority-command", false, start, end, nil)
		}
	}
}

// words judges text that may hold commands, line by line: what starts like a
// command that destroys is judged without parsing.
func (k *check) words(f field) {
	lines := 0
	for i := 0; i < len(f.value) && lines < maxLines; {
		end := strings.IndexByte(f.value[i:], '\n')
		if end < 0 {
			end = len(f.value) - i
		}
		if end > 2 && end <= maxLine {
			lines++
			part := field{value: f.value[i : i+end], start: f.start + i, end: f.start + i + end, exact: f.exact}
			if !f.exact {
				part.start, part.end = f.start, f.end
			}
			k.effects(&part, command.Words(part.value, &k.env), true)
		}
		i += end + 1
	}
}

func (k *check) sql(f field) {
	hard, soft := command.SQL(f.value[:min(len(f.value), command.MaxText)])
	if hard || soft {
		k.raise("sql-statement", hard && !k.f.OwnerAuthorized, f.start, f.end, nil)
	}
}

// commandInText looks at a command word in a text that nothing will run: an
// example in a page, or a trap. It is evidence only. It returns where the line
// that it looked at ends.
func (k *check) commandInText(p *piece, t *normalise.Text, start, last int) int {
	s := t.Text
	if start < last || k.lines > maxLines {
		return last
	}
	from := start
	for from > 0 && start-from < 24 && strings.IndexByte(" \t>$#*-|&;+", s[from-1]) >= 0 {
		from--
	}
	if from > 0 && s[from-1] != '\n' && s[from-1] != '`' && s[from-1] != '"' && s[from-1] != '\'' && s[from-1] != ':' {
		return last
	}
	end := start
	for end < len(s) && end-start < maxLine && s[end] != '\n' && s[end] != '`' {
		end++
	}
	k.lines++
	for _, e := range command.Words(s[start:end], &k.env).Effects {
		if e.Hard && e.Rule != command.SelfProtection {
			a, b := p.at(t.Span(start, end))
			k.raise("command-in-text", false, a, b, via(p, t, start, end))
			k.detail("command-in-text", string(e.Rule))
			break
		}
	}
	return end
}

// commandWords begin the commands that commandInText looks at.
var commandWords = []string{"rm -", "sudo ", "curl ", "wget ", "dd if", "dd of", "mkfs", "kubectl delete", "kubectl -n", "helm uninstall", "terraform destroy", "terraform apply", "git push", "drop table", "drop database", "truncate table",
	"delete from", "docker system", "docker volume", "chmod ", "chown -r", "usermod ", "crontab -r", "systemctl disable", "bash -c", "bash <(", "sh -c", "bash -i", "nc -", "ncat ", "shred ", "aws ", "gcloud ", "az ", "gh repo", "gh api", "npm unpublish",
	"remove-item", "iex ", "powershell", "python -c", "python3 -c", "eval ", "find / ", "find ~", "echo ", "printf ", "base64 -d", "psql ", "mysql ", "redis-cli", "stripe ", ":(){", "iptables -f", "vssadmin", "format c", "rd /s", "del /s", "del /f", "rmdir /s"}
