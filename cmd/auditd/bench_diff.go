package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"example.org/auditd/bench/quality"
	"example.org/auditd/bench/report"
	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

func (p *program) benchDiffCommand() *cobra.Command {
	var margin, allocs float64
	c := &cobra.Command{
		Use: "diff A.json B.json", Short: "Say what changed between two runs, and whether it is more than noise", Args: cobra.ExactArgs(2),
		Long: `diff compares two reports of bench quality, case by case, and says which figures
moved by more than chance explains (McNemar's exact test, 5 %). It ends with 1 when
fewer attacks are stopped, or fewer ordinary cases pass, by more than --margin, or
when a decision makes more allocations than before by more than --alloc-margin.
Times are shown and never judged: machines differ.`,
		RunE: func(_ *cobra.Command, args []string) error { return p.benchDiff(args[0], args[1], margin, allocs) },
	}
	c.Flags().Float64Var(&margin, "margin", 0, "percent points that a figure may lose")
	c.Flags().Float64Var(&allocs, "alloc-margin", 5, "percent by which a decision may make more allocations")
	return c
}

func (p *program) benchDiff(a, b string, margin, allocs float64) error {
	if margin < 0 || margin > 100 || allocs < 0 || allocs > 1000 {
		return errors.New("--margin must be 0 to 100, and --alloc-margin 0 to 1000")
	}
	before, err := readRun(a)
	if err != nil {
		return err
	}
	after, err := readRun(b)
	if err != nil {
		return err
	}
	d := quality.Compare(before.Results, after.Results)
	if p.jsonOut {
		if err := p.printJSON(d); err != nil {
			return err
		}
	} else if err := report.Diff(p.stdout, before, after, d); err != nil {
		return err
	}
	for _, c := range d.Changes[:2] {
		if c.Loss() > margin {
			return hint(fmt.Errorf("%s: %.1f percent points less, the margin is %.1f", c.Name, c.Loss(), margin), "when that is meant, write a new baseline with `auditd bench quality --baseline`")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Allocations)) {
		was, is := before.Allocations[name], after.Allocations[name]
		switch {
		case is == 0:
			return fmt.Errorf("allocations: the second run did not measure %s", name)
		case is > was*(1+allocs/100)+allocSlack:
			return hint(fmt.Errorf("allocations: %.0f for %s, it was %.0f; the margin is %.0f %%", is, name, was, allocs), "when that is meant, write a new baseline with `auditd bench quality --baseline`")
		}
	}
	if n := len(d.OnlyA); n > 0 {
		return fmt.Errorf("%d cases of the first run are not in the second", n)
	}
	return nil
}

// allocSlack is what background work may add to a call's allocations.
const allocSlack = 3

// writeBaseline writes what a later diff needs and nothing that changes from
// run to run.
func writeBaseline(path string, run *report.Run) error {
	bare := run.Header()
	bare.Version, bare.Results, bare.Allocations = "", quality.Bare(run.Results), run.Allocations
	data, err := schema.Encode(bare)
	if err == nil {
		err = durable.WriteFile(path, append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	return nil
}
