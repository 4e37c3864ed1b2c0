package catalog

import (
	"cmp"
	"context"
	"crypto/rand"
	"sync"
	"time"

	"assay/internal/db"
)

// On PostgreSQL, other processes may commit prices at any time. So that a lookup need not ask the
// server each time, a process announces itself in the table price_writer before it commits
// prices, and waits. A process that reads the versions while no process is announced may use them
// until that wait can have ended.
const (
	// versionLife is how long a version is valid that was read while no process was announced. It
	// begins before the query.
	versionLife = 20 * time.Millisecond
	// announcedBefore is how long a process is announced before it commits prices. It is longer
	// than versionLife, because the clocks of two machines may run at different speeds.
	announcedBefore = 2 * versionLife
)

// priceWriter is the announcement of this process.
type priceWriter struct {
	mu    sync.Mutex
	owner string    // key of the row; unique for each process
	since time.Time // after the commit of the row; zero: not announced
	used  time.Time // last call of announce
}

// announce stores the announcement of this process. It returns its key, and the time from which
// it is visible to all processes.
func (w *priceWriter) announce(ctx context.Context, s *db.DB) (owner string, since time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used = time.Now()
	if w.since.IsZero() {
		w.owner = cmp.Or(w.owner, s.Owner(), rand.Text())
		// The caller may be a transaction that commits later, so this is not the first commit of ctx.
		if err := s.InUrgentTx(db.OnFirstCommit(ctx, nil), func(t *db.Tx) error {
			_, err := t.Exec(`INSERT INTO price_writer (owner) VALUES ($1) ON CONFLICT (owner) DO NOTHING`, w.owner)
			return err
		}); err != nil {
			return "", time.Time{}, err
		}
		w.since = time.Now()
	}
	return w.owner, w.since, nil
}

// forget makes the next call of announce store the announcement again, unless that has happened
// since the given one.
func (w *priceWriter) forget(since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.Equal(since) {
		w.since = time.Time{}
	}
}

// AnnouncePrices tells all processes that this one will soon commit prices. Without this call,
// PricesChanged does so and waits for 40 ms, while its transaction holds locks.
func AnnouncePrices(ctx context.Context, s *db.DB) error {
	if s.OnlyWriter() {
		return nil
	}
	_, _, err := db.Local[priceWriter](s).announce(ctx, s)
	return err
}

const withdrawPostgres = `DELETE FROM price_writer WHERE owner IN (SELECT owner FROM price_writer WHERE owner = $1 FOR UPDATE SKIP LOCKED)`

// WithdrawPrices ends the announcement of this process if it has committed no prices for the given
// time. Lookups are slower as long as a process is announced.
func WithdrawPrices(ctx context.Context, s *db.DB, idle time.Duration) error {
	w := db.Local[priceWriter](s)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() || time.Since(w.used) < idle {
		return nil
	}
	var ended int64
	err := s.InUrgentTx(ctx, func(t *db.Tx) (err error) {
		// A transaction that writes prices locks the row. The next call retries.
		ended, err = t.Exec(withdrawPostgres, w.owner)
		return err
	})
	if err != nil || ended > 0 {
		w.since = time.Time{} // after an error, the row may be deleted or not
	}
	return err
}

// RemovePriceWriter ends the announcement of a process that has ended.
func RemovePriceWriter(t *db.Tx, owner string) error {
	_, err := t.Exec(`DELETE FROM price_writer WHERE owner = $1`, owner)
	return err
}

// changedPostgres locks the announcement until the transaction ends, so that no process can delete
// it before.
const changedPostgres = `
WITH announced AS MATERIALIZED (SELECT 1 FROM price_writer WHERE owner = $2 FOR KEY SHARE)
INSERT INTO price_version (bucket, version)
SELECT bucket, 1 FROM unnest(CAST($1 AS bigint[])) bucket WHERE EXISTS (SELECT 1 FROM announced) ORDER BY bucket
ON CONFLICT (bucket) DO UPDATE SET version = price_version.version + 1`

// pricesChangedShared is PricesChanged if other processes use the database.
func pricesChangedShared(t *db.Tx, buckets []int64) error {
	w := db.Local[priceWriter](t.DB)
	owner, since, err := w.announce(t.Context(), t.DB)
	if err != nil {
		return err
	}
	wait := time.NewTimer(time.Until(since.Add(announcedBefore)))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-t.Context().Done():
		return t.Context().Err()
	}
	n, err := t.Exec(changedPostgres, t.Dialect.EncodeIDs(buckets), owner)
	if err == nil && n == 0 { // another process deleted the announcement because this one seemed to have ended
		w.forget(since)
		return db.ErrRunAgain
	}
	return err
}
