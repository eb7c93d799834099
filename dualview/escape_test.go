package dualview

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	nethtml "golang.org/x/net/html"
	"gopkg.in/yaml.v3"
)

var nasty = []string{
	"plain", `quotes " and ' and \ `, "line\nbreak\r\ntwo", "a: b # c", "- x", "--rm -rf /", "=1+2", "@cmd", "$(touch /tmp/x) `id` ${HOME} !x",
	"</script><script>alert(1)</script>", "<!-- x", "a,b;c\td", `"`, "null", "{}", "[x", "é\u2028\u202e", "\t", "%41&b=c#d?e/f", "x' OR '1'='1",
	strings.Repeat("long ", 2000), "\u0085next", " leading and trailing ", "~", "*alias", "&anchor", "true",
}

func TestProperty13ContextAwareResolution(t *testing.T) {
	table := testTable(t, t.TempDir())
	for _, v := range nasty {
		s := string(mustSymbolise(t, table, v))

		for _, text := range []string{`{"a":"` + s + `"}`, `{"a":` + s + `}`, `{"b\"":1,"a":"` + s + `"}`} {
			var m map[string]any
			if err := json.Unmarshal([]byte(mustResolve(t, table, text, JSON)), &m); err != nil || m["a"] != v {
				t.Errorf("JSON %q: %v %v", v, m["a"], err)
			}
		}

		for _, text := range []string{"a: " + s + "\nb: 1\n", "a: \"" + s + "\"\nb: 1\n", "a: '" + s + "'\nb: 1\n", "a: [" + s + "]\nb: 1\n",
			"a: x " + s + " y\nb: 1\n", "a: |-\n  " + s + "\nb: 1\n", "a: " + s + " # comment\nb: 1\n", "# " + s + "\na: 1\nb: 1\n"} {
			o, err := table.Resolve(t.Context(), text, YAML, person("ann"))
			if errors.Is(err, ErrContext) {
				continue // refused
			}
			var m map[string]any
			if err := yaml.Unmarshal([]byte(o.Reveal()), &m); err != nil || len(m) != 2 || m["b"] != 1 {
				t.Errorf("YAML %q in %q: %v %v", v, text, m, err)
				continue
			}
			if got, ok := m["a"].(string); ok && got != v && !strings.Contains(text, "x "+s) && !strings.Contains(text, "|-") {
				t.Errorf("YAML %q in %q became %q", v, text, got)
			}
		}

		for _, text := range []string{"a," + s + ",b\n1,2,3\n", "\"q \"\"x\",\"" + s + "\",b\n1,2,3\n", "," + s + ",b\n1,2,3\n", "a,x " + s + " y,b\n1,2,3\n"} {
			rows, err := csv.NewReader(strings.NewReader(mustResolve(t, table, text, CSV))).ReadAll()
			if err != nil || len(rows) != 2 || len(rows[0]) != 3 || rows[0][2] != "b" {
				t.Errorf("CSV %q: %q %v", v, rows, err)
				continue
			}
			want := strings.ReplaceAll(v, "\r\n", "\n") // as the reader gives it
			if got := rows[0][1]; strings.IndexByte("=+-@\t\r", got[0]) >= 0 || !strings.Contains(got, want) {
				t.Errorf("CSV %q became %q", v, got)
			}
		}

		doc := `<p title="` + s + `">` + s + `</p><b>end</b>`
		z := nethtml.NewTokenizer(strings.NewReader(mustResolve(t, table, doc, HTML)))
		var tags, text string
		for {
			tt := z.Next()
			if tt == nethtml.ErrorToken {
				break
			}
			tok := z.Token()
			if tt == nethtml.TextToken {
				text += tok.Data
			} else {
				tags += tok.Data + " "
				for _, a := range tok.Attr {
					if want := strings.ReplaceAll(v, "\r\n", "\n"); a.Key != "title" || strings.ReplaceAll(a.Val, "\r\n", "\n") != want {
						t.Errorf("HTML attribute %q: %v", v, a)
					}
				}
			}
		}
		if tags != "p p b b " || !strings.HasPrefix(text, strings.ReplaceAll(v, "\r", "\r")[:1]) {
			t.Errorf("HTML %q: tags %q", v, tags)
		}

		u, err := url.Parse(mustResolve(t, table, "https://h.test/p/"+s+"?q="+s+"&z=1#f", URL))
		if err != nil || u.Host != "h.test" || u.Query().Get("q") != v || u.Query().Get("z") != "1" || u.Fragment != "f" {
			t.Errorf("URL %q: %v %v", v, u, err)
		}
	}
}

