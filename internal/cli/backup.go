package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/refresh"
)

// backupCmd writes a copy of the database to a file.
type backupCmd struct {
	File        string `arg:"" help:"File to write. It must not exist. With --verify: file to read."`
	Verify      bool   `help:"Verify that the backup FILE is not damaged. Writes nothing and needs no database."`
	WithSecrets bool   `help:"Also copy the generated secrets, into FILE.secrets. Keep that directory safe: it gives full access to your server."`
}

func (*backupCmd) examples() []example {
	return []example{
		{"backup /backups/assay-2026-11-20.db", "copy the database without secrets, even while the server runs"},
		{"backup --verify /backups/assay-2026-11-20.db", "verify the checksum of a backup; exit code 7 if it is damaged"},
		{"backup /safe/assay.db --with-secrets", "copy the secrets too, into /safe/assay.db.secrets"},
	}
}

// copied is the result of a backup or a restore.
type copied struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	Secrets int    `json:"secrets"` // number of copied secret files
}

func (c *backupCmd) Run(ctx context.Context, s *session) (err error) {
	if c.Verify {
		return c.verify(s)
	}
	cfg, err := config.LoadDatabase(s.options(nil))
	if err != nil {
		return err
	}
	var secrets secretCopy
	if c.WithSecrets {
		if secrets, err = readSecrets(cfg, secretsDir(cfg), c.File+".secrets", false); err != nil {
			return err
		}
	}
	if err := s.awaitClient(ctx, cfg, "pg_dump", dump); err != nil {
		return err
	}
	done := copied{File: c.File}
	if done.Bytes, err = backUp(ctx, cfg.Database, c.File); err != nil {
		return err
	}
	if done.Secrets, err = secrets.write(); err != nil {
		return fmt.Errorf("the database was backed up, but the secrets were not: %w", err)
	}
	return s.out.result(done, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s holds the database, %s bytes\n", done.File, count(done.Bytes))
		if c.WithSecrets {
			_, _ = fmt.Fprintf(w, "%s.secrets holds %d secrets\n", done.File, done.Secrets)
		}
	})
}

// verified is the result of verifying a backup.
type verified struct {
	File   string `json:"file"`
	Intact bool   `json:"intact"` // always true: a damaged backup is an error
}

func (c *backupCmd) verify(s *session) error {
	if err := db.VerifyBackup(c.File); err != nil {
		return usageOfFile(err)
	}
	return s.out.result(verified{File: c.File, Intact: true}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s is intact\n", c.File)
	})
}

// backUp copies a database to a new file and returns its size. Only the owner can read the
// file. backUp removes the file after an error.
func backUp(ctx context.Context, d config.Database, file string) (size int64, err error) {
	if d.Engine != config.SQLite {
		err = db.BackupPostgres(ctx, d.SessionURL(), file)
	} else if _, err = os.Stat(d.Path); err == nil {
		err = db.Backup(ctx, d.Path, file)
	}
	if err != nil {
		return 0, usageOfFile(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// restoreCmd replaces the database with a backup.
type restoreCmd struct {
	File        string `arg:"" help:"File that assay backup wrote."`
	Force       bool   `help:"Replace an existing database and, with --with-secrets, existing secrets. SQLite keeps the old file next to the new one; PostgreSQL replaces the old tables."`
	WithSecrets bool   `help:"Restore the secrets in FILE.secrets too."`
}

func (*restoreCmd) examples() []example {
	return []example{
		{"restore /backups/assay-2026-11-20.db", "restore into a new database; stop the server first"},
		{"restore /safe/assay.db --with-secrets --force", "replace the existing database and secrets"},
	}
}

func (c *restoreCmd) Run(ctx context.Context, s *session) error {
	cfg, err := config.LoadDatabase(s.options(nil))
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
		if secrets, err = readSecrets(cfg, c.File+".secrets", secretsDir(cfg), c.Force); err != nil {
			return err
		}
	}
	if err := s.awaitClient(ctx, cfg, "pg_restore", undump); err != nil {
		return err
	}
	done := copied{File: c.File, Bytes: info.Size()}
	if cfg.Database.Engine == config.SQLite {
		err = db.Restore(ctx, f, cfg.Database.Path, c.Force)
	} else {
		err = db.RestorePostgres(ctx, cfg.Database.SessionURL(), c.File, c.Force, refresh.Lease)
	}
	if err != nil {
		return err
	}
	if done.Secrets, err = secrets.write(); err != nil {
		return fmt.Errorf("the database was restored, but the secrets were not: %w", err)
	}
	return s.out.result(done, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s is restored from %s\n", printable(cfg.Database.String()), c.File)
		if c.WithSecrets {
			_, _ = fmt.Fprintf(w, "%d secrets are restored\n", done.Secrets)
		}
	})
}

// These are commands for a machine with PostgreSQL's client programs. Error texts show them.
const (
	dump = `pg_dump --format=custom --file=FILE "$DATABASE_URL"`
	// Without --clean, the database must be new and empty. With --clean, tables that only a newer
	// version has would remain.
	undump = `pg_restore --single-transaction --no-owner --dbname="$DATABASE_URL" FILE`
)

// awaitClient waits for the database. For PostgreSQL it first looks for the given client
// program. If the program is missing, the error contains the command to run on another
// machine.
func (s *session) awaitClient(ctx context.Context, cfg *config.Config, program, command string) error {
	if cfg.Database.Engine != config.SQLite {
		if _, err := db.FindClient(program); err != nil {
			return &usageError{text: err.Error() + ": install postgresql-client, or run elsewhere: " + command}
		}
	}
	return s.await(ctx, cfg, cfg.Database)
}
