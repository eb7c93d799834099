package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/auditd/claudehook"
)

func newClaudeCode(t *testing.T) *ClaudeCode {
	dir := t.TempDir()
	return &ClaudeCode{Settings: filepath.Join(dir, "home", ".claude", "settings.json"), State: filepath.Join(dir, "state", "install"),
		URL: "http://127.0.0.1:7841", Token: "ah_token", Binary: "/usr/bin/auditd", Timeout: 45 * time.Second, Now: time.Now}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const owners = `{"model":"opus",
   "hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"mine.sh"}]}],   "Notification": []},

 "permissions": {"allow":["Bash(ls:*)"], "x": 1e3, "u": "\u00e9"}}`

// TestUndoIsExact: what was there before comes back byte for byte, with its
// mode, whatever its layout.
func TestUndoIsExact(t *testing.T) {
	for name, before := range map[string]string{"owner's": owners, "empty object": "{}", "empty": "", "white space": " \n", "no final line feed": `{"a":1}`, "CRLF": "{\r\n  \"a\": 1\r\n}\r\n"} {
		t.Run(name, func(t *testing.T) {
			c := newClaudeCode(t)
			write(t, c.Settings, before, 0o640)
			for range 3 { // doing it again changes nothing
				change, err := c.Install()
				if err != nil {
					t.Fatal(err)
				}
				text := content(t, c.Settings)
				for _, event := range claudehook.Events() {
					if n := strings.Count(text, `"`+event+`"`); n != 1 {
						t.Errorf("%s is there %d times", event, n)
					}
				}
				if strings.Contains(before, "mine.sh") != strings.Contains(text, "mine.sh") {
					t.Error("the owner's hook is gone")
				}
				if f := Files(c.State); len(f) != 1 || f[0] != change.Path {
					t.Errorf("files %q", f)
				}
			}
			if again, err := c.PlanInstall(); err != nil || again.Changes() {
				t.Errorf("not idempotent: %v\n%s", err, again.Diff())
			}
			if info, _ := os.Stat(c.Settings); info.Mode().Perm() != 0o600 {
				t.Errorf("others can read the token: %v", info.Mode())
			}
			change, err := c.Uninstall()
			if err != nil || !change.Exact {
				t.Fatal(err, change.Exact)
			}
			info, _ := os.Stat(c.Settings)
			if got := content(t, c.Settings); got != before || info.Mode().Perm() != 0o640 {
				t.Errorf("%q %v, want %q", got, info.Mode(), before)
			}
			if left, _ := os.ReadDir(c.State); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestNoFileBefore(t *testing.T) {
	c := newClaudeCode(t)
	if _, err := c.Install(); err != nil {
		t.Fatal(err)
	}
	if change, err := c.Uninstall(); err != nil || !change.Exact {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Settings); !errors.Is(err, os.ErrNotExist) {
		t.Error("the file is still there")
	}
	if change, err := c.Uninstall(); err != nil || change.Changes() {
		t.Errorf("uninstalling nothing: %v", err)
	}
}

// TestEditedSince: what the owner wrote after installing stays, what is
// auditd's goes.
func TestEditedSince(t *testing.T) {
	c := newClaudeCode(t)
	write(t, c.Settings, owners, 0o600)
	if _, err := c.Install(); err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(content(t, c.Settings), `"model": "opus"`, `"model": "sonnet"`, 1)
	write(t, c.Settings, edited, 0o600)
	if change, err := c.PlanInstall(); err != nil || change.Changes() {
		t.Errorf("hooks that are there are not put there again: %v", err)
	}
	change, err := c.Uninstall()
	if err != nil || change.Exact {
		t.Fatal(err, change.Exact)
	}
	got := content(t, c.Settings)
	if !strings.Contains(got, `"sonnet"`) || !strings.Contains(got, "mine.sh") || strings.Contains(got, "auditd") || strings.Contains(got, "ah_token") {
		t.Error(got)
	}
	// Installed again over an edited file with old hooks in it.
	write(t, c.Settings, strings.ReplaceAll(edited, "ah_token", "ah_old"), 0o600)
	if _, err := c.Install(); err != nil {
		t.Fatal(err)
	}
	if text := content(t, c.Settings); strings.Contains(text, "ah_old") || strings.Count(text, `"PreToolUse"`) != 1 {
		t.Error(text)
	}
	if _, err := c.Uninstall(); err != nil {
		t.Fatal(err)
	}
	if text := content(t, c.Settings); strings.Contains(text, "auditd") || !strings.Contains(text, "sonnet") {
		t.Error(text)
	}
}

func TestALinkStaysALink(t *testing.T) {
	c := newClaudeCode(t)
	real := filepath.Join(t.TempDir(), "dotfiles.json")
	write(t, real, owners, 0o600)
	if err := os.MkdirAll(filepath.Dir(c.Settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, c.Settings); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Install(); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(c.Settings); info.Mode()&os.ModeSymlink == 0 || !strings.Contains(content(t, real), "ah_token") {
		t.Error("the link was replaced")
	}
	if _, err := c.Uninstall(); err != nil || content(t, real) != owners {
		t.Error(err)
	}
}

func TestWhatCannotBeReadIsLeftAlone(t *testing.T) {
	for name, text := range map[string]string{
		"comments": "{ // mine\n}", "a list": "[]", "doubled": `{"a":1,"a":2}`, "half": `{"a":`, "hooks of another shape": `{"hooks":{"PreToolUse":{}}}`,
		"hooks are a list": `{"hooks":[]}`, "a group of another shape": `{"hooks":{"PreToolUse":["x"]}}`, "byte order mark": "\ufeff{}",
	} {
		c := newClaudeCode(t)
		write(t, c.Settings, text, 0o644)
		if _, err := c.Install(); err == nil {
			t.Errorf("%s: installed", name)
		}
		if got := content(t, c.Settings); got != text {
			t.Errorf("%s: changed to %q", name, got)
		}
	}
}

func TestStatusSaysWhatIsMissing(t *testing.T) {
	c := newClaudeCode(t)
	up := func(context.Context) error { return nil }
	says := func(want string, daemon func(context.Context) error) {
		t.Helper()
		s, err := c.Status(t.Context(), "", daemon)
		if err != nil {
			t.Fatal(err)
		}
		if s.Protected || !strings.Contains(strings.Join(s.Problems, "\n"), want) {
			t.Errorf("%+v, want %q", s, want)
		}
	}
	says("not installed", up)
	write(t, c.Settings, owners, 0o600)
	if _, err := c.Install(); err != nil {
		t.Fatal(err)
	}
	says("nothing was verified yet", up)
	says("every call is denied", func(context.Context) error { return errors.New("no daemon answers") })
	r, err := c.editor().readRecord()
	if err != nil {
		t.Fatal(err)
	}
	installed := content(t, c.Settings)
	r.Verified = &Verified{Time: time.Now(), Version: "1", Hooks: watched([]byte(installed)), Checks: []Check{{Name: "x", Passed: true}, {Name: "bad"}}}
	if err := c.editor().writeRecord(r); err != nil {
		t.Fatal(err)
	}
	says("the last canary failed: bad", up)
	write(t, c.Settings, strings.Replace(installed, "PostToolBatch", "PostToolBitch", 1), 0o600)
	says("not hooked, or not as `auditd install claude-code` would: PostToolBatch", up)
	says("settings have changed since the canary", up)
	write(t, c.Settings, strings.Replace(installed, `"model"`, `"disableAllHooks": true, "model"`, 1), 0o600)
	says("no hook runs", up)
	write(t, c.Settings, strings.Replace(installed, "ah_token", "ah_other", 1), 0o600)
	says("not hooked", up)
}

// FuzzSettings: no file makes installing panic, and whatever could be
// installed into can be uninstalled from.
func FuzzSettings(f *testing.F) {
	f.Add([]byte(owners))
	f.Add([]byte(`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"/x hook claude-code"},{"type":"http","url":"http://h/v1/hooks/claude-code?event=Stop"}]}]}}`))
	c := &ClaudeCode{URL: "http://127.0.0.1:1", Token: "ah_x", Binary: "auditd"}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := readSettings(data)
		if err != nil {
			return
		}
		with, err := c.withOurs(list)
		if err != nil {
			return
		}
		text, err := writeSettings(with)
		if err != nil {
			return
		}
		again, err := readSettings(text)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, text)
		}
		without, found, err := withoutOurs(again)
		if err != nil || !found {
			t.Fatalf("what was put there is not found: %v\n%s", err, text)
		}
		if _, found, _ := withoutOurs(without); found {
			t.Fatalf("some are left:\n%s", object(without))
		}
	})
}
