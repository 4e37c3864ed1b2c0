package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
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

var partitions = flag.Int("partitions", 16, "number of partitions of BenchmarkPartitions")

const (
	partitionItems = 30_000
	partitionUser  = 1_000     // rows of a user
	partitionKey   = 1_000_000 // key of the first user; syncs add users with smaller keys
	partitionRange = 130_000   // ids of a transaction, as in a refresh on PostgreSQL
	partitionSlots = 2         // concurrent transactions
)

func partitionRows() int { return cmp.Or(*rowCount, 10_000_000) }

// BenchmarkPartitions fills a database, copies it, and converts the inventory of the copy. It
// then measures both databases in turns, so that both have the same load of the machine. The
// server has its default settings, except for a larger log and no fsync. Its files are in
// memory if possible, so the times include no waits for a disk. Use -benchtime 1x.
//
//	go test ./bench -run '^$' -bench Partitions -benchtime 1x -timeout 2h
func BenchmarkPartitions(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Settings: []string{"max_wal_size=4GB"}})
	for b.Loop() {
		table := newPartitionBench(b, server, "table")
		divided := newPartitionBench(b, server, "partitions")
		took := divided.timed(func() error {
			return db.PartitionInventory(b.Context(), db.Options{URL: divided.url}, *partitions, time.Second)
		})
		b.ReportMetric(took.Seconds(), "conversion-s")
		var ratios []float64
		for range 3 {
			ratios = append(ratios, divided.applyAll().Seconds()/table.applyAll().Seconds())
		}
		b.ReportMetric(median(ratios), "apply-ratio")
		for n := range int64(300) {
			table.readAndSync(n)
			divided.readAndSync(n)
		}
		table.report()
		divided.report()
	}
}

// partitionBench is a database with a filled inventory, and the durations of its operations.
type partitionBench struct {
	*testing.B
	layout                string
	url                   string
	store                 *db.DB
	applied, pages, syncs []time.Duration
}

func newPartitionBench(b *testing.B, server *pgtest.Server, layout string) *partitionBench {
	b.Helper()
	p := &partitionBench{B: b, layout: layout, url: server.CopyDatabase(b, "filled", fillPartitions)}
	var err error
	p.store, err = db.Open(b.Context(), db.Options{URL: p.url})
	p.must(err)
	b.Cleanup(func() { p.must(p.store.Close()) })
	return p
}

func (p *partitionBench) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// executeOn runs statements without a transaction.
func executeOn(ctx context.Context, url string, statements ...string) (err error) {
	conn, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, s := range statements {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (p *partitionBench) timed(fn func() error) time.Duration {
	p.Helper()
	began := time.Now()
	p.must(fn())
	return time.Since(began)
}

// fillPartitions inserts the rows before it creates the indexes, as a conversion does.
func fillPartitions(ctx context.Context, url string) error {
	if _, err := db.Migrate(ctx, db.Options{URL: url}); err != nil {
		return err
	}
	return executeOn(ctx, url,
		fmt.Sprintf(`INSERT INTO item (id, app_id, name, phase, bucket, price, status) SELECT n, 730, 'Item ' || n, '', 0, 1000000 + n, 0 FROM generate_series(1, %d) n`, partitionItems),
		`ALTER TABLE inventory DROP CONSTRAINT inventory_pkey; DROP INDEX inventory_key, inventory_item`,
		fmt.Sprintf(`INSERT INTO inventory (user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable, inspect)
			SELECT %d + n / %d, 730, '2', 10000000000 + n, 1 + n * 7919 %% %d, 310000000 + n %% 100000, '302028390', 1, true, true, '' FROM generate_series(CAST(0 AS bigint), %d) n`,
			partitionKey, partitionUser, partitionItems, partitionRows()-1),
		`ALTER TABLE inventory ADD PRIMARY KEY (id)`,
		`CREATE UNIQUE INDEX inventory_key ON inventory (user_key, app_id, context_id, asset_id)`,
		`CREATE INDEX inventory_item ON inventory (item_id)`,
		`ANALYZE`,
	)
}

// applyAll changes the prices of all items, and returns how long it takes to apply them.
func (p *partitionBench) applyAll() time.Duration {
	p.Helper()
	p.must(executeOn(p.Context(), p.url, `UPDATE item SET price = price + 1000000`, `VACUUM ANALYZE`, `CHECKPOINT`))
	took := p.timed(func() error { p.apply(); return nil })
	p.Logf("%s: apply takes %s", p.layout, took)
	p.applied = append(p.applied, took)
	return took
}

// readAndSync reads a page of 100 rows of a user, and stores the inventory of a new user.
func (p *partitionBench) readAndSync(nth int64) {
	p.Helper()
	user := partitionKey + nth*7919%int64(partitionRows()/partitionUser)
	p.pages = append(p.pages, p.timed(func() error {
		_, err := view.ReadInventory(p.Context(), p.store, user, 730, 0, 100)
		return err
	}))
	p.syncs = append(p.syncs, p.timed(func() error { return p.sync(nth) }))
}

// report reports medians and sizes. It checks that all prices were applied.
func (p *partitionBench) report() {
	p.Helper()
	var table, indexes, stale int64
	p.must(p.store.Read.QueryRowContext(p.Context(), `
		SELECT sum(pg_table_size(oid)), sum(pg_indexes_size(oid)), (SELECT count(*) FROM inventory v JOIN item i ON i.id = v.item_id WHERE v.value IS DISTINCT FROM i.price)
		FROM pg_class WHERE oid = CAST('inventory' AS regclass) OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = CAST('inventory' AS regclass))`).Scan(&table, &indexes, &stale))
	if stale > 0 {
		p.Fatalf("%s: got %d rows with another price than their item, want none", p.layout, stale)
	}
	for name, value := range map[string]float64{
		"MiB": float64(table) / (1 << 20), "indexes-MiB": float64(indexes) / (1 << 20), "apply-s": median(p.applied).Seconds(),
		"page-ms": median(p.pages).Seconds() * 1000, "sync-ms": median(p.syncs).Seconds() * 1000,
	} {
		p.ReportMetric(value, p.layout+"-"+name)
	}
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
func (p *partitionBench) sync(nth int64) error {
	s := inventory.Service{InTx: p.store.InTx, Queued: func() {}, Inspectable: func() {}}
	push := inventory.Push{AppID: 730, ContextID: "2", SnapshotAt: time.Now()}
	for i := range 100 {
		push.Assets = append(push.Assets, inventory.Asset{
			AssetID: fmt.Sprint(10_000_000_000 + i), Name: fmt.Sprint("Item ", 1+i), Amount: 1, Tradable: true, Marketable: true,
		})
	}
	_, err := s.Sync(p.Context(), fmt.Sprint("user-", nth), push, inventory.Normal)
	return err
}
