//go:build unix

package db

import (
	"os"
	"syscall"
)

// flock takes an exclusive lock. It fails immediately if another process has it.
func flock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// funlock ends a lock. Closing would not while a process that is being started
// still has the file from its parent.
func funlock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
}

// writable reports whether this process may write to a file, without opening it.
func writable(path string) bool {
	const write = 2
	return syscall.Access(path, write) == nil
}
