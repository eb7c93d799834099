package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/client"
	"example.org/auditd/dualview/mediate"
	"example.org/auditd/httpapi"
	"example.org/auditd/schema"
)

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "serve",
		Short:   "Run the daemon",
		GroupID: "run",
		Long: `serve runs the daemon until it is told to stop. It needs no configuration file.

It answers on 127.0.0.1:7841 and on a Unix socket in the state directory. What
it says about itself goes to standard error; decisions go to the decision log.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.serve(c.Context()) },
	}
}

func (p *program) serve(ctx context.Context) error {
	start := time.Now()
	cfg, err := p.config()
	if err != nil {
		return err
	}
	if err := protectProcess(); err != nil {
		return err
	}
	logger := newLogger(p.stderr, cfg)
	d, err := newDaemon(ctx, cfg, p.getenv, logger)
	if err != nil {
		return err
	}
	defer d.Close()
	socket := cfg.Socket
	if socket == socketOff {
		socket = ""
	}
	listeners, err := httpapi.Listen(cfg.Listen, socket)
	if err != nil {
		return err
	}
	proxy, err := d.openProxy(ctx)
	if err != nil {
		return err
	}
	defer proxy.Close()
	o := p.painter(p.stdout)
	o.printf("auditd %s\n", version())
	for _, l := range listeners {
		where := l.Addr().String()
		if l.Addr().Network() == "tcp" {
			where = "http://" + where
		}
		o.field("listens on", where)
	}
	if proxy.listener != nil {
		o.field("model proxy", "http://"+proxy.listener.Addr().String()+" (`auditd proxy` gives the base URLs)")
	}
	o.field("hook token", client.TokenPath(cfg.State))
	o.field("policy", d.policyInfo().Source)
	o.field("auditor", d.judges.String())
	if !d.keeper.HasOwner() {
		o.field("owner", o.paint(yellow, "no passphrase yet: nothing can be approved until you run `auditd passphrase set`"))
	}
	for _, m := range d.missing() {
		o.field("missing", o.paint(yellow, m))
	}
	if r := d.log.Repaired(); r.CutBytes > 0 || r.Kept > 0 {
		logger.WarnContext(ctx, "the decision log was repaired after a crash; no answered decision was touched", "cut_bytes", r.CutBytes, "kept_records", r.Kept)
	}
	logger.InfoContext(ctx, "serving", "version", version(), "address", listeners[0].Addr().String(), "policy", d.policies.Policy().Digest(), "records", d.log.Size(), "took", time.Since(start).Round(time.Millisecond))
	proxy.Serve(logger)
	err = d.Serve(ctx, listeners)
	logger.InfoContext(context.WithoutCancel(ctx), "stopped", "records", d.log.Size())
	return err
}

// event answers what hooks, plugins and proxies report, and remembers it for
// the model proxy.
func (d *daemon) event(ctx context.Context, e *schema.Event, cred schema.Credential) schema.Outcome {
	o := d.decide(ctx, e, cred)
	d.memory.Heard(e, o)
	if e.Phase == schema.PhaseBootstrap && e.Origin == mediate.OriginPrompt && e.Text == "" && !o.Action.Stops() && d.proxied(e.Host) {
		// Its requests then say whose they are, and that its plugin was at work.
		text := d.memory.Marker(e.Host, e.Session)
		if o.Text != nil && *o.Text != "" {
			text = *o.Text + "\n\n" + text
		}
		o.Action, o.Text = schema.RewriteAndContinue, &text
	}
	return o
}

// proxied reports whether a host's requests to its model are expected at the
// model proxy.
func (d *daemon) proxied(host string) bool {
	return slices.ContainsFunc(d.cfg.providers(), func(x ProviderConfig) bool { return x.Host == host && x.Hooks })
}

// decide answers an event by the mode that the policy gives its agent.
func (d *daemon) decide(ctx context.Context, e *schema.Event, cred schema.Credential) schema.Outcome {
	switch mode := d.policies.Policy().Mode(e.Host + ":" + e.Agent); mode {
	case schema.ModeIsolate, schema.ModeBoth:
		return d.isolated.Event(ctx, e, cred, mode)
	default:
		return d.firewall.Event(ctx, e, cred)
	}
}

func newLogger(w io.Writer, cfg *Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.LogLevel)) // checked with the configuration
	opts := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", GroupID: "look", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info := map[string]string{"version": version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "revision": revision()}
			if p.jsonOut {
				return p.printJSON(info)
			}
			_, err := fmt.Fprintf(p.stdout, "auditd %s (%s, %s/%s)\n", info["version"], info["go"], info["os"], info["arch"])
			return err
		},
	}
}

// release is the version of this source tree.
const release = "0.1.0"

// version adds to the release what tells one build from another.
func version() string {
	if r := revision(); r != "" {
		return release + "+" + r
	}
	return release
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	return strings.TrimPrefix(rev+dirty, ".dirty")
}

func (p *program) printJSON(v any) error {
	data, err := schema.Encode(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s\n", data)
	return err
}

// protectProcess keeps other processes of the owner's user from reading the
// daemon's memory, where owner sessions are, and from leaving it in a core dump.
func protectProcess() error {
	if err := undumpable(); err != nil {
		return fmt.Errorf("protect the process: %w", err)
	}
	return nil
}
