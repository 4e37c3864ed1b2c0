package inventory_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
	"assay/internal/pgtest"
)

// The query plans of pushes must not read many more rows than the inventory has. A nested loop over
// stored and pushed rows would read millions of rows. PostgreSQL may have no statistics for a new
// inventory. It may also have statistics of empty tables, if it collected them during the first push.
func TestPostgres_QueryPlansOfPushesReadFewRows(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{Settings: []string{
		"autovacuum=off", "session_preload_libraries=auto_explain", "auto_explain.log_min_duration=0",
		"auto_explain.log_analyze=on", "auto_explain.log_timing=off",
	}})
	pushTwice(t, dbtest.Database{URL: server.NewDatabase(t)}, `SELECT 1`)
	checkPlans(t, server.Log(t), 10*planRows)
	pushTwice(t, dbtest.Database{URL: server.NewDatabase(t)},
		`UPDATE pg_class SET reltuples = 0, relpages = 1000 WHERE relname IN ('inventory', 'inspection', 'item')`)
	checkPlans(t, server.Log(t), 10*planRows)
}

const planRows = 6_000

// pushTwice pushes large inventories of two users, each twice. It runs the SQL in statistics before
// each push.
func pushTwice(t *testing.T, d dbtest.Database, statistics string) {
	t.Helper()
	s := d.Open(t, db.Options{})
	raw := d.Raw(t)
	service := &inventory.Service{InTx: s.InTx, Queued: func() {}, Inspectable: func() {}}
	push := inventory.Push{AppID: 730, ContextID: "2", SnapshotAt: time.Now()}
	for i := range planRows {
		push.Assets = append(push.Assets, inventory.Asset{AssetID: fmt.Sprint(i), Name: fmt.Sprint("item ", i%500), Amount: 1, Inspect: fmt.Sprint("link ", i)})
	}
	for _, user := range []string{"a", "b"} {
		for _, change := range []string{"", " again"} { // the second push changes the input of all inspections
			for i := range push.Assets {
				push.Assets[i].Inspect += change
			}
			if _, err := raw.ExecContext(t.Context(), statistics); err != nil {
				t.Fatal(err)
			}
			if _, err := service.Sync(t.Context(), user, push, inventory.Normal); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkPlans checks that no step of the logged plans reads more rows than limit.
func checkPlans(t *testing.T, plans []byte, limit int) {
	t.Helper()
	const node = `actual rows=(\d+) loops=(\d+)`
	found := 0
	for _, m := range regexp.MustCompile(node).FindAllSubmatchIndex(plans, -1) {
		found++
		number := func(group int) int {
			n, err := strconv.Atoi(string(plans[m[2*group]:m[2*group+1]]))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if read := number(1) * number(2); read > limit {
			t.Fatalf("a step of a plan reads %d rows, want at most %d:\n%s", read, limit, plans[max(0, m[0]-1000):min(m[1]+1000, len(plans))])
		}
	}
	if found == 0 {
		t.Fatal("got no logged plan, want at least one")
	}
}
