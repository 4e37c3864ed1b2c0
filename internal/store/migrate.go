package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// migrate brings the schema up to date, each step in a transaction of its own,
// and refuses a database that a newer version has written.
func (s *Store) migrate(ctx context.Context) error {
	dir, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, s.write, dir)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("migrate: read schema version: %w", err)
	}
	newest := newestMigration()
	if have > newest {
		return fmt.Errorf("the database has schema version %d, this program knows %d: use the newer version of assay that wrote it", have, newest)
	}
	if have == newest {
		return nil
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	_, err = s.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return err
}

// SchemaVersion returns the version of the schema in the database.
func (s *Store) SchemaVersion(ctx context.Context) (int64, error) {
	var v int64
	err := s.read.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v, err
}

// newestMigration returns the schema version that this program knows: the
// number at the beginning of the last migration's name.
func newestMigration() int64 {
	var newest int64
	names, _ := fs.Glob(migrations, "migrations/sqlite/*.sql") // the pattern is valid
	for _, name := range names {
		if v, err := goose.NumericComponent(name); err == nil && v > newest {
			newest = v
		}
	}
	return newest
}
