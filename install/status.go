package install

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/claudehook"
)

// Status is what can be said about an installation.
type Status struct {
	Installed bool
	// Protected: the canary passed with exactly these settings and this
	// version of the agent, and the daemon answers now.
	Protected bool
	Verified  *Verified
	Problems  []string // why it is not protected
	Open      []string // paths that this installation does not cover
}

// OpenPaths are ways past the hooks of Claude Code, whatever is installed.
// docs/agents.md says how each was found.
func OpenPaths() []string {
	return []string{
		"the model's own words: they are shown as they come, and no hook can change them",
		"a session that runs with --bare, or with disableAllHooks in a project's settings",
		"text that is in a transcript from before auditd was installed, and a session resumed after the daemon was restarted",
		"what MCP servers say about their tools: put `auditd mcp` in front of each",
		"skills, commands and memories that Claude Code loads without a hook",
		"a program that is given another base URL than the settings', or none",
	}
}

// Status looks at the settings, the record, the daemon and the agent. daemon
// returns an error when the daemon does not answer or is not ready. agent may
// be empty when the program was not found.
func (c *ClaudeCode) Status(ctx context.Context, agent string, daemon func(context.Context) error) (*Status, error) {
	s := &Status{Open: OpenPaths()}
	r, err := c.editor().readRecord()
	if err != nil {
		return nil, err
	}
	path, err := c.editor().target()
	if err != nil {
		return nil, err
	}
	data, _, err := read(path)
	if err != nil {
		return nil, err
	}
	if r == nil {
		s.Problems = append(s.Problems, "auditd is not installed in Claude Code: run `auditd install claude-code`")
		return s, nil
	}
	s.Installed, s.Verified = true, r.Verified
	as := *c
	as.Wait, as.Command = time.Duration(r.Wait)*time.Second, r.Command
	list, err := readSettings(data)
	if err != nil {
		s.Problems = append(s.Problems, path+": "+err.Error())
		return s, nil
	}
	s.Problems = append(s.Problems, as.missing(list)...)
	var past []string
	if len(r.Routes) > 0 && textAt(list, baseURLPath...) != r.Routes[0].base(c.Proxy) {
		past = []string{"Claude Code"}
	}
	s.Problems = append(s.Problems, routeProblems(ctx, r.Routes, c.Proxy, past)...)
	if string(get(list, "disableAllHooks")) == "true" {
		s.Problems = append(s.Problems, path+" says disableAllHooks: no hook runs")
	}
	if err := daemon(ctx); err != nil {
		s.Problems = append(s.Problems, "every call is denied: "+err.Error())
	}
	s.Problems = append(s.Problems, verifiedProblems(ctx, claudeCodeName, "Claude Code", r.Verified, watched(data), agent)...)
	s.Protected = len(s.Problems) == 0
	return s, nil
}

// verifiedProblems says why the last canary does not count, if it does not.
func verifiedProblems(ctx context.Context, name, title string, v *Verified, settings, agent string) []string {
	again := "run `auditd verify " + name + "` again"
	if v == nil {
		return []string{"nothing was verified yet: run `auditd verify " + name + "`"}
	}
	var out []string
	for _, check := range v.Checks {
		if !check.Passed {
			out = append(out, "the last canary failed: "+check.Name)
		}
	}
	if settings != v.Hooks {
		out = append(out, "the settings have changed since the canary: "+again)
	}
	if agent == "" {
		return append(out, "the program of "+title+" was not found, so its version is not known: give it with --agent")
	}
	switch version, err := agentVersion(ctx, agent); {
	case err != nil:
		out = append(out, err.Error())
	case version != v.Version:
		out = append(out, fmt.Sprintf("%s is %s now and was %s at the canary: %s", title, version, v.Version, again))
	}
	return out
}

// missing names the events that are not hooked as they should be.
func (c *ClaudeCode) missing(list []member) []string {
	var events []member
	if hooks := get(list, "hooks"); hooks != nil {
		var err error
		if events, err = members(hooks); err != nil {
			return []string{"the settings' hooks cannot be read"}
		}
	}
	want, err := c.withOurs(nil)
	if err != nil {
		return []string{err.Error()}
	}
	wanted, err := members(get(want, "hooks"))
	if err != nil {
		return []string{err.Error()}
	}
	var lost []string
	for _, name := range claudehook.Events() {
		ours := strings.TrimSuffix(strings.TrimPrefix(compact(get(wanted, name)), "["), "]")
		if !strings.Contains(compact(get(events, name)), ours) {
			lost = append(lost, name)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return []string{"not hooked, or not as `auditd install claude-code` would: " + strings.Join(lost, ", ")}
}

func compact(v jsontext.Value) string {
	v = v.Clone()
	if v.Canonicalize() != nil {
		return ""
	}
	return string(v)
}
