package catalog

import (
	"context"
	"database/sql"
	"math"
	"sync"
	"time"

	"assay/internal/db"
)

// Caches of prices compare versions to detect changes. Each name bucket has a version.
// A commit increments it if the commit changes a price in the bucket, or other data that
// the API returns with the price.

// priceVersion caches the sum of all versions. The value becomes invalid before each commit of this
// process that changes prices. It cannot become valid again until the commit has ended. If other
// processes write, the value is valid only for a short time, and only if none of them is announced.
type priceVersion struct {
	mu         sync.Mutex
	sum        int64
	known      bool          // sum is valid, for the time life after read
	read       time.Time     // before the query
	life       time.Duration // endless if this process is the only writer
	committing int           // running commits that change prices
	commits    int64         // started commits that change prices
}

const endless = time.Duration(math.MaxInt64)

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

// load returns the sum from query. It caches the sum for the returned time, unless a commit ran
// during the query.
func (v *priceVersion) load(query func() (sum int64, life time.Duration, err error)) (int64, error) {
	read := time.Now()
	v.mu.Lock()
	commits, quiet := v.commits, v.committing == 0
	v.mu.Unlock()
	sum, life, err := query()
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil && quiet && v.commits == commits {
		v.sum, v.read, v.life, v.known = sum, read, life, life > 0
	}
	return sum, err
}

// value returns the cached sum, if it is valid.
func (v *priceVersion) value() (sum int64, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known && v.life != endless {
		// The monotonic clock may stop while a virtual machine is suspended, so both clocks count.
		now := time.Now()
		wall := now.Round(0).Sub(v.read.Round(0))
		v.known = now.Sub(v.read) < v.life && wall >= 0 && wall < v.life
	}
	return v.sum, v.known
}

// KnownPriceVersion returns the cached result of PriceVersion without a query. known is
// false if no valid result is cached.
func KnownPriceVersion(s *db.DB) (version int64, known bool) {
	return db.Local[priceVersion](s).value()
}

// PriceVersion returns the sum of the versions of all name buckets. It grows with every
// commit that changes a price or other data that the API returns with the price. New
// items do not change it.
func PriceVersion(ctx context.Context, s *db.DB) (int64, error) {
	return db.Local[priceVersion](s).load(func() (int64, time.Duration, error) {
		if s.OnlyWriter() {
			sum, err := s.Number(ctx, priceVersionSQL)
			return sum, endless, err
		}
		// One number carries both, as Number returns no more: twice the sum, plus 1 if a process is announced.
		n, err := s.Number(ctx, `SELECT 2 * (`+priceVersionSQL+`) + (SELECT CASE WHEN EXISTS (SELECT 1 FROM price_writer) THEN 1 ELSE 0 END)`)
		if n%2 == 1 {
			return n / 2, 0, err
		}
		return n / 2, versionLife, err
	})
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
	if !t.DB.OnlyWriter() {
		return pricesChangedShared(t, buckets)
	}
	_, err := t.Exec(`
		INSERT INTO price_version (bucket, version)
		SELECT b.bucket, 1 FROM `+t.Dialect.Rows(1, "bucket bigint")+` b WHERE true ORDER BY b.bucket
		ON CONFLICT (bucket) DO UPDATE SET version = price_version.version + 1`, t.Dialect.EncodeIDs(buckets))
	return err
}
