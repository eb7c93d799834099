package dualview

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
)

// testTable opens a table on a real database file in dir.
func testTable(t testing.TB, dir string, change ...func(*Config)) *Table {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(dir, "auditd.db"), Migrations())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{DB: db, Dir: filepath.Join(dir, "dualview")}
	for _, c := range change {
		c(&cfg)
	}
	table, err := New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		table.Close()
		db.Close()
	})
	return table
}

func person(owner string) Grant {
	return Grant{By: ByPolicy, Owner: owner, AgentTrusted: true, Expires: time.Now().Add(time.Hour),
		Sink: schema.Sink{Kind: schema.SinkMessage, Tool: "deliver"}}
}

var web = Provenance{Kind: schema.SourceWeb, Tool: "web_fetch", Field: "text", Origin: "https://example.test/q1", Trust: schema.Untrusted}

func mustSymbolise(t testing.TB, table *Table, value string) Symbol {
	t.Helper()
	s, err := table.Symbolise(t.Context(), "ann", []byte(value), web)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Property 08: a caller that goes away in the middle fails alone; the table goes
// on.
func TestProperty08CancelledCallsFailAlone(t *testing.T) {
	table := testTable(t, t.TempDir())
	for i := range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		stop := make(chan struct{})
		go func() {
			for range i * 50 {
				runtime.Gosched()
			}
			cancel()
			close(stop)
		}()
		s, err := table.Symbolise(ctx, "ann", fmt.Appendf(nil, "value %d", i), web)
		if (err == nil) != (s != "") {
			t.Fatalf("symbol %q with %v", s, err)
		}
		<-stop
		mustSymbolise(t, table, fmt.Sprint("after ", i))
	}
}

func mustResolve(t testing.TB, table *Table, text string, c Context) string {
	t.Helper()
	o, err := table.Resolve(t.Context(), text, c, person("ann"))
	if err != nil {
		t.Fatal(err)
	}
	return o.Reveal()
}

func TestProperty08SymbolsResolveAfterRestart(t *testing.T) {
	dir := t.TempDir()
	table := testTable(t, dir)
	large := strings.Repeat("a large value ", 20000)
	a, b := mustSymbolise(t, table, "small"), mustSymbolise(t, table, large)
	// No Close: a killed daemon closes nothing.
	again := testTable(t, dir)
	if got := mustResolve(t, again, string(a), Raw); got != "small" {
		t.Errorf("small value: %d bytes", len(got))
	}
	if got := mustResolve(t, again, string(b), Raw); got != large {
		t.Errorf("large value: %d bytes", len(got))
	}
	known, err := again.Known(t.Context(), []byte("before "+large[:400]))
	if err != nil || len(known) == 0 {
		t.Errorf("after a restart the value is not recognised: %v %v", known, err)
	}
}

// Property 08: with a database that is full, or that cannot be written, no symbol
// is made, and with room again the table goes on.
func TestProperty08FullDatabase(t *testing.T) {
	table := testTable(t, t.TempDir())
	s := mustSymbolise(t, table, "before")
	for _, c := range []struct{ name, breaks, mends, says string }{
		{"full", `PRAGMA max_page_count = 1`, `PRAGMA max_page_count = 4294967294`, "full"},
		{"read-only", `PRAGMA query_only = 1`, `PRAGMA query_only = 0`, "readonly"},
	} {
		if _, err := table.write.ExecContext(t.Context(), c.breaks); err != nil {
			t.Fatal(err)
		}
		got, err := table.Symbolise(t.Context(), "ann", bytes.Repeat([]byte("a value that needs room "+c.name), 1000), web)
		if err == nil || got != "" || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q %v", c.name, got, err)
		}
		if text := mustResolve(t, table, string(s), Raw); text != "before" {
			t.Errorf("%s: what was there resolves to %q", c.name, text)
		}
		if _, err := table.write.ExecContext(t.Context(), c.mends); err != nil {
			t.Fatal(err)
		}
		mustSymbolise(t, table, "after "+c.name)
	}
}

