package main

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // driver "sqlite"
)

// sqlite is the embedded database.
type sqlite struct{}

func (sqlite) name() string { return "SQLite" }

func (sqlite) refreshID() string { return "T2" }

// prepare does nothing, because the program creates the database file.
func (sqlite) prepare(context.Context, string) ([]string, error) { return nil, nil }

// rest does nothing, because only the program uses the file.
func (sqlite) rest(context.Context, *sql.DB) error { return nil }

func (sqlite) written(_ context.Context, s *server) (int64, error) { return s.written() }

func (sqlite) sizes(ctx context.Context, db *sql.DB, tables []string) ([]int64, error) {
	return tableSizes(ctx, db, tables, `SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name = $1)`)
}

func (sqlite) close() error { return nil }

// pragmas are the settings of the store, with a little more cache than all its connections have
// together. A floor with less safety would not be comparable.
const pragmas = "_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
	"&_pragma=temp_store(MEMORY)&_pragma=cache_size(-16000)&_pragma=wal_autocheckpoint(4000)&_pragma=journal_size_limit(67108864)"

const databaseFile = "assay.db"

func (sqlite) clone(ctx context.Context, s *server) (*sql.DB, error) {
	from := filepath.Join(s.dir, databaseFile)
	if info, err := os.Stat(from + "-wal"); err == nil && info.Size() > 0 {
		return nil, errors.New("the server left a write-ahead log, so it did not stop gracefully")
	}
	to := filepath.Join(s.dir, "floor.db")
	if err := copyFile(from, to); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+to+"?"+pragmas)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, floorQuotes)
	return db, err
}

// floorQuotes creates the floor's table of quotes, with the common layout of one row per
// quote.
const floorQuotes = `
CREATE TABLE snapshot (
	item_id INTEGER NOT NULL, market_id INTEGER NOT NULL, currency TEXT NOT NULL,
	ask INTEGER NOT NULL, bid INTEGER NOT NULL, sale INTEGER NOT NULL, listings INTEGER NOT NULL, sales INTEGER NOT NULL,
	sales_window INTEGER NOT NULL, market_time INTEGER NOT NULL, fetched_at INTEGER NOT NULL, reason TEXT NOT NULL,
	PRIMARY KEY (item_id, market_id)
) WITHOUT ROWID;
INSERT INTO snapshot SELECT * FROM market_snapshot ORDER BY item_id, market_id`

func (sqlite) open(s *server) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.dir, databaseFile)+"?_pragma=busy_timeout(10000)&_pragma=query_only(1)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err = io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}

// The first floor updates the inventory with a subquery, in one pass. The second floor uses
// UPDATE ... FROM, which collects all rows first.
const (
	upsertSnapshots = `INSERT INTO snapshot (` + snapshotColumns + `) VALUES `
	onSnapshot      = ` ON CONFLICT (item_id, market_id) DO UPDATE SET currency = excluded.currency, ask = excluded.ask,
		bid = excluded.bid, sale = excluded.sale, listings = excluded.listings, sales = excluded.sales,
		sales_window = excluded.sales_window, market_time = excluded.market_time, fetched_at = excluded.fetched_at, reason = excluded.reason`

	updateValues     = `UPDATE inventory SET value = (SELECT nullif(price, 0) FROM item WHERE item.id = inventory.item_id)`
	updateValuesFrom = `UPDATE inventory SET value = item.price FROM item
		WHERE item.id = inventory.item_id AND item.price > 0 AND inventory.value IS DISTINCT FROM item.price`
)

func (sqlite) refreshFloors() []floor {
	return []floor{
		{"prepared statements of 100 rows, values by subquery", func(ctx context.Context, db *sql.DB, w *refreshWork) error {
			return errors.Join(
				inTx(ctx, db, func(tx *sql.Tx) error {
					return insertRows(ctx, tx, upsertSnapshots, onSnapshot, w.snapshots, 100)
				}),
				inTx(ctx, db, func(tx *sql.Tx) error { return updateItems(ctx, tx, w.items) }),
				inTx(ctx, db, func(tx *sql.Tx) error { return execute(ctx, tx, updateValues) }),
			)
		}},
		{"statements as large as possible, values by join", func(ctx context.Context, db *sql.DB, w *refreshWork) error {
			const most = 32_766 / snapshotWidth
			return errors.Join(
				inTx(ctx, db, func(tx *sql.Tx) error {
					return insertRows(ctx, tx, upsertSnapshots, onSnapshot, w.snapshots, most)
				}),
				inTx(ctx, db, func(tx *sql.Tx) error { return updateItems(ctx, tx, w.items) }),
				inTx(ctx, db, func(tx *sql.Tx) error { return execute(ctx, tx, updateValuesFrom) }),
			)
		}},
	}
}

// updateItems writes items one by one, which is faster than a join with a list of values.
func updateItems(ctx context.Context, tx *sql.Tx, items [][]any) (err error) {
	_, columns, _ := strings.Cut(itemColumns, ", ")
	set := strings.ReplaceAll(columns, ", ", " = ?, ") + " = ?"
	statement, err := tx.PrepareContext(ctx, `UPDATE item SET `+set+` WHERE id = ?`) //nolint:gosec // only constants
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, statement.Close()) }()
	args := make([]any, itemWidth)
	for _, row := range items {
		copy(args, row[1:])
		args[itemWidth-1] = row[0]
		if _, err := statement.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// insertRows inserts rows, up to each per statement.
func insertRows(ctx context.Context, tx *sql.Tx, before, after string, rows [][]any, each int) (err error) {
	if len(rows) == 0 {
		return nil
	}
	width := len(rows[0])
	each = min(each, len(rows))
	statement, err := tx.PrepareContext(ctx, before+marks(each, width)+after)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, statement.Close()) }()
	args := make([]any, 0, each*width)
	for ; len(rows) >= each; rows = rows[each:] {
		args = args[:0]
		for _, row := range rows[:each] {
			args = append(args, row...)
		}
		if _, err := statement.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return insertRows(ctx, tx, before, after, rows, len(rows))
}

// marks returns placeholders such as "(?,?),(?,?)".
func marks(rows, width int) string {
	row := "(" + strings.Repeat("?,", width-1) + "?)"
	return strings.Repeat(row+",", rows-1) + row
}

func execute(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}

func inTx(ctx context.Context, db *sql.DB, fn func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (sqlite) syncFloor(ctx context.Context, db *sql.DB, w *syncWork) error {
	at := w.at.UnixMicro()
	return inTx(ctx, db, func(tx *sql.Tx) error {
		var user int64
		if err := tx.QueryRowContext(ctx, `INSERT INTO platform_user (user_id, created_at) VALUES (?, ?) RETURNING id`, w.user, at).Scan(&user); err != nil {
			return err
		}
		if err := execute(ctx, tx, `INSERT INTO inventory_snapshot (user_key, app_id, context_id, snapshot_at) VALUES (?, 730, '2', ?)`, user, at); err != nil {
			return err
		}
		items, missing, rows := w.rows(user)
		const each = 100
		return errors.Join(
			insertRows(ctx, tx, `INSERT INTO item (id, app_id, name, phase, bucket) VALUES `, "", items, each),
			insertRows(ctx, tx, `INSERT INTO missing_price (item_id, queued_at, due_at) VALUES `, "", missing, each),
			insertRows(ctx, tx, `INSERT INTO inventory (`+syncColumns+`) VALUES `, "", rows, each),
		)
	})
}
