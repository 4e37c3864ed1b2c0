//go:build !unix

package db

import "os"

// flock does nothing on systems without flock(2). There, the locks of SQLite protect the
// file, but a second process is not detected.
func flock(*os.File) error { return nil }

func funlock(*os.File) error { return nil }
