package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// TestConfigurationIsDocumented makes docs/configuration.md from the comments
// of Config: there is one place that describes a field.
func TestConfigurationIsDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{} // Type.Field
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			typ := spec.(*ast.TypeSpec)
			if st, ok := typ.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, name := range f.Names {
						comments[typ.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
			}
		}
	}
	defaults := defaultConfig(func(string) string { return "" })
	var b bytes.Buffer
	b.WriteString("# Configuration\n\nThe daemon needs no configuration file. One at `$XDG_CONFIG_HOME/auditd/config.yaml`\n" +
		"(or where `--config` points) is read strictly: an unknown or doubled field is an\nerror, and `version: 1` must stand in it. Secrets are paths of files. What agents\n" +
		"may do is not here but in the policy file (`auditd policy show`).\n\nThis page is made from the comments in `cmd/auditd/config.go`.\n\n| field | default | |\n|---|---|---|\n")
	var rows func(prefix string, v reflect.Value)
	rows = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			key := f.Tag.Get("yaml")
			if key == "" {
				continue
			}
			doc := comments[v.Type().Name()+"."+f.Name]
			if f.Type.Kind() == reflect.Struct {
				rows(prefix+key+".", v.Field(i))
				continue
			}
			if doc == "" && f.Name != "LogFormat" && f.Name != "Ollama" && f.Name != "OpenAI" {
				t.Errorf("%s.%s has no comment", v.Type().Name(), f.Name)
			}
			out, err := yaml.Marshal(v.Field(i).Interface())
			if err != nil {
				t.Fatal(err)
			}
			value := strings.TrimSpace(string(out))
			if value == `""` || f.Name == "State" {
				value = ""
			} else {
				value = "`" + value + "`"
			}
			if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
				defer rows(prefix+key+"[].", reflect.Zero(f.Type.Elem()))
			}
			fmt.Fprintf(&b, "| `%s%s` | %s | %s |\n", prefix, key, value, strings.ReplaceAll(doc, "|", "\\|"))
		}
	}
	rows("", reflect.ValueOf(defaults))
	const path = "../../docs/configuration.md"
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b.Bytes()) {
		t.Errorf("%s is stale (%v): run go test ./cmd/auditd -run Configuration -update", path, err)
	}
}

func TestSetAuditorKeepsTheFile(t *testing.T) {
	path := t.TempDir() + "/new/config.yaml"
	for _, step := range []struct{ before, name, want string }{
		{"", "ollama", "version: 1\nauditor: ollama\n"},
		{"# mine\nversion: 1\nauditor: onnx # why\n", "cascade", "# mine\nversion: 1\nauditor: cascade\n"},
		{"version: 1\ncascade: openai", "none", "version: 1\ncascade: openai\nauditor: none\n"},
	} {
		if step.before != "" {
			if err := os.WriteFile(path, []byte(step.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := setAuditor(path, step.name); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != step.want {
			t.Errorf("%q\nwant %q", got, step.want)
		}
	}
}
