package mediate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"example.org/auditd/dualview"
	"example.org/auditd/dualview/fileview"
	"example.org/auditd/dualview/policy"
	"example.org/auditd/dualview/shell"
	"example.org/auditd/dualview/usage"
	"example.org/auditd/schema"
)

// before answers a call before it runs.
func (m *Mediator) before(ctx context.Context, e *schema.Event, a Auditor) (schema.Outcome, error) {
	if len(e.Params) == 0 {
		e.Params = json.RawMessage("{}")
	}
	tool, listed := m.cfg.Policy().Tool(e.Tool)
	if !listed && m.cfg.Strict != nil && m.cfg.Strict(e.Host, e.Tool) {
		return schema.Outcome{Action: schema.Block, Reason: "unlisted_tool",
			Message: "Stopped: auditd does not know the shape of this tool's results, and this program would show them as they are. The owner can list the tool in isolation.yaml."}, nil
	}
	if tool.View == policy.AgentView {
		return m.beforeAgent(ctx, e, a, tool)
	}
	if tool.View == policy.LocalView {
		return schema.Outcome{Action: schema.Allow, Reason: "local", Message: "Allowed."}, m.begin(ctx, e, &call{})
	}
	return m.beforeHuman(ctx, e, a, tool)
}

// beforeAgent brings the workspace in step and points the tool at the agent's
// tree.
func (m *Mediator) beforeAgent(ctx context.Context, e *schema.Event, a Auditor, tool policy.Tool) (schema.Outcome, error) {
	if len(tool.Paths) == 0 {
		if tool.Writes {
			return schema.Outcome{}, errors.New("the tool names its files in a way that cannot be pointed at the agent's view")
		}
		// The host's own store: nothing of it is attested.
		return schema.Outcome{Action: schema.Allow, Reason: "not_in_view", Message: "Allowed: what comes back is untrusted."}, m.begin(ctx, e, &call{})
	}
	var params map[string]json.RawMessage
	if err := schema.Decode(e.Params, &params); err != nil {
		return schema.Outcome{}, errors.New("the arguments cannot be read")
	}
	if found, err := m.cfg.Policy().CheckParams(ctx, m.cfg.Table, m.request(e)); err != nil {
		return schema.Outcome{}, err
	} else if len(found) > 0 {
		return schema.Outcome{Action: schema.Block, Reason: "destination_from_symbol", Message: "Stopped: untrusted data would decide which file this is. Write the path yourself."}, nil
	}
	changed, stopped, err := m.audited(ctx, e, a)
	if err != nil || stopped != nil {
		return orZero(stopped), err
	}
	if changed != nil {
		if err := schema.Decode(changed, &params); err != nil {
			return schema.Outcome{}, errors.New("the changed arguments cannot be read")
		}
	}
	c := &call{attested: true}
	for i, name := range tool.Paths {
		var path string
		raw, ok := params[name]
		switch {
		case !ok && i == 0 && tool.Directory:
			path = e.Workspace
		case !ok:
			return schema.Outcome{}, fmt.Errorf("argument %s is missing", name)
		default:
			if err := json.Unmarshal(raw, &path); err != nil {
				return schema.Outcome{}, fmt.Errorf("argument %s is no text", name)
			}
		}
		to, err := m.agentPath(ctx, c, path, e.Workspace, tool.Writes)
		if err != nil {
			return schema.Outcome{}, err
		}
		enc, err := json.Marshal(to)
		if err != nil {
			return schema.Outcome{}, err
		}
		params[name] = enc
	}
	out, err := schema.Encode(params)
	if err != nil {
		return schema.Outcome{}, err
	}
	return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "agent_view", Message: "Runs in the agent's view of the files.", Params: out}, m.begin(ctx, e, c)
}

