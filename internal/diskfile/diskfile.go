// Package diskfile writes files that are either complete or absent, even after a crash.
// It writes to a temporary file, syncs it and renames it. The package also opens files
// that an operator has configured.
package diskfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNotRegular means that the path leads to a directory, a pipe or a device.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens a regular file for reading. It does not block on a pipe. Errors are
// of type *fs.PathError.
func OpenRegular(path string) (*os.File, error) {
	// Opening a pipe would block. The flag has no effect on a regular file.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat() // check the open file, because the path may now lead to another one
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// File is a temporary file with mode 0600. Commit gives it its final name.
type File struct {
	*os.File
	committed bool
}

// Create creates a temporary file. A "*" in the last element of temp is replaced by random
// text, so that two processes never share a file. Without a "*", the new file replaces an
// existing file, for example one that a crashed process left. The file must be in the same
// directory as the final file.
func Create(temp string) (*File, error) {
	if dir, pattern := filepath.Split(temp); strings.Contains(pattern, "*") {
		f, err := os.CreateTemp(dir, pattern)
		if err != nil {
			return nil, err
		}
		return &File{File: f}, nil
	}
	// Remove the old file instead of truncating it: another process may still write to
	// it.
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{File: f}, nil
}

// Commit syncs and closes the file, renames it to path and syncs the directory. It
// replaces an existing file.
func (f *File) Commit(path string) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	f.committed = true
	return SyncDir(filepath.Dir(path))
}

// Discard closes and removes the file. After a successful Commit it does nothing. Callers
// usually defer it.
func (f *File) Discard() {
	if f.committed {
		return
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// SyncDir syncs a directory, so that renames and new files in it survive a power failure.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
