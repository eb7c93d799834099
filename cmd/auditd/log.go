package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/api"
	"example.org/auditd/auditlog"
	"example.org/auditd/escalation"
	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

func (p *program) logCommand() *cobra.Command {
	c := &cobra.Command{Use: "log", Short: "Read and verify the decision log", GroupID: "look", Args: cobra.NoArgs,
		Long: "log reads the decision log from its files; no daemon needs to run, and one may.",
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(p.logShowCommand(), p.logTailCommand(), p.logVerifyCommand(), p.logExportCommand())
	return c
}

func (p *program) logShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Explain one decision, by its id or its place in the log", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			line, err := lookup(cfg.State, args[0])
			if err != nil {
				return err
			}
			record, err := line.Record()
			if err != nil {
				return fmt.Errorf("read record %d: %w", line.Index, err)
			}
			value, err := line.Value(cfg.State)
			if err != nil {
				value = nil // changed or gone; the proof below says what still holds
			}
			if p.jsonOut {
				return p.printJSON(api.Record{Record: *record, Value: value})
			}
			s := storyOf(record, value)
			s.thresholds = p.thresholds(cfg)
			s.place = p.place(c.Context(), cfg, record, value)
			p.painter(p.stdout).tell(&s)
			return nil
		},
	}
}

// begun says when there is no log yet, which is not a log that was lost.
func begun(state string) error {
	if _, err := os.Stat(filepath.Join(state, "log")); errors.Is(err, fs.ErrNotExist) {
		return hint(errors.New("there is no decision log yet"), "`auditd serve` starts one")
	}
	return nil
}

// lookup finds a record by its decision's id or by its index.
func lookup(dir, what string) (*auditlog.Line, error) {
	if err := begun(dir); err != nil {
		return nil, err
	}
	index, id := int64(0), what
	if n, err := strconv.ParseInt(what, 10, 64); err == nil && n >= 0 {
		index, id = n, ""
	}
	line, err := auditlog.Lookup(dir, index, id)
	switch {
	case errors.Is(err, auditlog.ErrNotFound):
		return nil, hint(fmt.Errorf("the log has no decision %s", oneLine(what, 60)), "`auditd log tail` lists the newest")
	case err != nil:
		return nil, fmt.Errorf("read the log: %w", err)
	}
	return line, nil
}

// thresholds are those of the policy that now holds.
func (p *program) thresholds(cfg *Config) escalation.Thresholds {
	if pol, err := loadPolicy(cfg.Policy); err == nil {
		return pol.Thresholds()
	}
	return escalation.Default()
}

// place says where the record stands and what proves it. The daemon, if it
// runs, gives an inclusion proof, which is checked here with the public key on
// the disk; otherwise the whole log is verified.
func (p *program) place(ctx context.Context, cfg *Config, r *auditlog.Record, v *auditlog.Value) []string {
	out := []string{fmt.Sprintf("record %d, linked to the one before by %s…", r.Index, r.Prev[:min(12, len(r.Prev))])}
	if r.Value != nil && v == nil {
		out = append(out, "its text was erased or changed; the record keeps its digest "+string(r.Value.Digest[:min(20, len(r.Value.Digest))])+"…")
	}
	if c, err := p.client(); err == nil && r.ID != "" {
		if got, err := c.Record(ctx, r.ID); err == nil && got.Proof != nil {
			key, err := os.ReadFile(filepath.Join(cfg.State, "log.pub"))
			if err == nil {
				err = got.Proof.Check(strings.TrimSpace(string(key)))
			}
			if err != nil {
				return append(out, "✗ ITS PROOF DOES NOT HOLD: "+err.Error())
			}
			return append(out, fmt.Sprintf("✓ proved to be in the log by %d hashes up to the signed root %s", len(got.Proof.Proof), root(got.Proof.Checkpoint)))
		}
	}
	sum, err := auditlog.Verify(cfg.State)
	if err != nil {
		return append(out, "✗ THE LOG DOES NOT VERIFY: "+err.Error())
	}
	return append(out, fmt.Sprintf("✓ the whole log of %d records verifies up to the signed root %s", sum.Records, root(sum.Checkpoint)))
}

// root is the tree's root in a checkpoint, shortened for the eye.
func root(checkpoint string) string {
	lines := strings.Split(checkpoint, "\n")
	if len(lines) < 3 {
		return "(unknown)"
	}
	if _, err := base64.StdEncoding.DecodeString(lines[2]); err != nil {
		return "(unknown)"
	}
	return lines[2][:min(12, len(lines[2]))] + "… of " + lines[1] + " records"
}

func (p *program) logTailCommand() *cobra.Command {
	n, follow := 20, false
	c := &cobra.Command{
		Use: "tail", Short: "List the newest decisions", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			if n < 1 || n > 100000 {
				return errors.New("--lines must be 1 to 100000")
			}
			return p.tail(c.Context(), cfg, int64(n), follow)
		},
	}
	c.Flags().IntVarP(&n, "lines", "n", n, "how many")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is added")
	return c
}

