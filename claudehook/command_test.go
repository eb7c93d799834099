package claudehook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestCommandStopsOnEveryError: exit code 2, or an answer that replaces a
// result. No other way leads out but an answer of the daemon.
func TestCommandStopsOnEveryError(t *testing.T) {
	pre := `{"session_id":"s","hook_event_name":"PreToolUse",` + fmt.Sprintf(bash, "ls") + `}`
	post := `{"session_id":"s","hook_event_name":"PostToolUse",` + bashResult("RAW") + `}`
	answers := func(data string, err error) func(context.Context, []byte) ([]byte, error) {
		return func(context.Context, []byte) ([]byte, error) { return []byte(data), err }
	}
	for name, ask := range map[string]func(context.Context, []byte) ([]byte, error){
		"no daemon": answers("", errors.New("no daemon answers")), "nothing": answers("", nil), "garbage": answers("OK", nil), "a list": answers("[]", nil),
		"an error body": answers(`{"error":{"code":"x"},"action":"block"}`, nil), "half": answers(`{"continue":`, nil), "null": answers("null", nil),
		"another shape": answers(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permission":"allow"}}`, nil),
		"panic":         func(context.Context, []byte) ([]byte, error) { panic("x") },
	} {
		var out, diag bytes.Buffer
		if code := Command(t.Context(), strings.NewReader(pre), &out, &diag, ask); code != 2 || out.Len() > 0 || diag.Len() == 0 {
			t.Errorf("%s before: %d %q %q", name, code, out.String(), diag.String())
		}
		out.Reset()
		if code := Command(t.Context(), strings.NewReader(post), &out, &diag, ask); code != 0 || !strings.Contains(out.String(), `"updatedToolOutput":{"stdout":"[withheld by auditd]`) || strings.Contains(out.String(), "RAW") {
			t.Errorf("%s after: %d %q", name, code, out.String())
		}
	}
	good := answers("{}", nil)
	for name, in := range map[string]io.Reader{
		"no input": strings.NewReader(""), "garbage": strings.NewReader("x"), "a list": strings.NewReader("[]"), "no event": strings.NewReader(`{"session_id":"s"}`),
		"unreadable": iotest.ErrReader(errors.New("x")), "too much": io.LimitReader(zeros{}, maxInput+10),
	} {
		var out, diag bytes.Buffer
		if code := Command(t.Context(), in, &out, &diag, good); code != 2 || diag.Len() == 0 {
			t.Errorf("%s: %d %q", name, code, out.String())
		}
	}
	var diag bytes.Buffer
	if code := Command(t.Context(), strings.NewReader(pre), broken{}, &diag, good); code != 2 {
		t.Errorf("an answer that cannot be written: %d", code)
	}
	if code := Command(t.Context(), strings.NewReader(post), broken{}, &diag, answers("", nil)); code != 2 {
		t.Errorf("a replacement that cannot be written: %d", code)
	}
	var out bytes.Buffer
	if code := Command(t.Context(), strings.NewReader(pre), &out, &diag, good); code != 0 || out.String() != "{}" {
		t.Errorf("an answer: %d %q", code, out.String())
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("closed") }
