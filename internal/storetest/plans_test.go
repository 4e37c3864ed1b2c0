package storetest_test

import (
	"fmt"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
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