func (p *program) tail(ctx context.Context, cfg *Config, n int64, follow bool) error {
	if err := begun(cfg.State); err != nil {
		return err
	}
	size := int64(0)
	for line, err := range auditlog.Lines(cfg.State, 0) {
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		size = line.Index + 1
	}
	o := p.painter(p.stdout)
	lines := auditlog.Lines(cfg.State, max(0, size-n))
	if follow {
		lines = auditlog.Follow(ctx, cfg.State, max(0, size-n), 500*time.Millisecond)
	}
	if !p.jsonOut {
		o.printf("%s\n", o.paint(dim, fmt.Sprintf("%6s  %-19s  %-16s %-22s %-9s %s", "record", "time", "decision", "flow", "took", "id")))
	}
	for line, err := range lines {
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if p.jsonOut {
			fmt.Fprintf(p.stdout, "%s\n", line.Text)
			continue
		}
		r, err := line.Record()
		if err != nil {
			return fmt.Errorf("read record %d: %w", line.Index, err)
		}
		o.logLine(r)
	}
	return nil
}

func (o *painter) logLine(r *auditlog.Record) {
	when := r.Time.Local().Format(time.DateTime)
	if r.Decision == nil || r.Flow == nil {
		o.printf("%6d  %s  %s\n", r.Index, when, o.paint(yellow, string(r.Kind)))
		return
	}
	mark, word, s := verdict(r.Decision.Action)
	if r.Decision.Observed != nil {
		_, would, _ := verdict(*r.Decision.Observed)
		word = "observed:" + strings.ToLower(would)
	}
	if r.Decision.Action == schema.DeferToHuman {
		word = "WAITING"
	}
	o.printf("%6d  %s  %s %-22s %-9s %s  %s\n", r.Index, when, o.paint(s, fmt.Sprintf("%-16s", mark+" "+word)),
		r.Flow.SourceKind.String()+" → "+r.Flow.SinkKind.String(), millis(r.Decision.LatencyMS), r.ID, o.paint(dim, r.Decision.Stage.String()+" · "+r.Decision.Reason))
}

func (p *program) logVerifyCommand() *cobra.Command {
	var keyFile, checkpointFile string
	c := &cobra.Command{
		Use: "verify", Short: "Check every record, the chain, the tree and the signature", Args: cobra.NoArgs,
		Long: `verify checks the whole log from its files. With a checkpoint or a public key that
you kept elsewhere it also finds a log that was rewritten and signed anew.`,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			var key string
			var checkpoint []byte
			if keyFile != "" {
				b, err := os.ReadFile(keyFile)
				if err != nil {
					return fmt.Errorf("read the key: %w", err)
				}
				key = strings.TrimSpace(string(b))
			}
			if checkpointFile != "" {
				if checkpoint, err = os.ReadFile(checkpointFile); err != nil {
					return fmt.Errorf("read the checkpoint: %w", err)
				}
			}
			if err := begun(cfg.State); err != nil {
				return err
			}
			sum, err := auditlog.VerifyAgainst(cfg.State, key, checkpoint)
			if err != nil {
				return fmt.Errorf("THE LOG DOES NOT VERIFY: %w", err)
			}
			if p.jsonOut {
				return p.printJSON(sum)
			}
			o := p.painter(p.stdout)
			o.printf("%s\n", o.paint(green, fmt.Sprintf("✓ %d records verify", sum.Records)))
			if sum.Records > 0 {
				o.field("from", sum.First.Local().Format(time.DateTime)+" to "+sum.Last.Local().Format(time.DateTime))
			}
			o.field("root", root(sum.Checkpoint))
			o.field("texts", fmt.Sprintf("%d kept beside them, %d erased", sum.Values-sum.Erased, sum.Erased))
			if sum.ErasedUnlogged > 0 {
				o.field("warning", o.paint(yellow, fmt.Sprintf("%d texts are gone and no record says why", sum.ErasedUnlogged)))
			}
			if sum.Pending > 0 || sum.TornBytes > 0 {
				o.field("unfinished", fmt.Sprintf("%d records and %d bytes that nobody was told of", sum.Pending, sum.TornBytes))
			}
			return nil
		},
	}
	c.Flags().StringVar(&keyFile, "key", "", "file with the log's public key, kept elsewhere")
	c.Flags().StringVar(&checkpointFile, "checkpoint", "", "file with an earlier checkpoint, kept elsewhere")
	return c
}

func (p *program) logExportCommand() *cobra.Command {
	var out, format string
	var from, to int64
	var values bool
	c := &cobra.Command{
		Use: "export", Short: "Write records for other programs: jsonl, syslog or cef", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			if err := begun(cfg.State); err != nil {
				return err
			}
			host, _ := os.Hostname()
			opt := auditlog.ExportOptions{From: from, To: to, Values: values, Host: host, Version: version()}
			if err := opt.Format.UnmarshalText([]byte(format)); err != nil {
				return fmt.Errorf("--format: %w", err)
			}
			if out == "" || out == "-" {
				_, err = auditlog.Export(p.stdout, cfg.State, opt)
				return err
			}
			return exportTo(out, cfg.State, opt)
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "-", "file to write")
	c.Flags().StringVar(&format, "format", "jsonl", "jsonl, syslog or cef")
	c.Flags().Int64Var(&from, "from", 0, "first record")
	c.Flags().Int64Var(&to, "to", 0, "record before which to end, 0 for all")
	c.Flags().BoolVar(&values, "values", false, "with the redacted texts (jsonl only)")
	return c
}

// exportTo writes a whole file or, on an error, none.
func exportTo(path, dir string, opt auditlog.ExportOptions) error {
	var b strings.Builder
	if _, err := auditlog.Export(&b, dir, opt); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := durable.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}
