package auditd_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "example.org/auditd"

// mayImport is the architecture: every package of this module, and the packages
// of this module it may import. Dependencies run towards schema. A new package
// or a new edge is a design decision, so it needs a line here.
var mayImport = map[string]string{
	"schema":                  "",
	"inference":               "schema",
	"sqlite":                  "",
	"internal/durable":        "",
	"auditlog":                "schema internal/durable",
	"approval":                "schema sqlite",
	"escalation":              "schema",
	"policy":                  "schema escalation internal/durable",
	"firewall":                "schema inference escalation policy standing",
	"isolate":                 "schema api firewall dualview dualview/fileview dualview/mediate dualview/policy",
	"standing":                "schema policy internal/durable",
	"inference/anthropic":     "schema inference prompts inference/textmodel",
	"inference/inferencetest": "schema inference prompts",
	"inference/ollama":        "schema inference inference/textmodel prompts internal/durable",
	"inference/openai":        "schema inference inference/textmodel prompts",
	"inference/textmodel":     "schema inference prompts",
	"models":                  "schema inference internal/durable",
	"prompts":                 "schema",
	".":                       "",

	"bench/auditor":            "schema inference",
	"inference/onnx":           "schema inference inference/onnx/wordpiece",
	"inference/onnx/wordpiece": "",
	"credential":               "schema",
	"httpapi":                  "schema api credential approval auditlog claudehook escalation httpapi/ui marks policy replay standing heartbeat",
	"heartbeat":                "",
	"notify":                   "",
	"httpapi/ui":               "",
	"api":                      "schema auditlog marks policy standing",
	"replay":                   "schema auditlog",
	"marks":                    "schema auditlog bench/cases internal/durable",
	"claudehook":               "schema",
	"install":                  "schema claudehook heartbeat internal/durable install/provider plugins/openclaw",
	"install/provider":         "",
	"plugins/openclaw":         "",
	"mcpproxy":                 "schema internal/durable",
	"modelproxy":               "schema",
	"demo":                     "schema",
	"client":                   "schema api marks policy standing heartbeat",
	"bench":                    "schema",
	"cmd/auditd":               "schema api approval auditlog bench bench/auditor claudehook client credential demo dualview dualview/fileview dualview/mediate dualview/policy dualview/quarantine dualview/shell escalation firewall httpapi install isolate inference inference/anthropic inference/ollama inference/onnx inference/openai internal/durable mcpproxy models policy precheck sqlite bench/cases bench/entry bench/isolation bench/isolation/play bench/quality bench/report bench/peer bench/tune modelproxy marks replay standing heartbeat notify",
	"bench/cases":              "schema",
	"bench/isolation/play":     "schema bench/isolation bench/auditor",
	"bench/isolation":          "dualview/canary",
	"bench/quality":            "schema inference bench/auditor bench/cases",
	"bench/peer":               "schema bench/cases",
	"bench/entry":              "schema claudehook bench/cases bench/quality",
	"bench/report":             "schema bench/cases bench/auditor bench/isolation/play bench/quality bench/tune",
	"bench/tune":               "escalation",
	"dualview":                 "schema",
	"precheck":                 "schema precheck/normalise precheck/keyword precheck/command precheck/endpoint precheck/secret",
	"precheck/normalise":       "",
	"precheck/keyword":         "",
	"precheck/command":         "",
	"precheck/endpoint":        "",
	"precheck/secret":          "precheck/keyword",
	"dualview/canary":          "", // for tests and the bench
	"dualview/policy":          "schema dualview internal/durable",
	"dualview/usage":           "schema dualview",
	"dualview/fileview":        "schema dualview",
	"dualview/mediate":         "schema dualview dualview/fileview dualview/policy dualview/shell dualview/usage",
	"dualview/quarantine":      "schema dualview dualview/policy inference prompts",
	"dualview/shell":           "schema dualview dualview/fileview",
}

// onlyIn confines heavy or dangerous imports to the packages that wrap them.
var onlyIn = map[string]string{
	"github.com/mattn/go-sqlite3":                "sqlite",
	"database/sql":                               "sqlite approval dualview cmd/auditd dualview/fileview",
	"golang.org/x/mod/sumdb/note":                "auditlog",
	"golang.org/x/mod/sumdb/tlog":                "auditlog",
	"cel.dev/cel-go/cel":                         "policy",
	"gopkg.in/yaml.v3":                           "policy dualview/policy bench/cases bench/peer cmd/auditd",
	"github.com/yalue/onnxruntime_go":            "inference/onnx",
	"github.com/sugarme/tokenizer":               "inference/onnx/wordpiece",
	"github.com/sugarme/tokenizer/pretrained":    "inference/onnx/wordpiece",
	"github.com/gin-gonic/gin":                   "httpapi",
	"github.com/modelcontextprotocol/go-sdk/mcp": "mcpproxy",
	"golang.org/x/net/html":                      "dualview",
	"github.com/ollama/ollama/api":               "inference/ollama models",
	"github.com/openai/openai-go/v3":             "inference/openai",
	"github.com/anthropics/anthropic-sdk-go":     "inference/anthropic",
}

// TestImports reads the source files themselves rather than asking go list, so
// that it sees every build tag and so that the test cache notices changes.
func TestImports(t *testing.T) {
	documented := map[string]int{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == "testdata" || n == "node_modules" || n == "tools" || file != "." && strings.HasPrefix(n, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		name := path.Dir(filepath.ToSlash(file))
		n := documented[name]
		if f.Doc != nil {
			n++
		}
		documented[name] = n
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if local, ok := strings.CutPrefix(imp, module+"/"); ok && !slices.Contains(strings.Fields(mayImport[name]), local) {
				t.Errorf("%s: %s must not import %s", file, name, local)
			}
			if where, ok := onlyIn[imp]; ok && !slices.Contains(strings.Fields(where), name) {
				t.Errorf("%s: only %s may import %s", file, where, imp)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range documented {
		if _, ok := mayImport[name]; !ok {
			t.Errorf("%s is not in mayImport: add it, with the packages it may import", name)
		}
		if n != 1 {
			t.Errorf("%s: %d files carry a package comment, want 1", name, n)
		}
	}
	for name := range mayImport {
		if _, ok := documented[name]; !ok {
			t.Errorf("mayImport lists %s, which does not exist", name)
		}
	}
}
