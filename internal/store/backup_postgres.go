package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
)

// ErrNoClient means that a program of PostgreSQL's client is not installed.
var ErrNoClient = errors.New("the client of PostgreSQL is not installed")

// BackupPostgres has pg_dump write a consistent copy of a database to a file,
// whatever is written meanwhile.
func BackupPostgres(ctx context.Context, address, file string) error {
	return client(ctx, address, "pg_dump", "--format=custom", "--no-password", "--file="+file)
}

// RestorePostgres has pg_restore put a copy made by BackupPostgres into a
// database, as a whole or not at all. It must be empty, unless what is there is to
// be replaced.
func RestorePostgres(ctx context.Context, address, file string, replace bool) error {
	full, err := hasSchemaPostgres(ctx, address)
	if err != nil {
		return err
	}
	if full && !replace {
		return ErrDatabaseExists
	}
	args := []string{"--no-password", "--exit-on-error", "--single-transaction", "--no-owner"}
	if full {
		args = append(args, "--clean", "--if-exists")
	}
	return client(ctx, address, "pg_restore", append(args, "--", file)...)
}

// hasSchemaPostgres reports whether a database has tables of this program.
func hasSchemaPostgres(ctx context.Context, address string) (has bool, err error) {
	db, other, err := openPostgres(Options{URL: address})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close(), other.Close()) }()
	err = db.QueryRowContext(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL`).Scan(&has)
	return has, err
}

// client runs a program of PostgreSQL's client on a database. The password goes
// by the environment: other users of the machine see arguments.
func client(ctx context.Context, address, program string, args ...string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("%w: no %s", ErrNoClient, program)
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
	var said strings.Builder
	c.Stderr = &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(said.String()))
	}
	return nil
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
