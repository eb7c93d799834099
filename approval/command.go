package approval

import (
	"path"
	"slices"
	"strings"
)

// runners are programs whose arguments are, or name, other programs to run: a
// grant for such a command would be a grant for anything.
var runners = strings.Fields(`
	sh bash rbash dash ash zsh fish ksh mksh csh tcsh elvish nu pwsh powershell cmd cmd.exe wscript cscript mshta rundll32
	busybox toybox python pypy ipython perl ruby irb node nodejs deno bun php lua luajit tclsh wish expect osascript
	Rscript julia groovy scala java jshell guile racket sbcl emacs vi vim nvim ed ex less more man
	awk gawk mawk nawk sed m4 eval exec source command builtin trap coproc alias
	sudo doas su runuser pkexec run0 setpriv capsh env nice ionice nohup setsid timeout time stdbuf script unshare nsenter chroot
	chrt taskset flock watch xargs parallel at batch crontab systemd-run systemctl launchctl start-stop-daemon dbus-run-session
	ssh scp sftp rsync telnet nc ncat netcat socat mosh rsh tmux screen
	docker podman nerdctl kubectl oc lxc-attach machinectl flatpak snap bwrap firejail qemu
	make gmake cmake ninja just task npm npx pnpm yarn pip pipx uv uvx poetry gem bundle cargo go mvn gradle ant
	gdb lldb strace ltrace perf valgrind git-shell ld.so ld-linux-x86-64.so.2
`)

// runFlags make an ordinary program run something: find -exec, tar --to-command,
// git -c core.pager=…, and whatever takes code after -c or -e.
var runFlags = strings.Fields(`
	-exec -execdir -ok -okdir -c -e -E --eval --exec --command --to-command --checkpoint-action --use-compress-program -I
	--rsh --upload-pack --receive-pack --exec-path --config --config-env --pager --open-files-in-pager --editor --interpreter
	--init-file --rcfile --require
`)

// Grantable reports whether a grant may cover a normalised command: it must be
// one simple command that runs no other. When in doubt it may not, and then a
// person is asked each time.
func Grantable(command string) bool {
	// Anything that a shell treats specially makes more than one command, or a
	// command that is not what it looks like.
	if strings.ContainsAny(command, "\n\r;|&$`<>(){}[]*?~!#\\'\"\x00") {
		return false
	}
	words := strings.Fields(command)
	if len(words) == 0 {
		return false
	}
	for i, w := range words {
		if i == 0 && (strings.Contains(w, "=") || w == ".") {
			return false // VAR=value in front of a command; the shell's own "."
		}
		flag, _, _ := strings.Cut(w, "=")
		if runs(flag) {
			return false
		}
		for part := range strings.FieldsFuncSeq(w, func(r rune) bool { return r == '=' || r == ',' || r == ':' }) {
			if isRunner(part) {
				return false
			}
		}
	}
	return true
}

// runs reports whether a word is one of runFlags, or a beginning of a long one:
// many programs take --to-com for --to-command.
func runs(flag string) bool {
	return slices.ContainsFunc(runFlags, func(f string) bool {
		return flag == f || len(flag) > 4 && strings.HasPrefix(flag, "--") && strings.HasPrefix(f, flag) ||
			f == "-I" && strings.HasPrefix(flag, f)
	})
}

// isRunner compares a word's last path element, without a version:
// /usr/bin/python3.12 is python.
func isRunner(word string) bool {
	name := path.Base(word)
	bare := strings.TrimRight(name, "0123456789.-")
	for _, r := range runners {
		if strings.EqualFold(name, r) || strings.EqualFold(bare, r) {
			return true
		}
	}
	return false
}
