package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"assay/internal/fault"
)

// awaitPause is the time between two attempts to reach a database.
const awaitPause = time.Second

// Await waits until the PostgreSQL database at url answers, for at most so long.
// After that it returns a fault.Unavailable. Faults that no waiting ends, such as a
// wrong password, are left to Open.
func Await(ctx context.Context, url string, atMost time.Duration, log *slog.Logger) error {
	write, read, err := openPostgres(Options{URL: url})
	if err != nil {
		return nil // Open says what is wrong with the address
	}
	defer func() { _ = errors.Join(write.Close(), read.Close()) }() // nothing was written
	for end := time.Now().Add(atMost); ; {
		err := write.PingContext(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || !passes(err) && pgCode(err) != pgNoDatabase {
			return nil // likewise
		}
		left := time.Until(end)
		if left <= 0 {
			return errors.Join(err, fault.New(fault.Unavailable, "database_unavailable",
				"The database did not answer within %s: start it, or correct DATABASE_URL; DATABASE_WAIT sets how long a start waits.", atMost))
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