func TestProperty08FailuresWithhold(t *testing.T) {
	dir := t.TempDir()
	table := testTable(t, dir)
	s := mustSymbolise(t, table, strings.Repeat("x", inlineMax+1))
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := table.Symbolise(canceled, "ann", []byte("v"), web); err == nil {
		t.Error("symbolise with a cancelled context succeeded")
	}
	if _, err := table.Symbolise(t.Context(), "", []byte("v"), web); err == nil {
		t.Error("symbolise without an owner succeeded")
	}
	err := filepath.WalkDir(filepath.Join(dir, "dualview", "values"), func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			return os.WriteFile(p, bytes.Repeat([]byte("y"), inlineMax+1), 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := table.Resolve(t.Context(), string(s), Raw, person("ann")); err == nil {
		t.Errorf("a damaged value was resolved: %v", o)
	}
	if err := os.Remove(filepath.Join(dir, "dualview", "symbol.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Config{DB: table.db, Dir: filepath.Join(dir, "dualview")}); err == nil {
		t.Error("a table without its key was opened")
	}
}

func TestProperty10Unforgeable(t *testing.T) {
	table := testTable(t, t.TempDir())
	s := mustSymbolise(t, table, "the value")
	text := string(s)
	for i := range text {
		for _, c := range []byte("0az9uxS ") {
			if text[i] == c {
				continue
			}
			forged := text[:i] + string(c) + text[i+1:]
			o, err := table.Resolve(t.Context(), forged, Raw, person("ann"))
			if err != nil || o.Reveal() != forged {
				t.Fatalf("byte %d changed to %q resolved", i, c)
			}
		}
	}
	for _, mangled := range []string{text[1:], text[:len(text)-1], text[:10] + " " + text[10:], text[:10] + "\n" + text[10:],
		strings.ToUpper(text[:12]) + text[12:], strings.Replace(text, "symu", "sym", 1)} {
		if o, err := table.Resolve(t.Context(), mangled, Raw, person("ann")); err != nil || o.Reveal() != mangled {
			t.Errorf("mangled %q resolved", mangled)
		}
	}
	// A guess with the right check is what only the key can make: another
	// table's symbol is well formed and means nothing here.
	other := mustSymbolise(t, testTable(t, t.TempDir()), "theirs")
	if got := table.Symbols(string(other)); got != nil {
		t.Errorf("a foreign table's symbol was recognised: %v", got)
	}
}

func TestProperty10OwnerScoped(t *testing.T) {
	table := testTable(t, t.TempDir())
	s := mustSymbolise(t, table, "ann's value")
	g := person("bob")
	if _, err := table.Resolve(t.Context(), string(s), Raw, g); !errors.Is(err, ErrUnknown) {
		t.Errorf("another owner: %v, want ErrUnknown", err)
	}
	if _, err := table.Info(t.Context(), "bob", s); !errors.Is(err, ErrUnknown) {
		t.Errorf("another owner's info: %v, want ErrUnknown", err)
	}
	if _, err := table.Derive(t.Context(), "bob", s, 0, 1); err == nil {
		t.Error("another owner derived a symbol")
	}
	g = person("ann")
	g.AgentTrusted = false
	if _, err := table.Resolve(t.Context(), string(s), Raw, g); !errors.Is(err, ErrNoGrant) {
		t.Errorf("an agent that is not trusted: %v, want ErrNoGrant", err)
	}
}

func TestNothingResolvesWithoutAGrant(t *testing.T) {
	table := testTable(t, t.TempDir())
	s := mustSymbolise(t, table, "v")
	for name, change := range map[string]func(*Grant){
		"zero":             func(g *Grant) { *g = Grant{} },
		"nobody":           func(g *Grant) { g.By = ByNobody },
		"unknown":          func(g *Grant) { g.By = 99 },
		"no owner":         func(g *Grant) { g.Owner = "" },
		"expired":          func(g *Grant) { g.Expires = time.Now().Add(-time.Second) },
		"no end":           func(g *Grant) { g.Expires = time.Time{} },
		"person, no call":  func(g *Grant) { g.By = ByPerson },
		"untrusted caller": func(g *Grant) { g.AgentTrusted = false },
	} {
		g := person("ann")
		change(&g)
		if o, err := table.Resolve(t.Context(), "x "+string(s), Raw, g); !errors.Is(err, ErrNoGrant) {
			t.Errorf("%s: %v %v, want ErrNoGrant", name, o, err)
		}
	}
	if _, err := table.Resolve(t.Context(), string(s), ContextUnset, person("ann")); !errors.Is(err, ErrContext) {
		t.Errorf("no context: %v, want ErrContext", err)
	}
}

func TestProperty11Immutable(t *testing.T) {
	table := testTable(t, t.TempDir())
	a, b := mustSymbolise(t, table, "same"), mustSymbolise(t, table, "same")
	if a == b {
		t.Error("two values share a symbol")
	}
	for _, stmt := range []string{`UPDATE dualview_symbol SET content = 1`, `UPDATE dualview_symbol SET owner = 'bob'`, `UPDATE dualview_content SET data = x'00'`} {
		if _, err := table.db.ExecContext(t.Context(), stmt); err == nil {
			t.Errorf("%s succeeded", stmt)
		}
	}
}

func TestProperty12RobustInText(t *testing.T) {
	table := testTable(t, t.TempDir())
	s := string(mustSymbolise(t, table, "VALUE"))
	other := string(mustSymbolise(t, table, "OTHER"))
	for _, c := range [][2]string{
		{"%s.", "VALUE."}, {"%s's", "VALUE's"}, {"(%s)", "(VALUE)"}, {"**%s**", "**VALUE**"}, {"_%s_", "_VALUE_"}, {"<b>%s</b>", "<b>VALUE</b>"},
		{`"%s"`, `"VALUE"`}, {"a,%s,b", "a,VALUE,b"}, {"x%sy", "xVALUEy"}, {"symu%s", "symuVALUE"}, {"symusy%su", "symusyVALUEu"},
		{"%[1]s%[1]s", "VALUEVALUE"}, {"$%s", "$VALUE"}, {"`%s`", "`VALUE`"}, {"%s\u200b", "VALUE\u200b"}, {"é%sé", "éVALUEé"},
	} {
		if got := mustResolve(t, table, fmt.Sprintf(c[0], s), Raw); got != c[1] {
			t.Errorf("%s: %q, want %q", c[0], got, c[1])
		}
		if got := mustResolve(t, table, fmt.Sprintf(c[0], strings.ToUpper(s)), Raw); got != c[1] {
			t.Errorf("%s, upper case: %q, want %q", c[0], got, c[1])
		}
	}
	if got := mustResolve(t, table, s+other, Raw); got != "VALUEOTHER" {
		t.Errorf("adjacent: %q", got)
	}
	// Never recursive: a value that holds a symbol is given as it is.
	nested := string(mustSymbolise(t, table, "see "+s))
	if got := mustResolve(t, table, nested, Raw); got != "see "+s {
		t.Errorf("nested: %q", got)
	}
	for _, r := range s {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789", r) {
			t.Fatalf("%q stands in a symbol", r)
		}
	}
}

func TestProperty14Provenance(t *testing.T) {
	table := testTable(t, t.TempDir())
	a, b := mustSymbolise(t, table, "one"), mustSymbolise(t, table, "two")
	p := web
	p.Trust, p.Field, p.Parents = schema.Derived, "summary", []Symbol{a, b}
	c, err := table.Symbolise(t.Context(), "ann", []byte("three"), p)
	if err != nil {
		t.Fatal(err)
	}
	info, err := table.Info(t.Context(), "ann", c)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Provenance.Parents) != 2 || info.Provenance.Parents[0] != a || info.Provenance.Parents[1] != b {
		t.Errorf("parents %v, want %v", info.Provenance.Parents, p.Parents)
	}
	if info.Provenance.Origin != web.Origin || info.Provenance.Field != "summary" || info.Size != 5 || info.Owner != "ann" {
		t.Errorf("info %+v", info)
	}
	d, err := table.Derive(t.Context(), "ann", c, 1, 4)
	if err != nil {
		t.Fatal(err)
	}
	if got := mustResolve(t, table, string(d), Raw); got != "hre" {
		t.Errorf("derived %q", got)
	}
	if _, err := table.Derive(t.Context(), "ann", d, 0, 4); err == nil {
		t.Error("a range beyond its parent was derived")
	}
	p.Parents = []Symbol{"symu00000000000000000000000000000000u"}
	if _, err := table.Symbolise(t.Context(), "ann", []byte("x"), p); err == nil {
		t.Error("a forged parent was accepted")
	}
}

func TestList(t *testing.T) {
	now := time.UnixMilli(1000)
	table := testTable(t, t.TempDir(), func(c *Config) { c.Now = func() time.Time { return now } })
	var all []Symbol
	for range 5 {
		all = append(all, mustSymbolise(t, table, "v"))
		now = now.Add(time.Second)
	}
	if _, err := table.Symbolise(t.Context(), "bob", []byte("v"), web); err != nil {
		t.Fatal(err)
	}
	first, err := table.List(t.Context(), "ann", time.Time{}, 3)
	if err != nil || len(first) != 3 || first[0].Symbol != all[4] || first[2].Symbol != all[2] {
		t.Fatal(first, err)
	}
	rest, err := table.List(t.Context(), "ann", first[2].Created, 10)
	if err != nil || len(rest) != 2 || rest[1].Symbol != all[0] {
		t.Fatal(rest, err)
	}
}

func TestProperty14Collection(t *testing.T) {
	now := time.Now()
	dir := t.TempDir()
	table := testTable(t, dir, func(c *Config) {
		c.Now = func() time.Time { return now }
		c.Retention = time.Hour
	})
	free := mustSymbolise(t, table, "free"+strings.Repeat(" large", inlineMax/4))
	held := mustSymbolise(t, table, "held")
	parent := mustSymbolise(t, table, "parent")
	p := web
	p.Parents = []Symbol{parent}
	child, err := table.Symbolise(t.Context(), "ann", []byte("child"), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Hold(t.Context(), "ann", "view:1", []Symbol{held, child}); err != nil {
		t.Fatal(err)
	}
	collect := func(want Collected) {
		t.Helper()
		got, err := table.Collect(t.Context())
		if err != nil || got != want {
			t.Errorf("collected %+v %v, want %+v", got, err, want)
		}
	}
	collect(Collected{})
	now = now.Add(2 * time.Hour)
	collect(Collected{1, 1})
	g := person("ann")
	g.Expires = now.Add(time.Hour)
	if _, err := table.Resolve(t.Context(), string(free), Raw, g); !errors.Is(err, ErrUnknown) {
		t.Errorf("dropped symbol: %v", err)
	}
	if o, err := table.Resolve(t.Context(), string(held)+string(child)+string(parent), Raw, g); err != nil || o.Reveal() != "heldchildparent" {
		t.Errorf("held symbols: %v", err)
	}
	var files int
	filepath.WalkDir(filepath.Join(dir, "dualview", "values"), func(_ string, d os.DirEntry, _ error) error {
		if !d.IsDir() {
			files++
		}
		return nil
	})
	if files != 0 {
		t.Errorf("%d files of dropped values are left", files)
	}
	if err := table.Release(t.Context(), "view:1"); err != nil {
		t.Fatal(err)
	}
	collect(Collected{3, 3})
	known, err := table.Known(t.Context(), []byte(strings.Repeat(" large", 40)))
	if err != nil || len(known) == 0 {
		t.Errorf("a dropped value is no longer recognised: %v %v", known, err)
	}
}

func TestProperty14StoredPrivately(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		dir := t.TempDir()
		key := filepath.Join(dir, "key")
		if err := os.WriteFile(key, bytes.Repeat([]byte{7}, keySize), 0o600); err != nil {
			t.Fatal(err)
		}
		table := testTable(t, dir, func(c *Config) {
			if encrypted {
				c.EncryptionKeyFile = key
			}
		})
		const canary = "kanarienvogel-7731"
		mustSymbolise(t, table, canary)
		big := mustSymbolise(t, table, strings.Repeat(canary+" ", inlineMax/8))
		if got := mustResolve(t, table, string(big), Raw); !strings.HasPrefix(got, canary) {
			t.Error("the large value does not resolve")
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
		err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err != nil || p == dir {
				return err
			}
			st, err := d.Info()
			if err != nil {
				return err
			}
			if st.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %04o", p, st.Mode().Perm())
			}
			if d.IsDir() || !encrypted {
				return nil
			}
			data, err := os.ReadFile(p)
			if bytes.Contains(data, []byte(canary)) {
				t.Errorf("%s holds the value in clear", p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if encrypted {
			db, err := sqlite.Open(filepath.Join(dir, "auditd.db"), Migrations())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := New(t.Context(), Config{DB: db, Dir: filepath.Join(dir, "dualview")}); err == nil {
				t.Error("an encrypted table was opened without its key")
			}
		}
	}
}

func TestProperty14LargeValues(t *testing.T) {
	table := testTable(t, t.TempDir())
	value := make([]byte, 64<<20)
	rand.Read(value)
	s, err := table.Symbolise(t.Context(), "ann", value, web)
	if err != nil {
		t.Fatal(err)
	}
	if got := mustResolve(t, table, string(s), Raw); got != string(value) {
		t.Errorf("%d bytes came back", len(got))
	}
	if _, err := table.Symbolise(t.Context(), "ann", append(value, 0), web); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte more: %v, want ErrTooLarge", err)
	}
	if _, err := table.Resolve(t.Context(), strings.Repeat(string(s), 3), Raw, person("ann")); !errors.Is(err, ErrTooLarge) {
		t.Errorf("three times the value: %v, want ErrTooLarge", err)
	}
}

func TestSecretsResolveOnlyForTheirSinks(t *testing.T) {
	table := testTable(t, t.TempDir())
	symbols, err := table.SymboliseAll(t.Context(), "ann", []Item{
		{Value: []byte("token-1"), Provenance: web, Secret: true, Sinks: []SinkRule{
			{Kind: schema.SinkWeb, Tool: "web_fetch", Destination: "api.example.test"}, {Kind: schema.SinkWeb, Tool: "web_fetch", Destination: "*.corp.test"}}},
		{Value: []byte("token-2"), Provenance: web, Secret: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	derived, err := table.Derive(t.Context(), "ann", symbols[0], 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sink schema.Sink
		ok   bool
	}{
		{schema.Sink{Kind: schema.SinkWeb, Tool: "web_fetch", Destination: "api.example.test"}, true},
		{schema.Sink{Kind: schema.SinkWeb, Tool: "web_fetch", Destination: "a.corp.test"}, true},
		{schema.Sink{Kind: schema.SinkWeb, Tool: "web_fetch", Destination: "corp.test"}, false},
		{schema.Sink{Kind: schema.SinkWeb, Tool: "web_fetch", Destination: "xcorp.test"}, false},
		{schema.Sink{Kind: schema.SinkWeb, Tool: "web_fetch"}, false},
		{schema.Sink{Kind: schema.SinkWeb, Tool: "web_search", Destination: "api.example.test"}, false},
		{schema.Sink{Kind: schema.SinkMessage, Tool: "web_fetch", Destination: "api.example.test"}, false},
		{schema.Sink{}, false},
	} {
		g := person("ann")
		g.Sink = c.sink
		for _, s := range []Symbol{symbols[0], derived} {
			if _, err := table.Resolve(t.Context(), string(s), Raw, g); (err == nil) != c.ok {
				t.Errorf("%+v: %v", c.sink, err)
			}
		}
		if _, err := table.Resolve(t.Context(), string(symbols[1]), Raw, g); !errors.Is(err, ErrNoGrant) {
			t.Errorf("secret without sinks, %+v: %v", c.sink, err)
		}
	}
}

func TestOriginalsDoNotPrint(t *testing.T) {
	o := Original{"canary-1234"}
	for _, verb := range []string{"%v", "%s", "%q", "%x", "%+v", "%#v", "%d"} {
		if got := fmt.Sprintf(verb, o); strings.Contains(got, "canary") || strings.Contains(got, fmt.Sprintf("%x", "canary")) {
			t.Errorf("%s: %s", verb, got)
		}
	}
	if _, err := json.Marshal(o); err == nil {
		t.Error("an original was encoded")
	}
}

func FuzzScan(f *testing.F) {
	table := testTable(f, f.TempDir())
	s, err := table.Symbolise(context.Background(), "ann", []byte("v"), web)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a", string(s), "b")
	f.Add("symu", strings.ToUpper(string(s)), "u")
	f.Add("SYMU", "symu", string(s))
	f.Fuzz(func(t *testing.T, a, b, c string) {
		text := a + b + c
		for _, tok := range table.mint.scan(text) {
			if got, err := table.mint.parse(text[tok.start:tok.end]); err != nil || got != tok.id {
				t.Fatalf("scan found what parse refuses: %v", err)
			}
		}
		if got := table.Symbols(a + string(s) + c); len(got) == 0 {
			t.Fatal("a whole symbol was not found")
		}
	})
}

// A value that was a secret once is one wherever it is met again: as another
// value, and as a part of a text.
func TestSecretMetAgain(t *testing.T) {
	table := testTable(t, t.TempDir())
	secret := []byte(prose(77, 20))
	if _, err := table.SymboliseAll(t.Context(), "ann", []Item{{Value: secret, Provenance: web, Secret: true}}); err != nil {
		t.Fatal(err)
	}
	again := mustSymbolise(t, table, string(secret))
	pieces, err := table.Recognise(t.Context(), "ann", append([]byte("it is: "), secret...), web)
	if err != nil || len(pieces) != 1 {
		t.Fatalf("%v %v", pieces, err)
	}
	for _, s := range []Symbol{again, pieces[0].Symbol} {
		if info, err := table.Info(t.Context(), "ann", s); err != nil || !info.Secret {
			t.Errorf("%s is no secret: %v", s, err)
		}
		if _, err := table.Resolve(t.Context(), string(s), Raw, person("ann")); err == nil {
			t.Errorf("%s resolves", s)
		}
	}
}
