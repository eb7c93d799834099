package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/client"
	"example.org/auditd/mcpproxy"
)

// mcpAuthorization is where the credential for a remote server comes from: an
// argument would show in the list of processes.
const mcpAuthorization = "AUDITD_MCP_AUTHORIZATION"

func (p *program) mcpCommand() *cobra.Command {
	var name, address string
	c := &cobra.Command{
		Use:   "mcp [--name NAME] (-- COMMAND ARG... | --url URL)",
		Short: "Stand between an agent and an MCP server",
		Long: `mcp starts an MCP server, or reaches one over HTTP, and speaks MCP on its own
standard input and output: put it into the agent's configuration in the server's
place. Calls, results, resources, prompts, what the server says about its tools,
and what it asks of the agent's model or of you all go through the daemon. A
tool's definition is pinned when it is first seen; one that changes later is not
offered any more until you run auditd mcp forget NAME.

Without a daemon every call is refused and every list is an error.

The Authorization header for --url is taken from ` + mcpAuthorization + `.`,
		GroupID: "run",
		RunE:    func(c *cobra.Command, args []string) error { return p.mcp(c.Context(), name, address, args) },
	}
	c.Flags().StringVar(&name, "name", "", "what the server is called (default: from the command or the URL)")
	c.Flags().StringVar(&address, "url", "", "reach the server by streamable HTTP")
	c.AddCommand(&cobra.Command{
		Use: "forget NAME", Short: "Take a server's tools as they are now", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			n, err := mcpproxy.OpenPins(pinsPath(cfg), time.Now).Forget(args[0])
			if err != nil {
				return err
			}
			p.painter(p.stdout).printf("Forgot %d tools of %s; they are looked at anew.\n", n, oneLine(args[0], 60))
			return nil
		},
	})
	return c
}

func pinsPath(cfg *Config) string { return filepath.Join(cfg.State, "mcp-pins.json") }

func (p *program) mcp(ctx context.Context, name, address string, args []string) error {
	if (address == "") == (len(args) == 0) {
		return hint(errors.New("name either a command or --url"), "auditd mcp -- COMMAND ARG..., or auditd mcp --url URL")
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	daemon, err := p.client()
	if err != nil {
		return err
	}
	logger := newLogger(p.stderr, cfg)
	proxy, err := mcpproxy.New(p.mcpConfig(cfg, daemon, serverName(name, address, args), logger))
	if err != nil {
		return err
	}
	agent := mcpproxy.Stdio(p.stdin, p.stdout)
	if address != "" {
		header := http.Header{}
		if v := p.getenv(mcpAuthorization); v != "" {
			header.Set("Authorization", v)
		}
		return proxy.Run(ctx, agent, mcpproxy.HTTP(address, header))
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = p.stderr
	return proxy.Run(ctx, agent, mcpproxy.Command(cmd))
}

func (p *program) mcpConfig(cfg *Config, daemon *client.Client, server string, logger *slog.Logger) mcpproxy.Config {
	workspace, err := os.Getwd()
	if err != nil {
		workspace = "" // then nothing counts as inside it
	}
	var b [8]byte
	rand.Read(b[:]) // never fails
	return mcpproxy.Config{
		Server: server, Session: server + "-" + hex.EncodeToString(b[:]), Report: daemon.Event, Workspace: workspace,
		Answered: func(ctx context.Context, id string) string {
			q, err := daemon.Question(ctx, id)
			if err != nil {
				return "" // nobody has said anything
			}
			return q.Answer
		},
		Pins: mcpproxy.OpenPins(pinsPath(cfg), time.Now), Logger: logger,
	}
}

// serverName is what a server is called when its owner gives it no name.
func serverName(name, address string, args []string) string {
	switch {
	case name != "":
		return name
	case address != "":
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			return u.Host
		}
		return "remote"
	default:
		// The last argument tells two servers of one runtime apart.
		return fmt.Sprintf("%s-%s", filepath.Base(args[0]), filepath.Base(args[len(args)-1]))
	}
}
