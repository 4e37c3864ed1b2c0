package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"
	"time"
)

// CopyOptions configures Copy.
type CopyOptions struct {
	From Options // must exist and have the current schema
	To   Options // created and migrated if needed
	// Lease is how long the heartbeat of a PostgreSQL instance must stay unchanged before
	// the instance counts as stopped.
	Lease time.Duration
	// OnProgress, if set, is called regularly and at the start of each table.
	OnProgress func(CopyProgress)
}

// CopyProgress is the progress of a copy.
type CopyProgress struct {
	Verifying   bool   // all rows are copied and are now read again
	Table       string // the current table
	Done, Total int64  // rows of all tables
}

// TableRows is the number of rows in a table.
type TableRows struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

var (
	// ErrSameDatabase means that source and target are the same database.
	ErrSameDatabase = errors.New("source and target are the same database")
	// ErrSourceInUse means that a server uses the source.
	ErrSourceInUse = errors.New("a server uses the source: stop every `assay serve` on it first")
	// ErrTargetNotEmpty means that the target has rows.
	ErrTargetNotEmpty = errors.New("the target is not empty: choose a new database, or empty this one")
	// ErrCopyDiffers means that the rows in the target differ from the rows in the
	// source.
	ErrCopyDiffers = errors.New("the copy differs from the source and was discarded")
)

// Copy copies all records of a database to an empty one, on the same or the other engine.
// The source must not be in use. It returns the number of rows in each table.
//
// Copy writes everything in one transaction. Before the commit, it reads the target again
// and compares counts and checksums with the source. After an error or a crash the target
// is empty, unless the error is ErrCommitUnknown. Copy releases claimed work, so that a
// server can continue it on the target.
func Copy(ctx context.Context, o CopyOptions) ([]TableRows, error) {
	done, err := copyAll(ctx, o)
	return done, Transient(err)
}

func copyAll(ctx context.Context, o CopyOptions) (_ []TableRows, err error) {
	if o.From.URL == o.To.URL && sameFile(o.From.Path, o.To.Path) {
		return nil, ErrSameDatabase
	}
	tables, err := copiedTables(ctx)
	if err != nil {
		return nil, err
	}
	from, err := openSource(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	defer func() { err = errors.Join(err, from.close()) }()
	store, err := Open(ctx, o.To)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	to, err := openTarget(ctx, store, tables)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	defer to.close()
	c := &copying{from: from, to: to, seed: maphash.MakeSeed(), onProgress: o.OnProgress}
	if err := c.match(ctx, tables); err != nil {
		return nil, err
	}
	return c.run(ctx)
}

// copying is the state of one copy.
type copying struct {
	from       *copySource
	to         *copyTarget
	tables     []copyTable // tables of the source
	targets    []copyTable // the same tables of the target, in the same order
	seed       maphash.Seed
	onProgress func(CopyProgress)
	progress   CopyProgress
}

// match finds the tables in the source and in the target.
func (c *copying) match(ctx context.Context, tables []copyTable) (err error) {
	if c.tables, err = findTables(ctx, c.from.tx, c.from.d, tables); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if c.targets, err = findTables(ctx, c.to.tx, c.to.d, tables); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	return nil
}

func (c *copying) run(ctx context.Context) (done []TableRows, err error) {
	for _, t := range c.tables {
		n, err := t.count(ctx, c.from.tx)
		if err != nil {
			return nil, fmt.Errorf("source: %w", err)
		}
		c.progress.Total += n
	}
	sums := make([]*tally, len(c.tables))
	for i, t := range c.tables {
		sums[i], err = c.readTable(ctx, c.from.tx, t, func(next nextRow) error { return c.to.write(ctx, c.targets[i], next) })
		if err != nil {
			return nil, fmt.Errorf("copy %s: %w", t.name, err)
		}
		done = append(done, TableRows{Table: t.name, Rows: sums[i].rows})
	}
	c.progress.Verifying, c.progress.Done = true, 0
	for i, t := range c.targets {
		got, err := c.readTable(ctx, c.to.tx, t, readAll)
		if err == nil {
			err = sums[i].compare(got, t)
		}
		if err != nil {
			return nil, fmt.Errorf("verify %s: %w", t.name, err)
		}
	}
	if err := c.finish(ctx); err != nil {
		return nil, err
	}
	return done, c.to.commit()
}

// finish prepares the target for use by a server.
func (c *copying) finish(ctx context.Context) error {
	for i, t := range c.tables {
		last, err := c.from.lastID(ctx, t)
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		if err := c.to.continueIDs(ctx, c.targets[i], last); err != nil {
			return fmt.Errorf("target: %w", err)
		}
	}
	if err := c.to.releaseClaims(ctx); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if err := c.to.analyze(ctx, c.targets); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	return c.from.checkUnused(ctx)
}

// nextRow returns the next row, or nil after the last. The values are valid until the
// next call.
type nextRow func() ([]any, error)

// progressEvery is the number of rows between two progress reports.
const progressEvery = 20_000

// readTable passes the rows of a table to use and returns their tally.
func (c *copying) readTable(ctx context.Context, tx *sql.Tx, t copyTable, use func(nextRow) error) (_ *tally, err error) {
	c.progress.Table = t.name
	c.report()
	rows, err := t.read(ctx, tx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	sum := newTally(c.seed, t)
	err = use(func() ([]any, error) {
		row, err := rows.next()
		if row == nil || err != nil {
			return nil, err
		}
		sum.add(row)
		if c.progress.Done++; c.progress.Done%progressEvery == 0 {
			c.report()
		}
		return row, nil
	})
	return sum, err
}

func readAll(next nextRow) error {
	for {
		if row, err := next(); row == nil || err != nil {
			return err
		}
	}
}

func (c *copying) report() {
	if c.onProgress != nil {
		c.onProgress(c.progress)
	}
}
