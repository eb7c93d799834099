package onnx

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"example.org/auditd/inference"
	"example.org/auditd/inference/onnx/wordpiece"
	"example.org/auditd/schema"
)

// backend is the name in errors and usage.
const backend = "onnx"

// Config of an Auditor. The zero value runs the embedded model on the system's
// library.
type Config struct {
	Library  string        // path of libonnxruntime.so; empty: look in CacheDir and the system
	CacheDir string        // auditd's cache folder, where scripts/onnxruntime.sh puts the library
	Model    fs.FS         // folder with model.json; nil: the embedded one
	Digest   schema.Digest // that model.json must have; empty: any
	Threads  int           // that a lone window runs on; 0: the number of processors, at most 4
	Lanes    int           // windows that run at once, each on one thread; 0: the same
	Queue    int           // audits that may wait or run; 0: 256
	Log      *slog.Logger  // nil: discard
}

// Auditor is the ONNX backend of inference.Auditor.
type Auditor struct {
	set   *Set
	tok   *wordpiece.Tokenizer
	log   *slog.Logger
	sched scheduler

	identity string
	stop     float64 // the stop threshold as a logit

	loaded  chan struct{} // closed when loading ended
	loadErr error         // valid once loaded is closed
	engines []*engine     // the same
	first   *linear       // the same; nil without a first stage
	loadMS  float64       // the same
}

