package command

import (
	"path"
	"strings"
)

// startupNames are files that a shell, an interpreter, a build or an agent reads
// by itself, wherever they lie.
var startupNames = map[string]bool{".bashrc": true, ".bash_profile": true, ".bash_login": true, ".bash_logout": true, ".bash_aliases": true, ".profile": true, ".zshrc": true, ".zshenv": true,
	".zprofile": true, ".zlogin": true, ".xinitrc": true, ".xprofile": true, ".xsessionrc": true, ".inputrc": true, ".vimrc": true, ".gitconfig": true, ".npmrc": true, ".pypirc": true, ".netrc": true,
	"config.fish": true, "authorized_keys": true, "sitecustomize.py": true, "usercustomize.py": true, "conftest.py": true, ".envrc": true, "sudoers": true, "crontab": true, "ld.so.preload": true,
	"rc.local": true, "microsoft.powershell_profile.ps1": true, ".mcp.json": true}

// startupParts are directories whose files run, or let somebody in.
var startupParts = []string{"/etc/cron", "/var/spool/cron", "/etc/systemd/", "/lib/systemd/", ".config/systemd/", ".local/share/systemd/", "/etc/sudoers.d/", "/etc/profile.d/", "/etc/init.d/", "/etc/rc", "/etc/pam.d/",
	"/etc/xdg/autostart/", ".config/autostart/", "/launchagents/", "/launchdaemons/", ".git/hooks/", ".ssh/", "/etc/ssh/", "/etc/ld.so", "/etc/udev/", ".husky/", ".config/fish/conf.d/", ".github/workflows/",
	"/etc/apt/", "/etc/yum.repos.d/", ".vscode/tasks.json", "start menu/programs/startup/", ".config/environment.d/", "/etc/environment"}

// Startup reports whether a file decides what runs later, or who may log in.
func Startup(p string) bool {
	if len(p) > maxPath || strings.ContainsAny(p, "\n") {
		return false
	}
	p = strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(p, "file://"), `\`, "/"))
	p = path.Clean(p)
	switch p {
	case "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/hosts", "/etc/bash.bashrc", "/etc/zshrc", "/etc/profile":
		return true
	}
	if startupNames[path.Base(p)] || strings.HasSuffix(p, ".service") && strings.Contains(p, "systemd") || strings.HasSuffix(p, ".pth") && strings.Contains(p, "packages") {
		return true
	}
	for _, part := range startupParts {
		if strings.Contains(p, part) {
			return !strings.HasSuffix(p, "known_hosts")
		}
	}
	return false
}
