package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/api"
	"example.org/auditd/marks"
	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

func (p *program) suppressCommand() *cobra.Command {
	c := &cobra.Command{Use: "suppress", Short: "List, give and end suppressions and refusals", GroupID: "decide", Args: cobra.NoArgs,
		Long: `suppress deals with standing orders: a suppression says that a finding is wrong
in one place, a refusal that something is never to happen. Each has a scope and a
reason, a suppression an end; every decision that follows one says so. Neither
lifts a hard rule. All of it asks for the passphrase: what is suppressed tells
where the holes are.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(p.suppressListCommand(), p.suppressAddCommand(), p.suppressRemoveCommand())
	return c
}

func (p *program) suppressListCommand() *cobra.Command {
	all := false
	c := &cobra.Command{
		Use: "list", Short: "List what holds", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			owner, err := p.owner(c.Context())
			if err != nil {
				return err
			}
			list, err := owner.Orders(c.Context(), all)
			if err != nil {
				return err
			}
			if p.jsonOut {
				return p.printJSON(api.Orders{Now: time.Now().UTC(), Orders: list})
			}
			p.painter(p.stdout).orders(list)
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also what has ended in the last 30 days")
	return c
}

func (o *painter) orders(list []standing.Order) {
	if len(list) == 0 {
		o.printf("Nothing is suppressed or refused.\n")
		return
	}
	for i := range list {
		o.order(&list[i])
	}
}

func (o *painter) order(x *standing.Order) {
	mark, word := o.paint(yellow, "suppress"), "not held against it"
	if x.Effect == standing.Deny {
		mark = o.paint(red, "refuse")
	}
	o.printf("%s  %s  %s\n", o.paint(bold, x.ID), mark, oneLine(x.Reason, o.width-30))
	o.field("where", scopeText(&x.Scope))
	if x.Effect == standing.Suppress {
		what := strings.Join(x.Rules, ", ")
		if x.Judgement {
			var names []string
			for _, r := range x.Residuals {
				names = append(names, r.String())
			}
			what = strings.TrimPrefix(what+", the auditor's answer while it sees "+strings.Join(append(names, "none"), ", "), ", ")
		}
		o.field(word, what)
	}
	switch {
	case x.Revoked != nil:
		o.field("ended", "revoked "+x.Revoked.Local().Format(time.DateTime))
	case x.Expires.IsZero():
		o.field("ends", "when you revoke it")
	case !x.Active(time.Now()):
		o.field("ended", x.Expires.Local().Format(time.DateTime))
	default:
		o.field("ends", x.Expires.Local().Format(time.DateTime))
	}
	if x.Decision != "" {
		o.field("given for", x.Decision)
	}
	o.printf("\n")
}

func scopeText(s *standing.Scope) string {
	parts := []string{"into " + s.SinkKind.String()}
	for _, x := range [][2]string{{"agent", s.Agent}, {"tool", s.Tool}, {"action", s.Action}, {"target", s.Sink}, {"to", s.Destination}, {"from", s.Source}, {"workspace", s.Workspace}} {
		if x[1] != "" {
			parts = append(parts, x[0]+" "+oneLine(x[1], 120))
		}
	}
	if s.Source == "" && s.SourceKind != schema.SourceOther {
		parts = append(parts, "from "+s.SourceKind.String())
	}
	if s.Payload != "" {
		parts = append(parts, "exactly one payload")
	}
	return strings.Join(parts, ", ")
}

// suppressFlags are those of `auditd suppress add`.
type suppressFlags struct {
	reason, source, sink string
	length               time.Duration
	anyAgent, mark, text bool
}

func (p *program) suppressAddCommand() *cobra.Command {
	var f suppressFlags
	c := &cobra.Command{
		Use: "add DECISION", Short: "Suppress what stopped a decision's flow, in its place", Args: cobra.ExactArgs(1),
		Long: `add takes the narrowest suppression that would have let the flow of a decision
pass: the same agent, tool, target and source, the findings that were made, and
the auditor's answer while it sees nothing new. --source and --sink widen the
place by a glob: * within a path element, ** across them.`,
		Example: `  auditd suppress add d_XYZ --source 'https://docs.example.com/**' --reason 'texts about injections' --for 720h`,
		RunE:    func(c *cobra.Command, args []string) error { return p.suppressAdd(c.Context(), args[0], &f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.reason, "reason", "", "why, in your words (must be given)")
	flags.DurationVar(&f.length, "for", 30*24*time.Hour, "for how long, at most a year")
	flags.StringVar(&f.source, "source", "", "glob over the source in place of the one source")
	flags.StringVar(&f.sink, "sink", "", "glob over the target in place of the one target")
	flags.BoolVar(&f.anyAgent, "any-agent", false, "whichever agent")
	flags.BoolVar(&f.mark, "mark", true, "also file the decision as a false alarm")
	flags.BoolVar(&f.text, "keep-text", false, "keep its text with the case, as the log has it")
	return c
}

func (p *program) suppressAdd(ctx context.Context, decision string, f *suppressFlags) error {
	if strings.TrimSpace(f.reason) == "" {
		return errors.New("--reason must be given: a suppression whose reason nobody knows is never taken back")
	}
	if f.length <= 0 || f.length > standing.MaxSuppression {
		return errors.New("--for must be more than 0 and at most a year")
	}
	owner, err := p.owner(ctx)
	if err != nil {
		return err
	}
	s, err := owner.Suggestion(ctx, decision)
	if err != nil {
		return err
	}
	if s.Order == nil {
		return errors.New(s.Problem)
	}
	n := s.Order
	n.Reason, n.Expires = f.reason, time.Now().Add(f.length).UTC()
	if f.source != "" {
		n.Scope.Source = f.source
	}
	if f.sink != "" {
		n.Scope.Sink = f.sink
	}
	if f.anyAgent {
		n.Scope.Agent = ""
	}
	o, err := owner.AddOrder(ctx, n)
	if err != nil {
		return err
	}
	if f.mark {
		if _, err := owner.Mark(ctx, api.Mark{Decision: decision, What: marks.FalseAlarm, Note: f.reason, Payload: f.text}); err != nil {
			return fmt.Errorf("%s holds, but the decision was not marked: %w", o.ID, err)
		}
	}
	if p.jsonOut {
		return p.printJSON(o)
	}
	w := p.painter(p.stdout)
	w.order(&o)
	w.printf("%s\n", w.paint(dim, "auditd suppress remove "+o.ID+" takes it back"))
	return nil
}

func (p *program) suppressRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Aliases: []string{"revoke"}, Short: "End a suppression or a refusal at once", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			owner, err := p.owner(c.Context())
			if err != nil {
				return err
			}
			o, err := owner.RevokeOrder(c.Context(), args[0])
			if err != nil {
				return err
			}
			if p.jsonOut {
				return p.printJSON(o)
			}
			p.painter(p.stdout).printf("%s holds no more.\n", o.ID)
			return nil
		},
	}
}
