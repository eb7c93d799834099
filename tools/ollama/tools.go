//go:build tools

// Package ollama pins the real Ollama server that the integration tests build
// from source, and the module that carries the miniaudio.h header it needs.
package ollama

import (
	_ "github.com/gen2brain/malgo"
	_ "github.com/ollama/ollama"
)
