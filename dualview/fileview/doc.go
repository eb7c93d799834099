// Package fileview keeps two views of a workspace in step: the workspace
// itself, where people and programs see originals, and the agent's tree beside
// it, where untrusted bytes are symbols.
//
// Every byte of a file has a provenance: trusted, or a part of a symbol's value.
// A change on one side is found, compared with what both sides held when they
// were last in step, and carried over by ranges of bytes, never by line numbers.
// What a person wrote is trusted. What is known to be untrusted, what stood in a
// symbol before, and what appeared while a HumanShell was alive is not, wherever
// in the workspace it turns up.
//
// Git holds the history of both sides, in a repository outside the workspace.
// It is driven in batches: one process for each sync, never one for each file.
//
// Rules that hold at every step: a file is replaced in one step or not at all;
// a change that a person made meanwhile stays in place, and the agent is told
// that its write did not land; no path leads out of the workspace; killing the
// process anywhere loses nothing on either side.
package fileview
