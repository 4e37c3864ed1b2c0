package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"
	"time"
)

// CopyOptions configures a copy.
type CopyOptions struct {
	From Options // must exist, and be of this program's schema
	To   Options // is made, and brought up to date, where it is not
	// Lease is how long a counter of an instance on PostgreSQL stands still before
	// the instance counts as dead.
	Lease time.Duration
	// Tell, if set, receives the progress regularly and at the start of each table.
	Tell func(CopyProgress)
}

// CopyProgress is how far a copy is.
type CopyProgress struct {
	Verifying   bool   // the rows are copied, and read again
	Table       string // the current one
	Done, Total int64  // rows of all tables
}

// TableRows is a table and how many rows it has.
type TableRows struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

var (
	// ErrSameDatabase means that a database was to be copied onto itself.
	ErrSameDatabase = errors.New("source and target are the same database")
	// ErrSourceInUse means that a server works on what is to be copied.
	ErrSourceInUse = errors.New("a server uses the source: stop every `assay serve` on it first")
	// ErrTargetNotEmpty means that a copy would be mixed with other data.
	ErrTargetNotEmpty = errors.New("the target is not empty: name a new database, or empty this one")
	// ErrCopyDiffers means that a target, read again, was not what had been read
	// from the source.
	ErrCopyDiffers = errors.New("the copy is not what was copied, and was discarded")
)

// Copy copies all records of a database that is not in use to an empty one, of
// either engine, and returns how many rows each table has. All of it is written
// in one transaction, which is committed only when the rows that were written,
// read again, have the counts and sums of those that were read; after an error,
// or a crash, the target is as empty as before, unless the error is an
// ErrCommitUnknown. Work that was claimed is given back, so that it goes on at
// the target.
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
	c := &copying{from: from, to: to, seed: maphash.MakeSeed(), tell: o.Tell}
	if err := c.match(ctx, tables); err != nil {
		return nil, err
	}
	return c.run(ctx)
}

// copying is one copy under way.
type copying struct {
	from     *copySource
	to       *copyTarget
	tables   []copyTable // of the source
	targets  []copyTable // the same tables of the target, in the same order
	seed     maphash.Seed
	tell     func(CopyProgress)
	progress CopyProgress
}

// match finds the tables on both sides.
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
		sums[i], err = c.pass(ctx, c.from.tx, t, func(next nextRow) error { return c.to.write(ctx, c.targets[i], next) })
		if err != nil {
			return nil, fmt.Errorf("copy %s: %w", t.name, err)
		}
		done = append(done, TableRows{Table: t.name, Rows: sums[i].rows})
	}
	c.progress.Verifying, c.progress.Done = true, 0
	for i, t := range c.targets {
		got, err := c.pass(ctx, c.to.tx, t, readAll)
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

// finish prepares the copy for use by a server.
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
	if err := c.to.giveBack(ctx); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if err := c.to.analyze(ctx, c.targets); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	return c.from.checkUnused(ctx)
}

// nextRow returns the values of the next row, which stay until the next call, and
// nil after the last.
type nextRow func() ([]any, error)

// progressEvery is the number of rows between two progress reports.
const progressEvery = 20_000

// pass passes the rows of a table to use and sums them up.
func (c *copying) pass(ctx context.Context, tx *sql.Tx, t copyTable, use func(nextRow) error) (_ *tally, err error) {
	c.progress.Table = t.name
	c.show()
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
			c.show()
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

func (c *copying) show() {
	if c.tell != nil {
		c.tell(c.progress)
	}
}