// audited asks the auditing half about a call in the agent's view, whose
// originals land in the person's files. changed are the arguments to go on with,
// nil for those of the event.
func (m *Mediator) audited(ctx context.Context, e *schema.Event, a Auditor) (changed json.RawMessage, stopped *schema.Outcome, err error) {
	if a == nil {
		return nil, nil, nil
	}
	// The same sink as the one by which they land.
	o, err := m.cfg.Policy().ResolveParams(ctx, m.cfg.Table, m.request(e), m.grant(e, schema.Sink{Kind: schema.SinkFile, Tool: "fileview"}))
	if err != nil {
		return nil, nil, err
	}
	source, err := m.label(ctx, string(e.Params))
	if err != nil {
		return nil, nil, err
	}
	with := *e
	with.Params = json.RawMessage(o.Reveal())
	out := a.Leaving(ctx, Leaving{Event: &with, Source: source})
	switch {
	case out.Action.Stops():
		return nil, &out, nil
	case len(out.Params) == 0:
		return nil, nil, nil
	case source != nil:
		// The changed text holds originals, which must not get into the
		// agent's tree.
		return nil, &schema.Outcome{Action: schema.Block, Reason: "rewrite_not_applicable", Message: "Stopped: it would have to be changed where it holds symbols. Leave them out.", Decisions: out.Decisions}, nil
	}
	return out.Params, nil, nil
}

func orZero(o *schema.Outcome) schema.Outcome {
	if o == nil {
		return schema.Outcome{}
	}
	return *o
}

// label is Label as the source of a flow; nil without symbols.
func (m *Mediator) label(ctx context.Context, text string) (*schema.Source, error) {
	source, _, ok, err := m.Label(ctx, text)
	if err != nil || !ok {
		return nil, err
	}
	return &source, nil
}

// agentPath finds the agent's copy of what a path names.
func (m *Mediator) agentPath(ctx context.Context, c *call, path, workspace string, writes bool) (string, error) {
	if strings.HasPrefix(path, "~/") && m.cfg.Home != "" {
		path = filepath.Join(m.cfg.Home, path[2:])
	}
	if !filepath.IsAbs(path) {
		if !filepath.IsAbs(workspace) {
			return "", errors.New("a relative path without a workspace")
		}
		path = filepath.Join(workspace, path)
	}
	w, err := m.cfg.Views.Open(ctx, path)
	if errors.Is(err, fileview.ErrNoWorkspace) && !writes {
		loose, lerr := m.cfg.Views.Loose(ctx, path)
		if lerr != nil {
			return "", lerr
		}
		c.paths = append(c.paths, loose, path)
		return loose, nil
	}
	if err != nil {
		return "", err
	}
	if _, err := w.Sync(ctx, "before a file tool"); err != nil {
		return "", err
	}
	to, err := w.AgentPath(path)
	if err != nil {
		return "", err
	}
	c.work = w
	c.paths = append(c.paths, w.AgentRoot(), w.Root())
	return to, nil
}

// restricted is what an agent writes before a command for the AgentShell.
const restricted = "RESTRICTED=1 "

