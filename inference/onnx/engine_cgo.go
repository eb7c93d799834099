//go:build cgo

package onnx

import (
	"errors"
	"fmt"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// environment is ONNX Runtime's state of the process. The C library has one,
// so this package has too; it is never torn down, because other auditors may
// still run.
var environment struct {
	sync.Mutex
	path string // of the library that was opened
}

// openLibrary opens ONNX Runtime's shared library, once for the process.
// It returns the library's version.
func openLibrary(path string) (string, error) {
	environment.Lock()
	defer environment.Unlock()
	if environment.path != "" {
		return ort.GetVersion(), nil // the first one stays: two versions in one process would clash
	}
	ort.SetSharedLibraryPath(path)
	if err := ort.InitializeEnvironment(ort.WithLogLevelError()); err != nil {
		return "", fmt.Errorf("open %s (ONNX Runtime 1.24 or newer is needed): %w", path, err)
	}
	environment.path = path
	return ort.GetVersion(), nil
}

var (
	inputNames  = []string{"input_ids", "attention_mask", "token_type_ids"}
	outputNames = []string{"decision_logits", "scores", "residual", "span_logits"}
)

// engine is one loaded model.
type engine struct {
	session *ort.DynamicAdvancedSession
}

func newEngine(set *Set, threads int) (*engine, error) {
	opts, err := ort.NewSessionOptions()
	if err != nil {
		return nil, fmt.Errorf("session options: %w", err)
	}
	defer opts.Destroy()
	err = errors.Join(
		opts.SetIntraOpNumThreads(threads),
		opts.SetInterOpNumThreads(1),
		opts.SetExecutionMode(ort.ExecutionModeSequential),
		opts.SetGraphOptimizationLevel(ort.GraphOptimizationLevelEnableAll),
		opts.SetCpuMemArena(true),
		// Rows come in every length; a plan for each would only cost memory.
		opts.SetMemPattern(false),
		opts.SetLogSeverityLevel(ort.LoggingLevelError),
		// Threads spin within a run and sleep after it.
		opts.AddSessionConfigEntry("session.force_spinning_stop", "1"),
	)
	if err != nil {
		return nil, fmt.Errorf("session options: %w", err)
	}
	s, err := ort.NewDynamicAdvancedSessionWithONNXData(set.Model, inputNames, outputNames, opts)
	if err != nil {
		return nil, fmt.Errorf("load %s %s: %w", set.Name, set.Version, err)
	}
	return &engine{session: s}, nil
}

func (e *engine) close() { e.session.Destroy() }

// lane runs one row at a time. Each length of row has tensors of its own, made
// at its first use and bound once, so that a run neither allocates nor pads:
// the quantisation of activations looks at the whole input, and a row that was
// padded, or shared a batch with another flow's row, would score differently.
type lane struct {
	session *ort.DynamicAdvancedSession
	bound   [maxSeq + 1]*binding
}

type binding struct {
	b                  *ort.IoBinding
	ids, mask, types   *ort.Tensor[int64]
	decision, scores   *ort.Tensor[float32]
	residual, spanHead *ort.Tensor[float32]
	out                row
}

func (e *engine) lane() *lane { return &lane{session: e.session} }

// run scores `[CLS] header [SEP] window [SEP]`. The result is valid until the
// next run of this lane.
func (l *lane) run(sp *Special, header, window []int32) (*row, error) {
	n := len(header) + len(window) + 3
	if n > maxSeq {
		return nil, fmt.Errorf("row of %d tokens, the limit is %d", n, maxSeq)
	}
	b := l.bound[n]
	if b == nil {
		var err error
		if b, err = newBinding(l.session, n); err != nil {
			return nil, err
		}
		l.bound[n] = b
	}
	ids, types := b.ids.GetData(), b.types.GetData()
	ids[0] = int64(sp.Cls)
	for i, id := range header {
		ids[i+1] = int64(id)
	}
	at := len(header) + 2
	ids[at-1] = int64(sp.Sep)
	for i, id := range window {
		ids[at+i] = int64(id)
	}
	ids[n-1] = int64(sp.Sep)
	for i := range types {
		types[i] = 0
		if i >= at {
			types[i] = 1
		}
	}
	if err := l.session.RunWithBinding(b.b); err != nil {
		return nil, fmt.Errorf("run a row of %d tokens: %w", n, err)
	}
	copy(b.out.decision[:], b.decision.GetData())
	copy(b.out.scores[:], b.scores.GetData())
	copy(b.out.residual[:], b.residual.GetData())
	b.out.spans = b.spanHead.GetData()[at*spanClasses : (at+len(window))*spanClasses]
	return &b.out, nil
}

func newBinding(s *ort.DynamicAdvancedSession, n int) (*binding, error) {
	b := new(binding)
	fail := func(err error) (*binding, error) {
		b.destroy()
		return nil, fmt.Errorf("tensors for a row of %d tokens: %w", n, err)
	}
	var err error
	if b.b, err = s.CreateIoBinding(); err != nil {
		return fail(err)
	}
	seq := int64(n)
	for i, t := range []**ort.Tensor[int64]{&b.ids, &b.mask, &b.types} {
		if *t, err = ort.NewEmptyTensor[int64](ort.NewShape(1, seq)); err != nil {
			return fail(err)
		}
		if err := b.b.BindInput(inputNames[i], *t); err != nil {
			return fail(err)
		}
	}
	for i, t := range []struct {
		to    **ort.Tensor[float32]
		shape ort.Shape
	}{
		{&b.decision, ort.NewShape(1, 4)}, {&b.scores, ort.NewShape(1, 3)},
		{&b.residual, ort.NewShape(1, 8)}, {&b.spanHead, ort.NewShape(1, seq, spanClasses)},
	} {
		if *t.to, err = ort.NewEmptyTensor[float32](t.shape); err != nil {
			return fail(err)
		}
		if err := b.b.BindOutput(outputNames[i], *t.to); err != nil {
			return fail(err)
		}
	}
	mask := b.mask.GetData()
	for i := range mask {
		mask[i] = 1
	}
	return b, nil
}

func (l *lane) close() {
	for _, b := range l.bound {
		if b != nil {
			b.destroy()
		}
	}
}

func (b *binding) destroy() {
	if b.b != nil {
		b.b.Destroy()
	}
	for _, t := range []*ort.Tensor[int64]{b.ids, b.mask, b.types} {
		if t != nil {
			t.Destroy()
		}
	}
	for _, t := range []*ort.Tensor[float32]{b.decision, b.scores, b.residual, b.spanHead} {
		if t != nil {
			t.Destroy()
		}
	}
}
