// Package openclaw holds auditd's plugin for OpenClaw, compiled from the
// TypeScript beside it, so that the program can put it where OpenClaw finds it.
package openclaw

import (
	"embed"
	"io/fs"
)

//go:embed package.json openclaw.plugin.json dist/*.js
var files embed.FS

// ID is the plugin's name in OpenClaw's configuration.
const ID = "auditd"

// Files returns the plugin as it is loaded: its manifests and dist.
func Files() fs.FS { return files }
