// Package install puts auditd into an agent's own configuration, takes it out
// again, and finds out whether it works there.
//
// What it edits is the owner's file. It keeps the bytes that were there, so
// that taking it out gives exactly those back; where the owner has edited the
// file since, it takes out what is auditd's and leaves the rest. "Protected" is
// said only of what was seen: Verify plays harmless attacks through the real
// agent with a model that obeys them, and what it saw counts for the very
// settings and version that it saw it with.
package install
