package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/client"
	"example.org/auditd/credential"
	"example.org/auditd/install"
)

// hookMargin is how much longer a host waits than the daemon takes.
const hookMargin = 15 * time.Second

// installOptions are the flags of the commands that deal with an agent.
type installOptions struct {
	settings string
	agent    string
	dryRun   bool
	command  bool
	wait     time.Duration
}

func (p *program) agentCommands() []*cobra.Command {
	var o installOptions
	one := func(use, short, long string, run func(context.Context, *installOptions) error) *cobra.Command {
		c := &cobra.Command{Use: use + " AGENT", Short: short, Long: long, GroupID: "setup", Args: cobra.ExactArgs(1), ValidArgs: []string{"claude-code"},
			RunE: func(c *cobra.Command, args []string) error {
				if args[0] != "claude-code" {
					return hint(fmt.Errorf("there is no agent %q to deal with", oneLine(args[0], 40)), "the agents are: claude-code")
				}
				return run(c.Context(), &o)
			}}
		c.Flags().StringVar(&o.settings, "settings", "", "settings.json of the agent (default: in $CLAUDE_CONFIG_DIR, or ~/.claude)")
		return c
	}
	in := one("install", "Put auditd into an agent's configuration", `install edits the agent's own settings, keeps a backup, and can be undone with
auditd uninstall, which gives back exactly the bytes that were there.

The agents are: claude-code.`, p.install)
	in.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would change")
	in.Flags().BoolVar(&o.command, "command", false, "command hooks in place of HTTP hooks: no token in the settings, a process for each call")
	in.Flags().DurationVar(&o.wait, "wait", 0, "how long a call that needs your approval waits for it before it is denied")
	out := one("uninstall", "Take auditd out of an agent's configuration", `uninstall gives back the settings that were there before, byte for byte. Where you
have edited them since, it takes out auditd's hooks and leaves the rest.`, p.uninstall)
	out.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would change")
	check := one("verify", "Try the protection of an agent with harmless attacks", `verify runs the real agent with your settings and a scripted model on this machine
that tries to do harm: it reads a poisoned page, runs a forbidden command, sends
a made-up secret away. None of it does anything where nothing stops it. What was
seen is kept; auditd status says "protected" only after this passed.`, p.verify)
	check.Flags().StringVar(&o.agent, "agent", "", "the agent's program (default: claude in PATH)")
	status := one("status", "Say whether an agent is protected, and what is open", "status exits with 0 when the agent is protected, and with 2 when it is not.", p.status)
	status.Flags().StringVar(&o.agent, "agent", "", "the agent's program (default: claude in PATH)")
	return []*cobra.Command{in, out, check, status}
}

// installState is where backups and records of installations lie.
func installState(cfg *Config) string { return filepath.Join(cfg.State, "install") }

// claudeCode returns what installing works on.
func (p *program) claudeCode(o *installOptions) (*install.ClaudeCode, *client.Client, error) {
	cfg, err := p.config()
	if err != nil {
		return nil, nil, err
	}
	daemon, err := p.client()
	if err != nil {
		return nil, nil, err
	}
	settings := o.settings
	if settings == "" {
		dir := p.getenv("CLAUDE_CONFIG_DIR")
		if dir == "" {
			dir = filepath.Join(p.getenv("HOME"), ".claude")
		}
		settings = filepath.Join(dir, "settings.json")
	}
	if settings, err = filepath.Abs(settings); err != nil {
		return nil, nil, fmt.Errorf("find the settings: %w", err)
	}
	token, err := credential.HookToken(client.TokenPath(cfg.State))
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	if o.wait < 0 || o.wait > 10*time.Minute {
		return nil, nil, errors.New("--wait must be 0 to 10m")
	}
	return &install.ClaudeCode{
		Settings: settings, State: installState(cfg), URL: "http://" + cfg.Listen, Token: token, Binary: self,
		Timeout: time.Duration(cfg.Deadline) + hookMargin, Wait: o.wait, Command: o.command, Now: time.Now,
	}, daemon, nil
}