// beforeHuman checks and resolves a call that needs originals.
func (m *Mediator) beforeHuman(ctx context.Context, e *schema.Event, a Auditor, tool policy.Tool) (schema.Outcome, error) {
	req := m.request(e)
	found, err := m.cfg.Policy().CheckParams(ctx, m.cfg.Table, req)
	if err != nil {
		return schema.Outcome{}, err
	}
	var needs []need
	for _, f := range found {
		if f.Block {
			return schema.Outcome{Action: schema.Block, Reason: "usage_rule", Message: "Stopped: " + f.Reason + "."}, nil
		}
		if tool.Executes == "" || f.Param != tool.Executes {
			needs = append(needs, need{f.Symbol, f.Info, f.Param, f.Reason})
		}
	}
	command, has, err := textParam(e.Params, tool.Executes)
	if err != nil {
		return schema.Outcome{}, err
	}
	if has && strings.HasPrefix(strings.TrimLeft(command, " \t\n"), restricted) {
		return m.runRestricted(ctx, e, a, tool, strings.TrimPrefix(strings.TrimLeft(command, " \t\n"), restricted))
	}
	var plan *usage.Plan
	if has {
		if err := m.syncFor(ctx, e); err != nil {
			return schema.Outcome{}, err
		}
		if plan, err = m.usage.Check(ctx, usage.Request{Owner: m.cfg.Owner, Text: command, Dir: workdir(e), Home: m.cfg.Home}); err != nil {
			return schema.Outcome{}, err
		}
		for _, u := range plan.Uses() {
			needs = append(needs, need{u.Symbol, u.Info, strings.TrimSpace(u.Kind.String() + " " + u.File), u.Reason})
		}
	}
	g := m.grant(e, schema.Sink{Kind: schema.SinkTool, Tool: e.Tool})
	if has {
		g.Sink.Kind = schema.SinkExec
	}
	approved := false
	if len(needs) > 0 {
		g.By = dualview.ByPerson
		g.Binding = schema.DigestOf("call", string(e.Params))
		if plan != nil {
			g.Binding = plan.Binding()
		}
	}
	params, err := m.resolved(ctx, req, tool, plan, g)
	if err != nil {
		return schema.Outcome{}, err
	}
	if len(needs) > 0 {
		// What no answer could allow nobody is asked about.
		if stopped, err := m.hard(ctx, e, a, params); err != nil || stopped != nil {
			return orZero(stopped), err
		}
		var out schema.Outcome
		out, approved, err = m.ask(ctx, e, needs)
		if err != nil || !approved {
			return out, err
		}
	}
	if a != nil {
		source, err := m.label(ctx, string(e.Params))
		if err != nil {
			return schema.Outcome{}, err
		}
		with := *e
		with.Params = params
		out := a.Leaving(ctx, Leaving{Event: &with, Source: source, Approved: approved})
		if out.Action.Stops() {
			return out, nil
		}
		if len(out.Params) > 0 {
			params = out.Params
		}
	}
	c := &call{}
	if has {
		resolved, _, err := textParam(params, tool.Executes)
		if err != nil {
			return schema.Outcome{}, err
		}
		marker := shell.NewMarker()
		if c.window, err = m.cfg.Views.HumanShell(ctx, command, marker); err != nil {
			return schema.Outcome{}, err
		}
		if params, err = setTextParam(params, tool.Executes, shell.Mark(resolved, marker)); err != nil {
			return schema.Outcome{}, err
		}
	}
	return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "human_view", Message: "Runs with originals; what comes back is untrusted.", Params: params}, m.begin(ctx, e, c)
}

// resolved returns the arguments of a call with originals in place.
func (m *Mediator) resolved(ctx context.Context, req policy.Call, tool policy.Tool, plan *usage.Plan, g dualview.Grant) (json.RawMessage, error) {
	o, err := m.cfg.Policy().ResolveParams(ctx, m.cfg.Table, req, g)
	if err != nil || plan == nil {
		return json.RawMessage(o.Reveal()), err
	}
	command, err := plan.Resolve(ctx, g)
	if err != nil {
		return nil, err
	}
	return setTextParam([]byte(o.Reveal()), tool.Executes, command.Reveal())
}

// hard returns what stops a call whatever a person says, nil when nothing does.
func (m *Mediator) hard(ctx context.Context, e *schema.Event, a Auditor, params json.RawMessage) (*schema.Outcome, error) {
	if a == nil {
		return nil, nil
	}
	source, err := m.label(ctx, string(e.Params))
	if err != nil {
		return nil, err
	}
	with := *e
	with.Params = params
	if out := a.Leaving(ctx, Leaving{Event: &with, Source: source, Unasked: true}); out.Action != schema.Allow {
		return &out, nil
	}
	return nil, nil
}

func workdir(e *schema.Event) string {
	for _, name := range []string{"workdir", "cwd"} {
		if dir, ok, err := textParam(e.Params, name); err == nil && ok && filepath.IsAbs(dir) {
			return dir
		}
	}
	return e.Workspace
}

// syncFor brings the workspace in step in which a command runs, so that the
// files that it would run are seen as they are.
func (m *Mediator) syncFor(ctx context.Context, e *schema.Event) error {
	dir := workdir(e)
	if !filepath.IsAbs(dir) {
		return errors.New("a command without a workspace")
	}
	w, err := m.cfg.Views.Open(ctx, filepath.Join(dir, "."))
	if errors.Is(err, fileview.ErrNoWorkspace) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = w.Sync(ctx, "before a command")
	return err
}

