package onnx

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"example.org/auditd/inference"
	"example.org/auditd/schema"
)

// Scores is what the model says about a whole text.
type Scores struct {
	// Attack is the calibrated log-odds that the text must not pass as it
	// is: the worst window's, corrected for the number of windows.
	Attack float64
	// Decision holds the logits of the worst window, in the order allow,
	// rewrite_and_continue, defer_to_human, block.
	Decision [4]float64
	// Scores are risk, exploitability and impact; Residual is in schema's
	// order. Each is the maximum over the windows.
	Scores   [3]float64
	Residual [8]float64
	// Disagreement is how far the windows that share text with the worst one
	// are from it, as a probability in [0,1].
	Disagreement float64
	Spans        []schema.Span // unsafe, ascending; bytes of the payload
	Carrier      int           // tokens outside Spans
	Tokens       int           // of the payload
	Windows      int           // that cover it
	Encoded      int           // windows that the encoder saw; the first stage cleared the others
}

// P is the calibrated probability that the text must not pass as it is.
func (s *Scores) P() float64 { return sigmoid(s.Attack) }

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
func logit(p float64) float64   { return math.Log(p) - math.Log1p(-p) }

// score runs text through tokenizer, windows and encoder.
func (a *Auditor) score(ctx context.Context, f *schema.Flow, payload string) (Scores, error) {
	select {
	case <-a.loaded:
	default:
		select {
		case <-a.loaded:
		case <-ctx.Done():
			return Scores{}, fail(inference.CauseUnavailable, errors.New("the model is still loading"))
		}
	}
	if a.loadErr != nil {
		return Scores{}, fail(inference.CauseUnavailable, a.loadErr)
	}
	if ctx.Err() != nil {
		return Scores{}, ended(ctx)
	}
	j, err := a.sched.admit()
	if err != nil {
		return Scores{}, err
	}
	if err := a.cut(j, f, payload); err != nil {
		a.sched.release(j, false)
		return Scores{}, err
	}
	a.sched.submit(j)
	select {
	case <-j.done:
	case <-ctx.Done():
		j.stop.Store(true)
		a.sched.release(j, false)
		return Scores{}, ended(ctx)
	}
	if e := j.failed.Load(); e != nil {
		a.sched.release(j, false)
		return Scores{}, fail(inference.CauseUnavailable, *e)
	}
	s := a.merge(j)
	a.sched.release(j, true)
	return s, nil
}

// cut prepares and tokenises the text and lays out its windows. The input is
// hostile: should the text path panic after all, the audit is malformed and
// the daemon lives.
func (a *Auditor) cut(j *job, f *schema.Flow, payload string) (err error) {
	defer func() {
		if recover() != nil {
			err = fail(inference.CauseMalformed, errors.New("the tokenizer failed on the payload"))
		}
	}()
	a.header(j, f)
	// The marker of an earlier rewrite is the daemon's own words, says nothing
	// of the content, and must not be held against it.
	body := strings.TrimPrefix(payload, schema.MarkUntrusted)
	j.offset = len(payload) - len(body)
	a.tok.Prepare(&j.text, body)
	j.toks.Reset()
	a.tok.Append(&j.toks, j.text.Bytes())
	j.window = a.set.Window
	if n := len(j.toks.IDs); len(j.header)+n+3 <= maxSeq {
		j.window = max(j.window, n) // the whole payload fits one row
	}
	j.starts = windows(j.starts[:0], len(j.toks.IDs), j.window, a.set.Stride)
	n := len(j.starts)
	j.decision, j.classes = grow(j.decision, n), grow(j.classes, n)
	j.scores, j.residual = grow(j.scores, n), grow(j.residual, n)
	j.unsafe, j.category = grow(j.unsafe, n*j.window), grow(j.category, n*j.window)
	j.todo = j.todo[:0]
	if a.first != nil && n >= a.first.minWindows {
		j.todo = a.first.choose(j.todo, j.toks.IDs, j.starts, j.window)
	} else {
		for w := range n {
			j.todo = append(j.todo, int32(w))
		}
	}
	a.setAsideTwins(j)
	return nil
}

// twin is a window that holds the very tokens of another.
type twin struct{ window, of int32 }

