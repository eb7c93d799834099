package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"example.org/auditd/api"
	"example.org/auditd/claudehook"
	"example.org/auditd/dualview"
	"example.org/auditd/dualview/fileview"
	"example.org/auditd/dualview/mediate"
	dvpolicy "example.org/auditd/dualview/policy"
	"example.org/auditd/dualview/quarantine"
	"example.org/auditd/dualview/shell"
	"example.org/auditd/isolate"
	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
)

// isolation is the isolating half of a daemon, when its policy isolates an
// agent. A nil one isolates nobody.
type isolation struct {
	*isolate.Events
	*isolate.Owner
	agents []string // globs, for messages
	path   string   // the owner's isolation.yaml
	policy atomic.Pointer[dvpolicy.Policy]
	table  *dualview.Table // nil when it could not be opened
	views  *fileview.Store
}

// ownerName is whose symbols a daemon holds: it has one owner.
const ownerName = "owner"

// openIsolation opens the symbol table, the views and the shell, if the policy
// isolates an agent. What this machine lacks is no error here: those agents are
// then refused, never audited instead, and `/readyz` and `auditd doctor` say
// why. A mistake in isolation.yaml is one.
func openIsolation(ctx context.Context, d *daemon, secrets func(string) [][2]int, getenv func(string) string) (*isolation, error) {
	agents := d.policies.Policy().Isolates()
	if len(agents) == 0 {
		return nil, nil
	}
	iso := &isolation{Owner: new(isolate.Owner), agents: agents, path: d.cfg.isolationFile}
	p, err := loadIsolation(iso.path)
	if err != nil {
		return nil, err
	}
	iso.policy.Store(p)
	rules := &isolate.Rules{Path: iso.path, Ask: d.queue.Ask, Redeem: d.queue.Redeem, Changed: iso.reload, InForce: func() bool { r, err := iso.IsolationRules(ctx); return err == nil && !r.Edited }, Now: time.Now}
	cfg := isolate.Config{Rules: rules, Firewall: d.firewall, Deadline: time.Duration(d.cfg.Deadline), MaxBody: d.cfg.MaxPayload, Now: time.Now, Logger: d.logger}
	if cfg.Mediator, err = iso.mediator(ctx, d, secrets, getenv("HOME")); err != nil {
		cfg.Mediator, cfg.Missing = nil, err.Error()
	}
	if cfg.Inspect, err = iso.inspector(d); err != nil {
		return nil, err
	}
	iso.Events, err = isolate.New(cfg)
	return iso, err
}

func (iso *isolation) mediator(ctx context.Context, d *daemon, secrets func(string) [][2]int, home string) (*mediate.Mediator, error) {
	for _, m := range []fs.FS{dualview.Migrations(), fileview.Migrations()} {
		if err := sqlite.Migrate(ctx, d.db, m); err != nil {
			return nil, fmt.Errorf("prepare the symbol table: %w", err)
		}
	}
	var err error
	if iso.table, err = dualview.New(ctx, dualview.Config{DB: d.db, Dir: filepath.Join(d.cfg.State, "dualview"), Retention: time.Duration(d.cfg.KeepSymbols), Logger: d.logger}); err != nil {
		return nil, err
	}
	d.close = append(d.close, iso.table.Close)
	if _, err := os.Stat(home); err != nil {
		home = "" // nothing lies below it
	}
	iso.views, err = fileview.New(fileview.Config{Table: iso.table, DB: d.db, Dir: filepath.Join(d.cfg.State, "views"), Owner: ownerName,
		FileTrust: func(path, workspace string) string { return iso.policy.Load().FileTrust(path, workspace) }, Rules: func() string { return string(iso.policy.Load().Digest()) },
		Alive: shell.Alive, Home: home, Logger: d.logger})
	if err != nil {
		return nil, err
	}
	d.close = append(d.close, iso.views.Close)
	iso.Owner = &isolate.Owner{Table: iso.table, Store: iso.views, Name: ownerName, Now: time.Now}
	runner, err := shell.New(ctx, shell.Config{Views: iso.views, Table: iso.table})
	if err != nil {
		return nil, err
	}
	return mediate.New(mediate.Config{Table: iso.table, Views: iso.views, Runner: runner, Policy: iso.policy.Load, Owner: ownerName, Home: home,
		Ask: d.queue.Ask, Redeem: d.queue.Redeem, Secrets: secrets, Strict: showsItsOwn, Logger: d.logger})
}

