package httpapi

import (
	_ "embed"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// components are the schemas of this package's own shapes, made from the Go
// types by the test TestComponentsAreCurrent.
//
//go:embed components.json
var components []byte

type object = map[string]any

// buildOpenAPI makes the document from the route table.
func (s *Server) buildOpenAPI() []byte {
	schemas := object{}
	if err := json.Unmarshal(components, &schemas); err != nil {
		panic("httpapi: internal error: components.json: " + err.Error())
	}
	for _, name := range schema.JSONSchemaNames() {
		addSchema(schemas, name)
	}
	paths := object{}
	for _, r := range s.routes() {
		path, params := openapiPath(r)
		item, _ := paths[path].(object)
		if item == nil {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(r.method)] = operation(r, params)
	}
	doc := object{
		"openapi":           "3.1.0",
		"jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
		"info": object{"title": "auditd", "version": s.cfg.Version,
			"description": "Decides whether content may go from where it came from to where an agent wants to put it. Decisions are answered with status 200 whatever they are; every error body says action block."},
		"paths": paths,
		"components": object{
			"schemas": schemas,
			"securitySchemes": object{
				"hook":  object{"type": "http", "scheme": "bearer", "description": "the hook token: report and ask"},
				"owner": object{"type": "http", "scheme": "bearer", "description": "an owner session: approve, change, see originals"},
			},
		},
	}
	out, err := json.Marshal(doc, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		panic("httpapi: internal error: openapi: " + err.Error())
	}
	return out
}

// addSchema puts a published schema under components. Its definitions stay
// inside it: those of two schemas may share a name and differ in what they
// require.
func addSchema(schemas object, name string) {
	raw, _ := schema.JSONSchema(name)
	moved := strings.ReplaceAll(string(raw), `"#/$defs/`, `"#/components/schemas/`+name+`/$defs/`)
	var doc object
	if err := json.Unmarshal([]byte(moved), &doc); err != nil {
		panic("httpapi: internal error: schema " + name + ": " + err.Error())
	}
	delete(doc, "$schema")
	delete(doc, "$id")
	schemas[name] = doc
}

// openapiPath turns gin's /v1/x/:id into /v1/x/{id} and lists the parameters.
func openapiPath(r route) (string, []any) {
	var params []any
	parts := strings.Split(r.path, "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, ":"); ok {
			parts[i] = "{" + name + "}"
			params = append(params, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	for _, q := range r.query {
		params = append(params, object{"name": q, "in": "query", "required": false, "schema": object{"type": "string"}})
	}
	return strings.Join(parts, "/"), params
}

func operation(r route, params []any) object {
	op := object{"summary": r.summary, "operationId": strings.ToLower(r.method) + strings.NewReplacer("/", "_", ":", "", ".", "_").Replace(r.path)}
	if params != nil {
		op["parameters"] = params
	}
	switch r.needs {
	case needOwner:
		op["security"] = []any{object{"owner": []any{}}}
	case needHook:
		op["security"] = []any{object{"hook": []any{}}, object{"owner": []any{}}}
	default:
		op["security"] = []any{}
	}
	if r.request != "" {
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": ref(r.request)}}}
	}
	ok := object{"description": "answer"}
	switch {
	case strings.Contains(r.answer, "/"):
		ok["content"] = object{r.answer: object{}}
	default:
		ok["content"] = object{"application/json": object{"schema": ref(r.answer)}}
	}
	responses := object{"200": ok, "default": object{"description": "error; nothing may go on", "content": object{"application/json": object{"schema": ref("error")}}}}
	if r.answer == "readiness" {
		responses["503"] = ok
	}
	op["responses"] = responses
	return op
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func (s *Server) openapiDoc(c *gin.Context) {
	s.answerRaw(c, "application/openapi+json", s.openapi())
}
