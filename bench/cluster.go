package main

import (
	"context"
	"database/sql"
	"errors"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"

	"assay/internal/pgtest"
)

// cluster is a PostgreSQL server with default settings and data on disk.
type cluster struct {
	server *pgtest.Server
	admin  *sql.DB
}

// startCluster starts a cluster with additional settings.
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

// close stops the cluster and deletes its data.
func (c *cluster) close() error { return errors.Join(c.admin.Close(), c.server.Close()) }

// open opens a database of the cluster.
func (c *cluster) open(database string) (*sql.DB, error) {
	db, err := sql.Open("pgx", c.server.URL(database))
	if err == nil {
		db.SetMaxOpenConns(2)
	}
	return db, err
}

// create creates an empty database. If like is not empty, it copies the files of that
// database, which no connection may use.
func (c *cluster) create(ctx context.Context, name, like string) error {
	statement := `CREATE DATABASE ` + name //nolint:gosec // constant names
	if like != "" {
		statement += ` TEMPLATE ` + like + ` STRATEGY file_copy`
	}
	_, err := c.admin.ExecContext(ctx, statement)
	return err
}

// rest runs background work of the database immediately: VACUUM and a checkpoint. Then every
// measurement starts in the same state.
func rest(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, `VACUUM ANALYZE`); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, `CHECKPOINT`)
	return err
}
