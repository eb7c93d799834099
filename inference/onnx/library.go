package onnx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// ErrNoLibrary says that ONNX Runtime's shared library was not found.
var ErrNoLibrary = errors.New("ONNX Runtime's shared library was not found")

// FindLibrary returns the path of ONNX Runtime's shared library: the
// configured one, or else the newest in auditd's cache folder or the first in
// the system's folders. The cache comes before the system because what it
// holds was checked against a pinned digest.
func FindLibrary(configured, cacheDir string) (string, error) {
	if configured != "" {
		if info, err := os.Stat(configured); err != nil || info.IsDir() {
			return "", fmt.Errorf("%w: the configured path %s is no file", ErrNoLibrary, configured)
		}
		return configured, nil
	}
	pattern := "libonnxruntime.so*"
	dirs := []string{"/usr/local/lib", "/usr/lib", "/usr/lib64", "/usr/lib/" + multiarch(), "/opt/onnxruntime/lib"}
	if runtime.GOOS == "darwin" {
		pattern, dirs = "libonnxruntime*.dylib", []string{"/usr/local/lib", "/opt/homebrew/lib"}
	}
	if cacheDir != "" {
		dirs = slices.Insert(dirs, 0, cacheDir)
	}
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) == 0 {
			continue
		}
		slices.Sort(found)
		return found[len(found)-1], nil
	}
	return "", fmt.Errorf("%w in the cache or the system: run \"make deps\" (scripts/onnxruntime.sh), or set the path of libonnxruntime.so in the configuration", ErrNoLibrary)
}

func multiarch() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64-linux-gnu"
	}
	return "x86_64-linux-gnu"
}
