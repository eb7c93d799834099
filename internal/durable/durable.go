// Package durable writes files so that they are there after a power failure,
// and are either the old or the new content whole, never a part.
//
// What stays unsafe, and for whom: after a failed fsync the kernel may have
// dropped the pages and marked them clean, so that a second fsync succeeds
// without the data being on the disk. No function here retries one. A caller
// that gets an error from Sync must treat the file as unknown until it has been
// read again and its content written anew.
package durable

import (
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile replaces the file at path by data, atomically and durably: a
// temporary file in the same directory, fsync, rename, fsync of the directory.
// When it returns an error, path holds what it held before, or, if only the
// last step failed, either content.
func WriteFile(path string, data []byte, perm os.FileMode) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return fmt.Errorf("create a temporary file: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	// CreateTemp makes 0600, so the content is never wider open than perm.
	if err := f.Chmod(perm); err != nil {
		return fmt.Errorf("set the file mode: %w", err)
	}
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", filepath.Base(path), err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("rename into place: %w", err)
	}
	return SyncDir(dir)
}

// CreateFile is WriteFile for a file that must not exist yet: a key that is
// already there is never replaced, also not by a concurrent caller.
func CreateFile(path string, data []byte, perm os.FileMode) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return fmt.Errorf("create a temporary file: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := f.Chmod(perm); err != nil {
		return fmt.Errorf("set the file mode: %w", err)
	}
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", filepath.Base(path), err)
	}
	// link(2) fails when the name exists, where rename(2) would replace it.
	if err := os.Link(f.Name(), path); err != nil {
		return fmt.Errorf("create %s: %w", filepath.Base(path), err)
	}
	return SyncDir(dir)
}

// SyncDir makes the names in dir durable: a created, renamed or removed file
// is otherwise only as durable as the directory that lists it.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open the directory to sync it: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync the directory: %w", err)
	}
	return nil
}

// MkdirAll makes dir and its missing parents with mode 0700, durably.
func MkdirAll(dir string) error {
	dir = filepath.Clean(dir)
	if st, err := os.Stat(dir); err == nil {
		if !st.IsDir() {
			return fmt.Errorf("%s is not a directory", filepath.Base(dir))
		}
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("create the directory: %w", err)
	}
	return SyncDir(filepath.Dir(dir))
}

// OpenAppend opens the file at path for appending, creating it with mode 0600
// if it is missing; its name is durable when OpenAppend returns.
func OpenAppend(path string) (*os.File, error) {
	_, err := os.Lstat(path)
	created := os.IsNotExist(err)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open for appending: %w", err)
	}
	if created {
		if err := SyncDir(filepath.Dir(path)); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}
