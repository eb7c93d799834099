package fileview

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.org/auditd/dualview"
	"example.org/auditd/schema"
)

// TestSides: the owner sees both sides of a file, and an original only one at a
// time and as long as the file is the same.
func TestSides(t *testing.T) {
	e := newEnv(t)
	e.human("plain.txt", "nothing odd\n")
	e.sync()
	s := e.symbol("from a page")
	e.agent("dir/note.json", `{"title": "`+s+`", "n": 1}`+"\n")
	e.sync()
	list, more, err := e.w.Files(t.Context(), "", false, 10)
	if err != nil || more || len(list) != 2 || list[0] != (Listed{"dir/note.json", 1, false}) {
		t.Fatalf("%+v %v %v", list, more, err)
	}
	if list, more, err = e.w.Files(t.Context(), "", false, 1); err != nil || !more || len(list) != 1 {
		t.Errorf("%+v %v %v", list, more, err)
	}
	if list, _, err = e.w.Files(t.Context(), "", true, 10); err != nil || len(list) != 1 {
		t.Errorf("with symbols: %+v %v", list, err)
	}
	if list, _, err = e.w.Files(t.Context(), "plain", false, 10); err != nil || len(list) != 1 || list[0].Path != "plain.txt" {
		t.Errorf("by name: %+v %v", list, err)
	}
	f, err := e.w.Sides(t.Context(), "dir/note.json")
	if err != nil || len(f.Pieces) != 3 || f.Pieces[0].Text != `{"title": "` || string(f.Pieces[1].Symbol) != s || f.Pieces[1].Text != "" || f.Pieces[1].Bytes != len("from a page") {
		t.Fatalf("%+v %v", f, err)
	}
	o, err := e.w.Part(t.Context(), "dir/note.json", f.Human, 1)
	if err != nil || o.Reveal() != "from a page" {
		t.Errorf("the original: %q %v", o.Reveal(), err)
	}
	for name, ask := range map[string]struct {
		path, version string
		piece         int
		want          error
	}{
		"trusted text":    {"dir/note.json", f.Human, 0, ErrNoFile},
		"beyond":          {"dir/note.json", f.Human, 3, ErrNoFile},
		"below":           {"dir/note.json", f.Human, -1, ErrNoFile},
		"another version": {"dir/note.json", strings.Repeat("0", 40), 1, ErrMoved},
		"another file":    {"../../etc/passwd", f.Human, 1, ErrNoFile},
	} {
		if o, err := e.w.Part(t.Context(), ask.path, ask.version, ask.piece); !errors.Is(err, ask.want) || o.Reveal() != "" {
			t.Errorf("%s: %q %v", name, o.Reveal(), err)
		}
	}
	if _, err := e.w.Sides(t.Context(), "dir"); !errors.Is(err, ErrNoFile) {
		t.Errorf("a directory: %v", err)
	}
	e.human("large.txt", strings.Repeat("a line\n", maxShown/7+1))
	e.sync()
	if f, err := e.w.Sides(t.Context(), "large.txt"); err != nil || f.Pieces != nil || f.Unshown == "" {
		t.Errorf("a large file: %d pieces, %q %v", len(f.Pieces), f.Unshown, err)
	}
}

// TestPartOfASecret: a secret in a file shows itself to nobody.
func TestPartOfASecret(t *testing.T) {
	e := newEnv(t)
	e.human("key", "k = v\n")
	e.sync()
	symbols, err := e.table.SymboliseAll(t.Context(), "ann", []dualview.Item{{Value: []byte("the secret value"), Secret: true,
		Provenance: dualview.Provenance{Kind: schema.SourceFile, Trust: schema.Untrusted}}})
	if err != nil {
		t.Fatal(err)
	}
	entry, err := e.w.entry(t.Context(), humanSide, "key")
	if err != nil {
		t.Fatal(err)
	}
	entry.segs = []segment{{symbols[0], 6}}
	if _, err := e.store.db.ExecContext(t.Context(), `UPDATE fileview_entry SET segments = ? WHERE path = ?`, encodeSegments(entry.segs), []byte("key")); err != nil {
		t.Fatal(err)
	}
	if o, err := e.w.Part(t.Context(), "key", entry.humanID, 0); !errors.Is(err, dualview.ErrNoGrant) || o.Reveal() != "" {
		t.Errorf("%q %v", o.Reveal(), err)
	}
}

