// Package usage decides where in a command line untrusted data may be put.
//
// The command is parsed by a real shell parser, and the rule is turned round: a
// symbol may be resolved without asking only where it is recognised as a plain
// argument of a program that takes arguments as data. Everywhere else — as a
// command, as code for an interpreter, in a here-document, in a variable, in
// arithmetic, as the place that something goes to, or in a construct that this
// package does not understand — it is a Use that waits for a person. A command
// without any symbol is looked at too: the files that it would run must not hold
// one.
//
// What is resolved is put back into the text at the symbol's own place, quoted
// for the quotation that it stands in, so that it can neither end its word nor
// become an option.
package usage
