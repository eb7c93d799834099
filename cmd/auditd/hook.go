package main

import (
	"context"

	"github.com/spf13/cobra"

	"example.org/auditd/claudehook"
)

// hookCommand answers the hooks of agents that run commands. Everything that
// fails before claudehook.Command runs must end like its own failures, with
// exit code 2: that is why these commands print errors themselves.
func (p *program) hookCommand() *cobra.Command {
	c := &cobra.Command{Use: "hook", Short: "Answer an agent's hook", GroupID: "decide", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(&cobra.Command{
		Use:   "claude-code",
		Short: "Answer a command hook of Claude Code",
		Long: `claude-code reads a hook's input on standard input, asks the daemon, and prints
the answer. Whatever goes wrong stops what the hook reports: with exit code 2,
or, after a tool has run, with an answer that replaces the tool's output.

auditd install claude-code puts HTTP hooks into place, which need no process
for each call; this is for versions of Claude Code without them.`,
		DisableFlagParsing: true, // a stray argument must not end with the code for a mistake
		RunE: func(c *cobra.Command, _ []string) error {
			ask := func(ctx context.Context, body []byte) ([]byte, error) {
				daemon, err := p.client()
				if err != nil {
					return nil, err
				}
				return daemon.ClaudeHook(ctx, body)
			}
			if claudehook.Command(c.Context(), p.stdin, p.stdout, p.stderr, ask) != exitOK {
				return errStop
			}
			return nil
		},
	})
	return c
}
