package db

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ErrDatabaseNotEmpty means that RestorePostgres would replace existing data.
// ErrDatabaseInUse means that a server uses the database.
var (
	ErrDatabaseNotEmpty = errors.New("the database is not empty: restore into an empty one, or use --force, which deletes the existing data")
	ErrDatabaseInUse    = errors.New("a server uses the database: stop every `assay serve` on it first")
)

// ErrNoClient means that a PostgreSQL client program is not installed.
var ErrNoClient = errors.New("the PostgreSQL client programs are not installed")

// BackupPostgres runs pg_dump to write a consistent copy of a database to a file. The
// database may be in use.
func BackupPostgres(ctx context.Context, address, file string) (err error) {
	db, other, err := openPostgres(Options{URL: address})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), other.Close()) }()
	if _, _, err := checkVersion(ctx, PostgreSQL, db); err != nil {
		return err // this build could not restore the backup
	}
	return writeBackup(file, func(partial *os.File) error {
		return client(ctx, address, partial, "pg_dump", "--format=custom", "--no-password")
	})
}

// RestorePostgres runs pg_restore to load a copy made by BackupPostgres, in a single
// transaction. The database must be empty unless replace is set. No server may use it:
// RestorePostgres waits up to one lease to detect a running server.
func RestorePostgres(ctx context.Context, address, file string, replace bool, lease time.Duration) error {
	if err := VerifyBackup(file); err != nil {
		return err
	}
	full, err := prepareTargetPostgres(ctx, address, replace, lease)
	if err != nil {
		return err
	}
	args := []string{"--no-password", "--exit-on-error", "--single-transaction", "--no-owner"}
	if full {
		args = append(args, "--clean", "--if-exists")
	}
	return client(ctx, address, nil, "pg_restore", append(args, "--", file)...)
}

// prepareTargetPostgres checks the target of a restore. The result full reports whether it
// already has tables of this program. If replace is set, prepareTargetPostgres also makes a
// partitioned inventory an ordinary table.
func prepareTargetPostgres(ctx context.Context, address string, replace bool, lease time.Duration) (full bool, err error) {
	db, other, err := openPostgres(Options{URL: address})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close(), other.Close()) }()
	if err := checkEncodingPostgres(ctx, db); err != nil {
		return false, err
	}
	err = db.QueryRowContext(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL`).Scan(&full)
	if err != nil || !full {
		return full, err
	}
	if !replace {
		return full, ErrDatabaseNotEmpty
	}
	// pg_restore drops constraints by their names in the backup, which fails for
	// partitions.
	if err := repartition(ctx, db, 1, lease); err != nil {
		return full, err
	}
	instances := copySource{d: PostgreSQL, db: db}
	switch err := instances.awaitIdle(ctx, lease); {
	case errors.Is(err, ErrSchemaOutdated):
		return full, nil // the schema is older than the instance table, so there are no heartbeats
	default:
		return full, inUse(err)
	}
}

// client runs a PostgreSQL client program and writes its output to stdout, if that is not
// nil. It passes the password in the environment, because other users can see the
// arguments of a process.
func client(ctx context.Context, address string, stdout *os.File, program string, args ...string) error {
	path, err := FindClient(program)
	if err != nil {
		return err
	}
	bare, password, err := clientAddress(address)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, path, append([]string{"--dbname=" + bare}, args...)...) //nolint:gosec // the program is pg_dump or pg_restore
	c.Env = os.Environ()
	if password != "" {
		c.Env = append(c.Env, "PGPASSWORD="+password)
	}
	if stdout != nil {
		c.Stdout = stdout
	}
	var output strings.Builder
	c.Stderr = &output
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(output.String()))
	}
	return nil
}

// FindClient returns the path of a PostgreSQL client program, or ErrNoClient.
func FindClient(program string) (path string, err error) {
	if path, err = exec.LookPath(program); err != nil {
		return "", fmt.Errorf("%w: %s not found", ErrNoClient, program)
	}
	return path, nil
}

// clientAddress returns an address without its password and without the parameters that
// only pgx understands. It returns the password separately.
func clientAddress(address string) (bare, password string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", errAddress
	}
	q := u.Query()
	password = q.Get("password")
	for name := range q {
		if name == "password" || name == poolParameter || strings.HasPrefix(name, "default_query_") || strings.HasSuffix(name, "_cache_capacity") {
			q.Del(name)
		}
	}
	u.RawQuery = q.Encode()
	if u.User != nil {
		if p, given := u.User.Password(); given {
			password = p
		}
		u.User = url.User(u.User.Username())
	}
	return u.String(), password, nil
}
