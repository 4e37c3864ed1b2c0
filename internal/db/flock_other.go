//go:build !unix

package db

import "os"

// flock does nothing: where there is no flock(2), SQLite's own locks keep two
// processes from harming the file, and the operator from starting two.
func flock(*os.File) error { return nil }

func funlock(*os.File) error { return nil }
