package catalog

import (
	"context"
	"database/sql"
	"sync"

	"assay/internal/db"
)

// Caches of prices compare versions to detect changes. Each name bucket has a version.
// A commit increments it if the commit changes a price in the bucket, or other data that
// the API returns with the price.

// priceVersion caches the sum of all versions. Only a process that is the only writer
// uses the cached value. The value becomes invalid before each commit that changes
// prices. It cannot become valid again until the commit has ended.
type priceVersion struct {
	mu         sync.Mutex
	sum        int64
	known      bool  // sum is valid
	committing int   // running commits that change prices
	commits    int64 // started commits that change prices
}

// begin invalidates the cached sum before a commit that changes prices. The caller must
// call end after the commit, even if the commit failed.
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

// load returns the sum from query. It caches the sum if alone is true and no commit ran
// during the query. alone means that no other process writes to the database.
func (v *priceVersion) load(alone bool, query func() (int64, error)) (int64, error) {
	v.mu.Lock()
	commits, quiet := v.commits, v.committing == 0
	v.mu.Unlock()
	sum, err := query()
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil && alone && quiet && v.commits == commits {
		v.sum, v.known = sum, true
	}
	return sum, err
}

// KnownPriceVersion returns the cached result of PriceVersion without a query. known is
// false if no valid result is cached.
func KnownPriceVersion(s *db.DB) (version int64, known bool) {
	v := db.Local[priceVersion](s)
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sum, v.known
}

// PriceVersion returns the sum of the versions of all name buckets. It grows with every
// commit that changes a price or other data that the API returns with the price. New
// items do not change it.
func PriceVersion(ctx context.Context, s *db.DB) (int64, error) {
	return db.Local[priceVersion](s).load(s.OnlyWriter(), func() (int64, error) { return s.Number(ctx, priceVersionSQL) })
}

const priceVersionSQL = `SELECT CAST(coalesce(sum(version), 0) AS BIGINT) FROM price_version`

// PriceVersionIn is PriceVersion in a snapshot of the database.
func PriceVersionIn(ctx context.Context, q db.Querier) (sum int64, err error) {
	err = db.Each(ctx, q, func(r *sql.Rows) error { return r.Scan(&sum) }, priceVersionSQL)
	return sum, err
}

// PriceVersions returns the version of each name bucket. PriceVersion is their sum.
func PriceVersions(ctx context.Context, s *db.DB) (out [Buckets]int64, err error) {
	err = db.Each(ctx, s.Read, func(r *sql.Rows) error {
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

// PricesChanged increments the versions of name buckets, in ascending order so that two
// transactions cannot deadlock. Call it at the end of a transaction, because other
// transactions wait for the same rows.
func PricesChanged(t *db.Tx, buckets []int64) error {
	if len(buckets) == 0 {
		return nil
	}
	t.BeginCommit(db.Local[priceVersion](t.DB).begin)
	_, err := t.Exec(`
		INSERT INTO price_version (bucket, version)
		SELECT b.bucket, 1 FROM `+t.Dialect.Rows(1, "bucket bigint")+` b WHERE true ORDER BY b.bucket
		ON CONFLICT (bucket) DO UPDATE SET version = price_version.version + 1`, t.Dialect.EncodeIDs(buckets))
	return err
}
