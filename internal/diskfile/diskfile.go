// Package diskfile writes files that are complete or absent, even if the process or the
// machine stops while it writes: it writes to a temporary name and renames. It also opens
// files whose path comes from an operator.
package diskfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNotRegular is wrapped by OpenRegular for a directory, a pipe or a device.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens a file for reading. It never blocks, even on a pipe. The error is an
// *fs.PathError.
func OpenRegular(path string) (*os.File, error) {
	// Opening a pipe would block; the flag has no effect on a regular file.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat() // of the open file: the path may lead to another one by now
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// File is a temporary file, with mode 0600. It gets its final name from Commit.
type File struct {
	*os.File
	committed bool
}

// Create creates a temporary file. If the last element of the path temp has a "*", a
// random text replaces it, so that two processes never share a file. Otherwise the
// new file replaces an old one of that name, which a crash left behind. The directory
// must be that of the final name.
func Create(temp string) (*File, error) {
	if dir, pattern := filepath.Split(temp); strings.Contains(pattern, "*") {
		f, err := os.CreateTemp(dir, pattern)
		if err != nil {
			return nil, err
		}
		return &File{File: f}, nil
	}
	// The old file is removed instead of truncated: another process may still write to it.
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{File: f}, nil
}

// Commit closes the file and renames it to path. When it returns nil, contents and name
// are on the disk. It replaces an existing file.
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

// Discard closes and removes the file. After a successful Commit it does nothing, so
// callers defer it.
func (f *File) Discard() {
	if f.committed {
		return
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
