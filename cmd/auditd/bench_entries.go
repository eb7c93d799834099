package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/entry"
	"example.org/auditd/bench/quality"
	"example.org/auditd/client"
	"example.org/auditd/schema"
)

// ways starts the further entry points, each of them this program as a process
// of its own. dir is the benchmark's daemon's; without one the running daemon is
// asked.
func (p *program) ways(ctx context.Context, names []string, dir string) (_ []quality.Way, done func(), err error) {
	done = func() {}
	if len(names) == 0 {
		return nil, done, nil
	}
	prog := &entry.Program{Env: os.Environ(), Dir: dir}
	if prog.Exe, err = os.Executable(); err != nil {
		return nil, done, fmt.Errorf("find this program: %w", err)
	}
	daemon, err := p.client()
	if err != nil {
		return nil, done, err
	}
	if dir == "" {
		if p.configFile != "" {
			return nil, done, errors.New("--entry with --running needs the daemon's configuration in its usual place")
		}
		if prog.Dir, err = os.Getwd(); err != nil {
			return nil, done, fmt.Errorf("find the working directory: %w", err)
		}
	} else {
		state, socket := filepath.Join(dir, "state"), filepath.Join(dir, "socket")
		text := fmt.Sprintf("version: 1\nlisten: 127.0.0.1:0\nstate: %q\nsocket: %q\n", state, socket)
		if err := os.MkdirAll(filepath.Join(dir, "config", "auditd"), 0o700); err != nil {
			return nil, done, fmt.Errorf("write a configuration: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config", "auditd", "config.yaml"), []byte(text), 0o600); err != nil {
			return nil, done, fmt.Errorf("write a configuration: %w", err)
		}
		prog.Env = append(prog.Env, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"))
		daemon = &client.Client{Socket: socket, TokenFile: client.TokenPath(state)}
	}
	var out []quality.Way
	for _, name := range names {
		w := quality.Way{Name: name}
		switch name {
		case "cli":
			w.Send = func(ctx context.Context, k *cases.Case) quality.Verdict {
				f := k.Flow
				f.Session.Agent = "bench-cli" // what was decided for another is not asked for again
				d, err := prog.CLI(ctx, &f)
				if err != nil {
					return quality.Verdict{Action: schema.Block, Reason: "not_decided"}
				}
				return quality.Judge(k, f.Payload, &d)
			}
		case "hook":
			w.Send = func(ctx context.Context, k *cases.Case) quality.Verdict { return prog.Hook(ctx, k, daemon.ClaudeHook) }
		case "mcp":
			m, err := prog.StartMCP(ctx)
			if err != nil {
				return nil, done, err
			}
			done = func() { m.Close() }
			w.Send = m.Send
		default:
			return nil, done, fmt.Errorf("--entry: %s is none of cli, hook and mcp", oneLine(name, 20))
		}
		out = append(out, w)
	}
	return out, done, nil
}
