// Package isolate joins the two halves for one agent's events: the isolating
// half (dualview/mediate) and the auditing half (firewall). Each event of an
// agent whose mode is isolate or both goes through Events.Event.
//
// What it adds to them is what holds for both: every event is answered in time,
// recorded before it is answered, and answered once, however often it is
// reported. What fails is withheld. What the agent's side receives holds no
// original but where a tool is to run with it.
package isolate