// New checks the library, the model's files and their digests, and starts to
// load the model; Ready and Wait say when that has ended. The caller closes
// the auditor.
func New(c Config) (*Auditor, error) {
	if c.Model == nil {
		c.Model = Embedded()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Threads <= 0 {
		c.Threads = min(runtime.NumCPU(), 4)
	}
	if c.Lanes <= 0 {
		c.Lanes = min(runtime.NumCPU(), 4)
	}
	if c.Queue <= 0 {
		c.Queue = 256
	}
	set, err := LoadSet(c.Model, c.Digest)
	if err != nil {
		return nil, err
	}
	library, err := FindLibrary(c.Library, c.CacheDir)
	if err != nil {
		return nil, err
	}
	version, err := openLibrary(library)
	if err != nil {
		return nil, err
	}
	a := &Auditor{
		set: set,
		log: c.Log,
		// The runtime is part of it: its int8 kernels differ between versions.
		identity: fmt.Sprintf("%s/%s@%s/%s/runtime-%s", backend, set.Name, set.Version, set.Digest, version),
		stop:     logit(set.Thresholds.Stop),
		loaded:   make(chan struct{}),
	}
	a.sched.init(c.Queue)
	go a.load(c)
	return a, nil
}

// load reads tokenizer and model and starts the lanes.
func (a *Auditor) load(c Config) {
	defer close(a.loaded)
	start := time.Now()
	if a.tok, a.loadErr = wordpiece.New(a.set.Tokenizer); a.loadErr != nil {
		return
	}
	if a.set.Stage1 != nil {
		if a.first, a.loadErr = parseLinear(a.set.Linear, a.set.Stage1.MinWindows); a.loadErr != nil {
			return
		}
	}
	a.sched.both = c.Threads > 1
	if a.loadErr = a.lanes(c.Lanes, 1); a.loadErr != nil {
		return
	}
	if c.Threads > 1 {
		if a.loadErr = a.lanes(1, c.Threads); a.loadErr != nil {
			return
		}
	}
	a.set.Model, a.set.Tokenizer, a.set.Linear = nil, nil, nil // what was read out of them stays
	debug.FreeOSMemory()                                       // loading leaves about 60 MB of garbage behind
	a.loadMS = float64(time.Since(start)) / float64(time.Millisecond)
	a.log.InfoContext(context.Background(), "auditor loaded", slog.String("model", a.set.Name), slog.String("version", a.set.Version),
		slog.String("digest", string(a.set.Digest)), slog.Int("threads", c.Threads), slog.Int("lanes", c.Lanes), slog.Float64("ms", a.loadMS))
}

// lanes loads the model once more and starts n lanes of so many threads.
func (a *Auditor) lanes(n, threads int) error {
	e, err := newEngine(a.set, threads)
	if err != nil {
		return err
	}
	a.engines = append(a.engines, e)
	for range n {
		l := e.lane()
		// A first run finds a model that does not fit the contract before a
		// flow does, and touches the weights.
		if err := warm(l, &a.tok.Special); err != nil {
			l.close()
			return err
		}
		a.sched.start(threads > 1, func(j *job, w int) error { return a.window(l, j, w) }, l.close)
	}
	return nil
}

func warm(l *lane, sp *Special) error {
	r, err := l.run(sp, nil, make([]int32, 8))
	if err != nil {
		return err
	}
	if !r.finite() {
		return errors.New("the model's scores are not numbers")
	}
	return nil
}

// Wait returns when loading has ended, or ctx has.
func (a *Auditor) Wait(ctx context.Context) error {
	select {
	case <-a.loaded:
		return a.Ready()
	case <-ctx.Done():
		return fmt.Errorf("wait for the model: %w", ctx.Err())
	}
}

// Close stops the lanes and frees the model. Audits that run fail.
func (a *Auditor) Close() error {
	<-a.loaded
	a.sched.close()
	for _, e := range a.engines {
		e.close()
	}
	return nil
}

// Identity names model, version and digest.
func (a *Auditor) Identity() string { return a.identity }

// Manifest returns what the model says about itself.
func (a *Auditor) Manifest() Manifest { return a.set.Manifest }

// Ready returns nil once the model is loaded.
func (a *Auditor) Ready() error {
	select {
	case <-a.loaded:
		if a.loadErr != nil {
			return fmt.Errorf("load the ONNX auditor: %w", a.loadErr)
		}
		return nil
	default:
		return errors.New("the ONNX auditor is loading")
	}
}

// Audit writes the report on rec.
func (a *Auditor) Audit(ctx context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	if rec == nil || rec.Flow == nil {
		return schema.Report{}, schema.Usage{}, fail(inference.CauseMalformed, errors.New("record without a flow"))
	}
	return a.audit(ctx, rec.Flow, rec.Flow.Payload)
}

// AuditText writes the report on a text of which nothing else is known: the
// header is neutral. It is for evaluation.
func (a *Auditor) AuditText(ctx context.Context, text string) (schema.Report, schema.Usage, error) {
	return a.audit(ctx, nil, text)
}

func (a *Auditor) audit(ctx context.Context, f *schema.Flow, payload string) (rep schema.Report, use schema.Usage, err error) {
	start := time.Now()
	s, err := a.score(ctx, f, payload)
	if err != nil {
		return schema.Report{}, schema.Usage{}, err
	}
	use = schema.Usage{Backend: backend, Model: a.set.Name + "@" + a.set.Version, Digest: string(a.set.Digest)}
	if rep, err = a.report(ctx, f, payload, s, &use); err != nil {
		return schema.Report{}, schema.Usage{}, err
	}
	if err := rep.Validate(); err != nil {
		return schema.Report{}, schema.Usage{}, fail(inference.CauseMalformed, err)
	}
	use.DurationMS = float64(time.Since(start)) / float64(time.Millisecond)
	return rep, use, nil
}

// Score returns what the model says about a text, without making a report of
// it. A nil flow gives the neutral header.
func (a *Auditor) Score(ctx context.Context, f *schema.Flow, payload string) (Scores, error) {
	return a.score(ctx, f, payload)
}

func fail(cause inference.Cause, err error) error {
	return &inference.Error{Cause: cause, Backend: backend, Err: err}
}

// ended turns a context's end into an error with the right cause.
func ended(ctx context.Context) error {
	return fail(inference.CauseOf(ctx.Err()), ctx.Err())
}

// Probability returns the calibrated probability that a text must not pass as
// it is, and its unsafe spans as a report would take them out.
func (a *Auditor) Probability(ctx context.Context, f *schema.Flow, payload string) (float64, []schema.Span, error) {
	s, err := a.score(ctx, f, payload)
	if err != nil {
		return 0, nil, err
	}
	for i := range s.Spans {
		s.Spans[i] = widen(payload, s.Spans[i])
	}
	return s.P(), disjoint(s.Spans), nil
}
