package policy

import (
	"fmt"
	"math"
)

// InspectRule says what of a quarantined model's answer the deciding model may
// read. Whatever else such an answer holds becomes a symbol.
type InspectRule struct {
	// Clear allows true or false, a word of a closed list and a whole number in
	// a range to be given in clear. Without it everything is a symbol.
	Clear bool `yaml:"clear"`
	// Bits bounds what one answer may tell in clear, 0 means 16.
	Bits float64 `yaml:"bits,omitempty"`
	// SessionBits bounds what all inspections of one session may tell together,
	// 0 means 1024. That an inspection succeeded or failed counts too.
	SessionBits float64 `yaml:"session_bits,omitempty"`
}

const (
	defaultInspectBits        = 16
	defaultInspectSessionBits = 1024
)

func (r *InspectRule) validate() error {
	if r.Bits < 0 || r.Bits > DefaultBits || math.IsNaN(r.Bits) {
		return fmt.Errorf("inspect: bits is %v, it must be 0 to %d", r.Bits, DefaultBits)
	}
	if r.SessionBits < 0 || r.SessionBits > 1<<20 || math.IsNaN(r.SessionBits) {
		return fmt.Errorf("inspect: session_bits is %v, it must be 0 to %d", r.SessionBits, 1<<20)
	}
	return nil
}

// Inspect returns the rule for inspections. Without one nothing is given in
// clear.
func (p *Policy) Inspect() InspectRule {
	var r InspectRule
	if p.inspect != nil {
		r = *p.inspect
	}
	if r.Bits == 0 {
		r.Bits = defaultInspectBits
	}
	if r.SessionBits == 0 {
		r.SessionBits = defaultInspectSessionBits
	}
	return r
}

// RangeBits is what a whole number between low and high can tell.
func RangeBits(low, high float64) float64 { return math.Log2(high - low + 1) }

// WordBits is what one word of a closed list of n can tell.
func WordBits(n int) float64 { return math.Log2(float64(n)) }
