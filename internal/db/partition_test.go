package db_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/pgtest"
)

// lease is how long a conversion waits for heartbeats in these tests.
const lease = 50 * time.Millisecond

// inventoryOf returns the rows and the next id of the inventory as text.
func inventoryOf(t *testing.T, raw *sql.DB) (rows string) {
	t.Helper()
	must(t, raw.QueryRowContext(t.Context(), `
		SELECT coalesce(string_agg(CAST(v AS text), ';' ORDER BY id), '') ||
			(SELECT ' last ' || pg_sequence_last_value(CAST(pg_get_serial_sequence('inventory', 'id') AS regclass)) FROM (VALUES (1)) one) FROM inventory v`).Scan(&rows))
	return rows
}

// filled returns a database with inventory rows. It deletes the rows with the greatest ids, so that
// the next id does not follow from the stored ids.
func filled(t *testing.T) (dbtest.Database, *sql.DB) {
	t.Helper()
	d := dbtest.On(t, dbtest.PostgreSQL)
	raw := d.Raw(t)
	t.Cleanup(func() { must(t, raw.Close()) })
	run(t, raw, `
		INSERT INTO inventory (user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable, inspect, in_transfer, value)
		SELECT n / 10, 730, '2', n, n, 'c', 'i', 1, n % 2 = 0, n % 3 = 0, 'link', n % 5 = 0, nullif(n % 7, 0) FROM generate_series(1, 1000) n;
		DELETE FROM inventory WHERE id > 990;
		CREATE INDEX mine ON inventory (class_id)`)
	return d, raw
}

func run(t *testing.T, raw *sql.DB, statement string) {
	t.Helper()
	_, err := raw.ExecContext(t.Context(), statement)
	must(t, err)
}

func partition(t *testing.T, d dbtest.Database, parts int) error {
	t.Helper()
	return db.PartitionInventory(t.Context(), db.Options{URL: d.URL}, parts, lease)
}

func TestPartition_KeepsRowsIDsAndIndexes(t *testing.T) {
	d, raw := filled(t)
	want := inventoryOf(t, raw)
	table := `SELECT CAST(CAST('inventory' AS regclass) AS oid)`
	before := 1
	for _, parts := range []int{1, 4, 4, 8, 1, 2} {
		var old, now int64
		must(t, raw.QueryRowContext(t.Context(), table).Scan(&old))
		must(t, partition(t, d, parts))
		must(t, raw.QueryRowContext(t.Context(), table).Scan(&now))
		if (now == old) != (parts == before) {
			t.Errorf("from %d to %d partitions: got a new table %v, want one only if the number changes", before, parts, now != old)
		}
		before = parts
		if got := inventoryOf(t, raw); got != want {
			t.Fatalf("%d partitions: the rows or the last id changed, want no change", parts)
		}
		must(t, d.Open(t, db.Options{KeepSchema: true}).Healthy(t.Context()))
		var have, indexes, filled int
		must(t, raw.QueryRowContext(t.Context(), `
			SELECT (SELECT count(*) FROM pg_partition_tree('inventory') WHERE isleaf),
				(SELECT count(*) FROM pg_index WHERE indrelid = CAST('inventory' AS regclass) AND indisvalid),
				(SELECT count(*) FROM pg_partition_tree('inventory') p JOIN pg_class c ON c.oid = p.relid WHERE reloptions = '{fillfactor=45}')`).Scan(&have, &indexes, &filled))
		if parts == 1 {
			have, filled = max(have, 1), max(filled, 1) // pg_partition_tree lists an ordinary table as itself or not at all
		}
		if have != parts || indexes != 4 || filled != parts {
			t.Errorf("%[1]d partitions: got %[2]d with %[3]d indexes and %[4]d fill factors, want %[1]d with 4 indexes and %[1]d fill factors", parts, have, indexes, filled)
		}
	}
	var id int64
	must(t, raw.QueryRowContext(t.Context(), `
		INSERT INTO inventory (user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable, inspect)
		VALUES (7, 730, '2', 'new', 1, '', '', 1, true, true, '') RETURNING id`).Scan(&id))
	if id != 1001 {
		t.Errorf("got id %d of a new row, want 1001", id)
	}
}

func TestPartition_WithoutRows(t *testing.T) {
	d := dbtest.On(t, dbtest.PostgreSQL)
	must(t, partition(t, d, 64))
	d.Open(t, db.Options{})
	for _, parts := range []int{0, 65} {
		if err := partition(t, d, parts); err == nil {
			t.Errorf("%d partitions: got no error, want one", parts)
		}
	}
}

func TestPartition_KeepsPrivileges(t *testing.T) {
	d, raw := filled(t)
	run(t, raw, `GRANT SELECT ON inventory, inventory_id_seq TO PUBLIC`)
	privileges := `SELECT string_agg(concat_ws(' ', relname, a), ', ' ORDER BY relname, CAST(a AS text)) FROM pg_class, unnest(relacl) a WHERE relname IN ('inventory', 'inventory_id_seq')`
	var want, got string
	must(t, raw.QueryRowContext(t.Context(), privileges).Scan(&want))
	must(t, partition(t, d, 4))
	must(t, raw.QueryRowContext(t.Context(), privileges).Scan(&got))
	if got != want {
		t.Errorf("got privileges %s, want %s", got, want)
	}
}

func TestPartition_RefusesTablesWithTriggers(t *testing.T) {
	d, raw := filled(t)
	run(t, raw, `CREATE TRIGGER mine BEFORE UPDATE ON inventory FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`)
	if err := partition(t, d, 4); !errors.Is(err, db.ErrInventoryExtended) {
		t.Errorf("got error %v, want ErrInventoryExtended", err)
	}
}

