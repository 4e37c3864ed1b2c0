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

// migrateSQLite brings the schema up to date, each step in a transaction of its
// own, and refuses a database that a newer version has written.
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

// migratePostgres does the same, while other processes that start wait. Where
// there is a pooler it goes round it: what takes long must not be cut off.
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
		return fmt.Errorf("migrate: wait for others: %w", err)
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

// migrations is the directory of a database's migrations.
func (d Dialect) migrations() string {
	if d == SQLite {
		return "migrations/sqlite"
	}
	return "migrations/postgres"
}

// ErrSchemaOutdated means that a database is to be migrated first.
var ErrSchemaOutdated = errors.New("the database has no schema of this version of assay: run `assay migrate`")

// requireSchema refuses a database that is not up to date.
func requireSchema(ctx context.Context, d Dialect, q Querier) error {
	_, upToDate, err := checkSchema(ctx, d, q)
	if err == nil && !upToDate {
		err = ErrSchemaOutdated
	}
	return err
}

// SchemaVersion returns the version of the schema in the database.
func (s *DB) SchemaVersion(ctx context.Context) (int64, error) {
	return schemaVersion(ctx, s.Reserved)
}

// newestMigration returns the schema version that this program knows: the
// number at the beginning of the last migration's name.
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

// MigrateResult is what bringing a schema up to date did.
type MigrateResult struct {
	From, To int64 // versions; 0: none
}

// Migrate brings the schema of a database up to date, which Open does, too.
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

// versionBefore returns the version of a schema that may not be there.
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
			return 0, nil // Open reports the fault of the file
		}
		if db, err = openSQLite(o.Path, reads); err != nil {
			return 0, err
		}
	}
	defer func() { _ = db.Close() }() // nothing was written
	version, err = schemaVersion(ctx, db)
	if o.URL == "" {
		err = nil // Open tells what is wrong with the file
	}
	return version, err
}
