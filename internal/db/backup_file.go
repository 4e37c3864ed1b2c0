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

// The last line of a backup is the checksum of all bytes before it. SQLite and pg_restore
// ignore it.
const (
	checksumMark = "\nassay backup sha256 "
	checksumSize = len(checksumMark) + 2*sha256.Size + 1
)

// ErrBackupDamaged means that the checksum of a backup is wrong or missing.
var ErrBackupDamaged = errors.New("the backup is damaged, incomplete or not made by `assay backup`: use another one")

func checksumLine(h hash.Hash) string { return checksumMark + hex.EncodeToString(h.Sum(nil)) + "\n" }

// writeBackup calls write to fill a file, and adds the checksum. It gives the file its
// final name when all data is on disk. A crash leaves FILE.partial. The next backup
// replaces that file instead of writing to it, because a pg_dump that the crash left
// running may still write to the old file.
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

// copyBackup copies a backup without its checksum. It returns ErrBackupDamaged if the
// checksum does not match.
func copyBackup(from io.Reader, to io.Writer) error {
	h := sha256.New()
	out := io.MultiWriter(h, to)
	held := make([]byte, 0, 2<<20) // always holds back the last bytes, which may be the checksum
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

// VerifyBackup returns ErrBackupDamaged if a backup was changed after it was written. It
// works for both engines.
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
