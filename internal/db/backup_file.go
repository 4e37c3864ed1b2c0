package db

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"assay/internal/diskfile"
)

// A backup ends with a line that has the checksum of all bytes before it. SQLite and
// pg_restore do not read that far.
const (
	checksumMark = "\nassay backup sha256 "
	checksumSize = len(checksumMark) + 2*sha256.Size + 1
)

// ErrBackupDamaged means that a backup is not as it was written.
var ErrBackupDamaged = errors.New("the backup is damaged, cut off or not made by `assay backup`: use another one")

func checksumLine(h hash.Hash) string { return checksumMark + hex.EncodeToString(h.Sum(nil)) + "\n" }

// writeBackup has write fill a file, adds the checksum, and gives the file its name
// when all of it is on the disk. A process that dies in between leaves FILE.partial. The
// next backup of that name does not write to that file but to a new one: a pg_dump may
// have outlived the process, and still write.
func writeBackup(file string, write func(partial *os.File) error) error {
	if _, err := os.Lstat(file); err == nil {
		return &fs.PathError{Op: "back up", Path: file, Err: fs.ErrExist}
	}
	f, err := diskfile.Create(file + ".partial")
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := write(f.File); err != nil {
		return err
	}
	if err := appendChecksum(f.File); err != nil {
		return err
	}
	return f.Commit(file)
}

func appendChecksum(f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	_, err := io.WriteString(f, checksumLine(h))
	return err
}

// copyBackup writes the contents of a backup without its checksum to a file, and
// returns ErrBackupDamaged where that is not theirs.
func copyBackup(from io.Reader, to io.Writer) error {
	h := sha256.New()
	out := io.MultiWriter(h, to)
	held := make([]byte, 0, 2<<20) // always keeps the last bytes back
	for {
		n, err := io.ReadFull(from, held[len(held):cap(held)])
		held = held[:len(held)+n]
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return err
		}
		if len(held) < checksumSize {
			return ErrBackupDamaged
		}
		contents := len(held) - checksumSize
		if _, err := out.Write(held[:contents]); err != nil {
			return err
		}
		held = held[:copy(held, held[contents:])]
		if ended {
			break
		}
	}
	if string(held) != checksumLine(h) {
		return ErrBackupDamaged
	}
	return nil
}

// VerifyBackup reports whether a backup is as it was written, of either database.
// It returns ErrBackupDamaged if not.
func VerifyBackup(file string) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := copyBackup(f, io.Discard); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return nil
}
