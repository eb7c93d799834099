// Package quarantine asks a second model about values that the deciding model
// must not read: the tool inspect_symbol.
//
// The quarantined model reads what attackers wrote and may do whatever it is
// told there. So it is given nothing to do harm with: no tools, no memory, one
// prompt and one answer. The values stand in a fence that they cannot close.
// The answer is checked against a schema, and then each field becomes a symbol
// with the inspected symbols as its parents. Only a true or false, a word of a
// closed list and a whole number in a range may be given in clear, where the
// owner's policy says so and within a budget of bits for each answer and each
// session.
//
// The question comes from the deciding model. It is an instruction to the
// quarantined one, so it must not hold anything out of a value: a symbol in it
// is not resolved, and text that is known to come from a value is refused.
//
// Every failure withholds the answer, and says to the agent nothing more than
// that it failed.
package quarantine
