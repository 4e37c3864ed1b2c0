package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"assay/internal/config"
	"assay/internal/store"
)

// backupCmd copies the database to a file.
type backupCmd struct {
	File        string `arg:"" help:"File to write. It must not exist yet."`
	WithSecrets bool   `help:"Copy the generated secrets too, into FILE.secrets. Whoever has them has your server."`
}

func (*backupCmd) examples() []example {
	return []example{
		{"backup /backups/assay-2026-11-20.db", "copy the database, whether the server runs or not; secrets are left out"},
		{"backup /safe/assay.db --with-secrets", "copy the secrets too, into /safe/assay.db.secrets"},
	}
}

// copied is what a backup or a restore did.
type copied struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	Secrets int    `json:"secrets"` // files of secrets copied
}

// Run writes the backup.
func (c *backupCmd) Run(ctx context.Context, s *session) (err error) {
	cfg, err := s.sqlite()
	if err != nil {
		return err
	}
	var secrets secretCopy
	if c.WithSecrets {
		if secrets, err = readSecrets(secretsDir(cfg), c.File+".secrets", false); err != nil {
			return err
		}
	}
	done := copied{File: c.File}
	if done.Bytes, err = backUp(ctx, cfg.Database.Path, c.File); err != nil {
		return err
	}
	if done.Secrets, err = secrets.write(); err != nil {
		return fmt.Errorf("the database is backed up, the secrets are not: %w", err)
	}
	return s.out.result(done, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s holds the database, %s bytes\n", done.File, count(done.Bytes))
		if c.WithSecrets {
			_, _ = fmt.Fprintf(w, "%s.secrets holds %d secrets\n", done.File, done.Secrets)
		}
	})
}

// backUp copies the database at path to a new file that only its owner can
// read, and returns its size. After an error there is no such file.
func backUp(ctx context.Context, path, file string) (size int64, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, usageOfFile(err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, usageOfFile(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file))
		}
	}()
	if err := f.Close(); err != nil {
		return 0, err
	}
	if err := store.Backup(ctx, path, file); err != nil {
		return 0, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// restoreCmd puts a backup in the database's place.
type restoreCmd struct {
	File        string `arg:"" help:"File that assay backup wrote."`
	Force       bool   `help:"Restore though there is a database already, or, with --with-secrets, secrets. The old database is kept beside it."`
	WithSecrets bool   `help:"Restore the secrets in FILE.secrets too."`
}

func (*restoreCmd) examples() []example {
	return []example{
		{"restore /backups/assay-2026-11-20.db", "restore where there is no database, the server being stopped"},
		{"restore /safe/assay.db --with-secrets --force", "restore database and secrets though there are some already"},
	}
}

// Run restores.
func (c *restoreCmd) Run(ctx context.Context, s *session) error {
	cfg, err := s.sqlite()
	if err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return usageOfFile(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var secrets secretCopy
	if c.WithSecrets {
		if secrets, err = readSecrets(c.File+".secrets", secretsDir(cfg), c.Force); err != nil {
			return err
		}
	}
	done := copied{File: c.File, Bytes: info.Size()}
	if err := store.Restore(ctx, f, cfg.Database.Path, c.Force); err != nil {
		return err
	}
	if done.Secrets, err = secrets.write(); err != nil {
		return fmt.Errorf("the database is restored, the secrets are not: %w", err)
	}
	return s.out.result(done, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s is restored from %s\n", cfg.Database.Path, c.File)
		if c.WithSecrets {
			_, _ = fmt.Fprintf(w, "%d secrets are restored\n", done.Secrets)
		}
	})
}

// sqlite tells where a server keeps its data, which is to be in SQLite.
func (s *session) sqlite() (*config.Config, error) {
	cfg, err := config.LoadDatabase(s.options(nil))
	if err != nil {
		return nil, err
	}
	if cfg.Database.Engine != config.SQLite {
		return nil, &usageError{text: "DATABASE_URL names PostgreSQL: use pg_dump and pg_restore", help: "assay backup --help"}
	}
	return cfg, nil
}
