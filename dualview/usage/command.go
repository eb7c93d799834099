package usage

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const maxWrappers = 16

// argv looks at the words of one command: which of their symbols are data, and
// which files would be run. It reports whether the command reads code from its
// standard input.
func (a *analysis) argv(args []argument, depth int) (readsCode bool) {
	if len(args) == 0 {
		return false
	}
	first := args[0]
	if len(first.places) > 0 {
		a.mark(first.places, Command, "it would be run as a command")
		a.markArgs(args[1:], Command, "it would be an argument of a command that it names itself")
		return true
	}
	if !first.known {
		a.codeSource(first)
		a.markArgs(args[1:], Unclear, "what command it goes to is known only when it runs")
		for _, r := range args[1:] { // it may be an interpreter
			a.maybeRuns(r)
		}
		return true
	}
	if first.glob {
		a.unseen = "what would be run is named by a pattern"
	}
	if depth > maxWrappers {
		a.markArgs(args[1:], Unclear, "too many commands run each other")
		return true
	}
	name := baseName(first.text)
	if strings.Contains(first.text, "/") || a.unknown(name) {
		a.run = append(a.run, runFile{first.text, strings.Contains(first.text, "/")})
	}
	rest := args[1:]
	if a.functions[first.text] {
		a.markArgs(rest, Code, "it would go to a function that the command defines itself")
		return true
	}
	if files, ok := a.builds[name]; ok {
		for _, f := range fields(files) {
			a.run = append(a.run, runFile{f, false})
		}
	}
	if name == "eval" || name == "source" || name == "." {
		for _, r := range rest {
			a.codeSource(r)
		}
	}
	if name == "git" {
		a.gitHooks(rest)
	}
	a.directories(name, rest)
	if name == "find" || name == "fd" {
		return a.find(rest, depth)
	}
	if w, ok := a.wrappers[name]; ok {
		return a.wrapped(w, rest, depth)
	}
	if in, ok := a.interpreters[name]; ok {
		return a.interpreted(name, in, rest)
	}
	if reason, ok := a.asks[name]; ok {
		a.markArgs(rest, a.kindOf(name), reason)
		if a.kindOf(name) == Code {
			for _, r := range rest {
				a.maybeRuns(r)
			}
		}
		return name != "tee"
	}
	if opts, ok := a.options[name]; ok {
		a.optionValues(opts, rest)
		return has("kubectl oc helm docker podman terraform pulumi pytest", name)
	}
	a.data(rest)
	return false
}

func (a *analysis) unknown(name string) bool {
	_, w := a.wrappers[name]
	_, i := a.interpreters[name]
	_, k := a.asks[name]
	return !w && !i && !k
}

func (a *analysis) kindOf(name string) Kind {
	if strings.HasPrefix(a.asks[name], "it would say where") {
		return Destination
	}
	return Code
}

func (a *analysis) markArgs(args []argument, kind Kind, reason string) {
	for _, r := range args {
		a.mark(r.places, kind, reason)
	}
}

// data allows the symbols of arguments that a program takes as data, as far as
// they cannot become options: behind "--" they cannot, and where they do not
// begin their word neither.
func (a *analysis) data(args []argument) {
	ended := false
	for _, r := range args {
		if ended {
			for _, p := range r.places {
				p.leads = false
			}
		}
		a.allow(r.places)
		ended = ended || r.known && r.text == "--"
	}
}

// optionValues allows symbols as the value of the options in opts only.
func (a *analysis) optionValues(opts string, args []argument) {
	for i, r := range args {
		if len(r.places) == 0 {
			continue
		}
		option, _, joined := strings.Cut(r.text, "=")
		switch {
		case joined && has(opts, option) && strings.HasPrefix(option, "--"):
			a.allow(r.places)
		case i > 0 && args[i-1].known && len(args[i-1].places) == 0 && has(opts, args[i-1].text):
			for _, p := range r.places {
				p.leads = false // an option's value cannot be an option
			}
			a.allow(r.places)
		default:
			a.mark(r.places, Destination, "it would say where something goes or what is done there")
		}
	}
}

