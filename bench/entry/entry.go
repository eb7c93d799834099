// Package entry sends cases through the entry points that are programs of their
// own, the way an agent's host uses them: the command line, Claude Code's command
// hook, and the proxy in front of an MCP server. What each of them lets through
// is judged by the case's oracle; nothing here decides.
package entry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/quality"
	"example.org/auditd/schema"
)

// Program is an auditd whose configuration names a running daemon.
type Program struct {
	Exe string
	Env []string // all of it
	Dir string   // working directory, which is the agent's workspace
}

// Exit codes of auditd that are answers.
const (
	exitAllowed = 0
	exitStopped = 2
)

// maxOutput bounds what is read of a program.
const maxOutput = 8 << 20

// run runs auditd once. An exit code that is no answer is an error.
func (p *Program) run(ctx context.Context, stdin []byte, args ...string) ([]byte, int, error) {
	cmd := exec.CommandContext(ctx, p.Exe, args...)
	cmd.Env, cmd.Dir, cmd.Stdin = p.Env, p.Dir, bytes.NewReader(stdin)
	var out, problem limited
	cmd.Stdout, cmd.Stderr = &out, &problem
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.Bytes(), exitAllowed, nil
	case errors.As(err, &exit) && exit.ExitCode() == exitStopped:
		return out.Bytes(), exitStopped, nil
	default:
		return nil, 0, fmt.Errorf("auditd %s: %w", strings.Join(args[:min(2, len(args))], " "), err)
	}
}

// limited keeps the beginning of what is written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// CLI decides a flow with `auditd audit`.
func (p *Program) CLI(ctx context.Context, f *schema.Flow) (schema.Decision, error) {
	doc, err := schema.Encode(f)
	if err != nil {
		return schema.Decision{}, fmt.Errorf("encode the flow: %w", err)
	}
	out, code, err := p.run(ctx, doc, "audit", "--json", "-")
	if err != nil {
		return schema.Decision{}, err
	}
	var d schema.Decision
	if err := schema.Decode(bytes.TrimSpace(out), &d); err != nil {
		return schema.Decision{}, errors.New("auditd audit: the answer is no decision")
	}
	if (d.Action == schema.Allow) != (code == exitAllowed) {
		return schema.Decision{}, fmt.Errorf("auditd audit: exit code %d for %s", code, d.Action)
	}
	return d, nil
}

// stopped is the verdict of an answer that stops, told by its words: a hook's
// answer has no action of ours in it.
func stopped(words string) schema.Action {
	if strings.Contains(words, "auditd approve ") {
		return schema.DeferToHuman
	}
	return schema.Block
}

// verdict judges what an entry point lets through.
func verdict(k *cases.Case, a schema.Action, reaches, reason string) quality.Verdict {
	effect, preserved := quality.Outcome(k, a, reaches)
	return quality.Verdict{Action: a, Reason: reason, Effect: effect, Preserved: preserved}
}

// failed is the verdict where nothing was decided: it stops.
func failed(reason string) quality.Verdict {
	return quality.Verdict{Action: schema.Block, Reason: reason}
}

func object(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return nil // of maps of strings and decoded JSON: it cannot happen
	}
	return data
}