func TestProperty13ShellArgumentIsOneArgument(t *testing.T) {
	table := testTable(t, t.TempDir())
	for _, v := range nasty {
		s := string(mustSymbolise(t, table, v))
		o, err := table.Resolve(t.Context(), s, ShellArgument, person("ann"))
		if strings.HasPrefix(v, "-") {
			if !errors.Is(err, ErrContext) {
				t.Errorf("%q was not refused as an option: %v", v, err)
			}
			o, err = table.Resolve(t.Context(), "--x="+s, ShellArgument, person("ann"))
			v = "--x=" + v
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("bash", "-c", `printf '%s\0' `+o.Reveal()).Output()
		if err != nil || string(out) != v+"\x00" {
			t.Errorf("%q became %q, %v", v, out, err)
		}
	}
	s := mustSymbolise(t, table, "nul\x00byte")
	if _, err := table.Resolve(t.Context(), string(s), ShellArgument, person("ann")); !errors.Is(err, ErrContext) {
		t.Errorf("a NUL byte: %v", err)
	}
}

func TestProperty13Refusals(t *testing.T) {
	table := testTable(t, t.TempDir())
	s := string(mustSymbolise(t, table, "javascript:alert(1)"))
	for _, c := range []struct {
		c    Context
		text string
	}{
		{HTML, "<script>var a = " + s + "</script>"}, {HTML, "<style>" + s + "</style>"}, {HTML, "<!-- " + s + " -->"}, {HTML, "<" + s + ">"},
		{HTML, "<a href=" + s + ">"}, {HTML, `<a href="` + s + `">`}, {HTML, `<a onclick="` + s + `">`}, {HTML, `<a style='` + s + `'>`}, {HTML, `<a ` + s + `="x">`},
		{URL, s}, {URL, "https://" + s + "/"}, {URL, "https://x." + s}, {URL, "x" + s}, {YAML, "a: x" + s},
	} {
		if o, err := table.Resolve(t.Context(), c.text, c.c, person("ann")); !errors.Is(err, ErrContext) {
			t.Errorf("%s: %v", c.text, err)
			_ = o
		}
	}
	ok := string(mustSymbolise(t, table, "https://h.test/?q=1"))
	if got := mustResolve(t, table, ok, URL); got != "https://h.test/?q=1" {
		t.Errorf("a whole URL became %q", got)
	}
	if got := mustResolve(t, table, `<a href="`+ok+`">x</a>`, HTML); got != `<a href="https://h.test/?q=1">x</a>` {
		t.Errorf("a whole address became %q", got)
	}
}

func FuzzPlace(f *testing.F) {
	m := newMint([]byte("k"), strings.NewReader(strings.Repeat("0123456789ab", 10)))
	id, err := m.new()
	if err != nil {
		f.Fatal(err)
	}
	s := string(m.symbol(id))
	f.Add("a,", "v\"", ",b", uint8(CSV))
	f.Add("<a href='", "v", "'>", uint8(HTML))
	f.Add("a: |\n  ", "v\nw", "\n", uint8(YAML))
	f.Add(`{"a":"\`, "v", `"}`, uint8(JSON))
	f.Fuzz(func(t *testing.T, before, value, after string, c uint8) {
		text := before + s + after
		var pieces []piece
		for _, tok := range m.scan(text) {
			pieces = append(pieces, piece{tok, value})
		}
		out, ranges, err := placeRanges(text, pieces, Context(c))
		if err != nil {
			return
		}
		for _, r := range ranges {
			if r[0] < 0 || r[1] < r[0] || r[1] > len(out) {
				t.Fatalf("range %v of %d bytes", r, len(out))
			}
		}
	})
}
