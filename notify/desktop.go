package notify

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

var errNoProgram = errors.New("there is no notify-send in PATH: install libnotify")

// desktop runs notify-send, with arguments and never through a shell.
func desktop(ctx context.Context, m *message) error {
	program, err := exec.LookPath("notify-send")
	if err != nil {
		return errNoProgram
	}
	c := exec.CommandContext(ctx, program, "--app-name=auditd", "--", m.Title, m.Text)
	c.WaitDelay = time.Second
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return errTimedOut
		}
		return errors.New("notify-send failed: is there a desktop session?")
	}
	return nil
}
