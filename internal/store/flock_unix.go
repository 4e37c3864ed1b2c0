//go:build unix

package store

import (
	"os"
	"syscall"
)

// flock takes an exclusive lock or fails at once.
func flock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
