package auditor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// JSON writes the results as one document.
func JSON(w io.Writer, results []*Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(results)
}

// Table writes the results as Markdown tables, one for each file and mode, and
// last what of the goals was reached on the sets that have some.
func Table(w io.Writer, results []*Result) error {
	for _, r := range results {
		mode := "text alone"
		if r.Metadata {
			mode = "with metadata"
		}
		if _, err := fmt.Fprintf(w, "\n%s, %s (%s)\n\n", r.File, mode, r.Auditor); err != nil {
			return err
		}
		head := []string{"source", "n", "stopped", "passed", "balanced", "AUC", "recall at 1 % FPR", "stopped without phrase",
			"attributable", "span F1 ≥ 0.8", "carrier kept", "span + rewrite", "ECE", "no report"}
		if err := line(w, head); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w, strings.Repeat("|---", len(head))+"|"); err != nil {
			return err
		}
		for _, x := range r.Rows {
			cells := []string{x.Name, fmt.Sprint(x.N), x.Stopped.String(), x.Passed.String(), percent(x.Balanced), number(x.AUC),
				x.Recall1.String(), x.WithoutPhrase.String(), x.Attributable.String(), x.SpanF1.String(), percent(x.Kept),
				x.Rewritten.String(), fmt.Sprintf("%s [%.3f, %.3f]", number(x.ECE), x.ECELow, x.ECEHigh), fmt.Sprint(x.Failed)}
			if err := line(w, cells); err != nil {
				return err
			}
		}
	}
	return goalTable(w, results)
}

func line(w io.Writer, cells []string) error {
	_, err := fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	return err
}

func (s *Share) String() string {
	if s == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f %% [%.1f, %.1f]", 100*s.Share, 100*s.Low, 100*s.High)
}

func percent(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100**v)
}

func number(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f", *v)
}
