package install

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestRecords: what the page says about an installation is what was tried, and
// that it no longer counts once the settings are others.
func TestRecords(t *testing.T) {
	state := t.TempDir()
	if got := Records(state); len(got) != 0 {
		t.Errorf("nothing is installed: %+v", got)
	}
	settings := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(settings, []byte(`{"hooks":{},"theme":"dark"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &editor{name: claudeCodeName, state: state}
	r := &record{Version: 1, Installed: time.Unix(100, 0).UTC(), Settings: settings}
	if err := e.writeRecord(r); err != nil {
		t.Fatal(err)
	}
	if got := Records(state); len(got) != 1 || got[0].Verified != nil || got[0].Title != "Claude Code" || len(got[0].Open) == 0 {
		t.Fatalf("%+v", got)
	}
	data, _, err := read(settings)
	if err != nil {
		t.Fatal(err)
	}
	r.Verified = &Verified{Time: time.Unix(200, 0).UTC(), Version: "2.1.3", Hooks: watched(data), Checks: []Check{{Name: "a forbidden command does not run", Passed: true}}}
	if err := e.writeRecord(r); err != nil {
		t.Fatal(err)
	}
	if got := Records(state); len(got) != 1 || got[0].Changed || !got[0].Verified.Passed() {
		t.Errorf("%+v", got)
	}
	// What has nothing to do with the hooks may change, the hooks may not.
	for content, changed := range map[string]bool{`{"hooks":{},"theme":"light"}`: false, `{"hooks":{},"disableAllHooks":true}`: true, `{`: true} {
		if err := os.WriteFile(settings, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Records(state); len(got) != 1 || got[0].Changed != changed {
			t.Errorf("%s: %+v", content, got)
		}
	}
	if err := os.Remove(settings); err != nil {
		t.Fatal(err)
	}
	if got := Records(state); len(got) != 1 || !got[0].Changed {
		t.Errorf("without settings: %+v", got)
	}
	if err := os.WriteFile(e.recordPath(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Records(state); len(got) != 0 {
		t.Errorf("a damaged record: %+v", got)
	}
}
