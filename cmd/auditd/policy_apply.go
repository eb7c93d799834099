package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/client"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
)

func (p *program) policyApplyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "apply FILE", Short: "Put a policy into force without a restart; asks for the passphrase", Args: cobra.ExactArgs(1),
		Long: `apply checks a policy, writes it to the place of the policy file, whole or not at
all, and lets the running daemon follow it from the next decision on. What it
replaces is kept: auditd policy undo goes back.`,
		RunE: func(c *cobra.Command, args []string) error {
			problems, err := policy.Check(args[0])
			if err != nil {
				return err
			}
			for _, x := range problems {
				fmt.Fprintf(p.stderr, "%s: %s\n", args[0], x)
			}
			if len(problems) > 0 {
				return fmt.Errorf("%d problems in %s; nothing was changed", len(problems), args[0])
			}
			text, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read the policy: %w", err)
			}
			owner, err := p.owner(c.Context())
			if err != nil {
				return err
			}
			return p.applyPolicy(c.Context(), owner, string(text))
		},
	}
}

func (p *program) applyPolicy(ctx context.Context, owner *client.Client, text string) error {
	was, err := owner.Policy(ctx)
	if err != nil {
		return err
	}
	now, err := owner.ApplyPolicy(ctx, text, was.Digest)
	if err != nil {
		return err
	}
	if p.jsonOut {
		return p.printJSON(now)
	}
	o := p.painter(p.stdout)
	o.printf("%s is in force.\n", now.Source)
	o.field("digest", string(now.Digest))
	o.field("before", string(was.Digest))
	return nil
}

func (p *program) policyHistoryCommand() *cobra.Command {
	return &cobra.Command{
		Use: "history", Short: "List earlier policies; asks for the passphrase", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			owner, err := p.owner(c.Context())
			if err != nil {
				return err
			}
			list, err := owner.PolicyHistory(c.Context())
			if err != nil {
				return err
			}
			if p.jsonOut {
				return p.printJSON(list)
			}
			o := p.painter(p.stdout)
			if len(list) == 0 {
				o.printf("No policy was replaced yet.\n")
				return nil
			}
			var rows [][]string
			for _, x := range list {
				rows = append(rows, []string{x.Until.Local().Format(time.DateTime), string(x.Digest)})
			}
			o.table([]string{"in force until", "digest"}, rows)
			return nil
		},
	}
}

func (p *program) policyUndoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "undo [DIGEST]", Short: "Go back to the policy before, or to an earlier one; asks for the passphrase", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			owner, err := p.owner(c.Context())
			if err != nil {
				return err
			}
			list, err := owner.PolicyHistory(c.Context())
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return errors.New("no policy was replaced yet")
			}
			digest := list[0].Digest
			if len(args) == 1 {
				digest = ""
				for _, x := range list {
					if strings.HasPrefix(strings.TrimPrefix(string(x.Digest), "sha256:"), strings.TrimPrefix(args[0], "sha256:")) {
						digest = x.Digest
						break
					}
				}
				if digest == schema.Digest("") {
					return policy.ErrVersion
				}
			}
			earlier, err := owner.EarlierPolicy(c.Context(), digest)
			if err != nil {
				return err
			}
			return p.applyPolicy(c.Context(), owner, earlier.Text)
		},
	}
}
