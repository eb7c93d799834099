// Package firewall takes one flow, or one event of a host, to one enforced
// decision. It is the procedure of the token-flow paper (section 2), written
// as one list of stages, each of which decides or passes on.
//
// It promises that a decision that lets anything through was made by a stage
// on purpose and was written to the log before it is returned. Everything
// else stops the flow: a model that fails in any way, a stage that panics, a
// deadline, a rewrite that does more than take away, a log that cannot be
// written, a function that the configuration left out.
//
// Whoever writes the payload is an adversary, and so may be whoever holds the
// hook credential, because an agent can read its file. What a caller claims
// can therefore only make a decision stricter.
package firewall