// setAsideTwins takes windows out of todo that repeat another: text that says
// the same over and over costs a sender nothing, and must not cost the encoder
// a run for each repetition.
func (a *Auditor) setAsideTwins(j *job) {
	j.twins = j.twins[:0]
	if len(j.todo) < 3 {
		return
	}
	if j.seen == nil {
		j.seen = make(map[uint64]int32)
	}
	clear(j.seen)
	kept := j.todo[:0]
	for _, w := range j.todo {
		ids := a.tokens(j, w)
		sum := uint64(14695981039346656037) // FNV-1a
		for _, id := range ids {
			sum = (sum ^ uint64(uint32(id))) * 1099511628211
		}
		first, ok := j.seen[sum]
		if ok && slices.Equal(ids, a.tokens(j, first)) {
			j.twins = append(j.twins, twin{w, first})
			continue
		}
		if !ok {
			j.seen[sum] = w
		}
		kept = append(kept, w)
	}
	j.todo = kept
}

// tokens returns the token ids of window w.
func (a *Auditor) tokens(j *job, w int32) []int32 {
	from := int(j.starts[w])
	return j.toks.IDs[from:min(from+j.window, len(j.toks.IDs))]
}

// bringBackTwins gives the windows that were set aside what their twin got.
func (a *Auditor) bringBackTwins(j *job) {
	for _, t := range j.twins {
		j.decision[t.window], j.classes[t.window] = j.decision[t.of], j.classes[t.of]
		j.scores[t.window], j.residual[t.window] = j.scores[t.of], j.residual[t.of]
		to, from := int(t.window)*j.window, int(t.of)*j.window
		copy(j.unsafe[to:to+j.window], j.unsafe[from:])
		copy(j.category[to:to+j.window], j.category[from:])
		j.todo = append(j.todo, t.window)
	}
	slices.Sort(j.todo)
	j.twins = j.twins[:0]
}

// grow returns a slice of n elements, reusing s where it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// window runs window w of j and keeps what it says.
func (a *Auditor) window(l *lane, j *job, w int) error {
	from := int(j.starts[w])
	ids := j.toks.IDs[from:min(from+j.window, len(j.toks.IDs))]
	r, err := l.run(&a.tok.Special, j.header, ids)
	if err != nil {
		return err
	}
	if !r.finite() {
		return errors.New("the model's scores are not numbers")
	}
	j.decision[w] = attack(&r.decision)
	j.classes[w], j.scores[w], j.residual[w] = r.decision, r.scores, r.residual
	at := w * j.window
	for i := range ids {
		j.unsafe[at+i], j.category[at+i] = unsafe(r.spans[i*spanClasses : (i+1)*spanClasses])
	}
	return nil
}

// maxBiasWindows bounds the correction for the number of windows: without a
// bound, whoever pads an attack with enough harmless text buys it off.
const maxBiasWindows = 4

// merge makes one verdict of what the windows say that the encoder saw.
func (a *Auditor) merge(j *job) Scores {
	s := Scores{Tokens: len(j.toks.IDs), Windows: len(j.starts), Encoded: len(j.todo)}
	a.bringBackTwins(j)
	bias := a.set.WindowBias * math.Log(float64(min(len(j.starts), maxBiasWindows)))
	calibrated := func(w int) float64 { return j.decision[w]/a.set.Temperature - bias }
	worst := int(j.todo[0])
	for _, t := range j.todo {
		w := int(t)
		if j.decision[w] > j.decision[worst] {
			worst = w
		}
		for i, v := range j.scores[w] {
			s.Scores[i] = max(s.Scores[i], float64(v))
		}
		for i, v := range j.residual[w] {
			s.Residual[i] = max(s.Residual[i], float64(v))
		}
	}
	s.Attack = calibrated(worst)
	for i, v := range j.classes[worst] {
		s.Decision[i] = float64(v)
	}
	a.mergeTokens(j)
	s.Spans, s.Carrier = a.spans(j)
	s.Disagreement = a.disagreement(j, worst, s.P(), calibrated)
	return s
}

// disagreement looks at the windows before and after the worst one: where they
// hold the tokens that it found unsafe, they should be as sure as it is.
func (a *Auditor) disagreement(j *job, worst int, p float64, calibrated func(int) float64) float64 {
	from := int(j.starts[worst])
	to := min(from+j.window, len(j.toks.IDs))
	first, last := -1, -1
	for i := from; i < to; i++ {
		if j.tokUnsafe[i] >= float32(a.set.Span.Threshold) {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return 0
	}
	most := 0.0
	for _, t := range j.todo {
		w := int(t)
		if start := int(j.starts[w]); w != worst && start <= first && start+j.window > last {
			most = max(most, math.Abs(p-sigmoid(calibrated(w))))
		}
	}
	return most
}
