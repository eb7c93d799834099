package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Stage1 names the first stage: a linear model over hashed token ids that sees
// every window of a long text and clears those that are plainly benign, so that
// the encoder need not run on them. What it costs in recall is measured by
// training, and bounded there.
type Stage1 struct {
	File string `json:"file"`
	// MinWindows is the least number of windows that a text has for the
	// stage to be used; 0 means 2: a single window always goes to the
	// encoder.
	MinWindows int `json:"min_windows"`
}

// linear is the first stage: weights of unigrams and of bigrams in one hashed
// table. The score of a window is the largest sum over span neighbouring
// tokens, so that a short attack in a long window counts as much as alone.
type linear struct {
	weights    []int8
	shift      uint
	span       int
	scale      float64
	threshold  float64
	minWindows int
}

// parseLinear reads training's file: "ADS1", bits and span as uint32, scale
// and threshold as float32, little-endian, and a table of 2^bits int8.
func parseLinear(data []byte, minWindows int) (*linear, error) {
	const head = 20
	if len(data) < head || string(data[:4]) != "ADS1" {
		return nil, errors.New("first stage: not an ADS1 file")
	}
	bits, span := binary.LittleEndian.Uint32(data[4:]), binary.LittleEndian.Uint32(data[8:])
	l := &linear{
		shift:      uint(32 - bits),
		span:       int(span),
		scale:      float64(math.Float32frombits(binary.LittleEndian.Uint32(data[12:]))),
		threshold:  float64(math.Float32frombits(binary.LittleEndian.Uint32(data[16:]))),
		minWindows: max(minWindows, 2),
	}
	switch {
	case bits < 8 || bits > 24 || len(data) != head+1<<bits:
		return nil, fmt.Errorf("first stage: %d bytes for a table of 2^%d", len(data), bits)
	case span < 1 || span > maxSeq:
		return nil, fmt.Errorf("first stage: sums over %d tokens", span)
	case !(l.scale > 0) || math.IsInf(l.scale, 0) || math.IsNaN(l.threshold) || math.IsInf(l.threshold, 0):
		return nil, errors.New("first stage: scale or threshold is not a number")
	}
	l.weights = make([]int8, 1<<bits)
	for i, b := range data[head:] {
		l.weights[i] = int8(b)
	}
	return l, nil
}

// choose appends the windows that the encoder must see to todo: those that are
// not cleared, or the worst where all are, so that a report always rests on
// the encoder.
func (l *linear) choose(todo, ids, starts []int32, window int) []int32 {
	worst, most := 0, math.MinInt
	for w, from := range starts {
		s := l.score(ids[from:min(int(from)+window, len(ids))])
		if !(float64(s)*l.scale < l.threshold) {
			todo = append(todo, int32(w))
		}
		if s > most {
			worst, most = w, s
		}
	}
	if len(todo) == 0 {
		todo = append(todo, int32(worst))
	}
	return todo
}

func (l *linear) score(ids []int32) int {
	if len(ids) == 0 {
		return 0
	}
	var ring [maxSeq]int // the sums' summands, to take the oldest off again
	span := min(l.span, len(ids))
	sum, best := 0, math.MinInt
	prev := uint32(0)
	for i, id := range ids {
		a := uint32(id)
		uni := (a * 2654435761) >> l.shift
		bi := ((prev*31337 + a) * 2246822519) >> l.shift
		prev = a
		w := int(l.weights[uni]) + int(l.weights[bi])
		sum += w
		if i >= span {
			sum -= ring[i%span]
		}
		ring[i%span] = w
		if i >= span-1 {
			best = max(best, sum)
		}
	}
	return best
}
