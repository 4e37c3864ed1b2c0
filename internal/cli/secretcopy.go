package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"assay/internal/config"
)

func secretsDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "secrets") }

// secretCopy contains the secret files to write to another directory. The zero value writes
// nothing.
type secretCopy struct {
	to      string
	replace bool
	files   map[string][]byte // by file name
}

// readSecrets reads the secrets in a directory, and checks that it can write them to another
// one. Existing files there are an error unless replace is set. It writes nothing.
func readSecrets(cfg *config.Config, from, to string, replace bool) (secretCopy, error) {
	if cfg.Database.Engine != config.SQLite {
		return secretCopy{}, &usageError{text: "on PostgreSQL no secrets are generated: store the secrets of your settings yourself"}
	}
	c := secretCopy{to: to, replace: replace, files: map[string][]byte{}}
	entries, err := os.ReadDir(from)
	if err != nil {
		return c, usageOfFile(err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		if c.files[entry.Name()], err = os.ReadFile(filepath.Join(from, entry.Name())); err != nil {
			return c, usageOfFile(err)
		}
	}
	return c, c.check()
}

// check returns an error if the secrets cannot be written.
func (c secretCopy) check() error {
	switch info, err := os.Stat(c.to); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usageOfFile(err)
	case !info.IsDir():
		return &usageError{text: c.to + " is not a directory"}
	}
	for name := range c.files {
		file := filepath.Join(c.to, name)
		if _, err := os.Lstat(file); err == nil && !c.replace {
			return usageOfFile(&fs.PathError{Op: "create", Path: file, Err: fs.ErrExist})
		}
	}
	return nil
}

// write writes the secrets and returns their number. Only the owner can read the files.
func (c secretCopy) write() (int, error) {
	if len(c.files) == 0 {
		return 0, nil
	}
	if err := os.MkdirAll(c.to, 0o700); err != nil {
		return 0, err
	}
	written := 0
	for name, secret := range c.files {
		file := filepath.Join(c.to, name)
		if c.replace {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return written, err
			}
		}
		if err := writeSecret(file, secret); err != nil {
			return written, err
		}
		written++
	}
	return written, nil
}

func writeSecret(file string, secret []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(secret)
	return errors.Join(err, f.Sync(), f.Close())
}
