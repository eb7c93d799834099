package auditlog

import (
	"os"
	"path/filepath"
)

// OpenWithDisk opens a log whose writes and syncs go through the given
// functions first; an error of theirs is the result.
func OpenWithDisk(cfg Config, write, sync func(f *os.File) error) (*Log, error) {
	return open(cfg, disk{
		writeAt: func(f *os.File, b []byte, at int64) (int, error) {
			if err := write(f); err != nil {
				n := 0
				if filepath.Base(f.Name()) != "head" { // one sector that is there already: all or nothing
					n, _ = f.WriteAt(b[:len(b)/2], at) // a full disk takes a part
				}
				return n, err
			}
			return writeAt(f, b, at)
		},
		sync: func(f *os.File) error {
			if err := sync(f); err != nil {
				return err
			}
			return f.Sync()
		},
	})
}

// OpenUnsynced opens a log that syncs nothing, to make a big one quickly.
func OpenUnsynced(cfg Config, sync func(f *os.File) error) (*Log, error) {
	return open(cfg, disk{writeAt: writeAt, sync: sync})
}
