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

// funlock releases a lock. Closing the file is not enough: a child process that is just
// starting may have inherited the open file, which keeps the lock.
func funlock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
}

// writable reports whether this process may write to a file, without opening it.
func writable(path string) bool {
	const write = 2
	return syscall.Access(path, write) == nil
}
