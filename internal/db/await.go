package db

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"assay/internal/fault"
)

const (
	awaitPause = time.Second // between two attempts to reach a database
	// leastAttempt is the minimum timeout of an attempt, even if it exceeds the wait.
	leastAttempt = 2 * time.Second
)

// Await waits until the PostgreSQL database at url is there and answers, for at most so
// long. After that it returns a fault.Unavailable. Faults that no waiting ends, such as a
// wrong password, are left to Open.
func Await(ctx context.Context, url string, atMost time.Duration, log *slog.Logger) error {
	write, read, err := openPostgres(Options{URL: url})
	if err != nil {
		return nil // Open says what is wrong with the address
	}
	defer func() { _ = errors.Join(write.Close(), read.Close()) }() // nothing was written
	for end := time.Now().Add(atMost); ; {
		err := ping(ctx, write, max(time.Until(end), leastAttempt))
		absent := pgCode(err) == pgNoDatabase
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil, !passes(err) && !absent && !errors.Is(err, context.DeadlineExceeded):
			return nil // likewise
		}
		left := time.Until(end)
		switch {
		case left > 0:
		case absent:
			return errors.Join(err, fault.New(fault.Unavailable, "database_unavailable",
				"After %s the database still does not exist: create it, or correct its address; DATABASE_WAIT sets how long a command waits.", atMost))
		default:
			return errors.Join(err, fault.New(fault.Unavailable, "database_unavailable",
				"The database did not answer within %s: start it, or correct its address; DATABASE_WAIT sets how long a command waits.", atMost))
		}
		log.WarnContext(ctx, "database not reachable, retrying", "error", err, "seconds_left", int(left.Seconds()))
		t := time.NewTimer(min(left, awaitPause))
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

func ping(ctx context.Context, db *sql.DB, atMost time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	return db.PingContext(ctx)
}
