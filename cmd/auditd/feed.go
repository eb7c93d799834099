package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/api"
	"example.org/auditd/auditlog"
	"example.org/auditd/schema"
)

// feedFlags narrow the feed down.
type feedFlags struct {
	n                                    int
	since                                time.Duration
	watch                                bool
	action, agent, tool, code, text, sur string
}

func (p *program) feedCommand() *cobra.Command {
	var f feedFlags
	c := &cobra.Command{
		Use: "feed", Short: "Show decisions as they are made", GroupID: "look", Args: cobra.NoArgs,
		Long:    "feed shows the newest decisions, the newest last, from the log's files; --watch goes on with those that come. With --json each is one line.",
		Example: "  auditd feed --watch\n  auditd feed --action block --since 24h --agent openclaw",
		RunE:    func(c *cobra.Command, _ []string) error { return p.feed(c.Context(), &f) },
	}
	flags := c.Flags()
	flags.IntVarP(&f.n, "lines", "n", 30, "how many, at most")
	flags.DurationVar(&f.since, "since", 0, "only those of so long ago, such as 24h")
	flags.BoolVarP(&f.watch, "watch", "w", false, "go on with what is decided")
	flags.StringVar(&f.action, "action", "", "only this outcome: allow, rewrite_and_continue, defer_to_human, block")
	flags.StringVar(&f.agent, "agent", "", "only agents whose name holds this")
	flags.StringVar(&f.tool, "tool", "", "only tools whose name holds this")
	flags.StringVar(&f.code, "code", "", "only with this finding, such as PROMPT_CONTROL")
	flags.StringVar(&f.sur, "surface", "", "only this surface: context, authority, capability")
	flags.StringVar(&f.text, "search", "", "only where the reason, source or target holds this")
	return c
}

// match reports whether a decision is wanted.
func (f *feedFlags) match(r *auditlog.Record, v *auditlog.Value) bool {
	d, fl := r.Decision, r.Flow
	if d == nil || fl == nil || f.since > 0 && time.Since(r.Time) > f.since ||
		f.action != "" && d.Action.String() != f.action || f.sur != "" && fl.Surface.String() != f.sur {
		return false
	}
	holds := func(want string, in ...string) bool {
		if want == "" {
			return true
		}
		for _, s := range in {
			if strings.Contains(strings.ToLower(s), strings.ToLower(want)) {
				return true
			}
		}
		return false
	}
	if v == nil {
		v = new(auditlog.Value)
	}
	if f.code != "" {
		found := false
		if d.Precheck != nil {
			for _, s := range d.Precheck.Signals {
				found = found || s.Code.String() == f.code
			}
		}
		if !found {
			return false
		}
	}
	return holds(f.agent, v.Agent) && holds(f.tool, v.Tool) && holds(f.text, d.Reason, v.Source, v.Sink, v.Destination, r.ID)
}

func (p *program) feed(ctx context.Context, f *feedFlags) error {
	if f.n < 1 || f.n > 100000 {
		return errors.New("--lines must be 1 to 100000")
	}
	var a schema.Action
	if f.action != "" {
		if err := a.UnmarshalText([]byte(f.action)); err != nil {
			return fmt.Errorf("--action: %w", err)
		}
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	if err := begun(cfg.State); err != nil {
		return err
	}
	o := p.painter(p.stdout)
	if !p.jsonOut {
		o.printf("%s\n", o.paint(dim, fmt.Sprintf("%-19s  %-12s %-22s %-44s %8s  %s", "time", "outcome", "agent", "transfer", "took", "why")))
	}
	var newest []*auditlog.Line // a ring would save little: a line is a reference
	next := int64(0)
	for line, err := range auditlog.Lines(cfg.State, 0) {
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		next = line.Index + 1
		r, v, err := readLine(cfg.State, line)
		if err != nil {
			return err
		}
		if f.match(r, v) {
			if newest = append(newest, line); len(newest) > f.n {
				newest = newest[1:]
			}
		}
	}
	show := func(lines iter.Seq2[*auditlog.Line, error]) error {
		for line, err := range lines {
			if err != nil {
				return fmt.Errorf("read the log: %w", err)
			}
			r, v, err := readLine(cfg.State, line)
			if err != nil {
				return err
			}
			if !f.match(r, v) {
				continue
			}
			if p.jsonOut {
				if err := p.printJSON(api.Record{Record: *r, Value: v}); err != nil {
					return err
				}
				continue
			}
			o.feedLine(r, v)
		}
		return nil
	}
	err = show(func(yield func(*auditlog.Line, error) bool) {
		for _, l := range newest {
			if !yield(l, nil) {
				return
			}
		}
	})
	if err != nil || !f.watch {
		return err
	}
	return show(auditlog.Follow(ctx, cfg.State, next, 300*time.Millisecond))
}

// readLine reads a record and its text; a text that is gone or changed is nil.
func readLine(state string, line *auditlog.Line) (*auditlog.Record, *auditlog.Value, error) {
	r, err := line.Record()
	if err != nil {
		return nil, nil, fmt.Errorf("read record %d: %w", line.Index, err)
	}
	v, err := line.Value(state)
	if err != nil {
		v = nil
	}
	return r, v, nil
}

func (o *painter) feedLine(r *auditlog.Record, v *auditlog.Value) {
	d := r.Decision
	mark, word, s := verdict(d.Action)
	switch {
	case d.Observed != nil:
		_, would, _ := verdict(*d.Observed)
		word = "would:" + strings.ToLower(would)
	case d.Action == schema.DeferToHuman:
		word = "ASKED"
	}
	agent, from, to := "–", r.Flow.SourceKind.String(), r.Flow.SinkKind.String()
	if v != nil {
		if v.Agent != "" {
			agent = v.Agent
		}
		if v.Source != "" && r.Flow.SourceKind != schema.SourceAgent {
			from = v.Source
		}
		for _, x := range []string{v.Sink, v.Destination, v.Tool} {
			if x != "" {
				to += " " + x
				break
			}
		}
	}
	took := millis(d.LatencyMS)
	if d.Cached {
		took = "known"
	}
	o.printf("%s  %s %-22s %-44s %8s  %s %s\n", o.paint(dim, r.Time.Local().Format(time.DateTime)), o.paint(s, fmt.Sprintf("%-12s", oneLine(mark+" "+word, 12))),
		oneLine(agent, 22), oneLine(from, 20)+" → "+oneLine(to, 21), took, d.Reason, o.paint(dim, r.ID))
}

// explainCommand is `log show` under the name that people look for.
func (p *program) explainCommand() *cobra.Command {
	c := p.logShowCommand()
	c.Use, c.GroupID, c.Aliases = "explain ID", "look", nil
	c.Long = `explain tells one decision from end to end: what was found where, the auditor's
numbers beside the limits they were compared with, why it was looked at again,
and the proof that the record is in the log.`
	return c
}
