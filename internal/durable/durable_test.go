package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.org/auditd/internal/durable"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one", "two, longer", ""} {
		if err := durable.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Fatalf("read %q, %v; want %q", got, err, text)
		}
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", st.Mode(), err)
	}
	only(t, dir, "f")
}

func TestWriteFileLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	// A directory in the way makes the rename fail, after everything else.
	if err := os.MkdirAll(filepath.Join(dir, "f", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600); err == nil {
		t.Fatal("replaced a directory")
	}
	only(t, dir, "f")
}

func TestCreateFileRefusesToReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if err := durable.CreateFile(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := durable.CreateFile(path, []byte("second"), 0o600)
	if !errors.Is(err, fs.ErrExist) {
		t.Fatalf("second CreateFile: %v, want ErrExist", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "first" {
		t.Errorf("file holds %q", got)
	}
	only(t, dir, "key")
}

func TestOpenAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "log")
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f, err := durable.OpenAppend(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		if err := durable.Sync(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := durable.Sync(f); err == nil {
			t.Fatal("sync of a closed file succeeded")
		}
	}
	if got, _ := os.ReadFile(path); string(got) != "xx" {
		t.Errorf("file holds %q", got)
	}
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", st.Mode())
	}
}

// only checks that dir holds the named entry and no temporary file.
func only(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != name {
		t.Errorf("directory holds %q, want %q", got, name)
	}
}