func TestPartition_RefusesARunningServer(t *testing.T) {
	d, raw := filled(t)
	run(t, raw, `INSERT INTO instance (owner, version, endpoints, started_at, heartbeat, heartbeat_at, report) VALUES ('a', '', '[]', 0, 1, 0, '')`)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = raw.ExecContext(context.WithoutCancel(t.Context()), `UPDATE instance SET heartbeat = heartbeat + 1`)
			}
		}
	}()
	err := partition(t, d, 4)
	close(stop)
	<-stopped
	if !errors.Is(err, db.ErrDatabaseInUse) {
		t.Errorf("got error %v, want ErrDatabaseInUse", err)
	}
	must(t, partition(t, d, 4)) // the server has stopped
}

// The test ends the database session of a conversion that has copied all rows and creates an index.
func TestPartition_LeavesTheTableWhenKilled(t *testing.T) {
	d, raw := filled(t)
	want := inventoryOf(t, raw)
	run(t, raw, `
		CREATE FUNCTION slow(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1 FROM pg_sleep(0.01)';
		CREATE INDEX slow ON inventory (slow(class_id))`)
	ended := make(chan error, 1)
	go func() { ended <- partition(t, d, 4) }()
	for killed := 0; killed == 0 && len(ended) == 0; {
		must(t, raw.QueryRowContext(t.Context(), `
			SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE 'CREATE INDEX slow ON %'`).Scan(&killed))
	}
	if err := <-ended; err == nil {
		t.Error("the killed conversion: got no error, want one")
	}
	if got := inventoryOf(t, raw); got != want {
		t.Error("the killed conversion changed the rows, want no change")
	}
	d.Open(t, db.Options{KeepSchema: true})
	run(t, raw, `DROP INDEX slow`)
	must(t, partition(t, d, 4))
}

func TestPartition_DetectsChangedPartitions(t *testing.T) {
	for statement, message := range map[string]string{
		`ALTER TABLE inventory DETACH PARTITION inventory_4_01`: `column inventory_4_01.amount is "none"`,
		`DROP TABLE inventory_4_02`:                             `column inventory_4_02.amount is "none"`,
		`CREATE UNIQUE INDEX extra ON inventory_4_03 (id)`:      `unique index inventory_4_03.extra is "btree (id)", expected "none"`,
		`ALTER TABLE inventory_4_03 ALTER value SET DEFAULT 1`:  `column inventory_4_03.value is "bigint DEFAULT 1`,
		`ALTER TABLE inventory DROP CONSTRAINT inventory_pkey`:  `unique index inventory.inventory_pkey is "none"`,
		`CREATE INDEX allowed ON inventory_4_03 (value)`:        "",
	} {
		d, raw := filled(t)
		must(t, partition(t, d, 4))
		run(t, raw, statement)
		s, err := db.Open(t.Context(), db.Options{URL: d.URL})
		if err == nil {
			must(t, s.Close())
		}
		if message == "" {
			must(t, err)
		} else if !errors.Is(err, db.ErrSchemaChanged) {
			t.Errorf("after %s: got error %v, want ErrSchemaChanged", statement, err)
		} else if !strings.Contains(err.Error(), message) {
			t.Errorf("after %s: got error %v, want %q in it", statement, err, message)
		}
	}
}

// A restored backup keeps the layout of the backup, whatever layout the old database has.
func TestPartition_BackupsRestoreTheLayout(t *testing.T) {
	d, raw := filled(t)
	want := inventoryOf(t, raw)
	files := map[int]string{}
	for _, parts := range []int{1, 4} {
		must(t, partition(t, d, parts))
		files[parts] = filepath.Join(t.TempDir(), "assay.dump")
		must(t, db.BackupPostgres(t.Context(), d.URL, files[parts]))
	}
	for _, from := range []int{1, 4} {
		empty := dbtest.Database{Engine: dbtest.PostgreSQL, URL: pgtest.Shared(t).NewDatabase(t)}
		must(t, db.RestorePostgres(t.Context(), empty.URL, files[from], false, lease))
		for _, over := range []int{4, 1} {
			must(t, partition(t, empty, over))
			if err := db.RestorePostgres(t.Context(), empty.URL, files[from], true, lease); err != nil {
				t.Errorf("restore of a backup with %d partitions over %d: got error %v, want none", from, over, err)
				continue
			}
			empty.Open(t, db.Options{KeepSchema: true})
			restored := empty.Raw(t)
			if got := inventoryOf(t, restored); got != want {
				t.Errorf("restore of a backup with %d partitions over %d: the rows differ from the original, want equal rows", from, over)
			}
			must(t, restored.Close())
		}
	}
}

func TestPartition_CopiesInBothDirections(t *testing.T) {
	d, raw := filled(t)
	want := inventoryOf(t, raw)
	must(t, partition(t, d, 4))
	other, plain := dbtest.On(t, dbtest.PostgreSQL), dbtest.On(t, dbtest.PostgreSQL)
	must(t, partition(t, other, 8))
	for _, step := range [][2]dbtest.Database{{d, other}, {other, plain}} {
		_, err := db.Copy(t.Context(), db.CopyOptions{From: db.Options{URL: step[0].URL}, To: db.Options{URL: step[1].URL}, Lease: lease})
		must(t, err)
		to := step[1].Raw(t)
		if got := inventoryOf(t, to); got != want {
			t.Error("the copied rows differ from the rows of the original, want equal rows")
		}
		must(t, to.Close())
	}
}
