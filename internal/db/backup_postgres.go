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

// ErrDatabaseFull means that a restore would replace what is in a PostgreSQL
// database, ErrDatabaseInUse that a server works on it.
var (
	ErrDatabaseFull  = errors.New("there is a database already: restore into an empty one, or with --force, which replaces what is there and keeps nothing of it")
	ErrDatabaseInUse = errors.New("a server uses the database: stop every `assay serve` on it first")
)

// ErrNoClient means that a program of PostgreSQL's client is not installed.
var ErrNoClient = errors.New("the client of PostgreSQL is not installed")

// BackupPostgres has pg_dump write a consistent copy of a database to a file,
// whatever is written meanwhile.
func BackupPostgres(ctx context.Context, address, file string) (err error) {
	db, other, err := openPostgres(Options{URL: address})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), other.Close()) }()
	if _, _, err := knownSchema(ctx, PostgreSQL, db); err != nil {
		return err // this build could not restore it
	}
	return writeBackup(file, func(partial *os.File) error {
		return client(ctx, address, partial, "pg_dump", "--format=custom", "--no-password")
	})
}

// RestorePostgres has pg_restore put a copy made by BackupPostgres into a
// database, as a whole or not at all. It must be empty, unless what is there is to
// be replaced, and no server may work on it: whether one does shows within a
// lease.
func RestorePostgres(ctx context.Context, address, file string, replace bool, lease time.Duration) error {
	if err := VerifyBackup(file); err != nil {
		return err
	}
	full, err := checkTargetPostgres(ctx, address, replace, lease)
	if err != nil {
		return err
	}
	args := []string{"--no-password", "--exit-on-error", "--single-transaction", "--no-owner"}
	if full {
		args = append(args, "--clean", "--if-exists")
	}
	return client(ctx, address, nil, "pg_restore", append(args, "--", file)...)
}

// checkTargetPostgres reports whether a database that is to be restored has tables
// of this program.
func checkTargetPostgres(ctx context.Context, address string, replace bool, lease time.Duration) (full bool, err error) {
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
		return full, ErrDatabaseFull
	}
	instances := copySource{d: PostgreSQL, db: db}
	switch err := instances.awaitDead(ctx, lease); {
	case errors.Is(err, ErrSourceInUse):
		return full, ErrDatabaseInUse
	case errors.Is(err, ErrSchemaOutdated):
		return full, nil // older than any instance that would beat
	default:
		return full, err
	}
}

// client runs a program of PostgreSQL's client on a database, with its output in a file;
// nil: nowhere. The password goes by the environment: other users of the machine see
// arguments.
func client(ctx context.Context, address string, stdout *os.File, program string, args ...string) error {
	path, err := FindClient(program)
	if err != nil {
		return err
	}
	bare, password, err := clientAddress(address)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, path, append([]string{"--dbname=" + bare}, args...)...) //nolint:gosec // the program is one of two
	c.Env = os.Environ()
	if password != "" {
		c.Env = append(c.Env, "PGPASSWORD="+password)
	}
	if stdout != nil {
		c.Stdout = stdout
	}
	var said strings.Builder
	c.Stderr = &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// FindClient returns the path of a program of PostgreSQL's client, or ErrNoClient.
func FindClient(program string) (path string, err error) {
	if path, err = exec.LookPath(program); err != nil {
		return "", fmt.Errorf("%w: no %s", ErrNoClient, program)
	}
	return path, nil
}

// clientAddress returns an address without its password and without what only
// this program's driver knows.
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
