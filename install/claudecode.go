package install

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const claudeCodeName = "claude-code"

// ClaudeCode is Claude Code's configuration, and what is to be put there.
type ClaudeCode struct {
	Settings string // the owner's settings.json
	State    string // directory for the backup and the record

	URL     string        // of the daemon
	Token   string        // hook token
	Binary  string        // auditd, for command hooks
	Timeout time.Duration // of a hook; above the daemon's own budget
	Wait    time.Duration // how long a deferred call waits for the owner; 0: it is denied at once
	Command bool          // command hooks in place of HTTP hooks

	// Proxy is the model proxy's address with its token; empty: it is not put in
	// between. Upstream is the provider's base URL where the settings name none.
	Proxy    string
	Upstream string

	Now func() time.Time
}

func (c *ClaudeCode) editor() *editor {
	return &editor{name: claudeCodeName, settings: c.Settings, state: c.State, now: c.Now,
		options: record{Wait: int(c.Wait.Seconds()), Command: c.Command, Routes: c.routes()},
		in:      c.in, out: c.out}
}

// anthropicURL is where Claude Code asks its model when nothing else is set.
const anthropicURL = "https://api.anthropic.com"

// claudeCodeRoute is the name of its provider at the proxy.
const claudeCodeRoute = "agent-claude-code"

var baseURLPath = []string{"env", "ANTHROPIC_BASE_URL"}

// routes are those that the settings ask for as they are now.
func (c *ClaudeCode) routes() []Route {
	if c.Proxy == "" {
		return nil
	}
	r := Route{Name: claudeCodeRoute, API: "anthropic", URL: c.Upstream, Host: "claude-code"}
	if r.URL == "" {
		r.URL = anthropicURL
	}
	data, _, err := read(c.Settings)
	if err != nil {
		return []Route{r}
	}
	list, err := readSettings(data)
	if err != nil {
		return []Route{r}
	}
	switch set := textAt(list, baseURLPath...); {
	case isRoute(set, claudeCodeRoute):
		for _, old := range Routes(c.State) {
			if old.Name == claudeCodeRoute {
				return []Route{old}
			}
		}
	case set != "":
		r.URL = set
	}
	r.URL = strings.TrimSuffix(r.URL, "/")
	return []Route{r}
}

// in returns the settings with auditd in them.
func (c *ClaudeCode) in(list []member) ([]member, error) {
	if c.Proxy == "" { // an earlier installation may have put it in between
		var err error
		if list, _, err = c.out(list, c.editor().original()); err != nil {
			return nil, err
		}
		return c.withOurs(list)
	}
	list, err := c.withOurs(list)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"} {
		if v := textAt(list, "env", name); v != "" && v != "0" && v != "false" {
			return nil, fmt.Errorf("env.%s is set, and the model proxy cannot stand in front of that: use --no-model-proxy", name)
		}
	}
	r := c.routes()[0]
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("the model's provider: %w; use --no-model-proxy", err)
	}
	data, err := json.Marshal(r.base(c.Proxy))
	if err != nil {
		return nil, err
	}
	return setAt(list, data, baseURLPath...)
}

// out returns the settings without auditd.
func (c *ClaudeCode) out(list, original []member) ([]member, bool, error) {
	list, found, err := withoutOurs(list)
	if err != nil || !isRoute(textAt(list, baseURLPath...), claudeCodeRoute) {
		return list, found, err
	}
	if was := at(original, baseURLPath...); was != nil && !isRoute(textAt(original, baseURLPath...), claudeCodeRoute) {
		list, err = setAt(list, was, baseURLPath...)
	} else {
		list, err = deleteAt(list, original, baseURLPath...)
	}
	return list, true, err
}

// isRoute reports whether a base URL leads to a provider of the proxy's.
func isRoute(base, name string) bool {
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/v1"), "/")
	return strings.HasPrefix(base, "http://") && strings.HasSuffix(base, "/"+name)
}

// textAt is the text under a path; empty where there is none.
func textAt(list []member, path ...string) string {
	var out string
	_ = json.Unmarshal(at(list, path...), &out) // nothing else is a base URL
	return out
}

// PlanInstall says what Install would do.
func (c *ClaudeCode) PlanInstall() (*Change, error) { return c.editor().planInstall() }

// Install puts the hooks into the settings. Doing it twice is the same as once.
func (c *ClaudeCode) Install() (*Change, error) { return c.editor().install() }

// PlanUninstall says what Uninstall would do.
func (c *ClaudeCode) PlanUninstall() (*Change, error) {
	change, _, err := c.editor().planUninstall()
	return change, err
}

// Uninstall takes the hooks out again.
func (c *ClaudeCode) Uninstall() (*Change, error) { return c.editor().uninstall() }
