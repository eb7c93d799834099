package onnx

import (
	"example.org/auditd/inference/onnx/wordpiece"
	"example.org/auditd/schema"
)

// Limits of the owner's intent in the header (training's contract).
const (
	maxIntentRunes  = 160
	maxIntentTokens = 32
)

// neutral is the header of a text about which nothing is known.
const neutral = "any any | any any | any |"

// header writes the tokens of the record's header: what the instrumented
// runtime knows, never anything of the payload. A nil flow is neutral.
//
// Precheck codes are left out on purpose: the encoder must not inherit the
// rules' blind spots, and the firewall weighs both.
func (a *Auditor) header(j *job, f *schema.Flow) {
	j.head.Reset()
	intent := ""
	if f == nil {
		a.tok.Append(&j.head, []byte(neutral))
	} else {
		intent = f.Intent
		b := append(j.line[:0], word(f.Surface, schema.SurfaceUnset)...)
		b = append(append(b, ' '), word(f.Boundary, schema.BoundaryUnset)...)
		b = append(append(b, " | "...), f.Source.Kind.String()...)
		b = append(append(b, ' '), f.Source.Trust.String()...)
		b = append(append(b, " | "...), f.Sink.Kind.String()...)
		b = append(b, " |"...)
		j.line = b
		a.tok.Append(&j.head, b)
	}
	mark := len(j.head.IDs)
	a.tok.Append(&j.head, a.intent(&j.text, intent))
	j.header = j.head.IDs[:min(len(j.head.IDs), mark+maxIntentTokens, a.set.MaxHeaderTokens)]
}

// intent prepares the owner's intent; t is scratch.
func (a *Auditor) intent(t *wordpiece.Text, intent string) []byte {
	if intent != "" {
		a.tok.Prepare(t, intent)
		b := trimSpaces(t.Bytes())
		n := 0
		for i := range string(b) {
			if n++; n > maxIntentRunes {
				b = trimSpaces(b[:i])
				break
			}
		}
		if len(b) > 0 {
			return b
		}
	}
	return noIntent
}

var noIntent = []byte("none")

func trimSpaces(b []byte) []byte {
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}

// word is the text of v, or "any" where it is not set.
func word[T interface {
	comparable
	String() string
}](v, unset T) string {
	if v == unset {
		return "any"
	}
	return v.String()
}

// windows cuts n payload tokens into overlapping windows: every token is
// covered, and the last window ends at the end.
func windows(starts []int32, n, window, stride int) []int32 {
	if n <= window {
		return append(starts, 0)
	}
	for s := 0; s < n-window; s += stride {
		starts = append(starts, int32(s))
	}
	return append(starts, int32(n-window))
}
