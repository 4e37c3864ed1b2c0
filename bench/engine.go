package main

import (
	"context"
	"database/sql"
	"errors"
	"hash/maphash"
	"time"

	"assay/internal/catalog"
)

// engine is a database system for the program under test. It also provides the floors:
// hand-written code for the same writes.
type engine interface {
	name() string
	// refreshID returns the target ID for a refresh of work R.
	refreshID() string
	// prepare creates a database for a server in dir. It returns the settings that select the
	// database.
	prepare(ctx context.Context, dir string) ([]string, error)
	// clone copies the files of a stopped server's database. It opens the copy with the
	// server's settings.
	clone(ctx context.Context, s *server) (*sql.DB, error)
	// open opens the database of a running server for reading.
	open(s *server) (*sql.DB, error)
	// rest runs background work of the database immediately, so that every measurement starts
	// in the same state.
	rest(ctx context.Context, db *sql.DB) error
	// written returns the number of bytes written to files for a server so far.
	written(ctx context.Context, s *server) (int64, error)
	// sizes returns the sizes of tables on disk, with their indexes.
	sizes(ctx context.Context, db *sql.DB, tables []string) ([]int64, error)
	// refreshFloors returns several ways to write the rows of a refresh. The fastest is the
	// floor.
	refreshFloors() []floor
	// syncFloor writes the rows of a new user's inventory sync.
	syncFloor(ctx context.Context, db *sql.DB, w *syncWork) error
	// close stops all processes of the engine.
	close() error
}

// floor is a way to write the rows of a refresh: snapshots, estimates of items, and prices on
// all inventory rows.
type floor struct {
	name  string
	write func(ctx context.Context, db *sql.DB, w *refreshWork) error
}

// refreshWork contains the rows of a refresh.
type refreshWork struct {
	snapshots [][]any // columns: snapshotColumns
	items     [][]any // columns: itemColumns
}

// A refresh that changes everything writes these columns. The key columns are first.
const (
	snapshotColumns = `item_id, market_id, currency, ask, bid, sale, listings, sales, sales_window, market_time, fetched_at, reason`
	itemColumns     = `id, price, status, method, method_version, average, median, consensus, low, high, interval_low, interval_high, ` +
		`markets, used_markets, candidate, candidate_at, guard, range_low, range_high, price_updated_at, price_checked_at, ` +
		`estimated_at, quotes_at, rate_set, level_set, no_sales_since, retry_at, failures, rev`
	snapshotWidth, itemWidth = 12, 29
)

// These are indexes of the columns that next changes.
const (
	snapshotAsk = 3
	itemPrice   = 1
	itemAverage = 5
	itemRev     = 28
)

// loadWork reads the stored rows to write them again.
func loadWork(ctx context.Context, db *sql.DB) (*refreshWork, error) {
	var w refreshWork
	var err error
	w.snapshots, err = load(ctx, db, `SELECT `+snapshotColumns+` FROM market_snapshot ORDER BY item_id, market_id`)
	if err != nil {
		return nil, err
	}
	w.items, err = load(ctx, db, `SELECT `+itemColumns+` FROM item ORDER BY id`)
	return &w, err
}

// next changes every row, so that writing the rows changes the database.
func (w *refreshWork) next() {
	const step = 10_000 // one cent
	for _, r := range w.snapshots {
		r[snapshotAsk] = r[snapshotAsk].(int64) + step
	}
	for _, r := range w.items {
		r[itemPrice] = r[itemPrice].(int64) + step
		r[itemAverage] = r[itemAverage].(int64) + step
		r[itemRev] = r[itemRev].(int64) + 1
	}
}

// load reads all rows of a query.
func load(ctx context.Context, db *sql.DB, query string) (out [][]any, err error) {
	err = eachRow(ctx, db, query, func(width int, scan func(...any) error) error {
		row, into := make([]any, width), make([]any, width)
		for i := range row {
			into[i] = &row[i]
		}
		out = append(out, row)
		return scan(into...)
	})
	return out, err
}

// eachRow calls fn for every row of a query. fn scans the row.
func eachRow(ctx context.Context, db *sql.DB, query string, fn func(width int, scan func(...any) error) error) (err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := fn(len(columns), rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// contents contains a hash of each row of a query, in order. Two values are comparable if no
// row was inserted or deleted between them.
type contents []uint64

// A refresh without new prices must not change these rows. Confirmation times and the number
// of estimates are excluded.
const (
	snapshotContents = `SELECT ` + snapshotColumns + ` FROM market_snapshot ORDER BY item_id, market_id`
	itemContents     = `SELECT id, app_id, name, phase, price, status, method, method_version, average, median, consensus, low, high,
		interval_low, interval_high, markets, used_markets, candidate, candidate_at, range_low, range_high, rate_set, level_set,
		price_updated_at, no_sales_since, failures FROM item ORDER BY id`
	inventoryContents = `SELECT id, user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable,
		inspect, value FROM inventory ORDER BY id`
	valueContents = `SELECT id, value FROM inventory ORDER BY id`
)

// hasher computes contents. Only values of the same hasher are comparable.
type hasher struct {
	seed maphash.Seed
	into []sql.RawBytes
	args []any
}

func newHasher() *hasher { return &hasher{seed: maphash.MakeSeed()} }

// contents hashes the rows of a query.
func (h *hasher) contents(ctx context.Context, db *sql.DB, query string) (out contents, err error) {
	err = eachRow(ctx, db, query, func(width int, scan func(...any) error) error {
		if len(h.into) != width {
			h.into, h.args = make([]sql.RawBytes, width), make([]any, width)
			for i := range h.into {
				h.args[i] = &h.into[i]
			}
		}
		if err := scan(h.args...); err != nil {
			return err
		}
		var sum maphash.Hash
		sum.SetSeed(h.seed)
		for _, b := range h.into {
			_, _ = sum.Write(b)
			_ = sum.WriteByte(0)
		}
		out = append(out, sum.Sum64())
		return nil
	})
	return out, err
}

// changed returns the number of different rows.
func (c contents) changed(after contents) (n int) {
	for i := range after {
		if i >= len(c) || c[i] != after[i] {
			n++
		}
	}
	return n + max(len(c)-len(after), 0)
}

// syncWork contains the rows of a new user's inventory sync. The first assets are of known
// items. The others are of new items.
type syncWork struct {
	user   string
	at     time.Time
	known  []pricedItem
	assets []asset
}

type pricedItem struct {
	name      string
	id, price int64
}

// rows returns the rows to write for a user key: new items (id, app_id, name, phase, bucket),
// their entries in the missing-price queue (item_id, queued_at, due_at), and inventory rows
// (syncColumns).
func (w *syncWork) rows(user int64) (items, missing, inventory [][]any) {
	at := w.at.UnixMicro()
	for i, a := range w.assets {
		var value any
		var id int64
		if i < len(w.known) {
			id, value = w.known[i].id, w.known[i].price
		} else {
			bucket := catalog.Bucket(a.MarketHashName)
			id = int64(bucket)<<32 + 1<<30 + user*int64(len(w.assets)) + int64(i) // IDs that no other user has
			items = append(items, []any{id, 730, a.MarketHashName, "", bucket})
			missing = append(missing, []any{id, at, at})
		}
		inventory = append(inventory, []any{user, 730, "2", a.AssetID, id, a.ClassID, a.InstanceID, 1, true, true, "", value})
	}
	return items, missing, inventory
}

const syncColumns = `user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable, inspect, value`
