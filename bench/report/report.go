// Package report writes what a benchmark found for people: a Markdown table for
// a terminal or a pull request, and one HTML page with plots that needs neither
// a network nor scripts.
package report

import (
	"example.org/auditd/bench/quality"
)

// Run is one run with what is needed to judge and to repeat it.
type Run struct {
	Version string           `json:"version"`
	Cases   string           `json:"cases"`
	Auditor string           `json:"auditor"`
	Arbiter string           `json:"arbiter"`
	Policy  string           `json:"policy"`
	Quick   bool             `json:"quick,omitempty"`
	Entries []string         `json:"entries,omitempty"` // further entry points
	Part    string           `json:"part,omitempty"`    // the part of the procedure that is left out
	Summary *quality.Summary `json:"summary,omitempty"`
	Results []quality.Result `json:"results,omitempty"`
}

// Header is the run without what it found: runs with the same header may be
// continued.
func (r *Run) Header() *Run {
	h := *r
	h.Summary, h.Results = nil, nil
	return &h
}
