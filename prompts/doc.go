// Package prompts turns an audit record into the text that a language model
// judges, and the model's short answer into a report.
//
// The text is laid out for three readers. A server's prefix cache: everything
// stable comes first (a system prompt that is the same for every call, then
// the criteria of the surface), everything random or specific after it. An
// attacker: the payload is written as JSON strings between two lines that
// carry a random word, characters that a chat template could take for its own
// are escaped, a code at the start of the case and another on the last line
// must come back in the answer, and so a prompt that was cut at either end is
// found out. And the model: the payload is cut into numbered spans, and the
// answer names numbers, so that evidence is grounded in the input and a
// rewrite can only take things away.
package prompts
