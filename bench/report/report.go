// Package report writes what a benchmark found for people: a Markdown table for
// a terminal or a pull request, and one HTML page with plots that needs neither
// a network nor scripts.
package report

import (
	"example.org/auditd/bench/quality"
)

// Run is one run with what is needed to judge and to repeat it.
type Run struct {
	Version string   `json:"version"`
	Cases   string   `json:"cases"`
	Auditor string   `json:"auditor"`
	Arbiter string   `json:"arbiter"`
	Policy  string   `json:"policy"`
	Judge   string   `json:"judge,omitempty"` // the model that judged beside the oracle
	Quick   bool     `json:"quick,omitempty"`
	Entries []string `json:"entries,omitempty"` // further entry points
	Part    string   `json:"part,omitempty"`    // the part of the procedure that is left out
	// Allocations of one decision, by kind of flow, with a stand-in for the auditor.
	Allocations map[string]float64 `json:"allocations,omitempty"`
	// Isolation is a run of the isolation benchmark in the same report.
	Isolation *Isolation       `json:"isolation,omitempty"`
	Summary   *quality.Summary `json:"summary,omitempty"`
	Results   []quality.Result `json:"results,omitempty"`
}

// Header is the run without what it found: runs with the same header may be
// continued.
func (r *Run) Header() *Run {
	h := *r
	h.Summary, h.Results, h.Allocations, h.Isolation = nil, nil, nil, nil
	return &h
}
