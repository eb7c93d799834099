package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/client"
	"example.org/auditd/credential"
	"example.org/auditd/httpapi"
	"example.org/auditd/install"
)

// hookMargin is how much longer a host waits than the daemon takes.
const hookMargin = 15 * time.Second

// guarded is an agent that auditd can be put into.
type guarded interface {
	PlanInstall() (*install.Change, error)
	Install() (*install.Change, error)
	PlanUninstall() (*install.Change, error)
	Uninstall() (*install.Change, error)
	Verify(ctx context.Context, program string) (*install.Verified, error)
	Status(ctx context.Context, program string, daemon func(context.Context) error) (*install.Status, error)
}

// agents are those that can be dealt with, by the names of the commands'
// argument.
var agents = map[string]struct {
	title    string
	program  string // in PATH
	settings func(getenv func(string) string) string
}{
	"claude-code": {"Claude Code", "claude", func(getenv func(string) string) string {
		dir := getenv("CLAUDE_CONFIG_DIR")
		if dir == "" {
			dir = filepath.Join(getenv("HOME"), ".claude")
		}
		return filepath.Join(dir, "settings.json")
	}},
	"openclaw": {"OpenClaw", "openclaw", func(getenv func(string) string) string {
		if path := getenv("OPENCLAW_CONFIG_PATH"); path != "" {
			return path
		}
		dir := getenv("OPENCLAW_STATE_DIR")
		if dir == "" {
			dir = filepath.Join(getenv("HOME"), ".openclaw")
		}
		return filepath.Join(dir, "openclaw.json")
	}},
}

