package refresh_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/inventory/syncs"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/pricing"
)

// A server runs before and after the conversion of a filled inventory.
func TestPartitions_KeepPricesSyncsAndListings(t *testing.T) {
	const users, parts = 8, 4
	list := names("Item", 400)
	s := bulk("alpha", list, "a1", "a2", "a3")
	price, changed := units(10), len(list)
	s.price = func(_, name string) money.Micro {
		if slices.Index(list, name) < changed {
			return price
		}
		return units(10)
	}
	w := &world{tb: t, database: dbtest.On(t, dbtest.PostgreSQL), clock: &clock{now: epoch}, cfg: defaults(), providers: []*fakeProvider{s}}
	t.Cleanup(w.stop)
	w.start()
	for u := range users {
		w.push("u"+strconv.Itoa(u), catalog.CS2, list[:len(list)-1]...)
	}
	w.push("last", catalog.CS2, list[len(list)-1])
	w.drain()
	rows := `SELECT sum(hashtextextended(CAST(v AS text), 0) / 100000) FROM inventory v`
	before := w.count(rows)

	w.stop()
	must(t, db.PartitionInventory(t.Context(), db.Options{URL: w.database.URL}, parts, 50*time.Millisecond))
	w.start()
	equal(t, "sum over the rows", w.count(rows), before)
	equal(t, "partitions with rows", w.count(`SELECT count(DISTINCT tableoid) FROM inventory`), parts)

	for _, changed = range []int{3, 399} { // apply uses the item index, then ranges of ids
		w.clock.Add(7 * time.Hour)
		price += units(2)
		j := w.run(false)
		equal(t, "changed items", j.Counts.Changed, int64(changed))
		equal(t, "rows at the new price", w.count(`SELECT count(*) FROM inventory WHERE `+around("value", price)), int64(users*changed))
		w.checkIdle()
	}

	// Each asset of the user is now a different item, and one asset is gone.
	slices.Reverse(list)
	r := w.push("u3", catalog.CS2, list[2:]...)
	equal(t, "result of the inventory sync", r, inventory.Result{Changed: 398, Removed: 1, PricedRows: 398})
	equal(t, "value of an item with a different price", w.valueOf("u3", 397), w.item(catalog.Key{AppID: catalog.CS2, Name: list[399]}).Price)
	equal(t, "rows", w.count(`SELECT count(*) FROM inventory`), users*399)
	equal(t, "ids", w.count(`SELECT count(DISTINCT id) FROM inventory`), users*399)
	w.checkIdle()

	pulls := syncs.New(w.sync, steaminv.Options{})
	defer pulls.Close()
	m := market.New(market.Options{
		Store: w.store, Syncs: pulls, Base: "USD", MaxAge: time.Hour, Now: w.clock.Now,
		Rates: func(context.Context) (pricing.Rates, error) { return nil, nil },
	})
	must(t, m.Create(t.Context(), market.Offers{
		UserID: "u3", AppID: catalog.CS2, ContextID: "2", Offers: []market.Offer{{AssetID: "5", Price: 100, Currency: "USD"}},
	}, func(_ *db.Tx, made []market.Created) error {
		equal(t, "refusal of the listing", made[0].Refused, nil)
		return nil
	}))
	equal(t, "active listings", w.count(`SELECT count(*) FROM listing WHERE state = 'active'`), 1)
	w.clock.Add(time.Minute)
	w.push("u3", catalog.CS2, list[2:5]...)
	equal(t, "listings without an asset", w.count(`SELECT count(*) FROM listing WHERE state = 'expired'`), 1)
}
