// Package auditd carries the files at the root of the module that belong into
// the program.
package auditd

import _ "embed"

//go:embed models.txt
var modelsTxt string

// ModelsTxt returns models.txt, which package models parses.
func ModelsTxt() string { return modelsTxt }
