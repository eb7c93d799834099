// Package mcpproxy stands between an MCP client and one of its servers and asks
// the daemon about everything that goes through.
//
// It works on the JSON-RPC messages themselves, so that identifiers, progress
// tokens, cancellation, _meta and whatever a later version of the protocol adds
// pass unchanged; the official SDK carries them. What a message holds decides
// what it is: arguments on their way to a server, or text on its way into a
// model's context. A method that is not known here is both.
//
// Who attacks here: the server, with what it says about its tools (also when it
// says something else the second time), with results, errors, prompts,
// notifications and requests of its own; and whoever wrote what the agent read,
// with the arguments that the agent then sends.
package mcpproxy
