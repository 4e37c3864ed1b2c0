package catalog

import (
	"context"
	"database/sql"
	"sync"

	"assay/internal/db"
)

// Versions of prices show whether prices in memory are still what is stored. Each commit
// that changes the price of an item, or what is returned with it, increments the version
// of the item's name bucket.

// priceVersion is the sum of all versions, as far as it is known without asking
// the database: where this process alone writes. It is forgotten before a
// commit that changes it, and not taken up again before that has ended.
type priceVersion struct {
	mu         sync.Mutex
	sum        int64
	known      bool
	committing int
	commits    int64 // begun
}

// begin is called before a commit that changes prices; the caller calls end
// after it, however it went.
func (v *priceVersion) begin() (end func(bool)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = false
	v.commits++
	v.committing++
	return func(bool) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.committing--
	}
}

// learn asks for the sum, and keeps it unless a commit may have come between. alone
// says that no other process writes.
func (v *priceVersion) learn(alone bool, ask func() (int64, error)) (int64, error) {
	v.mu.Lock()
	commits, quiet := v.commits, v.committing == 0
	v.mu.Unlock()
	sum, err := ask()
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil && alone && quiet && v.commits == commits {
		v.sum, v.known = sum, true
	}
	return sum, err
}

// KnownPriceVersion returns what PriceVersion would, if that is known without
// asking the database.
func KnownPriceVersion(s *db.DB) (version int64, known bool) {
	v := db.Local[priceVersion](s)
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sum, v.known
}

// PriceVersion returns a number that grows with every commit that changes a price, or
// what is returned with it. A new item does not change it.
func PriceVersion(ctx context.Context, s *db.DB) (int64, error) {
	return db.Local[priceVersion](s).learn(s.Alone(), func() (sum int64, err error) {
		err = s.Read.QueryRowContext(ctx, `SELECT CAST(coalesce(sum(version), 0) AS BIGINT) FROM price_version`).Scan(&sum)
		return sum, err
	})
}

// PriceVersions returns by name bucket the numbers of which PriceVersion is the
// sum.
func PriceVersions(ctx context.Context, s *db.DB) (out [Buckets]int64, err error) {
	_, err = db.Collect(ctx, s.Read, func(r *sql.Rows, _ *struct{}) error {
		var bucket int
		var version int64
		err := r.Scan(&bucket, &version)
		if err == nil {
			out[bucket%Buckets] = version
		}
		return err
	}, `SELECT bucket, version FROM price_version`)
	return out, err
}

// PricesChanged counts up the versions of the name buckets, in ascending order:
// two transactions that count several must not wait for each other. It belongs
// at the end of a transaction, since others wait for the same buckets.
func PricesChanged(t *db.Tx, buckets []int64) error {
	if len(buckets) == 0 {
		return nil
	}
	t.BeginCommit(db.Local[priceVersion](t.DB).begin)
	_, err := t.Exec(`
		INSERT INTO price_version (bucket, version)
		SELECT b.bucket, 1 FROM `+t.Dialect.Rows(1, "bucket bigint")+` b WHERE true ORDER BY b.bucket
		ON CONFLICT (bucket) DO UPDATE SET version = price_version.version + 1`, t.Dialect.PackIDs(buckets))
	return err
}
