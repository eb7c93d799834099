package claudehook

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Exit codes of a command hook. Claude Code takes 2 for "blocked" and lets most
// things pass after any other code that is not 0.
const (
	exitAnswered = 0
	exitBlocked  = 2
)

// maxInput bounds what a command hook reads: more than the daemon takes.
const maxInput = 4 << 20

// Command is the command hook: it hands its input to the daemon with ask and
// prints the answer. Every failure, a panic included, stops: with exit code 2,
// except after a tool has run. There exit code 2 lets the raw output pass, so
// a failure is an answer that replaces it.
func Command(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, ask func(ctx context.Context, body []byte) ([]byte, error)) (code int) {
	var body []byte
	fail := func(why string) int {
		h := glance(body)
		message := "auditd could not decide, so this is stopped: " + why
		if h.Event == postTool {
			if _, err := stdout.Write(h.stop(message).encode()); err == nil {
				return exitAnswered
			}
		}
		fmt.Fprintln(stderr, message)
		return exitBlocked
	}
	defer func() {
		if recover() != nil {
			code = fail("the hook failed; this is a fault in auditd.")
		}
	}()
	body, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
	switch {
	case err != nil:
		return fail("its input could not be read.")
	case len(body) > maxInput:
		return fail(fmt.Sprintf("its input is over %d bytes.", maxInput))
	}
	if _, err := parse(body); err != nil {
		return fail("its input is not valid: " + err.Error() + ".")
	}
	answer, err := ask(ctx, body)
	if err == nil && !Expect(answer) {
		err = errors.New("the answer is not one")
	}
	if err != nil {
		return fail(err.Error() + ".")
	}
	if _, err := stdout.Write(answer); err != nil {
		return fail("its answer could not be written.")
	}
	return exitAnswered
}
