// Package ui holds the owner's web page: files that are served as they are.
// They need no build step and load nothing from elsewhere.
//
// What the page shows was written by attackers. Its scripts therefore make
// text nodes and never parse HTML (TestSources), control and invisible
// characters are shown by name, and the policy in CSP lets the browser refuse
// whatever slips through.
package ui

import (
	"embed"
	"path"
	"strings"
)

//go:embed static
var static embed.FS

// CSP is the content security policy of the page. There is no inline script
// or style to allow; trusted types make an assignment to innerHTML an error.
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// File returns a file of the page and its media type.
func File(name string) (data []byte, mediaType string, ok bool) {
	mediaType = mediaTypes[path.Ext(name)]
	if mediaType == "" || strings.ContainsAny(name, `/\`) {
		return nil, "", false
	}
	data, err := static.ReadFile("static/" + name)
	return data, mediaType, err == nil
}
