package main

import (
	"database/sql"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/inventory"
	"assay/internal/pgtest"
	"assay/internal/view"
)

var (
	partitionRows = flag.Int("rows", 10_000_000, "number of inventory rows of BenchmarkPartitions")
	partitions    = flag.Int("partitions", 16, "number of partitions of BenchmarkPartitions")
)

const (
	partitionItems = 30_000
	partitionUser  = 1_000     // rows of a user
	partitionKey   = 1_000_000 // key of the first user; syncs add users with smaller keys
	partitionRange = 60_000    // ids of a transaction, as in a refresh on PostgreSQL
	partitionSlots = 2         // concurrent transactions
)

// BenchmarkPartitions measures the inventory as one table, converts it, and measures the
// partitions. The server has its default settings, except for a larger log and no fsync. Its
// files are in memory if possible, so a time has no waits for a disk. Run it once: the
// partitions would start with the dead rows of another run.
//
//	go test ./bench -run '^$' -bench Partitions -benchtime 1x -timeout 1h
func BenchmarkPartitions(b *testing.B) {
	url := pgtest.Start(b, pgtest.Options{Settings: []string{"max_wal_size=4GB"}}).NewDatabase(b)
	o := db.Options{URL: url}
	p := partitionBench{B: b, url: url}
	for b.Loop() {
		p.open(o)
		p.fill()
		p.measure("table")
		p.must(p.store.Close())
		took := p.timed(func() error { return db.PartitionInventory(b.Context(), o, *partitions, time.Second) })
		b.ReportMetric(took.Seconds(), "conversion-s")
		p.open(o)
		p.measure("partitions")
		p.must(p.store.Close())
	}
}

// partitionBench is a database with a filled inventory.
type partitionBench struct {
	*testing.B
	url   string
	store *db.DB
}

func (p *partitionBench) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *partitionBench) open(o db.Options) {
	p.Helper()
	var err error
	p.store, err = db.Open(p.Context(), o)
	p.must(err)
}

// raw runs statements without a transaction.
func (p *partitionBench) raw(statements ...string) {
	p.Helper()
	conn, err := sql.Open("pgx", p.url)
	p.must(err)
	defer func() { p.must(conn.Close()) }()
	for _, s := range statements {
		_, err := conn.ExecContext(p.Context(), s)
		p.must(err)
	}
}

func (p *partitionBench) timed(fn func() error) time.Duration {
	p.Helper()
	began := time.Now()
	p.must(fn())
	return time.Since(began)
}

// fill inserts the rows before it creates the indexes, as a conversion does.
func (p *partitionBench) fill() {
	p.Helper()
	p.raw(
		fmt.Sprintf(`INSERT INTO item (id, app_id, name, phase, bucket, price, status) SELECT n, 730, 'Item ' || n, '', 0, 1000000 + n, 0 FROM generate_series(1, %d) n`, partitionItems),
		`ALTER TABLE inventory DROP CONSTRAINT inventory_pkey; DROP INDEX inventory_key, inventory_item`,
		fmt.Sprintf(`INSERT INTO inventory (user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable, inspect)
			SELECT %d + n / %d, 730, '2', 10000000000 + n, 1 + n * 7919 %% %d, 310000000 + n %% 100000, '302028390', 1, true, true, '' FROM generate_series(CAST(0 AS bigint), %d) n`,
			partitionKey, partitionUser, partitionItems, *partitionRows-1),
		`ALTER TABLE inventory ADD PRIMARY KEY (id)`,
		`CREATE UNIQUE INDEX inventory_key ON inventory (user_key, app_id, context_id, asset_id)`,
		`CREATE INDEX inventory_item ON inventory (item_id)`,
	)
}

// measure reports sizes and times. Apply runs three times with other prices of all items.
func (p *partitionBench) measure(layout string) {
	p.Helper()
	var table, indexes int64
	p.must(p.store.Read.QueryRowContext(p.Context(), `
		SELECT sum(pg_table_size(oid)), sum(pg_indexes_size(oid)) FROM pg_class
		WHERE oid = CAST('inventory' AS regclass) OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = CAST('inventory' AS regclass))`).Scan(&table, &indexes))
	p.ReportMetric(float64(table)/(1<<20), layout+"-MiB")
	p.ReportMetric(float64(indexes)/(1<<20), layout+"-indexes-MiB")
	var applied []time.Duration
	for range 3 {
		p.raw(`UPDATE item SET price = price + 1000000`, `VACUUM ANALYZE`, `CHECKPOINT`)
		applied = append(applied, p.timed(func() error { p.apply(); return nil }))
		p.Logf("%s: apply takes %s", layout, applied[len(applied)-1])
	}
	p.ReportMetric(median(applied).Seconds(), layout+"-apply-s")
	var stale int64
	p.must(p.store.Read.QueryRowContext(p.Context(),
		`SELECT count(*) FROM inventory v JOIN item i ON i.id = v.item_id WHERE v.value IS DISTINCT FROM i.price`).Scan(&stale))
	if stale > 0 {
		p.Fatalf("%d rows have another price than their item", stale)
	}
	var pages, syncs []time.Duration
	for n := range int64(300) {
		user := partitionKey + n*7919%int64(*partitionRows/partitionUser)
		pages = append(pages, p.timed(func() error {
			_, err := view.ReadInventory(p.Context(), p.store, user, 730, 0, 100)
			return err
		}))
		syncs = append(syncs, p.timed(func() error { return p.sync(layout, n) }))
	}
	p.ReportMetric(float64(median(pages).Microseconds())/1000, layout+"-page-ms")
	p.ReportMetric(float64(median(syncs).Microseconds())/1000, layout+"-sync-ms")
}

// apply writes the prices of all items to all rows.
func (p *partitionBench) apply() {
	p.Helper()
	var next atomic.Int64
	var last int64
	p.must(p.store.Read.QueryRowContext(p.Context(), `SELECT max(id) FROM inventory`).Scan(&last))
	var running sync.WaitGroup
	for range partitionSlots {
		running.Go(func() {
			for to := next.Add(partitionRange); to-partitionRange <= last; to = next.Add(partitionRange) {
				if err := p.store.InTx(p.Context(), func(tx *db.Tx) error {
					return inventory.ApplyToRows(tx, to-partitionRange, to, true, false)
				}); err != nil {
					p.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

// sync stores the first inventory of a user, with 100 assets.
func (p *partitionBench) sync(layout string, nth int64) error {
	s := inventory.Service{InTx: p.store.InTx, Queued: func() {}, Inspectable: func() {}}
	push := inventory.Push{AppID: 730, ContextID: "2", SnapshotAt: time.Now()}
	for i := range 100 {
		push.Assets = append(push.Assets, inventory.Asset{
			AssetID: fmt.Sprint(10_000_000_000 + i), Name: fmt.Sprint("Item ", 1+i), Amount: 1, Tradable: true, Marketable: true,
		})
	}
	_, err := s.Sync(p.Context(), fmt.Sprintf("%s-%d", layout, nth), push, inventory.Normal)
	return err
}
