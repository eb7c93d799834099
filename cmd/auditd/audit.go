package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/escalation"
	"example.org/auditd/schema"
)

// auditFlags are those of `auditd audit`.
type auditFlags struct {
	text, source, sink, sourceID, sinkID, tool, intent, workspace, agent string
	local                                                                bool
}

func (p *program) auditCommand() *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use:     "audit [FILE|-]",
		Short:   "Decide one flow",
		GroupID: "decide",
		Long: `audit decides one flow and says what was found.

The flow is a JSON document (a file, or - for standard input), or a text with
--text, --source and --sink. The running daemon decides it; with --local this
process does, with the same rules and the same log, while no daemon runs.

Exit code 0: allowed unchanged. 2: the text may not go on as it is; where it was
rewritten, only the text in "payload" may. 1: anything else.`,
		Example: `  auditd audit --text 'rm -rf ~' --source web --sink exec
  echo '{"payload":"hello","source":{"kind":"web"},"sink":{"kind":"reasoning"}}' | auditd audit -`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return p.audit(c.Context(), &f, args) },
	}
	flags := c.Flags()
	flags.StringVar(&f.text, "text", "", "the payload")
	flags.StringVar(&f.source, "source", "", "where it comes from: other, user, file, web, tool, agent, memory, email, webhook, skill")
	flags.StringVar(&f.sink, "sink", "", "where it goes: reasoning, memory, file, web, tool, exec, message, identity, policy, skill, config, plan, payment")
	flags.StringVar(&f.sourceID, "source-id", "", "its URL, path or sender")
	flags.StringVar(&f.sinkID, "sink-id", "", "the path, component or channel that it goes to")
	flags.StringVar(&f.tool, "tool", "", "the tool that would act")
	flags.StringVar(&f.intent, "intent", "", "what the owner asked for")
	flags.StringVar(&f.workspace, "workspace", "", "the project's directory")
	flags.StringVar(&f.agent, "agent", "cli", "the agent")
	flags.BoolVar(&f.local, "local", false, "decide in this process")
	return c
}

func (p *program) audit(ctx context.Context, f *auditFlags, args []string) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	flow, err := p.flow(f, args, cfg.MaxPayload)
	if err != nil {
		return err
	}
	var d schema.Decision
	thresholds := escalation.Default()
	if f.local {
		d, thresholds, err = p.auditLocally(ctx, cfg, flow)
	} else {
		c, cerr := p.client()
		if cerr != nil {
			return cerr
		}
		d, err = c.Audit(ctx, flow)
	}
	if err != nil {
		return err
	}
	if p.jsonOut {
		err = p.printJSON(d)
	} else {
		o := p.painter(p.stdout)
		s := story{d: d, flow: *flow, bytes: len(flow.Payload), thresholds: thresholds}
		if d.LogIndex >= 0 {
			s.place = []string{fmt.Sprintf("record %d of the decision log; see it again with `auditd log show %s`", d.LogIndex, d.ID)}
		}
		if d.Ticket != "" {
			s.place = append(s.place, "waits for an answer: `auditd pending`, then `auditd approve ID` or `auditd deny ID`")
		}
		o.tell(&s)
	}
	// A caller that looks at nothing but the exit code would forward the
	// original, so a rewrite is a stop too.
	if err == nil && d.Action != schema.Allow {
		return errStop
	}
	return err
}

// flow reads the flow from a document or from the flags.
func (p *program) flow(f *auditFlags, args []string, maxPayload int) (*schema.Flow, error) {
	if f.text != "" || f.source != "" || f.sink != "" {
		if len(args) > 0 {
			return nil, errors.New("give either a document or --text, --source and --sink")
		}
		flow := &schema.Flow{Payload: f.text, Source: schema.Source{ID: f.sourceID, Trust: schema.Untrusted},
			Sink: schema.Sink{ID: f.sinkID, Tool: f.tool}, Intent: f.intent, Session: schema.Session{Agent: f.agent, Workspace: f.workspace}}
		if f.text == "" || f.source == "" || f.sink == "" {
			return nil, errors.New("--text, --source and --sink go together")
		}
		if err := flow.Source.Kind.UnmarshalText([]byte(f.source)); err != nil {
			return nil, fmt.Errorf("--source: %w", err)
		}
		if err := flow.Sink.Kind.UnmarshalText([]byte(f.sink)); err != nil {
			return nil, fmt.Errorf("--sink: %w", err)
		}
		return flow, flow.Complete(maxPayload)
	}
	if len(args) == 0 {
		return nil, hint(errors.New("no flow"), "give a file, - for standard input, or --text, --source and --sink")
	}
	in := p.stdin
	if args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, fmt.Errorf("read the flow: %w", err)
		}
		defer file.Close()
		in = file
	}
	limit := int64(2*maxPayload + 64<<10)
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the flow: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("the flow is over %d bytes", limit)
	}
	return schema.DecodeFlow(data, maxPayload)
}

// auditLocally decides in this process. It uses the daemon's state, so a
// running daemon's lock keeps it out.
func (p *program) auditLocally(ctx context.Context, cfg *Config, flow *schema.Flow) (schema.Decision, escalation.Thresholds, error) {
	d, err := newDaemon(ctx, cfg, p.getenv, slog.New(slog.DiscardHandler))
	if err != nil {
		return schema.Decision{}, escalation.Thresholds{}, err
	}
	defer d.Close()
	// A model that loads in a moment is waited for; one that is missing isn't.
	for deadline := time.Now().Add(5 * time.Second); d.judges.loading() && time.Now().Before(deadline) && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	return d.firewall.Audit(ctx, flow, schema.CredentialHook), d.policies.Policy().Thresholds(), nil
}

func (p *program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema [NAME]", Short: "Print the JSON Schemas", GroupID: "look", Args: cobra.MaximumNArgs(1),
		ValidArgs: schema.JSONSchemaNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, name := range schema.JSONSchemaNames() {
					fmt.Fprintln(p.stdout, name)
				}
				return nil
			}
			doc, ok := schema.JSONSchema(args[0])
			if !ok {
				return hint(fmt.Errorf("there is no schema %s", oneLine(args[0], 40)), "`auditd schema` lists them")
			}
			_, err := p.stdout.Write(doc)
			return err
		},
	}
}
