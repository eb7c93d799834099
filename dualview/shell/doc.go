// Package shell runs commands for agents, in one of two ways.
//
// The AgentShell runs a command in the agent's view: a read-only minimal root, a
// private /tmp, no network, its own namespaces, no new privileges and a filter
// of system calls, through bubblewrap. The agent's trees are mounted where the
// workspaces are, and nothing else can be written or read: neither originals
// nor the symbol table, the log, or anybody's home. What it prints is trusted
// for one reason only: this package itself ran it there and says so. There is no
// weaker way to run it: where the isolation cannot be set up, nothing runs.
//
// The HumanShell runs a command as the owner would. Nothing that it prints or
// writes is trusted; its processes carry a marker, and as long as one of them
// lives, whatever appears in files is untrusted too.
package shell
