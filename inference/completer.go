package inference

import (
	"context"

	"example.org/auditd/schema"
)

// Completion is one plain question to a language model: no tools, no memory, no
// conversation. What it asks and how the answer is checked are the caller's.
type Completion struct {
	System string
	User   string
	Schema []byte // JSON Schema that the server should hold the answer to
	Output int    // tokens of the answer
}

// Completer is a language model that answers such a question. Every backend that
// talks to a language model is one; an encoder is not. The contract is that of
// Auditor: a text or an *Error, never both, and no text that the server cut.
// The text is what the model wrote and nothing about it has been checked.
type Completer interface {
	Identity() string
	Ready() error
	// Window returns how many tokens a prompt and its answer may have together.
	Window() int
	Complete(ctx context.Context, c *Completion) (string, schema.Usage, error)
}
