package main

import (
	"context"
	"database/sql"
	"errors"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"assay/internal/pgtest"
)

// cluster is a PostgreSQL of our own with the settings that it comes with, on a
// disk.
type cluster struct {
	server *pgtest.Server
	admin  *sql.DB
}

// startCluster starts one with further settings.
func startCluster(settings ...string) (*cluster, error) {
	s, err := pgtest.Run(pgtest.Options{Durable: true, Settings: settings})
	if err != nil {
		return nil, err
	}
	c := &cluster{server: s}
	if c.admin, err = c.open("postgres"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return c, nil
}

// close ends the cluster, which takes its data along.
func (c *cluster) close() error { return errors.Join(c.admin.Close(), c.server.Close()) }

// open opens one of the cluster's databases.
func (c *cluster) open(database string) (*sql.DB, error) {
	db, err := sql.Open("pgx", c.server.URL(database))
	if err == nil {
		db.SetMaxOpenConns(2)
	}
	return db, err
}

// create makes an empty database, or one laid out file by file like another that
// nobody has open.
func (c *cluster) create(ctx context.Context, name, like string) error {
	statement := `CREATE DATABASE ` + name //nolint:gosec // names of our own
	if like != "" {
		statement += ` TEMPLATE ` + like + ` STRATEGY file_copy`
	}
	_, err := c.admin.ExecContext(ctx, statement)
	return err
}

// rest lets the cluster do now what it otherwise does at its own time, so that
// whoever is measured next meets it in the same state: dead rows are removed
// from a database, and all pages are written out.
func rest(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, `VACUUM ANALYZE`); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, `CHECKPOINT`)
	return err
}
