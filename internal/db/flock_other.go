//go:build !unix

package db

import "os"

// flock does nothing on systems without flock(2). There, the locks of SQLite protect the
// file, but a second process is not detected.
func flock(*os.File) error { return nil }

func funlock(*os.File) error { return nil }

// writable reports whether a file lacks the read-only attribute, without opening it.
func writable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o200 != 0
}