// runRestricted runs a command in the agent's view, here, and lets the host
// print what it said.
func (m *Mediator) runRestricted(ctx context.Context, e *schema.Event, a Auditor, tool policy.Tool, command string) (schema.Outcome, error) {
	if m.cfg.Runner == nil {
		return schema.Outcome{}, shell.ErrIsolation
	}
	if a != nil {
		plain, err := setTextParam(e.Params, tool.Executes, command)
		if err != nil {
			return schema.Outcome{}, err
		}
		with := *e
		with.Params = plain
		if out := a.Leaving(ctx, Leaving{Event: &with, Contained: true}); out.Action != schema.Allow {
			return out, nil
		}
	}
	dir := workdir(e)
	w, err := m.cfg.Views.Open(ctx, filepath.Join(dir, "."))
	if err != nil {
		return schema.Outcome{}, err
	}
	res, err := m.cfg.Runner.Agent(ctx, shell.Request{Workspace: w, Dir: dir, Command: command})
	if err != nil {
		return schema.Outcome{}, err
	}
	text := res.Stdout
	if res.Truncated {
		text += "\n[output was cut]\n"
	}
	for _, conflict := range res.Synced.Conflicts {
		res.Stderr += fmt.Sprintf("auditd: a change did not reach the person's files: %s\n", conflict.Reason)
	}
	if res.TimedOut {
		res.Stderr += "auditd: the command took too long\n"
	}
	print, err := printCommand(text, res.Stderr, res.ExitCode)
	if err != nil {
		return schema.Outcome{}, err
	}
	params, err := setTextParam(e.Params, tool.Executes, print)
	if err != nil {
		return schema.Outcome{}, err
	}
	err = m.begin(ctx, e, &call{attested: res.Attestation.AgentView(), work: w})
	return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "agent_shell", Message: "Ran in the agent's view.", Params: params}, err
}

// printCommand returns a command that prints two texts and exits.
func printCommand(out, errs string, code int) (string, error) {
	if code < 0 {
		code = 124
	}
	qo, err := syntax.Quote(strings.ReplaceAll(strings.ToValidUTF8(out, "?"), "\x00", "?"), syntax.LangBash)
	if err != nil {
		return "", err
	}
	qe, err := syntax.Quote(strings.ReplaceAll(strings.ToValidUTF8(errs, "?"), "\x00", "?"), syntax.LangBash)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("printf %%s %s; printf %%s %s >&2; exit %d", qo, qe, code), nil
}

// textParam returns a parameter that is a text.
func textParam(params []byte, name string) (string, bool, error) {
	if name == "" {
		return "", false, nil
	}
	var m map[string]json.RawMessage
	if err := schema.Decode(params, &m); err != nil {
		return "", false, errors.New("the arguments cannot be read")
	}
	raw, ok := m[name]
	if !ok {
		return "", false, nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", false, fmt.Errorf("argument %s is no text", name)
	}
	return text, true, nil
}

func setTextParam(params []byte, name, text string) (json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := schema.Decode(params, &m); err != nil {
		return nil, errors.New("the arguments cannot be read")
	}
	enc, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	m[name] = enc
	return schema.Encode(m)
}

// after answers a call's result.
func (m *Mediator) after(ctx context.Context, e *schema.Event, a Auditor) (schema.Outcome, error) {
	c := m.end(e)
	if c.window != nil {
		// Also when the rest fails: the shell has ended.
		if err := c.window.Ended(context.WithoutCancel(ctx)); err != nil {
			return schema.Outcome{}, err
		}
	}
	if doc, ok, err := m.own(ctx, c, e.Result); err != nil || ok {
		return schema.Outcome{Action: schema.RewriteAndContinue, Reason: schema.ReasonNothingHidden, Message: "The daemon's own answer.", Result: doc}, err
	}
	notice := ""
	if c.work != nil {
		rep, err := c.work.Sync(ctx, "after "+e.Tool)
		if err != nil {
			return schema.Outcome{}, err
		}
		for _, conflict := range rep.Conflicts {
			notice += " A change did not reach the person's files: " + conflict.Reason + "."
		}
	}
	out, err := m.result(ctx, e, a, c)
	out.Message += notice
	return out, err
}

