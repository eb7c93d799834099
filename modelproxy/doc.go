// Package modelproxy stands between an agent's runtime and the provider of its
// model, and asks the daemon about everything that goes through: what the model
// is about to read, and what it wants to have done.
//
// It is the one layer that every agent has. A hook that is missing, or an answer
// of a hook that the host ignores, is not noticed by the host; a request that
// this proxy refuses never reaches the model. So it fails closed everywhere: what
// it cannot read it does not pass on, and what an upstream sends that is not
// what was asked for ends as an error in the dialect's own shape.
//
// A request is a tree of JSON (node.go). A dialect names the places in it that a
// model reads: system prompts, tool definitions, texts of users, results of
// tools, and what the model itself is said to have said. Each is looked up in
// the Memory by a keyed hash, and reported as an event where it is unknown there.
// What is left of a block or a field that the dialect does not know must be
// unable to hold content: numbers, truth values, single words. Answers go the
// other way through a gate: text passes as it comes, tool calls wait until their
// arguments are complete and decided about.
//
// Who attacks here: whoever wrote what a tool returned; the provider, or who
// pretends to be it; any other program on this machine, which can connect to a
// port on the loopback interface as well as the agent can.
package modelproxy