// wrapped finds the command that a wrapper runs.
func (a *analysis) wrapped(w wrapper, args []argument, depth int) bool {
	i := 0
	for ; i < len(args); i++ {
		r := args[i]
		if !r.known || len(r.places) > 0 {
			if w.assigns && strings.Contains(r.text, "=") && !strings.HasPrefix(r.text, "-") {
				a.mark(r.places, Variable, "it would be put into a variable")
				continue
			}
			break
		}
		if r.text == "--" {
			i++
			break
		}
		if strings.HasPrefix(r.text, "-") && r.text != "-" {
			option, _, joined := strings.Cut(r.text, "=")
			switch {
			case has(w.codeOpts, option):
				if i+1 < len(args) {
					a.mark(args[i+1].places, Code, "it would be run as code")
					a.codeSource(args[i+1])
				}
				i++
			case has(w.withArg, r.text) && !joined:
				if i+1 < len(args) {
					a.mark(args[i+1].places, Unclear, "it would be an option of the command that runs another")
					if w.stdin && args[i+1].known {
						a.run = append(a.run, runFile{args[i+1].text, false}) // xargs -a FILE
					}
				}
				i++
			}
			continue
		}
		if w.assigns && strings.Contains(r.text, "=") {
			continue
		}
		break
	}
	for skip := w.skip; skip > 0 && i < len(args); skip, i = skip-1, i+1 {
		a.mark(args[i].places, Unclear, "it would be an option of the command that runs another")
	}
	if i+1 < len(args) && args[i].known && has(w.codeOpts, args[i].text) {
		i++
		a.mark(args[i].places, Code, "it would be run as code")
		a.codeSource(args[i])
		i++
	}
	if i >= len(args) {
		return w.stdin
	}
	if a.joined(args[i:]) {
		_ = a.codeText(args[i].text) // it has no arguments
	}
	return a.argv(args[i:], depth+1) || w.stdin
}

// joined reports whether what a wrapper runs is one word that a shell takes
// apart, as watch does.
func (a *analysis) joined(args []argument) bool {
	return len(args) == 1 && args[0].known && strings.ContainsAny(args[0].text, " ;|&$`")
}

// interpreted looks at the arguments of an interpreter.
func (a *analysis) interpreted(name string, in interpreter, args []argument) (readsCode bool) {
	given := false // code or a script has been given
	runsArguments := false
	for i := 0; i < len(args); i++ {
		r := args[i]
		option, _, joined := strings.Cut(r.text, "=")
		isOption := (strings.HasPrefix(r.text, "-") || strings.HasPrefix(r.text, "+")) && len(r.text) > 1 && r.known
		switch {
		case given && in.argsAreData && runsArguments:
			a.markArgs(args[i:], Code, "the code that is given would run it")
			return false
		case given && in.argsAreData:
			a.data(args[i:])
			return false
		case !isOption && has(in.codeOpts, r.text), isOption && has(in.codeOpts, option), isOption && a.clustered(in, r.text):
			given = true
			if joined {
				a.mark(r.places, Code, "it would be run as code")
				break
			}
			if i++; i < len(args) {
				a.mark(args[i].places, Code, "it would be run as code")
				a.codeSource(args[i])
				runsArguments = runsArguments || !args[i].known
				if shells(name) {
					runsArguments = a.codeText(args[i].text) || runsArguments
				} else {
					runsArguments = evaluates.MatchString(args[i].text) || runsArguments
				}
			}
		case isOption && has(in.fileOpts, option):
			given = true
			if i++; i < len(args) {
				a.mark(args[i].places, Code, "it would say which file is run")
				a.runs(args[i])
			}
		case isOption && has(in.withArg, r.text):
			if i++; i < len(args) {
				a.mark(args[i].places, Code, "it would be an option of an interpreter")
				if r.text == "-m" && args[i].known {
					a.run = append(a.run, runFile{strings.ReplaceAll(args[i].text, ".", "/") + ".py", false}, runFile{strings.ReplaceAll(args[i].text, ".", "/") + "/__main__.py", false})
					given = true
				}
			}
		case isOption:
			// An option that carries its code with it (perl -ne'…', php -r'…').
			a.mark(r.places, Code, "it would be an option of an interpreter")
		case !given && r.text == "-" && r.known:
			return true
		case !given:
			given = true
			a.mark(r.places, Code, "it would be run as code")
			a.codeSource(r)
			if !in.operandIsCode {
				a.runs(r)
			}
		default:
			a.mark(r.places, Code, "it would be read by a program that was given as code")
		}
	}
	return !given
}

// clustered reports whether a cluster of short options such as -lc or -ne ends
// in one that takes code.
func (a *analysis) clustered(in interpreter, text string) bool {
	return len(text) > 2 && text[0] == '-' && text[1] != '-' && has(in.codeOpts, "-"+text[len(text)-1:])
}

func shells(name string) bool {
	return has("sh bash dash zsh ksh mksh ash rbash", name)
}

// runs adds a file that is run for certain.
func (a *analysis) runs(r argument) {
	switch {
	case r.glob:
		a.unseen = "the file that would be run is named by a pattern"
	case r.known:
		a.run = append(a.run, runFile{r.text, true}, runFile{r.text + "/__main__.py", false}, runFile{r.text + "/index.js", false}, runFile{r.text + "/package.json", false})
	default:
		a.codeSource(r)
	}
}

// maybeRuns adds what may be a file that is run.
func (a *analysis) maybeRuns(r argument) {
	switch {
	case r.glob:
		a.unseen = "what would be run is named by a pattern"
	case r.known && !strings.HasPrefix(r.text, "-"):
		a.run = append(a.run, runFile{r.text, false})
	}
}

