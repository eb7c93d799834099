package firewall

import (
	"path"
	"strings"

	"example.org/auditd/schema"
)

// sinkOfPath says what a file is to an agent: most files are files, but what
// agents and shells read by themselves at their next start is memory, identity,
// skill, configuration, policy or plan. Case and doubled slashes do not matter,
// since on some systems they do not.
func sinkOfPath(file string) schema.SinkKind {
	p := strings.ToLower(path.Clean(strings.ReplaceAll(strings.TrimSpace(file), `\`, "/")))
	p = strings.TrimPrefix(p, "file://")
	base := path.Base(p)
	in := func(dirs ...string) bool {
		for _, d := range dirs {
			if strings.Contains("/"+p, "/"+d+"/") {
				return true
			}
		}
		return false
	}
	switch {
	case base == "authorized_keys" || base == "sudoers" || in("sudoers.d", "pam.d", "polkit-1") || base == "exec-approvals.json" || base == "policy.yaml" && in(".config/auditd"):
		return schema.SinkPolicy
	case base == "crontab" || in("cron.d", "cron.daily", "cron.hourly", "cron.weekly", "cron", "systemd", "launchagents", "launchdaemons", "autostart") || base == "heartbeat.md":
		return schema.SinkPlan
	case base == "soul.md", base == "identity.md", base == "user.md":
		return schema.SinkIdentity
	case base == "skill.md" || in("skills", ".claude/agents", ".claude/commands", ".claude/plugins", ".openclaw/extensions", ".openclaw/plugins"):
		return schema.SinkSkill
	case base == "memory.md" || in("memory", "memories") && strings.HasSuffix(base, ".md"),
		base == "agents.md", base == "claude.md", base == "claude.local.md", base == "gemini.md", base == "tools.md", base == "bootstrap.md",
		base == ".cursorrules", base == ".windsurfrules", base == "copilot-instructions.md", in(".cursor/rules"):
		return schema.SinkMemory
	case in(".claude", ".codex", ".openclaw", ".gemini", ".cursor", ".vscode", ".config", ".ssh", ".gnupg", ".aws", ".kube", ".docker", ".git/hooks", ".husky"), strings.HasPrefix(p, "/etc/"),
		base == ".mcp.json", base == "openclaw.json", base == ".claude.json", base == ".netrc", base == ".npmrc", base == ".pypirc", base == ".envrc",
		base == ".gitconfig", base == "config" && in(".git"):
		return schema.SinkConfig
	case strings.HasPrefix(base, ".") && (strings.HasSuffix(base, "rc") || strings.HasSuffix(base, "profile") || strings.HasSuffix(base, "_login") || strings.HasSuffix(base, "_logout") || strings.HasSuffix(base, "env") && base != ".env"):
		return schema.SinkConfig
	default:
		return schema.SinkFile
	}
}

// sourceOfPath says what the content of a file is to an agent that reads it.
func sourceOfPath(file string) schema.SourceKind {
	switch sinkOfPath(file) {
	case schema.SinkMemory, schema.SinkIdentity:
		return schema.SourceMemory
	case schema.SinkSkill:
		return schema.SourceSkill
	default:
		return schema.SourceFile
	}
}

// patchPaths returns the files that a patch in the "*** Update File:" form
// touches, or those of a unified diff.
func patchPaths(patch string) []string {
	var out []string
	for line := range strings.Lines(patch) {
		line = strings.TrimRight(line, "\r\n")
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ", "+++ b/", "+++ ", "--- a/"} {
			if rest, ok := strings.CutPrefix(line, head); ok && rest != "/dev/null" && len(out) < 1000 {
				out = append(out, strings.TrimSpace(rest))
				break
			}
		}
	}
	return out
}

// worstPath returns the file among paths whose kind asks for the most care:
// the first that is more than a file, else the first.
func worstPath(paths []string) string {
	for _, p := range paths {
		if sinkOfPath(p) != schema.SinkFile {
			return p
		}
	}
	if len(paths) > 0 {
		return paths[0]
	}
	return ""
}