// result shows what may be shown of a result.
func (m *Mediator) result(ctx context.Context, e *schema.Event, a Auditor, c *call) (schema.Outcome, error) {
	req, result := m.request(e), []byte(e.Result)
	for i := 0; i+1 < len(c.paths); i += 2 {
		result = replacePath(result, c.paths[i], c.paths[i+1])
		req.Params = replacePath(req.Params, c.paths[i], c.paths[i+1])
	}
	req.Attested = c.attested
	r, err := m.cfg.Policy().SymboliseResult(ctx, m.cfg.Table, req, result)
	if err != nil {
		return schema.Outcome{}, err
	}
	tool, _ := m.cfg.Policy().Tool(e.Tool)
	if ok, err := m.stays(ctx, a, m.reading(e, tool.Source.SourceKind, e.Tool, m.without(r.Shown))); err != nil {
		return schema.Outcome{}, err
	} else if !ok {
		req.Distrusted = true
		if r, err = m.cfg.Policy().SymboliseResult(ctx, m.cfg.Table, req, result); err != nil {
			return schema.Outcome{}, err
		}
	}
	if len(r.Symbols) == 0 {
		// Paths at most are another.
		return schema.Outcome{Action: schema.RewriteAndContinue, Reason: schema.ReasonNothingHidden, Message: "Nothing in it is untrusted.", Result: r.JSON}, nil
	}
	return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "symbols", Message: "Untrusted parts are symbols.", Result: r.JSON}, nil
}

// replacePath writes a path of the workspace where the host saw the agent's.
func replacePath(doc []byte, from, to string) []byte {
	f, err1 := json.Marshal(from)
	t, err2 := json.Marshal(to)
	if err1 != nil || err2 != nil {
		return doc
	}
	return bytes.ReplaceAll(doc, f[1:len(f)-1], t[1:len(t)-1])
}

// need is one use of a symbol that a person has to see.
type need struct {
	symbol dualview.Symbol
	info   dualview.Info
	where  string
	reason string
}

const (
	maxShown   = 4096 // bytes of an original in a question
	maxTickets = 8    // that one event may bring
)

// ask puts a question with the original text, its provenance and the effect, or
// uses the answer that the event's ticket stands for.
func (m *Mediator) ask(ctx context.Context, e *schema.Event, needs []need) (out schema.Outcome, approved bool, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s wants to call %s with %s\n", e.Agent, e.Tool, e.Params)
	var reasons []string
	for _, n := range needs {
		fmt.Fprintf(&b, "\n%s (%s): %s\n", n.symbol, n.where, n.reason)
		reasons = append(reasons, n.reason)
		if n.symbol == "" {
			continue
		}
		p := n.info.Provenance
		fmt.Fprintf(&b, "from %s %s %s, field %s\n", p.Kind, p.Tool, p.Origin, p.Field)
		if n.info.Secret {
			b.WriteString("original: a secret\n")
			continue
		}
		o, err := m.cfg.Table.Resolve(ctx, string(n.symbol), dualview.Raw, m.grant(e, schema.Sink{Kind: schema.SinkMessage, Tool: "question"}))
		if err != nil {
			return schema.Outcome{}, false, err
		}
		text := o.Reveal()
		if len(text) > maxShown {
			text = strings.ToValidUTF8(text[:maxShown], "") + fmt.Sprintf("… (%d bytes in all)", len(o.Reveal()))
		}
		fmt.Fprintf(&b, "original: %s\n", strings.ToValidUTF8(text, "?"))
	}
	flow := &schema.Flow{Payload: b.String(), Surface: schema.Capability, Boundary: schema.BoundaryExecution,
		Source: schema.Source{Kind: needs[0].info.Provenance.Kind, ID: needs[0].info.Provenance.Origin, Trust: schema.Untrusted},
		Sink:   schema.Sink{Kind: schema.SinkExec, Tool: e.Tool, Action: "resolve"}, Session: schema.Session{Agent: e.Host + ":" + e.Agent, ID: e.Session, CallID: e.CallID, Workspace: e.Workspace}}
	return m.question(ctx, e, flow, "untrusted_use", reasons, fmt.Sprintf("Use untrusted data in %s: %s", e.Tool, needs[0].reason))
}
