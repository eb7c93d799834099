//go:build !linux

package durable

import (
	"fmt"
	"os"
)

// Sync makes the content of f durable.
func Sync(f *os.File) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}
