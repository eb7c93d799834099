package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/peer"
	"example.org/auditd/bench/quality"
	"example.org/auditd/bench/report"
	"example.org/auditd/client"
	"example.org/auditd/firewall"
	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

func (p *program) benchCompareCommand() *cobra.Command {
	var o qualityOptions
	var adapters []string
	c := &cobra.Command{
		Use: "compare --peer FILE", Short: "Measure another program on the same cases in the same run", Args: cobra.NoArgs,
		Long: `compare sends every case to auditd and to each --peer, in turn, and prints both.
A peer is described by a small YAML file: an HTTP request, a command (such as a
hook), or a set of patterns, and what its answers mean. bench/peer/adapters has one
of each. Payloads go to whatever the file names.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.benchCompare(c.Context(), &o, adapters) },
	}
	c.Flags().StringSliceVar(&adapters, "peer", nil, "adapter file; may be given more than once")
	c.Flags().StringVar(&o.cases, "cases", "", "directory with case files of your own (*.yaml) in place of the built-in ones")
	c.Flags().StringVarP(&o.out, "out", "o", "", "also write the results to this file, as JSON")
	c.Flags().BoolVar(&o.running, "running", false, "ask the running daemon; its log and its questions then hold the cases too")
	return c
}

func (p *program) benchCompare(ctx context.Context, o *qualityOptions, adapters []string) error {
	if len(adapters) == 0 {
		return errors.New("--peer: name at least one adapter file")
	}
	var peers []*peer.Peer
	for _, path := range adapters {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read the adapter: %w", err)
		}
		x, err := peer.Parse(data)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		peers = append(peers, x)
	}
	set, err := readCases(o.cases)
	if err != nil {
		return err
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	run := report.Run{Version: version(), Cases: casesName(o.cases, set), Auditor: "of the running daemon"}
	var c *client.Client
	if o.running {
		if c, err = p.client(); err != nil {
			return err
		}
	} else {
		b, err := p.startBench(ctx, cfg, firewall.Ablation{}, nil)
		if err != nil {
			return err
		}
		defer b.stop()
		c, run.Auditor, run.Arbiter = b.client, b.auditor, cfg.Arbiter.Backend
	}
	programs := []report.Program{{Name: "auditd"}}
	for _, x := range peers {
		programs = append(programs, report.Program{Name: x.Name})
	}
	if err := p.interleave(ctx, c, set, peers, programs); err != nil {
		return err
	}
	for i := range programs {
		programs[i].Summary = quality.Summarise(programs[i].Results)
	}
	if o.out != "" {
		data, err := schema.Encode(programs)
		if err == nil {
			err = durable.WriteFile(o.out, append(data, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	if p.jsonOut {
		return p.printJSON(programs)
	}
	return report.Compare(p.stdout, &run, programs)
}

// interleave sends each case to every program before the next case, and starts
// with another program each time, so that none always finds the machine warm.
func (p *program) interleave(ctx context.Context, c *client.Client, set []cases.Case, peers []*peer.Peer, programs []report.Program) error {
	progress := func() {}
	if bars := p.bars(); bars != nil {
		bar := bars.AddBar(int64(len(set)), mpb.PrependDecorators(decor.Name("cases "), decor.CountersNoUnit("%d / %d")), mpb.AppendDecorators(decor.Percentage(), decor.Elapsed(decor.ET_STYLE_GO, decor.WC{W: 8})))
		progress = func() { bar.Increment() }
		defer bars.Shutdown()
	}
	for i := range set {
		for n := range programs {
			k := (i + n) % len(programs)
			if k > 0 {
				programs[k].Results = append(programs[k].Results, quality.Other(ctx, &set[i], peers[k-1].Decide))
				continue
			}
			one, err := quality.Run(ctx, quality.Config{Cases: set[i : i+1], Audit: c.Audit})
			if err != nil {
				return err
			}
			programs[0].Results = append(programs[0].Results, one...)
		}
		progress()
	}
	return nil
}