// inspector asks the model that the owner configured about symbols; nil where
// there is none, or no table.
func (iso *isolation) inspector(d *daemon) (func(context.Context, *api.Inspection) schema.Outcome, error) {
	if iso.table == nil || d.judges.inspector == nil {
		return nil, nil
	}
	q, err := quarantine.New(quarantine.Config{Table: iso.table, Model: d.judges.inspector, Policy: iso.policy.Load, Owner: ownerName,
		Timeout: time.Duration(d.cfg.Inspector.Timeout), Concurrent: concurrency(d.cfg.inspectorBackend()), Logger: d.logger})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *api.Inspection) schema.Outcome {
		symbols := make([]dualview.Symbol, len(r.Symbols))
		for i, s := range r.Symbols {
			symbols[i] = dualview.Symbol(s)
		}
		return q.Event(ctx, &quarantine.Request{Host: r.Host, Agent: r.Agent, Session: r.Session, CallID: r.CallID, Symbols: symbols, Question: r.Question,
			Schema: json.RawMessage(r.Schema), AgentTrusted: !iso.policy.Load().AgentBarred(r.Host, r.Agent)})
	}, nil
}

// showsItsOwn: Claude Code takes a result in a tool's own shape and no other. It
// shows those of MCP servers as blocks, whose shape is known.
func showsItsOwn(host, tool string) bool {
	return host == claudehook.Host && !strings.HasPrefix(tool, "mcp__")
}

// Missing says that agents are refused, and why.
func (iso *isolation) Missing() string {
	if iso == nil || iso.Events.Missing() == "" {
		return ""
	}
	return "isolation of " + strings.Join(iso.agents, ", ") + ": " + iso.Events.Missing()
}

// collect drops old symbols.
func (iso *isolation) collect(ctx context.Context) error {
	if iso == nil || iso.table == nil {
		return nil
	}
	_, err := iso.table.Collect(ctx)
	return err
}

// Event answers an event of an isolated agent.
func (iso *isolation) Event(ctx context.Context, e *schema.Event, cred schema.Credential, mode schema.Mode) schema.Outcome {
	if iso == nil {
		return schema.Outcome{Reason: "isolation_unavailable", Message: "Stopped: this agent is to be isolated, and the daemon does not isolate."}
	}
	return iso.Events.Event(ctx, e, cred, mode)
}

// reload puts changed rules in force, for files too.
func (iso *isolation) reload() error {
	p, err := loadIsolation(iso.path)
	if err != nil {
		return err
	}
	iso.policy.Store(p)
	if iso.views != nil {
		iso.views.Reapply()
	}
	return nil
}

// IsolationRules compares the file with what is in force. An edit by hand does not
// hold by itself: an agent runs as the owner's user and might have made it.
func (iso *isolation) IsolationRules(context.Context) (*api.IsolationRules, error) {
	r := &api.IsolationRules{Digest: iso.policy.Load().Digest()}
	p, err := loadIsolation(iso.path)
	switch {
	case err != nil:
		r.Edited, r.Problem = true, oneLine(strings.ReplaceAll(err.Error(), "\n", "; "), 300)
	case p.Digest() != r.Digest:
		r.Edited = true
	}
	return r, nil
}

// Reload puts the file into force.
func (iso *isolation) Reload(ctx context.Context) (*api.IsolationRules, error) {
	if err := iso.reload(); err != nil {
		return iso.IsolationRules(ctx) // says why
	}
	return iso.IsolationRules(ctx)
}

// loadIsolation reads the owner's rules of isolation; without a file the shipped
// ones hold.
func loadIsolation(path string) (*dvpolicy.Policy, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return dvpolicy.New()
	}
	if err != nil {
		return nil, fmt.Errorf("read the rules of isolation: %w", err)
	}
	p, err := dvpolicy.New(data)
	if err != nil {
		return nil, hint(fmt.Errorf("%s: %w", path, err), "`auditd policy check` checks it without starting anything")
	}
	return p, nil
}
