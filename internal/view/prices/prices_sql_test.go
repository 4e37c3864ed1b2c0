package prices

import (
	"testing"

	"assay/internal/catalog"
	"assay/internal/catalog/catalogtest"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/money"
	"assay/internal/pricing"
)

// priceItems creates items with a price of 10.
func priceItems(f *dbtest.Fixture, names ...string) {
	f.Helper()
	makeItems(f, names...)
	f.Tx(func(tx *db.Tx) error {
		_, err := tx.Exec(`UPDATE item SET price = 10, status = 0, average = 10, used_markets = 1, price_updated_at = $1, price_checked_at = $1`, db.Micros(f.Now))
		return err
	})
}

func makeItems(f *dbtest.Fixture, names ...string) {
	f.Helper()
	keys := make([]catalog.Key, len(names))
	for i, n := range names {
		keys[i] = key(n)
	}
	f.Tx(func(tx *db.Tx) error {
		_, err := catalog.EnsureItems(tx, app, keys)
		return err
	})
}

const app = catalog.CS2

func key(name string) catalog.Key { return catalog.Key{AppID: app, Name: name} }

func TestPrices_FindsItemsByKey(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		names := catalogtest.Names()
		priceItems(f, append(names, "waits", "idle")...)
		f.Tx(func(tx *db.Tx) error {
			items, err := catalog.EnsureItems(tx, app, []catalog.Key{{AppID: app, Name: names[0], Phase: "Ruby"}, key("queued")})
			if err != nil {
				return err
			}
			_, _, err = catalog.QueueMissing(tx, []int64{items[key("queued")].ID})
			return err
		})
		keys := []catalog.Key{key("queued"), key("unknown"), {AppID: app, Name: names[0], Phase: "Ruby"}, key("queued")}
		for _, n := range names {
			keys = append(keys, key(n))
		}
		got, err := Prices(f.Context(), f.DB, app, keys)
		f.Must(err)
		f.Is("items found", len(got), len(names)+2)
		for _, n := range names {
			f.Is("price of "+n, got[key(n)], Price{Amount: 10, UpdatedAt: f.Now, CheckedAt: f.Now, Figures: Figures{Average: 10, UsedMarkets: 1}})
		}
		f.Is("queued", got[key("queued")], Price{Status: pricing.NoPrice, Queued: true})
		f.Is("another phase", got[keys[2]], Price{Status: pricing.NoPrice})
		other, err := Prices(f.Context(), f.DB, catalog.Rust, []catalog.Key{key(names[0])})
		f.Must(err)
		f.Is("items of another game", len(other), 0)
		f.Is("amount", got[key(names[0])].Amount, money.Micro(10))
	})
}

func TestBucketPrices_ReturnsItemsOfTheBucket(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		names := catalogtest.Names()
		priceItems(f, names...)
		makeItems(f, "idle")
		found := map[catalog.Key]Price{}
		for bucket := range catalog.Buckets {
			f.Must(BucketPrices(f.Context(), f.DB, []int{bucket}, 1000, func(_ int64, k catalog.Key, p Price) {
				f.Is("bucket of "+k.Name, catalog.Bucket(k.Name), bucket)
				found[k] = p
			}))
		}
		f.Is("items with a price", len(found), len(names))
		for _, n := range names {
			f.Is("price of "+n, found[key(n)], Price{Amount: 10, UpdatedAt: f.Now, CheckedAt: f.Now, Figures: Figures{Average: 10, UsedMarkets: 1}})
		}
		several := 0
		f.Must(BucketPrices(f.Context(), f.DB, []int{catalog.Bucket(names[0]), catalog.Bucket(names[1])}, 1000, func(_ int64, k catalog.Key, _ Price) {
			if b := catalog.Bucket(k.Name); b == catalog.Bucket(names[0]) || b == catalog.Bucket(names[1]) {
				several++
			}
		}))
		want := 0
		for _, n := range names {
			if b := catalog.Bucket(n); b == catalog.Bucket(names[0]) || b == catalog.Bucket(names[1]) {
				want++
			}
		}
		f.Is("items of two buckets", several, want)
		read := 0
		makeItems(f, "same bucket")
		bucket := catalog.Bucket(names[0])
		for range 2 {
			f.Must(BucketPrices(f.Context(), f.DB, []int{bucket}, 1, func(int64, catalog.Key, Price) { read++ }))
		}
		f.Is("read with a limit of one, twice", read, 2)
	})
}
