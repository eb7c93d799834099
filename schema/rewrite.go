package schema

// Masks and the marker are the only text that a rewrite adds to a payload.
// They are the daemon's own words, so that a rewrite can only take away.
const (
	MaskSecret    = "[redacted]"                                 // in place of a secret
	MaskRemoved   = "[removed]"                                  // in place of anything else
	MarkUntrusted = "[untrusted content, unsafe parts removed] " // before a text that enters the agent's context
)

// Edit is one difference between a payload and its rewrite: the bytes
// [Start,End) of the original gave way to Mask.
type Edit struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Mask  string `json:"mask,omitempty"`
}

// ApplyEdits makes the rewrite out of the original. The edits are ascending,
// disjoint and within it, as a Decision's are.
func ApplyEdits(payload string, edits []Edit) string {
	out := make([]byte, 0, len(payload)+len(edits)*len(MaskRemoved))
	at := 0
	for _, e := range edits {
		out = append(out, payload[at:e.Start]...)
		out = append(out, e.Mask...)
		at = e.End
	}
	return string(append(out, payload[at:]...))
}
