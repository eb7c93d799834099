// Package auditor measures how well an auditor judges labelled records: what
// it stops, what it lets through, whether it names the right span, and whether
// its probabilities mean what they say. It runs any auditor against any JSONL
// file of the documented form and claims nothing without an interval.
package auditor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"sync"

	"example.org/auditd/inference"
	"example.org/auditd/schema"
)

// phrase is the wording that most rule-based tools catch: how much of a
// figure hangs on it is reported.
var phrase = regexp.MustCompile(`(?i)(ignore|disregard|forget)\s+(all\s+)?(of\s+)?(the\s+|your\s+|any\s+|my\s+)?(previous|prior|above|earlier|preceding)\s+(instruction|prompt|direction|command|rule)`)

// Options of a run.
type Options struct {
	// Metadata gives the auditor the record's surface, source, sink and
	// intent; without it, text alone counts.
	Metadata bool
	// Workers is how many records are audited at once; 0 means the number of
	// processors.
	Workers int
	// Limit bounds the records of a file; 0 means all.
	Limit int
	// Progress, if set, is called after each record, one call at a time.
	Progress func(done, total int)
}

// TextAuditor is an auditor that can judge a text without any metadata.
type TextAuditor interface {
	AuditText(ctx context.Context, text string) (schema.Report, schema.Usage, error)
}

// Scorer is an auditor that gives its calibrated probability and its spans
// apart from the report. For others the report's risk and evidence stand in.
type Scorer interface {
	Probability(ctx context.Context, f *schema.Flow, payload string) (float64, []schema.Span, error)
}

// outcome is what one record gave.
type outcome struct {
	source  string
	attack  bool
	phrase  bool
	p       float64
	stopped bool // blocked, deferred, or rewritten so that the span is gone
	passed  bool // allowed unchanged
	failed  bool // no report

	spanned      bool // the record names a span that is not all of it
	f1           float64
	kept         float64 // share of the carrier that the span left alone
	rewrote      bool    // a rewrite without the span, which passes when audited again
	attributable bool    // stopped, and passes once the span is cut out
}

// Run audits the records of a file and returns the figures, all together and
// by source. It fails only when the file cannot be read or ctx ends: a record
// that gave no report counts as stopped, as it would be.
func Run(ctx context.Context, path string, a inference.Auditor, o Options) (*Result, error) {
	recs, err := read(path, o.Limit)
	if err != nil {
		return nil, err
	}
	if len(recs) == 0 {
		return nil, errors.New("no records")
	}
	if o.Workers <= 0 {
		o.Workers = runtime.NumCPU()
	}
	out := make([]outcome, len(recs))
	work := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range o.Workers {
		wg.Go(func() {
			for i := range work {
				out[i] = judge(ctx, a, &recs[i], o.Metadata)
				if o.Progress != nil {
					mu.Lock()
					done++
					o.Progress(done, len(recs))
					mu.Unlock()
				}
			}
		})
	}
	for i := range recs {
		if ctx.Err() != nil {
			break
		}
		work <- i
	}
	close(work)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("audit records: %w", err)
	}
	return summarise(a.Identity(), path, o.Metadata, out), nil
}

// judge audits one record.
func judge(ctx context.Context, a inference.Auditor, r *record, metadata bool) outcome {
	o := outcome{source: r.Source, attack: r.Kind == "attack", phrase: phrase.MatchString(r.Payload)}
	f := r.flow(metadata)
	rep, err := audit(ctx, a, f, r.Payload, metadata)
	if err != nil {
		o.failed, o.stopped, o.p = true, true, 1
		return o
	}
	start, end := r.span()
	gone := rep.Rewrite != nil && spanGone(r.Payload[start:end], *rep.Rewrite)
	o.passed = rep.Decision == schema.Allow
	o.stopped = rep.Decision.Stops() || gone
	o.p, _ = rep.Risk, 0
	spans := evidenceSpans(r.Payload, rep.Evidence)
	if s, ok := a.(Scorer); ok {
		var sf *schema.Flow
		if metadata {
			sf = f
		}
		if p, found, err := s.Probability(ctx, sf, r.Payload); err == nil {
			o.p, spans = p, found
		}
	}
	if o.attack && start < end && (start > 0 || end < len(r.Payload)) {
		o.spanned = true
		o.f1 = spanF1(r.Payload, start, end, spans)
		if rep.Rewrite != nil {
			o.kept = carrierKept(r.Payload, start, end, *rep.Rewrite)
			again, err := audit(ctx, a, r.flow(metadata).WithPayload(*rep.Rewrite), *rep.Rewrite, metadata)
			o.rewrote = gone && err == nil && again.Decision == schema.Allow
		}
		if o.stopped {
			carrier := r.Payload[:start] + " " + r.Payload[end:]
			rest, err := audit(ctx, a, f.WithPayload(carrier), carrier, metadata)
			o.attributable = err == nil && rest.Decision == schema.Allow
		}
	}
	return o
}

// audit asks for a report, on the text alone where that is wanted and the
// auditor can.
func audit(ctx context.Context, a inference.Auditor, f *schema.Flow, payload string, metadata bool) (schema.Report, error) {
	if t, ok := a.(TextAuditor); ok && !metadata {
		rep, _, err := t.AuditText(ctx, payload)
		return rep, err
	}
	rep, _, err := a.Audit(ctx, &schema.Record{Flow: f, Precheck: &schema.Precheck{}})
	return rep, err
}
