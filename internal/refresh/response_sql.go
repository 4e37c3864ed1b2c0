package refresh

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"assay/internal/catalog"
	"assay/internal/db"
)

const (
	insertBlobs = `INSERT INTO fetch_blob (unit_id, bucket, data) `
	blobColumns = "unit_id bigint, bucket bigint, data bytea"
)

var blobsBulk = db.NewBulk(insertBlobs, blobColumns, "")

// marketFiles returns the newest good responses of all markets' files.
func marketFiles(ctx context.Context, s *db.DB) ([]MarketFile, error) {
	return db.Collect(ctx, s.Read, scanMarketFile, marketFilesSQL)
}

// filesChanged reports whether another job or an operator has changed one of the games' files since
// they were read. It locks the files, so afterwards they stay as they are.
func filesChanged(t *db.Tx, read []MarketFile, games map[int32]bool) (bool, error) {
	now, err := db.Collect(t.Context(), t, scanMarketFile, marketFilesSQL+t.Dialect.LockOf("market_file"))
	other := func(f MarketFile) bool { _, own := games[f.AppID]; return !own }
	return !slices.Equal(slices.DeleteFunc(slices.Clone(read), other), slices.DeleteFunc(now, other)), err
}

const marketFilesSQL = `SELECT market_id, app_id, file, unit_id, fetched_at, quotes, quarantine, accepted_at FROM market_file
		ORDER BY market_id, app_id, file`

func scanMarketFile(r *sql.Rows, f *MarketFile) error {
	var fetched, accepted int64
	err := r.Scan(&f.MarketID, &f.AppID, &f.File, &f.UnitID, &fetched, &f.Quotes, &f.Quarantine, &accepted)
	f.FetchedAt, f.AcceptedAt = db.Moment(fetched), db.Moment(accepted)
	return err
}

// sameResponse reports whether the stored responses of two units are equal.
func sameResponse(ctx context.Context, s *db.DB, a, b int64) (same bool, err error) {
	err = s.Read.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM fetch_blob WHERE unit_id = $1) = (SELECT count(*) FROM fetch_blob WHERE unit_id = $2)
			AND NOT EXISTS (SELECT 1 FROM fetch_blob o WHERE o.unit_id = $1 AND NOT EXISTS (
				SELECT 1 FROM fetch_blob n WHERE n.unit_id = $2 AND n.bucket = o.bucket AND n.data = o.data))`, a, b).Scan(&same)
	return same, err
}

// bucketsAtOnce is how many buckets a query of blobs reads. SQLite sorts the rows of a query in
// memory, so one query for all buckets would hold whole responses.
const bucketsAtOnce = catalog.Buckets / 8

// readBlobs calls fn for each stored blob of the units and buckets, ordered by bucket and unit.
// The buckets must be in order.
func readBlobs(ctx context.Context, s *db.DB, units, buckets []int64, fn func(Blob) error) error {
	if len(buckets) <= bucketsAtOnce {
		return queryBlobs(ctx, s.Read, s.Dialect, units, buckets, fn)
	}
	return s.Snapshot(ctx, func(_ *sql.Conn, tx *sql.Tx) error {
		for some := range slices.Chunk(buckets, bucketsAtOnce) {
			if err := queryBlobs(ctx, tx, s.Dialect, units, some, fn); err != nil {
				return err
			}
		}
		return nil
	})
}

func queryBlobs(ctx context.Context, r db.Querier, d db.Dialect, units, buckets []int64, fn func(Blob) error) (err error) {
	rows, err := r.QueryContext(ctx, `
		SELECT unit_id, bucket, data FROM fetch_blob
		WHERE unit_id `+d.OneOf(1)+` AND bucket `+d.OneOf(2)+`
		ORDER BY bucket, unit_id`, d.EncodeIDs(units), d.EncodeIDs(buckets))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var b Blob
		var data sql.RawBytes
		if err := rows.Scan(&b.Unit, &b.Bucket, &data); err != nil {
			return err
		}
		b.Data = data
		if err := fn(b); err != nil {
			return err
		}
	}
	return rows.Err()
}

// blobLock is the key of the advisory lock that protects stored responses from deletion.
const blobLock = 0x61737361<<32 + 2

// lockBlobs waits for the transactions that have called keepBlobs, and blocks new ones.
func lockBlobs(t *db.Tx) error {
	return t.ExecPostgres(`SELECT pg_advisory_xact_lock($1)`, int64(blobLock))
}

// keepBlobs prevents the deletion of stored responses until the transaction ends.
func keepBlobs(t *db.Tx) error {
	return t.ExecPostgres(`SELECT pg_advisory_xact_lock_shared($1)`, int64(blobLock))
}
