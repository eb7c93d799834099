package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"example.org/auditd/client"
)

// Exit codes. 2 is what agent hosts take for "blocked"; every other failure,
// and a panic, must not be taken for "allowed", so nothing but an allowed flow
// or a command that did what it was asked exits with 0.
const (
	exitOK    = 0
	exitError = 1
	exitStop  = 2
)

// errStop ends a command whose answer is "this flow is stopped", after it has
// printed that.
var errStop = errors.New("the flow is stopped")

// hintError is an error with advice.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

func hint(err error, format string, args ...any) error {
	return &hintError{err, fmt.Sprintf(format, args...)}
}

// program is what every command needs.
type program struct {
	getenv func(string) string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	configFile string // --config
	jsonOut    bool   // --json
	noColour   bool   // --no-colour
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	p := &program{getenv: getenv, stdin: stdin, stdout: stdout, stderr: stderr}
	root := p.root()
	root.SetArgs(args)
	if err := unknownCommand(root, args); err != nil {
		fmt.Fprintln(stderr, "auditd:", err)
		fmt.Fprintln(stderr, "hint: see `auditd --help`")
		return exitError
	}
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errStop):
		return exitStop
	}
	fmt.Fprintln(stderr, "auditd:", err)
	var h *hintError
	switch {
	case errors.As(err, &h):
		fmt.Fprintln(stderr, "hint:", h.hint)
	case errors.Is(err, client.ErrNoDaemon):
		fmt.Fprintln(stderr, "hint: start the daemon with `auditd serve`, or see what is wrong with `auditd doctor`")
	}
	return exitError
}

// unknownCommand refuses a command that does not exist, also with --help:
// cobra would answer that with the help of the command above, and exit 0.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) > 0 && args[0] == "help" { // it names the command that it is about
		args = args[1:]
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "__") { // the shell's completion asks
		return nil
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	c, rest, err := root.Find(args)
	if err != nil || c == nil || !c.HasSubCommands() || c.Args != nil && c.Args(c, []string{"x"}) == nil {
		return nil // cobra says what is wrong
	}
	for i, a := range rest {
		if a == "--" {
			return nil
		}
		if strings.HasPrefix(a, "-") || i > 0 && rest[i-1] == "--config" {
			continue
		}
		name := oneLine(a, 40)
		c.SuggestionsMinimumDistance = 2
		if s := c.SuggestionsFor(a); len(s) > 0 {
			return fmt.Errorf("unknown command %q for %q; did you mean %s?", name, c.CommandPath(), strings.Join(s, " or "))
		}
		return fmt.Errorf("unknown command %q for %q", name, c.CommandPath())
	}
	return nil
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "auditd",
		Short: "The local firewall between agents and the world",
		Long: `auditd decides, on this machine, whether content may go from where it came from
to where an agent wants to put it.

Exit codes: 0 done, or the flow is allowed; 2 the flow is stopped; 1 anything else.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.configFile, "config", "", "configuration file (default: config.yaml in the configuration directory, if it exists)")
	flags.BoolVar(&p.jsonOut, "json", false, "print JSON")
	flags.BoolVar(&p.noColour, "no-colour", false, "print no colours (as NO_COLOR=1 does)")
	groups := []struct{ id, title string }{{"run", "Running:"}, {"decide", "Deciding:"}, {"look", "Looking:"}, {"setup", "Setting up:"}}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
	}
	root.SetHelpCommandGroupID("setup")
	root.SetCompletionCommandGroupID("setup")
	root.AddCommand(
		p.serveCommand(), p.doctorCommand(), p.versionCommand(),
		p.auditCommand(), p.hookCommand(), p.mcpCommand(), p.proxyCommand(), p.demoCommand(), p.pendingCommand(), p.approveCommand(), p.denyCommand(), p.suppressCommand(),
		p.feedCommand(), p.explainCommand(), p.statsCommand(), p.replayCommand(),
		p.logCommand(), p.viewCommand(), p.policyCommand(), p.schemaCommand(), p.benchCommand(),
		p.pullCommand(), p.modelsCommand(), p.useCommand(), p.passphraseCommand(), p.loginCommand(), p.tuneCommand(),
	)
	// An unknown flag is a mistake of the caller and not a blocked flow.
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return hint(err, "see `%s --help`", c.CommandPath())
	})
	root.AddCommand(p.agentCommands()...)
	return root
}

// client returns a client of the daemon that this configuration describes.
func (p *program) client() (*client.Client, error) {
	cfg, err := p.config()
	if err != nil {
		return nil, err
	}
	c := &client.Client{TokenFile: client.TokenPath(cfg.State)}
	if cfg.Socket != socketOff {
		c.Socket = cfg.Socket
	} else {
		c.URL = "http://" + cfg.Listen
	}
	return c, nil
}

// oneLine makes text of others safe to print: one line, no control characters,
// bounded.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case r < 0x20, r >= 0x7f && r < 0xa0, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r >= 0xe0000 && r <= 0xe007f, r == 0xfeff:
			return '·'
		}
		return r
	}, strings.ToValidUTF8(s, "·"))
	if runes := []rune(s); len(runes) > limit {
		s = string(runes[:limit-1]) + "…"
	}
	return s
}
