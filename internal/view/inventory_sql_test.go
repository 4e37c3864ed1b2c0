package view_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/catalog/catalogtest"
	"assay/internal/db"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/user"
	"assay/internal/view"
)

const app = catalog.CS2

func (w *world) is(what string, got, want any) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestReadInventory_PreservesNames(t *testing.T) {
	w := newWorld(t, false)
	names := catalogtest.Names()
	w.own("u", names...)
	u, _, err := user.Key(w.Context(), w.store, "u")
	w.must(err)
	rows, err := view.ReadInventory(w.Context(), w.store, u, app, 0, 1000)
	w.must(err)
	for i, r := range rows {
		w.is("name of a row", r.Name, names[i])
		key := catalog.Key{AppID: app, Name: names[i]}
		item, err := view.ReadItem(w.Context(), w.store, key)
		w.must(err)
		w.is("key of the item", item.Key, key)
	}
	w.is("number of rows", len(rows), len(names))
	i, err := view.ReadItem(w.Context(), w.store, catalog.Key{AppID: app, Name: "unknown"})
	w.must(err)
	w.is("the unknown item is nil", i == nil, true)
}

func TestReadInventory_ListsAndTotalsRows(t *testing.T) {
	w := newWorld(t, false)
	w.own("else", "A")
	w.price(map[string]money.Micro{"A": 10})
	w.own("u", "A", "B", "C")
	u, _, err := user.Key(w.Context(), w.store, "u")
	w.must(err)
	item, err := view.ReadItem(w.Context(), w.store, catalog.Key{AppID: app, Name: "A"})
	w.must(err)
	w.tx(func(tx *db.Tx) error {
		_, err := tx.Exec(`INSERT INTO inventory (user_key, app_id, item_id, amount, context_id, asset_id, class_id, instance_id, inspect, tradable, marketable)
			VALUES ($1, $2, 0, 5, '2', 'r', '', '', '', TRUE, TRUE)`, u, catalog.Rust)
		return err
	})
	page, err := view.ReadInventory(w.Context(), w.store, u, app, 0, 2)
	w.must(err)
	w.is("rows of a page", len(page), 2)
	w.is("value of the first row", page[0].Value, money.Micro(10))
	w.is("time of the first row", page[0].UpdatedAt, w.now)
	rest, err := view.ReadInventory(w.Context(), w.store, u, app, page[1].ID, 2)
	w.must(err)
	w.is("rows of the next page", len(rest), 1)
	w.is("name on the next page", rest[0].Name, "C")
	all, err := view.ReadInventory(w.Context(), w.store, u, 0, 0, 10)
	w.must(err)
	w.is("rows of all games", len(all), 4)
	w.is("name of the row without a name", all[3].Name, "")
	for _, c := range []struct {
		app  int32
		want view.InventoryTotal
	}{
		{app, view.InventoryTotal{Value: money.Sum{}.Add(10, 1), Rows: 3, Unpriced: 2}},
		{catalog.Rust, view.InventoryTotal{Rows: 1, Unpriced: 1}},
		{0, view.InventoryTotal{Value: money.Sum{}.Add(10, 1), Rows: 4, Unpriced: 3}},
		{catalog.Dota, view.InventoryTotal{}},
	} {
		got, err := view.ReadInventoryTotal(w.Context(), w.store, u, c.app)
		w.must(err)
		w.is(fmt.Sprint("total of ", c.app), got, c.want)
	}
	w.tx(func(tx *db.Tx) error {
		_, err := tx.Exec(`INSERT INTO inventory (user_key, app_id, item_id, amount, context_id, asset_id, class_id, instance_id, inspect, tradable, marketable, value)
			VALUES ($1, $2, $3, $4, '2', 'much', '', '', '', TRUE, TRUE, 10)`, u, app, item.ID, int64(1)<<62)
		return err
	})
	got, err := view.ReadInventoryTotal(w.Context(), w.store, u, app)
	w.must(err)
	w.is("total above the largest amount", got.Value.String(), "46116860184273.87905")
	const value, amount = int64(1)<<62 - 1, math.MaxInt32
	w.tx(func(tx *db.Tx) error {
		for i := range 3 {
			if _, err := tx.Exec(`INSERT INTO inventory (user_key, app_id, item_id, amount, context_id, asset_id, class_id, instance_id, inspect, tradable, marketable, value)
				VALUES ($1, $2, 0, $3, '2', $4, '', '', '', TRUE, TRUE, $5)`, u, catalog.TF2, amount, fmt.Sprint(i), value); err != nil {
				return err
			}
		}
		return nil
	})
	got, err = view.ReadInventoryTotal(w.Context(), w.store, u, catalog.TF2)
	w.must(err)
	w.is("total of values whose sum exceeds 64 bits", got, view.InventoryTotal{Value: money.Sum{}.Add(money.Micro(value), 3*amount), Rows: 3})
}

// TestReadInventory_PageReadsOnlyItsItems compares the time of a page of one row with the time
// of a page of all rows. If each page read the items and inspections of all rows, the small page would
// take between a fifteenth and half of the time of the large one.
func TestReadInventory_PageReadsOnlyItsItems(t *testing.T) {
	w := newWorld(t, false)
	const rows = 20_000
	push := inventory.Push{AppID: 730, ContextID: "2", SnapshotAt: time.Now()}
	for i := range rows {
		push.Assets = append(push.Assets, inventory.Asset{AssetID: fmt.Sprint(i), Name: fmt.Sprint("item ", i), Amount: 1, Inspect: fmt.Sprint("link ", i)})
	}
	sync := inventory.Service{InTx: w.store.InTx, Queued: func() {}, Inspectable: func() {}}
	_, err := sync.Sync(t.Context(), "u", push, inventory.Normal)
	w.must(err)
	user, _, err := user.Key(t.Context(), w.store, "u")
	w.must(err)
	fastest := func(limit, tries int) (least time.Duration) {
		for range tries {
			began := time.Now()
			page, err := view.ReadInventory(t.Context(), w.store, user, 730, 0, limit)
			if err != nil || len(page) != limit {
				t.Fatalf("got a page of %d rows, want %d; error %v", len(page), limit, err)
			}
			if took := time.Since(began); least == 0 || took < least {
				least = took
			}
		}
		return least
	}
	one, all := fastest(1, 100), fastest(rows, 5)
	t.Logf("a page of 1 row took %v, a page of %d rows took %v", one, rows, all)
	if one*24 > all {
		t.Errorf("a page of 1 row took %v, want at most 1/24 of the time of %d rows, %v", one, rows, all)
	}
}
