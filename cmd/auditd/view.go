package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/api"
	"example.org/auditd/client"
)

// viewCommand is the person's side of the agents' view of files.
func (p *program) viewCommand() *cobra.Command {
	var dir string
	limit := 20
	c := &cobra.Command{Use: "view", Short: "Look at what isolated agents did to files, and go back", GroupID: "look", Args: cobra.NoArgs,
		Long: `view lists the workspaces of which isolated agents see a tree of their own, in
which untrusted content is symbols. Every change is kept: log lists the states of
the workspace that --dir lies in, diff shows what one changed, show prints a file
of one, revert brings your files back to one, conflicts lists what an agent wrote
that did not land because you were faster, and settle ends such a conflict. All
but log ask for the passphrase.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.listViews(c.Context()) }}
	c.PersistentFlags().StringVar(&dir, "dir", "", "a directory of the workspace (default: this one)")
	owned := func(f func(ctx context.Context, cl *client.Client, id string, args []string) error) func(*cobra.Command, []string) error {
		return func(c *cobra.Command, args []string) error {
			id, err := p.findView(c.Context(), dir)
			if err != nil {
				return err
			}
			cl, err := p.owner(c.Context())
			if err != nil {
				return err
			}
			return f(c.Context(), cl, id, args)
		}
	}
	log := &cobra.Command{Use: "log", Short: "List the states of a workspace, the youngest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.viewLog(c.Context(), dir, limit) }}
	log.Flags().IntVarP(&limit, "number", "n", limit, "how many")
	c.AddCommand(log,
		&cobra.Command{Use: "show STATE FILE", Short: "Print a file of a state as the agent saw it", Args: cobra.ExactArgs(2),
			RunE: owned(func(ctx context.Context, cl *client.Client, id string, args []string) error {
				text, err := cl.ViewShow(ctx, id, args[0], args[1])
				return p.printText(text, err)
			})},
		&cobra.Command{Use: "diff STATE", Short: "Print what a state changed", Args: cobra.ExactArgs(1),
			RunE: owned(func(ctx context.Context, cl *client.Client, id string, args []string) error {
				text, err := cl.ViewDiff(ctx, id, args[0])
				return p.printText(text, err)
			})},
		&cobra.Command{Use: "revert STATE", Short: "Bring your files and the agent's back to a state", Args: cobra.ExactArgs(1),
			RunE: owned(func(ctx context.Context, cl *client.Client, id string, args []string) error {
				r, err := cl.ViewRevert(ctx, id, args[0])
				if err != nil {
					return err
				}
				return p.reverted(r)
			})},
		&cobra.Command{Use: "settle ID mine|agent", Short: "End a conflict: your version stays, or the agent's is written", Args: cobra.ExactArgs(2), ValidArgs: []string{"mine", "agent"},
			Long: "settle ends a conflict. With mine your file stays as it is; with agent what the agent wrote is put in its place. One text of both is made in the page.",
			RunE: owned(func(ctx context.Context, cl *client.Client, id string, args []string) error {
				return p.settle(ctx, cl, id, args[0], args[1])
			})},
		&cobra.Command{Use: "conflicts [ID]", Short: "List what agents wrote that did not land, or show one with both versions", Args: cobra.MaximumNArgs(1),
			RunE: owned(func(ctx context.Context, cl *client.Client, id string, args []string) error {
				if len(args) == 1 {
					both, err := cl.ViewConflict(ctx, id, args[0])
					if err != nil {
						return err
					}
					return p.viewBoth(both)
				}
				list, err := cl.ViewConflicts(ctx, id)
				if err != nil {
					return err
				}
				return p.viewConflicts(list)
			})},
	)
	return c
}

func (p *program) listViews(ctx context.Context) error {
	cl, err := p.client()
	if err != nil {
		return err
	}
	views, err := cl.Views(ctx)
	if err != nil {
		return noViews(err)
	}
	if p.jsonOut {
		return p.printJSON(api.ViewList{Views: views})
	}
	for _, v := range views {
		fmt.Fprintf(p.stdout, "%s  %s\n", v.ID, oneLine(v.Root, 400))
	}
	if len(views) == 0 {
		fmt.Fprintln(p.stdout, "No isolated agent has worked with files yet.")
	}
	return nil
}

// noViews says in words that nobody is isolated.
func noViews(err error) error {
	var e *client.Error
	if errors.As(err, &e) && e.Detail.Code == "not_configured" {
		return hint(errors.New("no agent is isolated, so there are no views"), `one line in policy.yaml switches isolation on: modes: [{agent: "openclaw:*", mode: both}]`)
	}
	return err
}

// findView returns the id of the workspace that a directory lies in.
func (p *program) findView(ctx context.Context, dir string) (string, error) {
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return "", fmt.Errorf("find this directory: %w", err)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the directory: %w", err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	cl, err := p.client()
	if err != nil {
		return "", err
	}
	views, err := cl.Views(ctx)
	if err != nil {
		return "", noViews(err)
	}
	best := api.View{}
	for _, v := range views {
		if (v.Root == dir || strings.HasPrefix(dir, v.Root+"/")) && len(v.Root) > len(best.Root) {
			best = v
		}
	}
	if best.ID == "" {
		return "", hint(errors.New("no isolated agent has worked in that directory"), "`auditd view` lists where they have; --dir names one")
	}
	return best.ID, nil
}

func (p *program) viewLog(ctx context.Context, dir string, limit int) error {
	id, err := p.findView(ctx, dir)
	if err != nil {
		return err
	}
	cl, err := p.client()
	if err != nil {
		return err
	}
	states, err := cl.ViewLog(ctx, id, limit)
	if err != nil {
		return err
	}
	if p.jsonOut {
		return p.printJSON(api.ViewLog{States: states})
	}
	for _, s := range states {
		fmt.Fprintf(p.stdout, "%s  %s  %s\n", s.ID, s.Time.Local().Format(time.DateTime), oneLine(s.Message, 80))
	}
	return nil
}

// printText prints what an agent wrote: on a terminal without what would steer
// it.
func (p *program) printText(text string, err error) error {
	if err != nil {
		return err
	}
	if p.jsonOut {
		return p.printJSON(api.ViewText{Text: text})
	}
	for line := range strings.Lines(text) {
		fmt.Fprintln(p.stdout, oneLine(strings.TrimSuffix(line, "\n"), len(line)+1))
	}
	return nil
}

func (p *program) reverted(r *api.ViewReverted) error {
	if p.jsonOut {
		return p.printJSON(r)
	}
	fmt.Fprintf(p.stdout, "%d files were brought back.\n", r.ToHuman)
	return p.viewConflicts(r.Conflicts)
}

func (p *program) viewConflicts(list []api.ViewConflict) error {
	if p.jsonOut {
		return p.printJSON(api.ViewConflicts{Conflicts: list})
	}
	for _, c := range list {
		fmt.Fprintf(p.stdout, "%s  %s  %s: %s\n", c.ID, c.Time.Local().Format(time.DateTime), oneLine(c.Path, 200), oneLine(c.Reason, 200))
	}
	return nil
}

// agentText is a file as its agent reads it: symbols in place of what they stand
// for.
func agentText(f *api.ViewSides) string {
	var b strings.Builder
	for _, x := range f.Pieces {
		b.WriteString(x.Symbol + x.Text) // one of them is empty
	}
	return b.String()
}

// viewBoth prints both versions of a conflict, as the agent reads them.
func (p *program) viewBoth(b *api.ViewBoth) error {
	if p.jsonOut {
		return p.printJSON(b)
	}
	if err := p.viewConflicts([]api.ViewConflict{b.ViewConflict}); err != nil {
		return err
	}
	o := p.painter(p.stdout)
	o.heading("yours", "as it is now")
	switch {
	case b.Now == nil:
		o.printf("(there is no such file)\n")
	case b.Now.Unshown != "":
		o.printf("(not shown: %s)\n", b.Now.Unshown)
	default:
		if err := p.printText(agentText(b.Now), nil); err != nil {
			return err
		}
	}
	o.heading("the agent's", "")
	if b.Lost == nil {
		o.printf("(it can't be shown)\n")
		return nil
	}
	return p.printText(*b.Lost, nil)
}

// settle ends a conflict by the file as it is now.
func (p *program) settle(ctx context.Context, cl *client.Client, id, conflict, take string) error {
	both, err := cl.ViewConflict(ctx, id, conflict)
	if err != nil {
		return err
	}
	s := &api.ViewSettle{Take: take}
	if both.Now != nil {
		s.Agent = both.Now.Agent
	}
	r, err := cl.ViewSettle(ctx, id, conflict, s)
	if err != nil {
		return err
	}
	if p.jsonOut {
		return p.printJSON(r)
	}
	if len(r.Conflicts) > 0 {
		if err := p.viewConflicts(r.Conflicts); err != nil {
			return err
		}
		return errors.New("it did not land; your file is as it was")
	}
	fmt.Fprintf(p.stdout, "Settled: %s.\n", map[bool]string{true: "your version stays", false: "the agent's version is in your file"}[take == "mine"])
	return nil
}
