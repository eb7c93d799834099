package schema

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed jsonschema/*.json
var published embed.FS

// JSONSchemaNames lists the published JSON Schemas (draft 2020-12), sorted.
func JSONSchemaNames() []string {
	entries, err := fs.ReadDir(published, "jsonschema")
	if err != nil {
		panic("schema: internal error: embedded schemas are missing: " + err.Error())
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// JSONSchema returns the published JSON Schema called name.
func JSONSchema(name string) ([]byte, bool) {
	if !slices.Contains(JSONSchemaNames(), name) {
		return nil, false
	}
	b, err := published.ReadFile("jsonschema/" + name + ".json")
	return b, err == nil
}
