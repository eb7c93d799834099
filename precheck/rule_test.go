package precheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.org/auditd/schema"
)

// newTest makes a checker whose owner knows example.com.
func newTest(t testing.TB) *Checker {
	t.Helper()
	c, err := New(Config{Domains: []string{"example.com"}, Home: "/home/u"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func raised(p *schema.Precheck, rule string) bool {
	return slices.ContainsFunc(p.Signals, func(s schema.Signal) bool { return s.Rule == rule })
}

func TestEveryRuleHitsAndMissesItsExamples(t *testing.T) {
	c := newTest(t)
	seen := map[schema.Code]int{}
	for _, r := range Rules() {
		seen[r.Code]++
		if len(r.Hit) == 0 || len(r.Miss) == 0 {
			t.Errorf("%s has %d examples that must hit and %d that must not", r.Name, len(r.Hit), len(r.Miss))
		}
		for _, e := range r.Hit {
			if p := c.Check(e.Flow()); !raised(p, r.Name) {
				t.Errorf("%s: does not hit %q (raised %v)", r.Name, e.Text, names(p))
			}
		}
		for _, e := range r.Miss {
			if p := c.Check(e.Flow()); raised(p, r.Name) {
				t.Errorf("%s: hits %q", r.Name, e.Text)
			}
		}
	}
	for code := schema.CredSecret; code <= schema.SensitiveFilePath; code++ {
		if seen[code] < 2 {
			t.Errorf("%s has %d rules", code, seen[code])
		}
	}
}

func names(p *schema.Precheck) []string {
	var out []string
	for _, s := range p.Signals {
		out = append(out, s.Rule)
	}
	return out
}

// A rule that the source names and the list forgets would panic in use, and
// one that is in the list but raised nowhere would be dead.
func TestEveryRuleInTheSourceIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, r := range Rules() {
		if listed[r.Name] {
			t.Errorf("two rules are called %s", r.Name)
		}
		listed[r.Name] = true
	}
	fset := token.NewFileSet()
	for _, dir := range []string{".", "command"} {
		pkgs, err := parser.ParseDir(fset, dir, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, pkg := range pkgs {
			for file, f := range pkg.Files {
				if strings.HasSuffix(file, "_test.go") {
					continue
				}
				ast.Inspect(f, func(n ast.Node) bool {
					for _, name := range ruleNames(n) {
						if !listed[name] && name != "network-upload" { // reported as external-upload-command
							t.Errorf("%s: rule %q is not in Rules()", file, name)
						}
					}
					return true
				})
			}
		}
	}
	// Functions that make rules must be called by Rules.
	f, err := parser.ParseFile(fset, "rule.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if id, ok := c.Fun.(*ast.Ident); ok {
				called[id.Name] = true
			}
		}
		return true
	})
	pkgs, _ := parser.ParseDir(fset, ".", nil, 0)
	for _, pkg := range pkgs {
		for _, f := range pkg.Files {
			for _, d := range f.Decls {
				fd, ok := d.(*ast.FuncDecl)
				if ok && strings.HasSuffix(fd.Name.Name, "Rules") && fd.Name.Name != "Rules" && fd.Recv == nil && !called[fd.Name.Name] {
					t.Errorf("Rules does not call %s", fd.Name.Name)
				}
			}
		}
	}
}

// ruleNames finds the names in Rule{Name: "…"}, raise("…", …) and in constants
// of type command.Rule.
func ruleNames(n ast.Node) []string {
	literal := func(e ast.Expr) []string {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil {
				return []string{s}
			}
		}
		return nil
	}
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if id, ok := n.Key.(*ast.Ident); ok && id.Name == "Name" {
			return literal(n.Value)
		}
	case *ast.CallExpr:
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "raise" && len(n.Args) > 0 {
			return literal(n.Args[0])
		}
	case *ast.ValueSpec:
		if id, ok := n.Type.(*ast.Ident); ok && id.Name == "Rule" {
			var out []string
			for _, v := range n.Values {
				out = append(out, literal(v)...)
			}
			return out
		}
	}
	return nil
}
