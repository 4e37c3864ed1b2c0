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
	awaitPause = time.Second // delay between two attempts
	// leastAttempt is the minimum timeout of an attempt, even if it exceeds the remaining
	// wait.
	leastAttempt = 2 * time.Second
)

// Await waits until the PostgreSQL database at url responds. It returns a
// fault.Unavailable when atMost has passed. It does not wait on permanent errors such as
// a wrong password; Open reports those.
func Await(ctx context.Context, url string, atMost time.Duration, log *slog.Logger) error {
	write, read, err := openPostgres(Options{URL: url})
	if err != nil {
		return nil // Open reports the invalid address
	}
	defer func() { _ = errors.Join(write.Close(), read.Close()) }() // nothing was written
	for end := time.Now().Add(atMost); ; {
		err := ping(ctx, write, max(time.Until(end), leastAttempt))
		absent := pgCode(err) == pgNoDatabase
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil, !isTemporary(err) && !absent && !errors.Is(err, context.DeadlineExceeded):
			return nil // Open reports the error, if any
		}
		left := time.Until(end)
		switch {
		case left > 0:
		case absent:
			return errors.Join(err, fault.New(fault.Unavailable, "database_unavailable",
				"After %s the database still does not exist: create it, or correct its address; DATABASE_WAIT sets how long a command waits.", atMost))
		default:
			return errors.Join(err, fault.New(fault.Unavailable, "database_unavailable",
				"The database did not respond within %s: start it, or correct its address; DATABASE_WAIT sets how long a command waits.", atMost))
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
