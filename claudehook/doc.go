// Package claudehook translates between Claude Code's hooks and the daemon's
// events, for the HTTP endpoint and the command alike.
//
// Claude Code decides by the body of an answer: a status code, a crash or a
// time-out of a hook lets most things pass, and an answer in a shape that it
// does not expect is ignored. So whatever happens here comes out as a body that
// stops in the event's own shape, and Stop makes such a body out of anything.
//
// What was seen on Claude Code 2.1.332 (2026-11-30; scripts/agents.sh runs it
// again), and what follows from it:
//
//   - PostToolUse can replace a tool's output, but only in that tool's shape;
//     any other shape is ignored and the raw output goes to the model.
//   - PostToolUseFailure can replace nothing, and a shell command that exits
//     with an error is a failure: its output goes to the model as it is.
//   - PostToolBatch comes after both and before the model is called, and shows
//     what the model will read. It can only end the turn, but it can do that,
//     also by failing where onFailure is "block". The Ledger therefore holds
//     what was decided about each call, and the batch is stopped when a result
//     that had to be replaced was not, or when a call was never reported.
//   - After that the stopped text is still in the transcript. The session is
//     closed: its prompts are refused until a new one is started.
//   - InstructionsLoaded names a CLAUDE.md, or a file that one includes, before
//     the first prompt is sent. It can stop nothing; the file is read and
//     audited here, and a session with a poisoned one is closed.
//   - permissionDecision "allow" skips the owner's own permission settings, so
//     it is never sent: what the firewall allows is left to the host to ask.
//   - "ask" is answered by whoever the host asks, which in several modes is a
//     model. A deferred call is therefore denied with the question's number;
//     the same call passes once the owner has approved it in auditd.
package claudehook
