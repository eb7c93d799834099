package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"example.org/auditd/bench/auditor"
	"example.org/auditd/inference"
)

// auditorOptions are the flags of `bench auditor`.
type auditorOptions struct {
	metadata string
	limit    int
}

func (p *program) benchAuditorCommand() *cobra.Command {
	var o auditorOptions
	c := &cobra.Command{
		Use: "auditor FILE.jsonl[.gz]...", Short: "Measure how well the auditor judges labelled records", Args: cobra.MinimumNArgs(1),
		Long: `auditor sends every record of the files to the configured auditor, at its default
thresholds, and prints what was stopped and what passed, by source, with 95 %
intervals. A record is one JSON object a line with the fields kind (attack or
benign) and payload, and optionally source, surface, source_channel, sink,
owner_intent and injected_span. Text alone is measured unless --metadata says
otherwise: in many sets the metadata gives the label away.`,
		RunE: func(c *cobra.Command, args []string) error { return p.benchAuditor(c.Context(), &o, args) },
	}
	c.Flags().StringVar(&o.metadata, "metadata", "neutral", "what else the auditor is told: neutral, given or both")
	c.Flags().IntVar(&o.limit, "limit", 0, "records of each file (0: all)")
	return c
}

func (p *program) benchAuditor(ctx context.Context, o *auditorOptions, files []string) (err error) {
	modes, ok := map[string][]bool{"neutral": {false}, "given": {true}, "both": {false, true}}[o.metadata]
	if !ok {
		return errors.New("--metadata must be neutral, given or both")
	}
	if o.limit < 0 {
		return errors.New("--limit must be 0 or more")
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	name := cfg.Auditor
	if name == "cascade" || name == "none" {
		return hint(fmt.Errorf("the auditor is %s, which is not one auditor to measure", name), "set auditor to onnx, ollama or openai")
	}
	j := new(judges)
	defer func() { err = errors.Join(err, j.Close()) }()
	a, err := j.open(ctx, name, cfg, p.getenv, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, a, time.Duration(cfg.Ollama.LoadTimeout)); err != nil {
		return err
	}
	bars := p.bars()
	var results []*auditor.Result
	for _, file := range files {
		for _, metadata := range modes {
			opts := auditor.Options{Metadata: metadata, Limit: o.limit, Workers: concurrency(name)}
			if name == "onnx" {
				opts.Workers = 0
			}
			if bars != nil {
				bar := bars.AddBar(0, mpb.PrependDecorators(decor.Name(filepath.Base(file)+" ")), mpb.AppendDecorators(decor.CountersNoUnit("%d / %d"), decor.Elapsed(decor.ET_STYLE_GO, decor.WC{W: 8})))
				opts.Progress = func(done, total int) {
					bar.SetTotal(int64(total), false)
					bar.SetCurrent(int64(done))
					if done == total {
						bar.SetTotal(-1, true)
					}
				}
			}
			r, err := auditor.Run(ctx, file, a, opts)
			if err != nil {
				return err
			}
			results = append(results, r)
		}
	}
	if bars != nil {
		bars.Wait()
	}
	if p.jsonOut {
		return auditor.JSON(p.stdout, results)
	}
	return auditor.Table(p.stdout, results)
}

// awaitReady waits until a model is loaded, at most for limit.
func awaitReady(ctx context.Context, a inference.Auditor, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for {
		err := a.Ready()
		if err == nil || errors.Is(err, inference.ErrAbsent) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the auditor is not ready: %w", err)
		case <-every.C:
		}
	}
}
