// Package policy reads the owner's file: which agents are guarded how, which
// sources are trusted, which destinations are known, and the owner's own rules.
//
// What the file can and cannot do is fixed here. A rule can never lift a hard
// block of the precheck, because it runs after it. A rule that allows must name
// what it allows: a sink's id, tool, action or destination, a source's id or
// the payload, compared with a constant. Every expression is checked when the
// file is read and has a cost limit when it runs; one that fails while a flow
// is judged stops the flow. A suppression takes evidence away for a named place
// and until a day, and never a code that can block by itself.
//
// An agent runs as its owner's user and may be able to write this file. That is
// why a change becomes active only through the owner's credential, and why its
// digest stands in every decision.
package policy
