package usage

// wrapper says how a program that runs its arguments finds the command in them.
type wrapper struct {
	withArg  string // options that take an argument, separated by spaces
	skip     int    // operands before the command
	assigns  bool   // NAME=VALUE operands before the command
	codeOpts string // options whose argument is shell code
	stdin    bool   // what it reads becomes arguments of the command
}

// interpreter says which of a program's arguments are code.
type interpreter struct {
	codeOpts string // options whose argument is code
	withArg  string // other options with an argument
	// fileOpts are options whose argument names a file of code.
	fileOpts string
	// operand says what the first operand is: a script's file, or code itself
	// unless a code option was given.
	operandIsCode bool
	// argsAreData says that what comes after script or code is data to it.
	argsAreData bool
}

const (
	shellWithArg = "-o +o -O +O --rcfile --init-file"
)

// tables are what is known about programs. They are immutable.
type tables struct {
	wrappers     map[string]wrapper
	interpreters map[string]interpreter
	// asks are programs for which any symbol is a question, with the reason.
	asks map[string]string
	// options are programs that act far away or on files: a symbol is data only
	// as the value of one of these options.
	options map[string]string
	// builds are programs that run what files in the directory say.
	builds map[string]string
}

func newTables() *tables {
	sh := interpreter{codeOpts: "-c", withArg: shellWithArg, argsAreData: true}
	python := interpreter{codeOpts: "-c", withArg: "-W -X -m -Q", argsAreData: true}
	node := interpreter{codeOpts: "-e --eval -p --print -pe", withArg: "--loader --import -C --conditions --input-type", fileOpts: "-r --require", argsAreData: true}
	awk := interpreter{codeOpts: "-e --source", withArg: "-F", fileOpts: "-f --file -i --include", operandIsCode: true}
	t := &tables{
		wrappers: map[string]wrapper{
			"sudo":             {withArg: "-u -g -h -p -C -r -t -U -D -R -T --user --group --host --prompt --chdir --chroot", assigns: true},
			"doas":             {withArg: "-u -C"},
			"env":              {withArg: "-u --unset -C --chdir", codeOpts: "-S --split-string", assigns: true},
			"timeout":          {withArg: "-s --signal -k --kill-after", skip: 1},
			"nice":             {withArg: "-n --adjustment"},
			"ionice":           {withArg: "-c -n -p --class --classdata"},
			"chrt":             {skip: 1},
			"taskset":          {withArg: "-c --cpu-list", skip: 1},
			"nohup":            {},
			"setsid":           {},
			"stdbuf":           {withArg: "-i -o -e"},
			"time":             {withArg: "-f -o --format --output"},
			"command":          {},
			"builtin":          {},
			"exec":             {withArg: "-a"},
			"busybox":          {},
			"toybox":           {},
			"chroot":           {withArg: "--userspec --groups", skip: 1},
			"unshare":          {},
			"nsenter":          {withArg: "-t --target"},
			"setpriv":          {},
			"strace":           {withArg: "-e -o -p -s -u -E"},
			"ltrace":           {withArg: "-e -o -p -s -u"},
			"catchsegv":        {},
			"watch":            {withArg: "-n --interval"},
			"flock":            {withArg: "-w -E", codeOpts: "-c --command", skip: 1},
			"xargs":            {withArg: "-I -i -n -P -L -s -d -a -E --max-args --max-procs --delimiter --replace", stdin: true},
			"parallel":         {withArg: "-j --jobs -a", stdin: true},
			"systemd-run":      {withArg: "-p --property --unit -E --setenv"},
			"caffeinate":       {},
			"dbus-run-session": {},
			"xvfb-run":         {withArg: "-s -n -e -f -w"},
			"fakeroot":         {},
			"proxychains":      {}, "torsocks": {}, "rlwrap": {}, "unbuffer": {}, "gdb": {}, "valgrind": {}, "entr": {stdin: true}, "ts-node-dev": {},
		},
		interpreters: map[string]interpreter{
			"sh": sh, "bash": sh, "dash": sh, "zsh": sh, "ksh": sh, "mksh": sh, "ash": sh, "fish": {codeOpts: "-c --command -C --init-command", argsAreData: true}, "rbash": sh, "csh": sh, "tcsh": sh,
			"python": python, "python2": python, "python3": python, "pypy": python, "pypy3": python, "ipython": python,
			"node": node, "nodejs": node, "deno": {codeOpts: "eval -e --eval", argsAreData: true}, "bun": {codeOpts: "-e --eval -p --print", argsAreData: true}, "tsx": node, "ts-node": node,
			"perl":   {codeOpts: "-e -E", withArg: "-I -M -m", argsAreData: true},
			"ruby":   {codeOpts: "-e", withArg: "-I", fileOpts: "-r", argsAreData: true},
			"php":    {codeOpts: "-r -B -R -E", withArg: "-d -c", fileOpts: "-f -F", argsAreData: true},
			"lua":    {codeOpts: "-e", fileOpts: "-l", argsAreData: true},
			"luajit": {codeOpts: "-e", fileOpts: "-l", argsAreData: true},
			"tclsh":  {argsAreData: true}, "wish": {argsAreData: true}, "expect": {codeOpts: "-c", fileOpts: "-f", argsAreData: true},
			"Rscript": {codeOpts: "-e", argsAreData: true}, "R": {codeOpts: "-e", fileOpts: "-f", argsAreData: true}, "julia": {codeOpts: "-e -E --eval --print", argsAreData: true},
			"osascript": {codeOpts: "-e", argsAreData: true}, "pwsh": {codeOpts: "-c -Command -EncodedCommand", fileOpts: "-f -File", argsAreData: true},
			"groovy": {codeOpts: "-e", argsAreData: true}, "scala": {codeOpts: "-e", argsAreData: true}, "elixir": {codeOpts: "-e --eval", argsAreData: true}, "erl": {codeOpts: "-eval", argsAreData: true}, "guile": {codeOpts: "-c", argsAreData: true}, "sbcl": {codeOpts: "--eval", fileOpts: "--load", argsAreData: true}, "emacs": {codeOpts: "--eval", fileOpts: "-l --load"}, "vim": {codeOpts: "-c --cmd +", fileOpts: "-S -u"}, "nvim": {codeOpts: "-c --cmd +", fileOpts: "-S -u"}, "ex": {codeOpts: "-c +"},
			"awk": awk, "gawk": awk, "mawk": awk, "nawk": awk,
			"sed": {codeOpts: "-e --expression", fileOpts: "-f --file", operandIsCode: true, argsAreData: true}, "gsed": {codeOpts: "-e --expression", fileOpts: "-f --file", operandIsCode: true, argsAreData: true},
			"jq": {withArg: "--indent", fileOpts: "-f --from-file -L", operandIsCode: true}, "yq": {operandIsCode: true}, "bc": {}, "dc": {codeOpts: "-e", fileOpts: "-f"}, "m4": {}, "gnuplot": {codeOpts: "-e"}, "psql": {codeOpts: "-c --command", fileOpts: "-f --file"},
		},
		asks:    map[string]string{},
		options: map[string]string{},
		builds: map[string]string{
			"make": "Makefile makefile GNUmakefile", "gmake": "Makefile makefile GNUmakefile", "ninja": "build.ninja", "cmake": "CMakeLists.txt", "just": "justfile Justfile .justfile", "task": "Taskfile.yml Taskfile.yaml", "rake": "Rakefile rakefile",
			"npm": "package.json .npmrc", "pnpm": "package.json .npmrc", "yarn": "package.json .yarnrc .yarnrc.yml", "npx": "package.json", "bun": "package.json",
			"pip": "setup.py setup.cfg pyproject.toml requirements.txt", "pip3": "setup.py setup.cfg pyproject.toml requirements.txt", "uv": "setup.py pyproject.toml", "poetry": "pyproject.toml", "tox": "tox.ini", "nox": "noxfile.py", "pytest": "conftest.py pytest.ini setup.cfg pyproject.toml", "pre-commit": ".pre-commit-config.yaml",
			"cargo": "Cargo.toml build.rs .cargo/config.toml", "mvn": "pom.xml", "gradle": "build.gradle build.gradle.kts settings.gradle", "ant": "build.xml", "bundle": "Gemfile", "composer": "composer.json", "mix": "mix.exs", "sbt": "build.sbt", "bazel": "BUILD BUILD.bazel WORKSPACE",
			"docker": "Dockerfile docker-compose.yml docker-compose.yaml compose.yml compose.yaml", "docker-compose": "docker-compose.yml docker-compose.yaml compose.yml compose.yaml", "podman": "Dockerfile Containerfile", "vagrant": "Vagrantfile", "direnv": ".envrc", "terraform": "main.tf", "ansible-playbook": "ansible.cfg", "act": ".github/workflows/ci.yml", "go": "go.mod", "crontab": "", "gh": "",
		},
	}
	for reason, names := range map[string]string{
		"it would be run as code":                            "eval source . trap alias bind complete coproc fc hash enable mapfile readarray read let declare typeset export local readonly set shopt exec-sh at batch crontab gdb-server",
		"it would choose what is installed and run":          "npx bunx uvx pipx apt apt-get dpkg rpm dnf yum apk brew snap flatpak gem cpan cpanm luarocks conda mamba",
		"it would say where something goes":                  "scp sftp rsync nc ncat netcat socat telnet ftp lftp mail mailx sendmail mutt swaks msmtp curlftpfs rclone s3cmd tee dd cp mv ln install rm rmdir unlink shred truncate mkdir mkfifo mknod touch chmod chown chgrp chattr setfacl tar unzip zip cpio patch split csplit mount umount useradd usermod passwd kill pkill killall systemctl service shutdown reboot iptables ip ifconfig hostname",
		"it would be run as a statement by a database":       "mysql mariadb sqlite3 redis-cli mongosh mongo cqlsh clickhouse-client influx duckdb bq",
		"it would be run by a shell on another machine":      "ssh mosh rsh pdsh ansible",
		"it would decide what is built and run":              "make gmake ninja cmake just task rake mvn gradle ant bazel cargo bundle composer mix sbt tox nox pre-commit vagrant direnv act ansible-playbook npm pnpm yarn pip pip3 uv poetry go docker-compose screen tmux script su runuser nix nix-shell nix-build guix perf",
		"it would be a pattern or program that can run code": "find fd expect-dk git-shell less more man vi",
	} {
		for _, n := range fields(names) {
			t.asks[n] = reason
		}
	}
	// The value of an option here is data that goes along, never the place.
	for names, opts := range map[string]string{
		"curl":             "--data-raw --form-string",
		"wget":             "--post-data --body-data",
		"http https xh":    "",
		"gh":               "--body -b --title -t --notes -n --message -m --comment -c --subject",
		"glab":             "--description -d --title -t --message -m",
		"git":              "-m --message --author --date --grep",
		"aws gcloud az":    "--message --description --body --subject --text",
		"kubectl oc helm":  "",
		"docker podman":    "",
		"terraform pulumi": "",
		"pytest":           "-k",
		"emacs vim nvim":   "",
	} {
		for _, n := range fields(names) {
			t.options[n] = opts
		}
	}
	return t
}