// directories follows the text to other directories, where its relative names
// mean other files.
func (a *analysis) directories(name string, args []argument) {
	to := func(r argument) {
		if r.known && !r.glob && r.text != "-" {
			a.dirs = append(a.dirs, r.text)
		} else {
			a.dirUnseen = true
		}
	}
	switch name {
	case "cd", "pushd":
		for _, r := range args {
			if !r.known || !strings.HasPrefix(r.text, "-") || r.text == "-" {
				to(r)
			}
		}
	case "popd":
		a.dirUnseen = true
	default:
		for i, r := range args {
			if r.known && has("-C --directory --prefix --cwd --chdir --manifest-path -D --project-directory --workdir", r.text) && i+1 < len(args) && (name == "git" || name == "env" || a.builds[name] != "") {
				to(args[i+1])
			}
			if v, ok := strings.CutPrefix(r.text, "--directory="); ok && r.known {
				a.dirs = append(a.dirs, v)
			}
			if v, ok := strings.CutPrefix(r.text, "--prefix="); ok && r.known {
				a.dirs = append(a.dirs, v)
			}
		}
	}
}

// codeSource notes the files that a word in executable position takes its text
// from, such as those of $(cat notes.txt).
func (a *analysis) codeSource(r argument) {
	if r.word == nil {
		return
	}
	a.mark(a.within(r.word), Code, "it would be run as code")
	syntax.Walk(r.word, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.CmdSubst:
			for _, s := range x.Stmts {
				a.filesIn(s)
			}
			return false
		case *syntax.ProcSubst:
			for _, s := range x.Stmts {
				a.filesIn(s)
			}
			return false
		case *syntax.ParamExp:
			a.dynamic = true
			if x.Param == nil || !a.assigned[x.Param.Value] {
				a.unseen = "what would be run is known only when it runs"
			}
		}
		return true
	})
	if r.known {
		a.run = append(a.run, runFile{r.text, false})
	}
}

// evaluates finds code that may run its own arguments.
var evaluates = regexp.MustCompile(`(?i)exec|eval|system|popen|subprocess|spawn|child_process|import|function\(|compile|load|require|\bqx\b|pty`)

// codeText looks at shell code that is given as a text: it runs files too. Its
// symbols have been marked already. It reports whether the code may run its
// arguments.
func (a *analysis) codeText(code string) (runsArguments bool) {
	f, err := syntax.NewParser().Parse(strings.NewReader(code), "")
	if err != nil {
		return true // another shell may understand it
	}
	b := &analysis{tables: a.tables}
	b.file(f)
	a.run, a.dirs, a.dirUnseen = append(a.run, b.run...), append(a.dirs, b.dirs...), a.dirUnseen || b.dirUnseen
	if a.unseen == "" {
		a.unseen = b.unseen
	}
	return b.dynamic
}

// find looks at the expressions of find: -exec and its like run a command.
func (a *analysis) find(args []argument, depth int) bool {
	for i := 0; i < len(args); i++ {
		r := args[i]
		switch {
		case r.known && has("-exec -execdir -ok -okdir -x --exec -X --exec-batch", r.text):
			end := i + 1
			for end < len(args) && args[end].text != ";" && args[end].text != "+" {
				end++
			}
			a.argv(args[i+1:end], depth+1)
			i = end
		case r.known && has("-name -iname -path -ipath", r.text) && i+1 < len(args):
			i++
			for _, p := range args[i].places {
				p.leads = false
			}
			a.allow(args[i].places)
		default:
			a.mark(r.places, Destination, "it would decide what find looks at or does")
		}
	}
	return false
}

// gitHooks adds the files that git runs by itself: hooks, and what its
// configuration names.
func (a *analysis) gitHooks(args []argument) {
	hooks := map[string]string{
		"commit": "pre-commit prepare-commit-msg commit-msg post-commit", "merge": "pre-merge-commit prepare-commit-msg commit-msg post-merge",
		"pull": "pre-merge-commit post-merge post-checkout pre-rebase", "push": "pre-push", "checkout": "post-checkout", "switch": "post-checkout",
		"rebase": "pre-rebase post-rewrite post-checkout", "am": "applypatch-msg pre-applypatch post-applypatch", "cherry-pick": "prepare-commit-msg commit-msg post-commit",
		"revert": "prepare-commit-msg commit-msg post-commit", "worktree": "post-checkout", "gc": "pre-auto-gc", "status": "fsmonitor-watchman", "add": "fsmonitor-watchman",
	}
	a.run = append(a.run, runFile{".git/config", false})
	for _, r := range args {
		for _, h := range fields(hooks[r.text]) {
			a.run = append(a.run, runFile{".git/hooks/" + h, false}, runFile{".husky/" + h, false}, runFile{".githooks/" + h, false})
		}
	}
}
