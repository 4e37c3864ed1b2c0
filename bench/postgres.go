package main

import (
	"context"
	"database/sql"
	_ "embed" // tables of the floor
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgres is a PostgreSQL server with default settings.
type postgres struct{ *cluster }

func startPostgres(settings ...string) (postgres, error) {
	c, err := startCluster(settings...)
	return postgres{c}, err
}

func (postgres) name() string { return "PostgreSQL" }

func (postgres) refreshID() string { return "T1" }

// prepare creates a database with a name from the directory of its server. On PostgreSQL a server
// generates no secrets, so the settings contain them.
func (e postgres) prepare(ctx context.Context, dir string) ([]string, error) {
	name := databaseName(dir)
	if err := e.create(ctx, name, ""); err != nil {
		return nil, err
	}
	return []string{
		"DATABASE_URL=" + e.server.URL(name), "ADMIN_API_TOKEN=" + strings.Repeat("a", 32), "PLATFORM_API_TOKEN=" + strings.Repeat("p", 32),
		"MARKET_PRICE_SYNC_SECRET=" + strings.Repeat("s", 32), "WALLET_LEDGER_KEY=" + strings.Repeat("0a", 32),
	}, nil
}

// databaseName returns the name of a server's database.
func databaseName(dir string) string {
	return "assay_" + strings.ReplaceAll(filepath.Base(dir), "-", "_")
}

// floorTables is the SQL that creates the tables of the floor in a separate schema of Assay's database.
//
//go:embed floor.sql
var floorTables string

// clone copies the files of the database, and creates the floor's tables in the copy.
func (e postgres) clone(ctx context.Context, s *server) (*sql.DB, error) {
	name := databaseName(s.dir)
	if err := e.create(ctx, name+"_floor", name); err != nil {
		return nil, err
	}
	db, err := e.cluster.open(name + "_floor")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, floorTables)
	return db, err
}

func (e postgres) open(s *server) (*sql.DB, error) { return e.cluster.open(databaseName(s.dir)) }

func (e postgres) rest(ctx context.Context, db *sql.DB) error { return rest(ctx, db) }

// written returns the size of the write-ahead log. PostgreSQL later writes about as many bytes to the
// tables.
func (e postgres) written(ctx context.Context, _ *server) (bytes int64, err error) {
	err = e.admin.QueryRowContext(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`).Scan(&bytes)
	return bytes, err
}

func (postgres) sizes(ctx context.Context, db *sql.DB, tables []string) ([]int64, error) {
	return tableSizes(ctx, db, tables, `SELECT pg_total_relation_size($1::regclass)`)
}

func (postgres) refreshFloors() []floor {
	return []floor{
		{"COPY into the truncated table of quotes, then two updates", func(ctx context.Context, db *sql.DB, w *refreshWork) error {
			return inPgx(ctx, db, func(tx pgx.Tx) error { return writeFloor(ctx, tx, w, reloadSnapshots) })
		}},
		{"COPY into a temporary table, then an upsert and two updates", func(ctx context.Context, db *sql.DB, w *refreshWork) error {
			return inPgx(ctx, db, func(tx pgx.Tx) error { return writeFloor(ctx, tx, w, mergeSnapshots) })
		}},
	}
}

// writeFloor writes the rows of a refresh in one transaction.
func writeFloor(ctx context.Context, tx pgx.Tx, w *refreshWork, snapshots func(context.Context, pgx.Tx, [][]any) error) error {
	if err := snapshots(ctx, tx, w.snapshots); err != nil {
		return fmt.Errorf("quotes: %w", err)
	}
	if err := copyBeside(ctx, tx, "item", itemColumns, w.items); err != nil {
		return fmt.Errorf("items: %w", err)
	}
	columns := strings.Split(itemColumns, ", ")[1:]
	set := "(" + strings.Join(columns, ", ") + ") = (new." + strings.Join(columns, ", new.") + ")"
	if _, err := tx.Exec(ctx, `UPDATE floor.item SET `+set+` FROM new_item AS new WHERE item.id = new.id`); err != nil {
		return fmt.Errorf("items: %w", err)
	}
	_, err := tx.Exec(ctx, `UPDATE floor.inventory SET value = item.price FROM floor.item
		WHERE item.id = inventory.item_id AND item.price > 0 AND inventory.value IS DISTINCT FROM item.price`)
	return err
}

func reloadSnapshots(ctx context.Context, tx pgx.Tx, rows [][]any) error {
	if _, err := tx.Exec(ctx, `TRUNCATE floor.snapshot`); err != nil {
		return err
	}
	return copyRows(ctx, tx, pgx.Identifier{"floor", "snapshot"}, snapshotColumns, rows)
}

func mergeSnapshots(ctx context.Context, tx pgx.Tx, rows [][]any) error {
	if err := copyBeside(ctx, tx, "snapshot", snapshotColumns, rows); err != nil {
		return err
	}
	columns := strings.Split(snapshotColumns, ", ")[2:]
	_, err := tx.Exec(ctx, `INSERT INTO floor.snapshot (`+snapshotColumns+`) SELECT `+snapshotColumns+` FROM new_snapshot
		ON CONFLICT (item_id, market_id) DO UPDATE SET (`+strings.Join(columns, ", ")+`) = (excluded.`+strings.Join(columns, ", excluded.")+`)`)
	return err
}

// copyBeside loads rows for a floor table into a temporary table.
func copyBeside(ctx context.Context, tx pgx.Tx, table, columns string, rows [][]any) error {
	beside := "new_" + table
	if _, err := tx.Exec(ctx, `CREATE TEMPORARY TABLE `+beside+` ON COMMIT DROP AS SELECT `+columns+` FROM floor.`+table+` WITH NO DATA`); err != nil {
		return err
	}
	return copyRows(ctx, tx, pgx.Identifier{beside}, columns, rows)
}

func copyRows(ctx context.Context, tx pgx.Tx, table pgx.Identifier, columns string, rows [][]any) error {
	_, err := tx.CopyFrom(ctx, table, strings.Split(strings.Join(strings.Fields(columns), " "), ", "), pgx.CopyFromRows(rows))
	return err
}

// inPgx runs a transaction on a pgx connection, because database/sql does not support COPY.
func inPgx(ctx context.Context, db *sql.DB, fn func(pgx.Tx) error) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return conn.Raw(func(driver any) error {
		return pgx.BeginFunc(ctx, driver.(*stdlib.Conn).Conn(), fn)
	})
}

func (postgres) syncFloor(ctx context.Context, db *sql.DB, w *syncWork) error {
	at := w.at.UnixMicro()
	return inPgx(ctx, db, func(tx pgx.Tx) error {
		var user int64
		err := tx.QueryRow(ctx, `INSERT INTO platform_user (user_id, created_at) VALUES ($1, $2) RETURNING id`, w.user, at).Scan(&user)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO inventory_snapshot (user_key, app_id, context_id, snapshot_at) VALUES ($1, 730, '2', $2)`, user, at)
		if err != nil {
			return err
		}
		items, missing, rows := w.rows(user)
		return errors.Join(
			copyRows(ctx, tx, pgx.Identifier{"item"}, "id, app_id, name, phase, bucket", items),
			copyRows(ctx, tx, pgx.Identifier{"missing_price"}, "item_id, queued_at, due_at", missing),
			copyRows(ctx, tx, pgx.Identifier{"inventory"}, syncColumns, rows),
		)
	})
}
