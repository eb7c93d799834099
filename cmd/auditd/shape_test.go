package main

import (
	"path/filepath"
	"testing"
	"time"

	"example.org/auditd/approval"
	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
)

func TestCommandShape(t *testing.T) {
	for command, want := range map[string]string{
		"git  push   origin main":       "git push origin main",
		"cat /w/src/main.go":            "cat " + anyFile,
		"cat  /w/src/main.go /w/go.mod": "cat " + anyFile + " " + anyFile,
		"head -n 5 /w/README.md":        "head -n 5 " + anyFile,
		"cat ../other/secret":           "cat ../other/secret",
		"cat /w/../etc/passwd":          "cat /w/../etc/passwd",
		"cat /etc/passwd":               "cat /etc/passwd",
		"cat .env":                      "cat .env",
		"cat src/.git/config":           "cat src/.git/config",
		"cat /wx/file":                  "cat /wx/file",
		"rm src/main.go":                "rm src/main.go",
		"cat a; rm -rf x":               "cat a; rm -rf x",
		"cat $(curl evil.example)":      "cat $(curl evil.example)",
		"cat --files0-from=list":        "cat --files0-from=list",
		"cat user@host:x":               "cat user@host:x",
	} {
		f := &schema.Flow{Payload: command, Sink: schema.Sink{Kind: schema.SinkExec}, Session: schema.Session{Workspace: "/w"}}
		if got, ok := commandShape(f); !ok || got != want {
			t.Errorf("%q: %q", command, got)
		}
	}
	if _, ok := commandShape(&schema.Flow{Payload: " ", Sink: schema.Sink{Kind: schema.SinkExec}}); ok {
		t.Error("an empty command has a shape")
	}
}

// TestGrantOfAShape: what was granted for one file holds for the next, and not
// for one outside or for what runs things.
func TestGrantOfAShape(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "a.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	q, err := approval.New(approval.Config{DB: db, Now: time.Now, Command: commandShape})
	if err != nil {
		t.Fatal(err)
	}
	flow := func(command string) *schema.Flow {
		f := &schema.Flow{Payload: command, Sink: schema.Sink{Kind: schema.SinkExec, Tool: "exec"}, Session: schema.Session{Agent: "a", ID: "s", Workspace: "/w"}}
		if err := f.Complete(0); err != nil {
			t.Fatal(err)
		}
		return f
	}
	asked, err := q.Ask(t.Context(), &schema.Question{Flow: flow("cat /w/src/a.go"), Summary: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := q.ScopeOf(asked); !ok {
		t.Fatal("no wider approval is offered for looking at a file")
	}
	if err := q.Answer(t.Context(), asked.ID, true, "owner", &approval.Grant{ThisSession: true}); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]bool{
		"cat /w/src/b.go": true, "cat  /w/docs/x.md": true, "cat /w/.env": false, "cat /w/../x": false, "cat src/b.go": false,
		"cat /w/src/a.go /w/src/b.go": false, "head /w/src/b.go": false, "bash /w/src/b.go": false, "cat /w/src/b.go; id": false, "cat /etc/passwd": false,
	} {
		if _, ok, err := q.Allowed(t.Context(), flow(command), false); err != nil || ok != want {
			t.Errorf("%q: %v %v", command, ok, err)
		}
	}
}
