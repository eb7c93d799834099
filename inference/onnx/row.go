package onnx

import (
	"math"

	"example.org/auditd/inference/onnx/wordpiece"
)

// Special holds the ids of the special tokens.
type Special = wordpiece.Special

// The order of the model's outputs (training's contract).
const (
	outAllow = iota
	outRewrite
	outDefer
	outBlock
)

const spanClasses = 6 // none and the five categories, in schema's order

// row is what the model says about one window.
type row struct {
	decision [4]float32
	scores   [3]float32 // risk, exploitability, impact
	residual [8]float32 // in schema's order
	spans    []float32  // for each token of the window, spanClasses logits
}

// finite reports whether every score is a number: a damaged or miscompiled
// model must not turn into an allow.
func (r *row) finite() bool {
	sum := float32(0)
	for _, v := range r.decision {
		sum += v * 0
	}
	for _, v := range r.scores {
		sum += v * 0
	}
	for _, v := range r.residual {
		sum += v * 0
	}
	for _, v := range r.spans {
		sum += v * 0
	}
	return sum == 0 // NaN and infinities times zero are NaN
}

// attack is the log-odds of "not allow" against "allow".
func attack(d *[4]float32) float64 {
	a, b, c := float64(d[outRewrite]), float64(d[outDefer]), float64(d[outBlock])
	m := max(a, b, c)
	return m + math.Log(math.Exp(a-m)+math.Exp(b-m)+math.Exp(c-m)) - float64(d[outAllow])
}

// unsafe returns the probability that a token is unsafe, and its most probable
// category.
func unsafe(logits []float32) (p float32, category uint8) {
	best := 1
	for i := 2; i < spanClasses; i++ {
		if logits[i] > logits[best] {
			best = i
		}
	}
	m := max(logits[0], logits[best])
	sum := 0.0
	for i := 1; i < spanClasses; i++ {
		sum += math.Exp(float64(logits[i] - m))
	}
	none := math.Exp(float64(logits[0] - m))
	return float32(sum / (sum + none)), uint8(best)
}
