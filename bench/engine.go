package main

import (
	"context"
	"database/sql"
	"errors"
	"hash/maphash"
	"time"

	"assay/internal/catalog"
)

// engine is a kind of database that the program under test can keep its data in,
// and the best that can be done with it by hand.
type engine interface {
	name() string
	// refreshID is the target of a refresh of work R.
	refreshID() string
	// prepare makes a database for a server that works in a directory, and returns
	// the settings that lead it there.
	prepare(ctx context.Context, dir string) ([]string, error)
	// clone copies the database of a stopped server, laid out as it is, and opens
	// the copy with the settings with which the server writes.
	clone(ctx context.Context, s *server) (*sql.DB, error)
	// open opens the database of a running server for reading.
	open(s *server) (*sql.DB, error)
	// rest lets the database do what it else does at moments of its own choice, so
	// that whoever is measured next finds it in the same state.
	rest(ctx context.Context, db *sql.DB) error
	// written returns how many bytes were written to files for a server so far.
	written(ctx context.Context, s *server) (int64, error)
	// refreshFloors are ways to write what a refresh writes; the fastest is the
	// floor.
	refreshFloors() []floor
	// syncFloor writes what a sync of a new user writes.
	syncFloor(ctx context.Context, db *sql.DB, w *syncWork) error
	// close ends what the engine started.
	close() error
}

// floor is a way to write what a refresh writes: rows of snapshots, estimates of
// items, and the items' prices on all inventory rows.
type floor struct {
	name  string
	write func(ctx context.Context, db *sql.DB, w *refreshWork) error
}

// refreshWork is what a refresh writes, ready to be written.
type refreshWork struct {
	snapshots [][]any // snapshotColumns
	items     [][]any // itemColumns
}

// The columns that a refresh writes when everything changes; the identity comes
// first.
const (
	snapshotColumns = `item_id, market_id, currency, ask, bid, sale, listings, sales, sales_window, market_time, fetched_at, reason`
	itemColumns     = `id, price, status, method, method_version, average, median, consensus, low, high, interval_low, interval_high, ` +
		`markets, used_markets, candidate, candidate_at, guard, range_low, range_high, price_updated_at, price_checked_at, ` +
		`estimated_at, quotes_at, rate_set, level_set, no_sales_since, retry_at, failures, rev`
	snapshotWidth, itemWidth = 12, 29
)

// Places within the columns of what next changes.
const (
	snapshotAsk = 3
	itemPrice   = 1
	itemAverage = 5
	itemRev     = 28
)

// loadWork reads what is stored, to be written anew.
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

// next changes every row, so that writing it changes the database.
func (w *refreshWork) next() {
	const step = 10_000 // a cent
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

// eachRow calls fn for every row of a query, to be scanned.
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

// contents stands for the rows of a query: a hash for each, in its order. Two
// are comparable when no row came or went between them.
type contents []uint64

// What the refresh must not touch when nothing changed, row by row: times at which
// things were confirmed, and the count of estimates, aside.
const (
	snapshotContents = `SELECT ` + snapshotColumns + ` FROM market_snapshot ORDER BY item_id, market_id`
	itemContents     = `SELECT id, app_id, name, phase, price, status, method, method_version, average, median, consensus, low, high,
		interval_low, interval_high, markets, used_markets, candidate, candidate_at, range_low, range_high, rate_set, level_set,
		price_updated_at, no_sales_since, failures FROM item ORDER BY id`
	inventoryContents = `SELECT id, user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable,
		inspect, value FROM inventory ORDER BY id`
	valueContents = `SELECT id, value FROM inventory ORDER BY id`
)

// hasher makes contents. Those of one hasher may be compared.
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

// changed returns how many rows differ.
func (c contents) changed(after contents) (n int) {
	for i := range after {
		if i >= len(c) || c[i] != after[i] {
			n++
		}
	}
	return n + max(len(c)-len(after), 0)
}

// syncWork is what the sync of one new user writes. The first assets are of
// known items, the others of items that nobody has heard of.
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

// rows returns what to write for a user of a key: items that nobody has heard of
// (id, app_id, name, phase, bucket), their places in the queue of missing prices
// (item_id, queued_at, due_at), and inventory (syncColumns).
func (w *syncWork) rows(user int64) (items, missing, inventory [][]any) {
	at := w.at.UnixMicro()
	for i, a := range w.assets {
		var value any
		var id int64
		if i < len(w.known) {
			id, value = w.known[i].id, w.known[i].price
		} else {
			bucket := catalog.Bucket(a.MarketHashName)
			id = int64(bucket)<<32 + 1<<30 + user*int64(len(w.assets)) + int64(i) // where no other user has been
			items = append(items, []any{id, 730, a.MarketHashName, "", bucket})
			missing = append(missing, []any{id, at, at})
		}
		inventory = append(inventory, []any{user, 730, "2", a.AssetID, id, a.ClassID, a.InstanceID, 1, true, true, "", value})
	}
	return items, missing, inventory
}

const syncColumns = `user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable, inspect, value`