func (p *program) install(ctx context.Context, o *installOptions) error {
	c, daemon, err := p.claudeCode(o)
	if err != nil {
		return err
	}
	do := c.Install
	if o.dryRun {
		do = c.PlanInstall
	}
	change, err := do()
	if err != nil {
		return err
	}
	w := p.painter(p.stdout)
	switch {
	case o.dryRun:
		w.printf("%s", strings.ReplaceAll(change.Diff(), c.Token, "ah_…"))
	case !change.Changes():
		w.printf("Already installed in %s; nothing was changed.\n", change.Path)
	default:
		w.printf("Installed in %s; `auditd uninstall claude-code` gives back what was there.\n", change.Path)
	}
	if _, err := daemon.Health(ctx); err != nil {
		w.printf("%s\n", w.paint(yellow, "No daemon answers: until `auditd serve` runs, every call of the agent is denied."))
	} else if !o.dryRun {
		w.printf("Restart the daemon, so that agents cannot edit these settings either.\nNext: `auditd verify claude-code` tries it.\n")
	}
	return nil
}

func (p *program) uninstall(_ context.Context, o *installOptions) error {
	c, _, err := p.claudeCode(o)
	if err != nil {
		return err
	}
	do := c.Uninstall
	if o.dryRun {
		do = c.PlanUninstall
	}
	change, err := do()
	if err != nil {
		return err
	}
	w := p.painter(p.stdout)
	switch {
	case o.dryRun:
		w.printf("%s", strings.ReplaceAll(change.Diff(), c.Token, "ah_…"))
	case !change.Changes():
		w.printf("There was nothing of auditd in %s.\n", change.Path)
	case change.Exact:
		w.printf("%s is byte for byte what it was before.\n", change.Path)
	default:
		w.printf("Took auditd's hooks out of %s. You have edited it since, so the rest is as you left it.\n", change.Path)
	}
	return nil
}

// agentProgram finds the agent's program; empty when there is none.
func agentProgram(o *installOptions) (string, error) {
	if o.agent != "" {
		return o.agent, nil
	}
	path, err := exec.LookPath("claude")
	if err != nil {
		return "", hint(errors.New("the claude program is not in PATH"), "give it with --agent")
	}
	return path, nil
}

func (p *program) verify(ctx context.Context, o *installOptions) error {
	c, daemon, err := p.claudeCode(o)
	if err != nil {
		return err
	}
	agent, err := agentProgram(o)
	if err != nil {
		return err
	}
	if err := ready(daemon)(ctx); err != nil {
		return err
	}
	v, err := c.Verify(ctx, agent)
	if err != nil {
		return err
	}
	w := p.painter(p.stdout)
	for _, check := range v.Checks {
		mark := w.paint(green, "passed")
		if !check.Passed {
			mark = w.paint(red, "FAILED")
		}
		w.printf("%s  %s\n        the model read: %s\n", mark, check.Name, oneLine(check.Seen, 160))
	}
	if !v.Passed() {
		return errStop
	}
	w.printf("Claude Code %s passed at %s.\n", v.Version, v.Time.Local().Format(time.DateTime))
	return nil
}

// ready returns a function that says what keeps the daemon from deciding.
func ready(daemon *client.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := daemon.Ready(ctx)
		if err == nil && !r.Ready {
			err = fmt.Errorf("the daemon is not ready: %s", strings.Join(r.Missing, "; "))
		}
		return err
	}
}

func (p *program) status(ctx context.Context, o *installOptions) error {
	c, daemon, err := p.claudeCode(o)
	if err != nil {
		return err
	}
	agent, _ := agentProgram(o) // without it the status says so
	s, err := c.Status(ctx, agent, ready(daemon))
	if err != nil {
		return err
	}
	if p.jsonOut {
		if err := p.printJSON(s); err != nil {
			return err
		}
	} else {
		w := p.painter(p.stdout)
		if s.Protected {
			w.printf("%s by hooks: the canary passed at %s with Claude Code %s.\n", w.paint(green, "Protected"), s.Verified.Time.Local().Format(time.DateTime), s.Verified.Version)
		} else {
			w.printf("%s:\n", w.paint(red, "Not protected"))
			for _, problem := range s.Problems {
				w.printf("  - %s\n", oneLine(problem, 300))
			}
		}
		w.printf("Open whatever is installed (docs/agents.md):\n")
		for _, path := range s.Open {
			w.printf("  - %s\n", path)
		}
	}
	if !s.Protected {
		return errStop
	}
	return nil
}
