// Package escalation holds the predicate Φ: whether the small auditor's report
// is enough to enforce, or a stronger judge must look at the flow. Everything
// in it is a pure function of the flow as it now stands, the precheck's
// findings, the report and the thresholds, so that the whole predicate is one
// truth table.
//
// The order of the questions is the predicate's meaning:
//
//  1. A clear block and a clear defer end locally: they stop the flow anyway.
//  2. A complete rewrite with little left ends locally.
//  3. A condition of the flow's surface escalates, even against a clear allow.
//     It needs a residual risk type that the report names (for encoded
//     payloads, the precheck's code), never the sink alone: or else every
//     ordinary memory write would be asked about.
//  4. A clear allow ends locally.
//  5. Everything else escalates.
//
// Scores that are not numbers make nothing clear, and a missing report or
// precheck escalates.
package escalation