// TestMerge: a conflict is settled with the person's version, the agent's, or
// one of both, and never behind anybody's back.
func TestMerge(t *testing.T) {
	e := newEnv(t)
	e.human("f", "one\ntwo\nthree\n")
	e.sync()
	s := e.symbol("untrusted words here")
	e.human("f", "one\nperson\nthree\n")
	e.agent("f", "one\nagent "+s+"\nthree\n")
	r := e.sync()
	if len(r.Conflicts) != 1 {
		t.Fatalf("%+v", r)
	}
	id := r.Conflicts[0].ID
	c, err := e.w.Conflict(t.Context(), id)
	if err != nil || c.Path != "f" {
		t.Fatalf("%+v %v", c, err)
	}
	if lost, ok := e.w.Lost(c); !ok || lost != "one\nagent "+s+"\nthree\n" {
		t.Errorf("lost: %q %v", lost, ok)
	}
	f, err := e.w.Sides(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	// A person was faster: nothing is overwritten.
	e.human("f", "one\nperson again\nthree\n")
	if _, err := e.w.Merge(t.Context(), id, f.Agent, "one\nboth "+s+"\nthree\n"); !errors.Is(err, ErrMoved) {
		t.Errorf("over another version: %v", err)
	}
	e.humanHas("f", "one\nperson again\nthree\n")
	if f, err = e.w.Sides(t.Context(), "f"); err != nil {
		t.Fatal(err)
	}
	// A symbol that nobody made is text; a secret may not be written at all.
	symbols, err := e.table.SymboliseAll(t.Context(), "ann", []dualview.Item{{Value: []byte("the secret value"), Secret: true,
		Provenance: dualview.Provenance{Kind: schema.SourceFile, Trust: schema.Untrusted}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err = e.w.Merge(t.Context(), id, f.Agent, "one\n"+string(symbols[0])+"\nthree\n")
	if err != nil || len(r.Conflicts) != 1 {
		t.Errorf("a secret: %+v %v", r, err)
	}
	e.humanHas("f", "one\nperson again\nthree\n")
	if f, err = e.w.Sides(t.Context(), "f"); err != nil {
		t.Fatal(err)
	}
	if r, err = e.w.Merge(t.Context(), id, f.Agent, "one\nboth "+s+"\nthree\n"); err != nil || len(r.Conflicts) != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	e.humanHas("f", "one\nboth untrusted words here\nthree\n")
	e.agentHas("f", "one\nboth "+s+"\nthree\n")
	if _, err := e.w.Conflict(t.Context(), id); !errors.Is(err, ErrNoConflict) {
		t.Errorf("it is still there: %v", err)
	}
	list, err := e.w.Conflicts(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	if err := e.w.Drop(t.Context(), list[0].ID); err != nil {
		t.Error(err)
	}
	if err := e.w.Drop(t.Context(), list[0].ID); !errors.Is(err, ErrNoConflict) {
		t.Errorf("dropped twice: %v", err)
	}
	// What a person had removed comes back.
	e.human("g", "x\n")
	e.sync()
	if err := os.Remove(filepath.Join(e.root, "g")); err != nil {
		t.Fatal(err)
	}
	e.agent("g", "agent's\n")
	if r = e.sync(); len(r.Conflicts) != 1 {
		t.Fatalf("%+v", r)
	}
	if _, err := e.w.Merge(t.Context(), r.Conflicts[0].ID, "", "agent's\n"); err != nil {
		t.Fatal(err)
	}
	e.humanHas("g", "agent's\n")
}
