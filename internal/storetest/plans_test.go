package storetest_test

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
	"assay/internal/user"
	"assay/internal/view"
)

// pushes syncs inventories, and does nothing afterwards.
func pushes(s *db.DB) *inventory.Service {
	return &inventory.Service{
		InTx:   s.InTx,
		Queued: func() {}, Inspectable: func() {},
	}
}

// TestPostgres_PushesReadNoMoreThanTheyWrite counts what the plans of pushes read. A plan
// that compares each row of a user with each pushed one reads millions. There are no
// statistics: those of a real database may be as old as an inventory is new.
func TestPostgres_PushesReadNoMoreThanTheyWrite(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{Settings: []string{
		"autovacuum=off", "session_preload_libraries=auto_explain", "auto_explain.log_min_duration=0",
		"auto_explain.log_analyze=on", "auto_explain.log_timing=off",
	}})
	s := dbtest.Database{URL: server.NewDatabase(t)}.Open(t, db.Options{})
	service := pushes(s)
	const rows = 6_000
	push := inventory.Push{AppID: 730, ContextID: "2", SnapshotAt: time.Now()}
	for i := range rows {
		push.Assets = append(push.Assets, inventory.Asset{AssetID: fmt.Sprint(i), Name: fmt.Sprint("item ", i%500), Amount: 1, Inspect: fmt.Sprint("link ", i)})
	}
	for _, user := range []string{"a", "b"} {
		for _, change := range []string{"", " again"} { // the second push replaces what is to be inspected
			for i := range push.Assets {
				push.Assets[i].Inspect += change
			}
			_, err := service.Sync(t.Context(), user, push, inventory.Normal)
			must(t, err)
		}
	}
	plans := server.Log(t)
	const node = `actual rows=(\d+) loops=(\d+)`
	found := 0
	for _, m := range regexp.MustCompile(node).FindAllSubmatchIndex(plans, -1) {
		found++
		number := func(group int) int {
			n, err := strconv.Atoi(string(plans[m[2*group]:m[2*group+1]]))
			must(t, err)
			return n
		}
		if read := number(1) * number(2); read > 4*rows {
			t.Fatalf("a step of a plan reads %d rows of an inventory of %d:\n%s", read, rows, plans[max(0, m[0]-1000):min(m[1]+1000, len(plans))])
		}
	}
	if found == 0 {
		t.Fatal("no plan was logged")
	}
}

// TestInventory_PageReadsOnlyItsItems compares pages of one row and of all rows. Where each
// page reads the items and inspections of all rows, the first takes a fifteenth to half of
// the second.
func TestInventory_PageReadsOnlyItsItems(t *testing.T) {
	for _, engine := range []string{dbtest.SQLite, dbtest.PostgreSQL} {
		s := dbtest.On(t, engine).Open(t, db.Options{})
		const rows = 20_000
		push := inventory.Push{AppID: 730, ContextID: "2", SnapshotAt: time.Now()}
		for i := range rows {
			push.Assets = append(push.Assets, inventory.Asset{AssetID: fmt.Sprint(i), Name: fmt.Sprint("item ", i), Amount: 1, Inspect: fmt.Sprint("link ", i)})
		}
		_, err := pushes(s).Sync(t.Context(), "u", push, inventory.Normal)
		must(t, err)
		user, _, err := user.Key(t.Context(), s, "u")
		must(t, err)
		fastest := func(limit int) (least time.Duration) {
			for range 5 {
				began := time.Now()
				page, err := view.ReadInventory(t.Context(), s, user, 730, 0, limit)
				if err != nil || len(page) != limit {
					t.Fatalf("%s: %d rows, want %d: %v", engine, len(page), limit, err)
				}
				if took := time.Since(began); least == 0 || took < least {
					least = took
				}
			}
			return least
		}
		one, all := fastest(1), fastest(rows)
		t.Logf("%s: a page of 1 takes %v, of %d %v", engine, one, rows, all)
		if one*24 > all {
			t.Errorf("%s: a page of 1 takes %v, one of %d only %v", engine, one, rows, all)
		}
	}
}
