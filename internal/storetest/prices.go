package storetest

import (
	"errors"
	"fmt"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/view/prices"
)

func pricesAreLookedUp(f *fixture) {
	names := trapNames()
	f.own("u", f.items(append(names, "waits", "idle")...)...)
	f.run(10)
	f.tx(func(tx *db.Tx) error {
		items, err := catalog.EnsureItems(tx, app, []catalog.Key{{AppID: app, Name: names[0], Phase: "Ruby"}, key("queued")})
		if err != nil {
			return err
		}
		_, _, err = catalog.QueueMissing(tx, []int64{items[key("queued")].ID})
		return err
	})
	keys := []catalog.Key{key("queued"), key("nobody"), {AppID: app, Name: names[0], Phase: "Ruby"}, key("queued")}
	for _, n := range names {
		keys = append(keys, key(n))
	}
	got, err := prices.Prices(f.Context(), f.s, app, keys)
	f.must(err)
	f.is("items found", len(got), len(names)+2)
	for _, n := range names {
		f.is("price of "+n, got[key(n)], prices.Price{Amount: 10, UpdatedAt: f.now, CheckedAt: f.now, Figures: prices.Figures{Average: 10, UsedMarkets: 1}})
	}
	f.is("queued", got[key("queued")], prices.Price{Status: pricing.NoPrice, Queued: true})
	f.is("another phase", got[keys[2]], prices.Price{Status: pricing.NoPrice})
	other, err := prices.Prices(f.Context(), f.s, catalog.Rust, []catalog.Key{key(names[0])})
	f.must(err)
	f.is("items of another game", len(other), 0)
	f.is("amount", got[key(names[0])].Amount, money.Micro(10))
}

func pricesByBucket(f *fixture) {
	names := trapNames()
	f.own("u", f.items(names...)...)
	f.run(10)
	f.items("idle")
	found := map[catalog.Key]prices.Price{}
	for bucket := range catalog.Buckets {
		f.must(prices.BucketPrices(f.Context(), f.s, bucket, 1000, func(_ int64, k catalog.Key, p prices.Price) {
			f.is("bucket of "+k.Name, catalog.Bucket(k.Name), bucket)
			found[k] = p
		}))
	}
	f.is("items with a price", len(found), len(names))
	for _, n := range names {
		f.is("price of "+n, found[key(n)], prices.Price{Amount: 10, UpdatedAt: f.now, CheckedAt: f.now, Figures: prices.Figures{Average: 10, UsedMarkets: 1}})
	}
	read := 0
	f.items("same bucket")
	bucket := catalog.Bucket(names[0])
	for range 2 {
		f.must(prices.BucketPrices(f.Context(), f.s, bucket, 1, func(int64, catalog.Key, prices.Price) { read++ }))
	}
	f.is("read with a limit of one, twice", read, 2)
}

// versions returns the versions of all buckets, and fails unless all that is
// told of them agrees.
func (f *fixture) versions() [catalog.Buckets]int64 {
	f.Helper()
	sum, err := catalog.PriceVersion(f.Context(), f.s)
	f.must(err)
	all, err := catalog.PriceVersions(f.Context(), f.s)
	f.must(err)
	for _, v := range all {
		sum -= v
	}
	f.is("the sum, less all versions", sum, int64(0))
	if known, ok := catalog.KnownPriceVersion(f.s); ok {
		sum, err = catalog.PriceVersion(f.Context(), f.s)
		f.must(err)
		f.is("known without asking", known, sum)
	}
	return all
}

func priceVersions(f *fixture) {
	f.own("u", f.items("A", "B")...)
	a, b := catalog.Bucket("A"), catalog.Bucket("B")
	if a == b {
		f.Fatal("A and B must be in different buckets")
	}
	before := f.versions()
	expect := func(what string, wantA, wantB int64) {
		f.Helper()
		now := f.versions()
		f.is(what+": A, B", fmt.Sprint(now[a]-before[a], now[b]-before[b]), fmt.Sprint(wantA, wantB))
		now[a], now[b] = before[a], before[b]
		f.is(what+": other buckets", now, before)
		before = f.versions()
	}
	job := f.plan(refresh.Bulk, 1)
	f.tx(func(tx *db.Tx) error { _, _, err := catalog.QueueMissing(tx, f.missingIn(tx, "A")); return err })
	expect("a plan and a queue", 0, 0)
	f.storeVerdict(job)
	batch := f.claimBatch()
	s := f.estimates(batch, 10)
	for i := range s.Items {
		if s.Items[i].Key.Name == "B" {
			s.Items[i].State, s.Items[i].Answered = refresh.ItemFailed, false
		}
	}
	gone := errors.New("gone")
	f.faults = func(point string) error {
		_, known := catalog.KnownPriceVersion(f.s)
		if point == "after commit" {
			f.is("known while its commit is under way", known, false)
			return gone
		}
		return nil
	}
	err := f.s.InTx(f.Context(), func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *batch, s); return err })
	f.is("outcome unknown", errors.Is(err, db.ErrCommitUnknown), true)
	f.faults = nil
	_, known := catalog.KnownPriceVersion(f.s)
	f.is("known after an unknown outcome", known, false)
	expect("A is estimated, nobody answered for B", 1, 0)
	f.tx(func(tx *db.Tx) error {
		done, err := refresh.AcceptItem(tx, key("A"))
		f.is("accepted", done, false)
		return err
	})
	expect("nothing to accept", 0, 0)
}
