package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/quality"
	"example.org/auditd/schema"
)

// hostile is text that a case of somebody else's may hold.
const hostile = `<script>alert(1)</script>|"'&`

func sample() *Run {
	var results []quality.Result
	for i, surface := range []schema.Surface{schema.Context, schema.Authority, schema.Capability, schema.Context, schema.Context} {
		r := quality.Result{Case: hostile, Kind: cases.Attack, Surface: surface, Family: hostile, Goal: hostile, LatencyMS: float64(i) * 40,
			Verdict: quality.Verdict{Action: schema.Action(i % 4), Stage: schema.StageAuditor, Reason: hostile, Effect: i == 3, Preserved: true},
			Small:   &quality.Small{Risk: float64(i) / 5, Uncertainty: .3}, Codes: []schema.Code{schema.PromptControl}, Stages: map[string]float64{"auditor": 12}}
		if i == 4 {
			r.Kind = cases.Benign
		}
		r.Event = &quality.Verdict{Action: schema.Allow}
		results = append(results, r)
	}
	return &Run{Version: "1", Auditor: hostile, Cases: "x", Summary: quality.Summarise(results), Results: results}
}

// TestPageStandsAlone: the page loads nothing, runs nothing, and every drawing
// is well-formed, whatever a case is called.
func TestPageStandsAlone(t *testing.T) {
	for name, r := range map[string]*Run{"full": sample(), "empty": {Summary: quality.Summarise(nil)}} {
		var b bytes.Buffer
		if err := HTML(&b, r); err != nil {
			t.Fatal(err)
		}
		page := b.String()
		for _, bad := range []string{"<script", "http:", "https:", "url(", "@import", "src=", "NaN", "Inf"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s: the page holds %q", name, bad)
			}
		}
		drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
		if len(drawings) < 9 {
			t.Errorf("%s: %d drawings", name, len(drawings))
		}
		for _, d := range drawings {
			for x := xml.NewDecoder(strings.NewReader(d)); ; {
				if _, err := x.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v in %.200s", name, err, d)
				}
			}
		}
	}
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, sample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| ASR | 50.0 [9.5, 90.5] n=2 | 0.0 [0.0, 79.3] n=1 |", "stage auditor", "PROMPT_CONTROL"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), `|"'`) && !strings.Contains(b.String(), `\|"'`) {
		t.Error("a cell breaks its table")
	}
}
