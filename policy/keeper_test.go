package policy

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.org/auditd/schema"
)

func TestKeeper(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	committed := 0
	var refuse error
	open := func() *Keeper {
		k, err := OpenKeeper(KeeperConfig{Path: filepath.Join(dir, "c", "policy.yaml"), History: filepath.Join(dir, "history"), Now: func() time.Time { now = now.Add(time.Second); return now },
			Prepare: func(*Policy) (func(), error) { return func() { committed++ }, refuse }})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := open()
	first := k.Policy().Digest()
	if _, source := k.Text(); source != "built in" || committed != 1 {
		t.Errorf("at first: %s, %d", source, committed)
	}
	const next = "version: 1\nno_arbiter: block\n"
	if err := k.Apply("version: 1\nrulez: []\n", first); err == nil || k.Policy().Digest() != first {
		t.Errorf("a wrong policy: %v", err)
	}
	if err := k.Apply(next, "sha256:00"); !errors.Is(err, ErrChanged) {
		t.Errorf("from another base: %v", err)
	}
	refuse = errors.New("no")
	if err := k.Apply(next, first); err == nil || k.Policy().Digest() != first {
		t.Errorf("what can't be made ready: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "c", "policy.yaml")); !os.IsNotExist(err) {
		t.Errorf("a refused policy was written: %v", err)
	}
	refuse = nil
	if err := k.Apply(next, first); err != nil || k.Policy().NoArbiter() != schema.Block || committed != 2 {
		t.Fatalf("%v, %d", err, committed)
	}
	if info, err := os.Stat(filepath.Join(dir, "c", "policy.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v %v", info, err)
	}
	k = open() // it is durable
	if text, source := k.Text(); text != next || source == "built in" {
		t.Errorf("after a restart: %q %s", text, source)
	}
	list, err := k.History()
	if err != nil || len(list) != 1 || list[0].Digest != first {
		t.Fatalf("history: %+v %v", list, err)
	}
	// Undo is applying the earlier one; and can be undone itself.
	text, err := k.Earlier(first)
	if err != nil || text != string(defaultFile) {
		t.Fatalf("%v", err)
	}
	if err := k.Apply(text, k.Policy().Digest()); err != nil || k.Policy().Digest() != first {
		t.Errorf("undo: %v", err)
	}
	if _, err := k.Earlier("sha256:00"); !errors.Is(err, ErrVersion) {
		t.Errorf("an unknown version: %v", err)
	}
	for i := range maxVersions + 5 {
		if err := k.Apply([]string{next, text}[i%2], k.Policy().Digest()); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := k.History(); err != nil || len(list) != maxVersions {
		t.Errorf("%d versions are kept: %v", len(list), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "c", "policy.yaml"), []byte("version: 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeeper(KeeperConfig{Path: filepath.Join(dir, "c", "policy.yaml"), Now: time.Now}); err == nil {
		t.Error("a damaged policy was taken")
	}
}
