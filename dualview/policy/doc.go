// Package policy decides which parts of a tool's result the deciding model may
// read, and which arguments of a call must not come from untrusted data.
//
// # Data trust
//
// For each tool a document lists the fields of its result. A field is trusted
// only where it is listed, and only as far as its type goes: a whole number in
// a range, a word of a closed list, the caller's own argument echoed. Text is
// never trusted because a tool returned it. Everything else becomes a symbol:
// fields that are not listed, whatever is of another type than declared, every
// name of a member that the rule does not spell, and all results of tools that
// are not listed.
//
// Order of precedence, the first that applies wins:
//
//  1. an origin rule that says untrusted, in any document
//  2. a field's type in the tool's rule
//  3. an origin rule that says trusted, for the text of that origin
//  4. untrusted
//
// Text that a rule lets through is still searched for known values, so that a
// trusted origin or a file does not bring back what was untrusted before.
//
// # Data usage
//
// Parameters that say where something goes are listed too. A symbol in one of
// them, or one that a usage rule of the owner names, needs a person's answer
// before it is resolved. Commands are the business of package usage.
//
// A policy comes from local files only. Nothing in a payload can change how
// that payload is classified, and a change that an agent proposes is a question
// to a person.
package policy
