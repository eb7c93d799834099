package fileview

import (
	"bytes"
	"encoding/json"
	"errors"

	"example.org/auditd/dualview"
)

// segment is a stretch of a file's human side: trusted, or what a symbol stands
// for.
type segment struct {
	Symbol dualview.Symbol `json:"s,omitempty"` // empty: trusted
	N      int             `json:"n"`           // bytes on the human side
}

var errSegments = errors.New("the recorded provenance of a file does not fit it")

func encodeSegments(segs []segment) []byte {
	enc, err := json.Marshal(segs)
	if err != nil {
		panic("fileview: internal error: " + err.Error())
	}
	return enc
}

func decodeSegments(data []byte) ([]segment, error) {
	var segs []segment
	if err := json.Unmarshal(data, &segs); err != nil {
		return nil, errSegments
	}
	for _, s := range segs {
		if s.N < 0 {
			return nil, errSegments
		}
	}
	return segs, nil
}

// join merges neighbouring trusted segments and drops empty ones.
func join(segs []segment) []segment {
	var out []segment
	for _, s := range segs {
		switch {
		case s.N == 0 && s.Symbol == "":
		case s.Symbol == "" && len(out) > 0 && out[len(out)-1].Symbol == "":
			out[len(out)-1].N += s.N
		default:
			out = append(out, s)
		}
	}
	return out
}

// agentText returns the agent's side of a file: symbols in place of what they
// stand for.
func agentText(human []byte, segs []segment) ([]byte, error) {
	var out bytes.Buffer
	at := 0
	for _, s := range segs {
		if s.N > len(human)-at {
			return nil, errSegments
		}
		if s.Symbol == "" {
			out.Write(human[at : at+s.N])
		} else {
			out.WriteString(string(s.Symbol))
		}
		at += s.N
	}
	if at != len(human) {
		return nil, errSegments
	}
	return out.Bytes(), nil
}

func trustedWhole(segs []segment) bool {
	for _, s := range segs {
		if s.Symbol != "" {
			return false
		}
	}
	return true
}

func symbolsOf(segs []segment) []dualview.Symbol {
	var out []dualview.Symbol
	for _, s := range segs {
		if s.Symbol != "" {
			out = append(out, s.Symbol)
		}
	}
	return out
}

// stretch is a part of a new version of a file and where it comes from: part
// [from, from+len) of segment seg of the old version, or nowhere (seg < 0).
type stretch struct {
	start, end int
	seg, from  int
}

// trace follows every byte of a new human version back to the old one. It
// covers all of the new version, in order.
func trace(old []byte, segs []segment, new []byte) []stretch {
	var out []stretch
	at := 0
	fresh := func(end int) {
		if end > at {
			out = append(out, stretch{at, end, -1, 0})
			at = end
		}
	}
	seg, segStart := 0, 0
	for _, m := range matches(old, new) {
		fresh(m.b)
		for pos, left := m.a, m.n; left > 0; {
			for segStart+segs[seg].N <= pos {
				segStart += segs[seg].N
				seg++
			}
			n := min(left, segStart+segs[seg].N-pos)
			out = append(out, stretch{at, at + n, seg, pos - segStart})
			at, pos, left = at+n, pos+n, left-n
		}
	}
	fresh(len(new))
	return out
}
