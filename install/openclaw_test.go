package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/auditd/heartbeat"
)

func newOpenClaw(t *testing.T) *OpenClaw {
	dir := t.TempDir()
	return &OpenClaw{Settings: filepath.Join(dir, "home", ".openclaw", "openclaw.json"), State: filepath.Join(dir, "state", "install"),
		URL: "http://127.0.0.1:7841", TokenFile: "/state/hook.token", Timeout: 45 * time.Second, Now: time.Now,
		Beats: func(context.Context) ([]heartbeat.Seen, error) { return nil, nil }}
}

const clawOwners = `{"gateway":{"port":1},
  "plugins": {"allow":["telegram"], "load":{"paths":["/mine"]}, "entries":{"telegram":{"enabled":true}}},
 "tools":{"profile":"full","toolSearch":true,   "codeMode":{"enabled":"auto"}}}`

// TestOpenClawUndoIsExact: what was there before comes back byte for byte, and
// nothing of auditd is left.
func TestOpenClawUndoIsExact(t *testing.T) {
	for name, before := range map[string]string{"owner's": clawOwners, "empty object": "{}", "empty": "", "CRLF": "{\r\n  \"a\": 1\r\n}\r\n"} {
		t.Run(name, func(t *testing.T) {
			c := newOpenClaw(t)
			write(t, c.Settings, before, 0o640)
			for range 2 {
				if _, err := c.Install(); err != nil {
					t.Fatal(err)
				}
			}
			text := content(t, c.Settings)
			if strings.Count(text, c.pluginDir()) != 1 || strings.Contains(before, "/mine") != strings.Contains(text, `"/mine"`) {
				t.Error(text)
			}
			if _, err := os.Stat(filepath.Join(c.pluginDir(), "dist", "index.js")); err != nil {
				t.Error(err)
			}
			if again, err := c.PlanInstall(); err != nil || again.Changes() {
				t.Errorf("not idempotent: %v\n%s", err, again.Diff())
			}
			change, err := c.Uninstall()
			if err != nil || !change.Exact || content(t, c.Settings) != before {
				t.Errorf("%v %v %q", err, change.Exact, content(t, c.Settings))
			}
			if left, _ := os.ReadDir(c.State); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestOpenClawEditedSince: OpenClaw itself rewrites the file. What is auditd's
// goes, what had to be off is as it was, what was set since stays.
func TestOpenClawEditedSince(t *testing.T) {
	for name, tt := range map[string]struct{ before, old, new, want string }{
		"owner's":     {clawOwners, `"port": 1`, `"port": 2`, `{"gateway":{"port":2},"plugins":{"allow":["telegram"],"entries":{"telegram":{"enabled":true}},"load":{"paths":["/mine"]}},"tools":{"codeMode":{"enabled":"auto"},"profile":"full","toolSearch":true}}`},
		"nothing":     {"{}", `"toolSearch": false`, `"toolSearch": false, "x": 1`, `{"tools":{"x":1}}`},
		"set since":   {"{}", `"toolSearch": false`, `"toolSearch": true`, `{"tools":{"toolSearch":true}}`},
		"all but one": {`{"a":1}`, `"a": 1`, `"a": 2`, `{"a":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newOpenClaw(t)
			write(t, c.Settings, tt.before, 0o600)
			if _, err := c.Install(); err != nil {
				t.Fatal(err)
			}
			edited := strings.Replace(content(t, c.Settings), tt.old, tt.new, 1)
			if edited == content(t, c.Settings) {
				t.Fatal("nothing was edited")
			}
			write(t, c.Settings, edited, 0o600)
			change, err := c.Uninstall()
			if err != nil || change.Exact {
				t.Fatal(err, change.Exact)
			}
			if got := compact([]byte(content(t, c.Settings))); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestOpenClawRefuses(t *testing.T) {
	for _, text := range []string{`{"plugins":{"enabled":false}}`, `{"plugins":{"deny":["auditd"]}}`, `{"plugins":[]}`, `{"plugins":{"load":{"paths":"x"}}}`, `{"tools":1}`, `// JSON5`, `{"a":1,"a":2}`} {
		c := newOpenClaw(t)
		write(t, c.Settings, text, 0o600)
		if _, err := c.Install(); err == nil || content(t, c.Settings) != text {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := os.Stat(c.State); err == nil {
			t.Errorf("%s: something was left", text)
		}
	}
}

// TestOpenClawStatus: each way of not being protected is said.
func TestOpenClawStatus(t *testing.T) {
	proxy := refuser(t)
	agent := filepath.Join(t.TempDir(), "openclaw")
	write(t, agent, "#!/bin/sh\necho 'OpenClaw 2026.9.6 (abc)'\n", 0o700)
	well := func(context.Context) error { return nil }
	alive := func(change func(*heartbeat.Seen)) func(context.Context) ([]heartbeat.Seen, error) {
		return func(context.Context) ([]heartbeat.Seen, error) {
			s := heartbeat.Seen{Report: heartbeat.Report{Host: "openclaw", Instance: "1", Plugin: "0.1.0", Protocol: heartbeat.Protocol}, Last: time.Now()}
			change(&s)
			return []heartbeat.Seen{s}, nil
		}
	}
	for name, tt := range map[string]struct {
		change func(c *OpenClaw)
		want   string
	}{
		"protected":     {func(*OpenClaw) {}, ""},
		"gateway runs":  {func(c *OpenClaw) { c.Beats = alive(func(*heartbeat.Seen) {}) }, ""},
		"not installed": {func(c *OpenClaw) { c.State += "x" }, "not installed"},
		"unhooked":      {func(c *OpenClaw) { write(t, c.Settings, `{}`, 0o600) }, "unhooked: plugins.entries.auditd"},
		"search is on": {func(c *OpenClaw) {
			write(t, c.Settings, strings.Replace(content(t, c.Settings), `"toolSearch": false`, `"toolSearch": true`, 1), 0o600)
		}, "unhooked: tools.toolSearch"},
		"no JSON":        {func(c *OpenClaw) { write(t, c.Settings, `{`, 0o600) }, "not one JSON object"},
		"changed plugin": {func(c *OpenClaw) { write(t, filepath.Join(c.pluginDir(), "dist", "guard.js"), "", 0o600) }, "plugin's files"},
		"fault":          {func(c *OpenClaw) { c.Beats = alive(func(s *heartbeat.Seen) { s.Problems = []string{"broken"} }) }, "denies everything: broken"},
		"protocol":       {func(c *OpenClaw) { c.Beats = alive(func(s *heartbeat.Seen) { s.Protocol = 9 }) }, "protocol 9"},
		"opted out": {func(c *OpenClaw) {
			proxy := c.Proxy
			c.Proxy = ""
			if _, err := c.Install(); err != nil {
				t.Fatal(err)
			}
			c.Proxy = proxy
		}, "--no-model-proxy"},
		"proxy is gone": {func(c *OpenClaw) { c.Proxy = "http://127.0.0.1:1/token" }, "does not answer"},
		"another provider": {func(c *OpenClaw) {
			write(t, c.Settings, strings.Replace(content(t, c.Settings), `"providers": {`, `"providers": {"new": {"baseUrl": "https://new.example"},`, 1), 0o600)
		}, "the models of new are asked directly"},
		"other version": {func(c *OpenClaw) { write(t, agent, "#!/bin/sh\necho 2026.10.1\n", 0o700) }, "is 2026.10.1 now"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, agent, "#!/bin/sh\necho 'OpenClaw 2026.9.6 (abc)'\n", 0o700)
			c := newOpenClaw(t)
			c.Proxy = proxy
			write(t, c.Settings, clawProviders, 0o600)
			if _, err := c.Install(); err != nil {
				t.Fatal(err)
			}
			r, err := c.editor().readRecord()
			if err != nil {
				t.Fatal(err)
			}
			r.Verified = &Verified{Version: "2026.9.6", Hooks: c.watched([]byte(content(t, c.Settings))), Checks: []Check{{Name: "x", Passed: true}}}
			if err := c.editor().writeRecord(r); err != nil {
				t.Fatal(err)
			}
			tt.change(c)
			s, err := c.Status(t.Context(), agent, well)
			if err != nil {
				t.Fatal(err)
			}
			if problems := strings.Join(s.Problems, "\n"); s.Protected != (tt.want == "") || !strings.Contains(problems, tt.want) {
				t.Errorf("protected %v: %s", s.Protected, problems)
			}
		})
	}
}
