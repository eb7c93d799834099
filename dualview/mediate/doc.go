// Package mediate is the two-view half's answer to a host's events: it puts the
// symbol table, the policies, the views and the shells in their order around
// one tool call.
//
// It decides nothing about harm: that is the firewall's. It sees to it that the
// deciding model reads symbols, that tools and people get originals, and that a
// person is asked where the usage policy says so. Every failure stops: what
// cannot be symbolised is withheld, what cannot be resolved is not run.
package mediate
