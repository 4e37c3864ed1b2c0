package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// migrateSQLite migrates the schema, with one transaction for each migration. It returns
// an error if a newer version created the database.
func (s *DB) migrateSQLite(ctx context.Context) error {
	if _, upToDate, err := checkSchema(ctx, s.Dialect, s.write); err != nil || upToDate {
		return err
	}
	p, err := s.migrator(goose.DialectSQLite3)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	_, err = s.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return err
}

// migratePostgres migrates the schema under an advisory lock, so that other processes
// wait. It bypasses a pooler, which could end a long transaction.
func (s *DB) migratePostgres(ctx context.Context, direct string) (err error) {
	if _, upToDate, err := checkSchema(ctx, s.Dialect, s.Read); err != nil || upToDate {
		return err
	}
	if direct != "" {
		return s.migrateDirect(ctx, direct)
	}
	lock, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Rollback()) }()
	if _, err := lock.ExecContext(ctx,
		`SELECT set_config('idle_in_transaction_session_timeout', '0', true), pg_advisory_xact_lock($1)`, int64(schemaLock)); err != nil {
		return fmt.Errorf("migrate: wait for the schema lock: %w", err)
	}
	p, err := s.migrator(goose.DialectPostgres)
	if err != nil {
		return err
	}
	if _, upToDate, err := checkSchema(ctx, s.Dialect, s.Read); err != nil || upToDate {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func (s *DB) migrateDirect(ctx context.Context, url string) error {
	direct := &DB{Clock: s.Clock, Log: s.Log}
	return errors.Join(direct.openServer(ctx, Options{URL: url}), direct.Close())
}

func (s *DB) migrator(d goose.Dialect) (*goose.Provider, error) {
	dir, _, err := readMigrations(s.Dialect)
	if err != nil {
		return nil, err
	}
	p, err := goose.NewProvider(d, s.write, dir)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return p, nil
}

// migrations returns the directory of a dialect's migrations.
func (d Dialect) migrations() string {
	if d == SQLite {
		return "migrations/sqlite"
	}
	return "migrations/postgres"
}

// ErrSchemaOutdated means that the database must be migrated first.
var ErrSchemaOutdated = errors.New("the database schema is not up to date: run `assay migrate`")

// requireSchema returns ErrSchemaOutdated unless the schema is up to date.
func requireSchema(ctx context.Context, d Dialect, q Querier) error {
	_, upToDate, err := checkSchema(ctx, d, q)
	if err == nil && !upToDate {
		err = ErrSchemaOutdated
	}
	return err
}

// SchemaVersion returns the schema version of the database.
func (s *DB) SchemaVersion(ctx context.Context) (int64, error) {
	return schemaVersion(ctx, s.Reserved)
}

// newestMigration returns the newest schema version of this program, from the file name
// of the last migration.
func newestMigration(d Dialect) int64 {
	var newest int64
	names, _ := fs.Glob(migrations, d.migrations()+"/*.sql") // the pattern is valid
	for _, name := range names {
		if v, err := goose.NumericComponent(name); err == nil && v > newest {
			newest = v
		}
	}
	return newest
}

// MigrateResult is the schema version before and after a migration.
type MigrateResult struct {
	From, To int64 // 0 if there was no schema
}

// Migrate opens a database, which migrates its schema, and closes it.
func Migrate(ctx context.Context, o Options) (r MigrateResult, err error) {
	if r.From, err = versionBefore(ctx, o); err != nil {
		return r, err
	}
	s, err := Open(ctx, o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r.To, err = s.SchemaVersion(ctx)
	return r, err
}

// versionBefore returns the schema version before a migration. It is 0 if there is no
// database.
func versionBefore(ctx context.Context, o Options) (version int64, err error) {
	var db *sql.DB
	if o.URL != "" {
		write, read, err := openPostgres(o)
		if err != nil {
			return 0, err
		}
		defer func() { _ = read.Close() }() // nothing was written
		db = write
	} else {
		if _, err := os.Stat(o.Path); err != nil {
			return 0, nil // Open reports the error
		}
		if db, err = openSQLite(o.Path, reads); err != nil {
			return 0, err
		}
	}
	defer func() { _ = db.Close() }() // nothing was written
	version, err = schemaVersion(ctx, db)
	if o.URL == "" {
		err = nil // Open reports an invalid file
	}
	return version, err
}
