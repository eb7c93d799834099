package install

import (
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

	Now func() time.Time
}

func (c *ClaudeCode) editor() *editor {
	return &editor{name: claudeCodeName, settings: c.Settings, state: c.State, now: c.Now,
		options: record{Wait: int(c.Wait.Seconds()), Command: c.Command},
		in:      c.withOurs,
		out:     func(list, _ []member) ([]member, bool, error) { return withoutOurs(list) }}
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