// agentNames lists them for a person.
func agentNames() []string {
	var names []string
	for name := range agents {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// installOptions are the argument and flags of the commands that deal with an
// agent.
type installOptions struct {
	name     string
	settings string
	agent    string
	dryRun   bool
	command  bool
	noProxy  bool
	wait     time.Duration
}

func (p *program) agentCommands() []*cobra.Command {
	var o installOptions
	names := strings.Join(agentNames(), ", ")
	one := func(use, short, long string, run func(context.Context, *installOptions) error) *cobra.Command {
		c := &cobra.Command{Use: use + " AGENT", Short: short, Long: long, GroupID: "setup", Args: cobra.ExactArgs(1), ValidArgs: agentNames(),
			RunE: func(c *cobra.Command, args []string) error {
				if _, ok := agents[args[0]]; !ok {
					return hint(fmt.Errorf("there is no agent %q to deal with", oneLine(args[0], 40)), "the agents are: %s", names)
				}
				o.name = args[0]
				return run(c.Context(), &o)
			}}
		c.Flags().StringVar(&o.settings, "settings", "", "the agent's settings file (default: where the agent has it)")
		return c
	}
	in := one("install", "Put auditd into an agent's configuration", `install edits the agent's own settings, keeps a backup, and can be undone with
auditd uninstall, which gives back exactly the bytes that were there.

The agents are: `+names+`.`, func(ctx context.Context, o *installOptions) error { return p.edit(ctx, o, true) })
	in.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would change")
	in.Flags().BoolVar(&o.command, "command", false, "Claude Code: command hooks in place of HTTP hooks: no token in the settings, a process for each call")
	in.Flags().BoolVar(&o.noProxy, "no-model-proxy", false, "leave the agent's base URLs alone; auditd status then never says protected")
	in.Flags().DurationVar(&o.wait, "wait", 0, "how long a call that needs your approval waits for it before it is denied")
	out := one("uninstall", "Take auditd out of an agent's configuration", `uninstall gives back the settings that were there before, byte for byte. Where you
have edited them since, it takes out what is auditd's and leaves the rest.`, func(ctx context.Context, o *installOptions) error { return p.edit(ctx, o, false) })
	out.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would change")
	check := one("verify", "Try the protection of an agent with harmless attacks", `verify runs the real agent with your settings and a scripted model on this machine
that tries to do harm: it reads a poisoned page, runs a forbidden command, sends
a made-up secret away. None of it does anything where nothing stops it. What was
seen is kept; auditd status says "protected" only after this passed.`, p.verify)
	check.Flags().StringVar(&o.agent, "agent", "", "the agent's program (default: the one in PATH)")
	status := one("status", "Say whether an agent is protected, and what is open", "status exits with 0 when the agent is protected, and with 2 when it is not.", p.status)
	status.Flags().StringVar(&o.agent, "agent", "", "the agent's program (default: the one in PATH)")
	return []*cobra.Command{in, out, check, status}
}

// installState is where backups and records of installations lie.
func installState(cfg *Config) string { return filepath.Join(cfg.State, "install") }

// protection says for the page which agents are installed in, and what the last
// canary saw.
func protection(state string) []httpapi.Protected {
	var out []httpapi.Protected
	for _, r := range install.Records(state) {
		p := httpapi.Protected{Agent: r.Agent, Title: r.Title, Installed: r.Installed, Changed: r.Changed, Open: r.Open, Paths: []httpapi.Path{}}
		if r.Verified != nil {
			p.Tried, p.Version = &r.Verified.Time, r.Verified.Version
			for _, c := range r.Verified.Checks {
				p.Paths = append(p.Paths, httpapi.Path{Name: c.Name, Passed: c.Passed})
			}
		}
		out = append(out, p)
	}
	return out
}

// guarded returns what installing works on.
func (p *program) guarded(o *installOptions) (guarded, *client.Client, string, error) {
	cfg, err := p.config()
	if err != nil {
		return nil, nil, "", err
	}
	daemon, err := p.client()
	if err != nil {
		return nil, nil, "", err
	}
	settings := o.settings
	if settings == "" {
		settings = agents[o.name].settings(p.getenv)
	}
	if settings, err = filepath.Abs(settings); err != nil {
		return nil, nil, "", fmt.Errorf("find the settings: %w", err)
	}
	token, err := credential.HookToken(client.TokenPath(cfg.State))
	if err != nil {
		return nil, nil, "", err
	}
	most := 10 * time.Minute
	if o.name == "openclaw" { // which waits for a plugin ten minutes in all
		most = 8 * time.Minute
	}
	if o.wait < 0 || o.wait > most {
		return nil, nil, "", fmt.Errorf("--wait must be 0 to %s", most)
	}
	timeout := time.Duration(cfg.Deadline) + hookMargin
	base := ""
	if cfg.Proxy.Listen != off && !o.noProxy {
		secret, err := credential.HookToken(proxyTokenPath(cfg))
		if err != nil {
			return nil, nil, "", err
		}
		base = "http://" + cfg.Proxy.Listen + "/" + secret
	}
	if o.name == "openclaw" {
		c := &install.OpenClaw{Settings: settings, State: installState(cfg), URL: "http://" + cfg.Listen, TokenFile: client.TokenPath(cfg.State),
			Timeout: timeout, Wait: o.wait, Proxy: base, Beats: daemon.Heartbeats, Now: time.Now}
		if cfg.Socket != socketOff {
			c.Socket = cfg.Socket
		}
		return c, daemon, token, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, "", fmt.Errorf("find this program: %w", err)
	}
	return &install.ClaudeCode{
		Settings: settings, State: installState(cfg), URL: "http://" + cfg.Listen, Token: token, Binary: self,
		Timeout: timeout, Wait: o.wait, Command: o.command, Proxy: base, Upstream: p.getenv("ANTHROPIC_BASE_URL"), Now: time.Now,
	}, daemon, token, nil
}

// edit installs or uninstalls, or shows what that would do.
func (p *program) edit(ctx context.Context, o *installOptions, in bool) error {
	g, daemon, token, err := p.guarded(o)
	if err != nil {
		return err
	}
	do := map[bool]map[bool]func() (*install.Change, error){
		true:  {true: g.PlanInstall, false: g.Install},
		false: {true: g.PlanUninstall, false: g.Uninstall},
	}[in][o.dryRun]
	change, err := do()
	if err != nil {
		return err
	}
	w := p.painter(p.stdout)
	switch {
	case o.dryRun:
		w.printf("%s", hideTokens(change.Diff(), token))
	case in && !change.Changes():
		w.printf("Already installed in %s; nothing was changed.\n", change.Path)
	case in:
		w.printf("Installed in %s; `auditd uninstall %s` gives back what was there.\n", change.Path, o.name)
	case !change.Changes():
		w.printf("There was nothing of auditd in %s.\n", change.Path)
	case change.Exact:
		w.printf("%s is byte for byte what it was before.\n", change.Path)
	default:
		w.printf("Took what is auditd's out of %s. You have edited it since, so the rest is as you left it.\n", change.Path)
	}
	if !in {
		return nil
	}
	if _, err := daemon.Health(ctx); err != nil {
		w.printf("%s\n", w.paint(yellow, "No daemon answers: until `auditd serve` runs, every call of the agent is denied."))
	} else if !o.dryRun {
		w.printf("Restart the daemon, so that agents cannot edit these settings either, and a running %s.\nNext: `auditd verify %s` tries it.\n", agents[o.name].title, o.name)
	}
	return nil
}

// proxyTokens are what base URLs of the model proxy hold.
var proxyTokens = regexp.MustCompile(`(http://[^/"\s]+/)[^/"\s]+(/agent-)`)

// hideTokens takes the credentials out of a diff that is shown.
func hideTokens(diff, token string) string {
	return proxyTokens.ReplaceAllString(strings.ReplaceAll(diff, token, "ah_…"), "${1}…$2")
}

// agentProgram finds the agent's program; empty when there is none.
func agentProgram(o *installOptions) (string, error) {
	if o.agent != "" {
		return o.agent, nil
	}
	name := agents[o.name].program
	path, err := exec.LookPath(name)
	if err != nil {
		return "", hint(fmt.Errorf("the %s program is not in PATH", name), "give it with --agent")
	}
	return path, nil
}

func (p *program) verify(ctx context.Context, o *installOptions) error {
	g, daemon, _, err := p.guarded(o)
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
	v, err := g.Verify(ctx, agent)
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
	w.printf("%s %s passed at %s.\n", agents[o.name].title, v.Version, v.Time.Local().Format(time.DateTime))
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
	g, daemon, _, err := p.guarded(o)
	if err != nil {
		return err
	}
	agent, _ := agentProgram(o) // without it the status says so
	s, err := g.Status(ctx, agent, ready(daemon))
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
			w.printf("%s by hooks: the canary passed at %s with %s %s.\n", w.paint(green, "Protected"), s.Verified.Time.Local().Format(time.DateTime), agents[o.name].title, s.Verified.Version)
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
