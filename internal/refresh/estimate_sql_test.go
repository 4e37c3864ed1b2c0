package refresh_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestBatchItems_ReadsFewItemsOfALargeRange(t *testing.T) {
	each(t, func(f *fixture) {
		var names []string
		for i := range 40 {
			names = append(names, fmt.Sprintf("Item %02d", i))
		}
		ids := f.items(names...)
		slices.Sort(ids)
		quotes := refresh.EncodeQuotes([]refresh.MarketSnapshot{{MarketID: 1, Currency: "USD", Ask: 5}})
		f.Tx(func(tx *db.Tx) error {
			for _, id := range ids[1:] { // the first item has no quotes
				if _, err := tx.Exec(`INSERT INTO item_quotes (item_id, quotes) VALUES ($1, $2)`, id, quotes); err != nil {
					return err
				}
			}
			return nil
		})
		for _, owned := range [][]int64{{ids[0], ids[39]}, ids} { // the second time all items are due
			f.own(fmt.Sprint("user of ", len(owned)), owned...)
			b := refresh.Batch{JobID: f.plan(refresh.Bulk, 1, unit("s", "f")), Kind: refresh.Bulk}
			items, err := refresh.BatchItems(f.Context(), f.DB, b)
			f.Must(err)
			var got []int64
			for _, i := range items {
				got = append(got, i.ID)
				f.Is("has quotes", len(i.Quotes) == 1, i.ID != ids[0])
			}
			f.Is("items", fmt.Sprint(got), fmt.Sprint(owned))
			f.Tx(func(tx *db.Tx) error { return refresh.CancelJob(tx, b.JobID, time.Hour) })
			f.finish(b.JobID)
		}
	})
}

func TestClaimBatch_WaitsForUnitsOfTheBatch(t *testing.T) {
	each(t, func(f *fixture) {
		names := []string{"A", "B", "C", "D", "E", "F", "G", "H"}
		f.own("u", f.items(names...)...)
		slices.SortFunc(names, func(a, b string) int { return catalog.Bucket(a) - catalog.Bucket(b) })
		half := unit("t", "")
		half.BatchFrom, half.BatchTo = 0, catalog.Bucket(names[3])
		id := f.plan(refresh.Bulk, catalog.Buckets, half, unit("s", "f"))
		f.Is("no batch can be claimed while a file is not fetched", f.claimBatch() == nil, true)
		f.fetch("s")
		f.Is("no batch can be claimed before the validation", f.claimBatch() == nil, true)
		f.storeValidation(id)
		b := f.claimBatch()
		f.Is("the first batch that waits for no unit was claimed", b.Batch > half.BatchTo, true)
		f.Is("claimed batch", *b, refresh.Batch{JobID: id, Kind: refresh.Bulk, Batch: b.Batch, Token: 1})
		items, err := refresh.BatchItems(f.Context(), f.DB, *b)
		f.Must(err)
		for _, i := range items {
			f.Is("bucket of "+i.Key.Name, catalog.Bucket(i.Key.Name), b.Batch)
		}
		f.Tx(func(tx *db.Tx) error { return refresh.ReturnBatch(tx, *b) })
		again := f.claimBatch()
		f.Is("batch claimed after the release", again.Batch, b.Batch)
		f.Tx(func(tx *db.Tx) error { return refresh.ReturnBatch(tx, *b) }) // the former owner releases the batch too late
		f.estimate(again, 10)
		half.JobID = id
		free, err := refresh.UnblocksBatch(f.Context(), f.DB, half)
		f.Must(err)
		f.Is("batches became free although a unit is unfinished", free, false)
		f.fetch("t")
		free, err = refresh.UnblocksBatch(f.Context(), f.DB, half)
		f.Must(err)
		f.Is("batches became free after the last unit of some batches", free, true)
		n := 1
		for b := f.claimBatch(); b != nil; b = f.claimBatch() {
			f.estimate(b, 10)
			n++
		}
		f.Is("updated items", f.job(id).Counts.Updated, int64(8))

		// Missing prices come first.
		f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.finish(id)
		f.Now = f.Now.Add(7 * time.Hour)
		bulk := f.plan(refresh.Bulk, 1)
		f.Tx(func(tx *db.Tx) error { _, _, err := catalog.QueueMissing(tx, f.missingIn(tx, "new")); return err })
		missing := f.plan(refresh.Missing, 1)
		f.storeValidation(bulk)
		f.storeValidation(missing)
		f.Is("job of the first claimed batch", f.claimBatch().JobID, missing)
		f.Is("job of the second claimed batch", f.claimBatch().JobID, bulk)
	})
}

func TestStoreEstimates_WritesABatchOnce(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A", "B")...)
		id := f.plan(refresh.Bulk, 1)
		f.storeValidation(id)
		late := f.claimBatch()
		f.Must(refresh.Recover(f.Context(), f.DB))
		b := f.claimBatch()
		s := f.estimates(b, 10)
		for i, by := range []*refresh.Batch{late, b, b, late} {
			f.Tx(func(tx *db.Tx) error {
				done, err := refresh.StoreEstimates(tx, *by, s)
				f.Is(fmt.Sprint("batch was estimated in call ", i), done, by == b && i == 1)
				return err
			})
		}
		c := f.job(id).Counts
		f.Is("counts of the job", c, refresh.Counts{Total: 2, Updated: 2, Changed: 2})
		items, err := refresh.BatchItems(f.Context(), f.DB, *b)
		f.Must(err)
		f.Is("items left to estimate", len(items), 0)
	})
}

func TestStoreEstimates_ConcurrentEstimateIsAConflict(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A", "B")...)
		id := f.plan(refresh.Bulk, 1)
		f.storeValidation(id)
		b := f.claimBatch()
		s := f.estimates(b, 10)
		// Another job estimates one of the two items meanwhile.
		f.Tx(func(tx *db.Tx) error { _, _, err := catalog.QueueMissing(tx, f.missingIn(tx, "B")); return err })
		other := f.plan(refresh.Missing, 1)
		f.storeValidation(other)
		f.estimate(f.claimBatch(), 20)
		err := f.DB.InTx(f.Context(), func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
		if !errors.Is(err, refresh.ErrConflict) {
			f.Fatalf("estimate over another job's price: got error %v, want ErrConflict", err)
		}
		f.Is("price of the other job", f.item("B").Price, money.Micro(20))
		f.Is("price of the other item in the same transaction", f.item("A").Price, money.Micro(0))
		f.Is("pending items", f.job(id).Counts.Pending, int64(2))
		f.estimate(b, 10)
		f.Is("price after the repeated estimate", f.item("B").Price, money.Micro(10))
	})
}

func TestStoreEstimates_WritesItemsQuotesAndCounts(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A", "B", "C", "D")
		f.own("u", ids...)
		m1, m2 := f.market("s", "m1"), f.market("s", "m2")
		id := f.plan(refresh.Bulk, 1)
		f.storeValidation(id)
		b := f.claimBatch()
		items, err := refresh.BatchItems(f.Context(), f.DB, *b)
		f.Must(err)
		at := func(d time.Duration) time.Time { return f.Now.Add(d) }
		est := pricing.Priced{
			Price: 10, Estimated: 11, Status: pricing.Suspect, Average: 12, Median: 13, Consensus: 14, Min: 15, Max: 16,
			Interval: pricing.Interval{Low: 20, High: 21}, Markets: 17, UsedMarkets: 18,
			State: pricing.State{Price: 10, Held: pricing.HeldPrice{Candidate: 19, Side: pricing.Rise, At: at(-time.Hour)}},
			Move:  pricing.Move{Decision: pricing.HeldBack, Reference: 5, Factor: 2_200_000},
		}
		guard := pricing.EncodeGuard(&est.State, &est.Move)
		s := refresh.Estimates{MissingRetry: time.Hour, RateSet: 7, Method: "median", Counts: refresh.Counts{Updated: 1, NoQuote: 1, Failed: 1, SkippedBudget: 1, Changed: 1}}
		byName := map[string]refresh.Item{}
		for _, i := range items {
			byName[i.Key.Name] = i
		}
		s.Items = []refresh.EstimatedItem{
			{Item: byName["A"], State: refresh.ItemUpdated, Responded: true, Estimate: est, LevelSet: 8, Bounds: pricing.Range{Low: 9, High: 10}, Used: "1,2", AsOf: at(-time.Minute), QuotedAt: at(-time.Minute), NoSalesSince: at(-2 * time.Hour), RetryAt: at(time.Hour)},
			{Item: byName["B"], State: refresh.ItemNoQuote, Responded: true, Estimate: pricing.Priced{Status: pricing.NoPrice}, AsOf: at(-time.Minute)},
			{Item: byName["C"], State: refresh.ItemFailed, Error: "why"},
			{Item: byName["D"], State: refresh.ItemSkipped, Reason: refresh.SkipBudget},
		}
		snap := refresh.MarketSnapshot{
			MarketID: m1, Currency: "EUR", Ask: 1, Bid: 2, Sale: 3, Listings: -1, Sales: 4,
			SalesWindow: time.Hour, MarketTime: at(0).Truncate(time.Hour), Reason: pricing.Outlier,
		}
		other := snap
		other.MarketID, other.FetchedAt, other.Reason = m2, at(-time.Minute), ""
		s.Items[0].NewQuotes = []refresh.MarketSnapshot{snap, other}
		f.Tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })

		got := f.item("A")
		f.Is("stored item", got, view.StoredItem{
			ID: got.ID, Key: key("A"), Price: 10, Status: pricing.Suspect, Method: "median", MethodVersion: pricing.MethodVersion,
			Average: 12, Median: 13, Consensus: 14, Min: 15, Max: 16, Interval: pricing.Interval{Low: 20, High: 21}, Markets: 17, UsedMarkets: 18,
			Guard: guard, LevelSet: 8, Candidate: 19, CandidateAt: at(-time.Hour), UpdatedAt: f.Now, EstimatedAt: f.Now, QuotesAt: at(-time.Minute),
			NoSalesSince: at(-2 * time.Hour), RetryAt: at(time.Hour), RateSet: 7,
		})
		noQuote, failed, skipped := f.item("B"), f.item("C"), f.item("D")
		f.Is("item without a quote", fmt.Sprint(noQuote.Price, noQuote.EstimatedAt.Equal(f.Now), noQuote.CheckedAt.IsZero(), noQuote.Failures), "0 true true 0")
		f.Is("failed item", fmt.Sprint(failed.EstimatedAt.IsZero(), failed.Failures), "true 1")
		f.Is("skipped item", fmt.Sprint(skipped.EstimatedAt.IsZero(), skipped.Failures), "true 0")
		f.Is("counts of the job", f.job(id).Counts, refresh.Counts{Total: 4, Updated: 1, NoQuote: 1, Failed: 1, SkippedBudget: 1, Changed: 1})
		list, err := view.JobItems(f.Context(), f.DB, id, "", -1, 0, 10)
		f.Must(err)
		for _, i := range list {
			want := map[string]string{"A": "updated  10 ", "B": "noQuote  0 ", "C": "failed  0 why", "D": "skipped budget 0 "}[i.Key.Name]
			f.Is("item of the job", fmt.Sprint(i.State, " ", i.Reason, " ", int64(i.PriceAfter), " ", i.Error), want)
			f.Is("attempts", i.Attempts, int64(1))
		}
		snaps, err := view.Snapshots(f.Context(), f.DB, got.ID)
		f.Must(err)
		f.Is("number of snapshots", len(snaps), 2)
		f.Is("first snapshot", snaps[0], view.StoredSnapshot{MarketSnapshot: snap, Provider: "s", Market: "m1", Title: "m1"})
		f.Is("second snapshot", snaps[1].MarketSnapshot, other)

		// The next batch reads the written values and overwrites them.
		f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.finish(id)
		f.Now = at(8 * time.Hour)
		id = f.plan(refresh.Bulk, 1)
		f.storeValidation(id)
		b = f.claimBatch()
		items, err = refresh.BatchItems(f.Context(), f.DB, *b)
		f.Must(err)
		for _, i := range items {
			if i.Key.Name == "A" {
				f.Is("item read back", i, refresh.Item{
					ID: got.ID, Key: key("A"), Price: 10, Status: pricing.Suspect, Candidate: 19, CandidateAt: got.CandidateAt,
					Figures: refresh.Figures{Average: 12, Interval: pricing.Interval{Low: 20, High: 21}, UsedMarkets: 18, Consensus: 14, LevelSet: 8},
					Guard:   guard, Range: pricing.Range{Low: 9, High: 10}, UpdatedAt: got.UpdatedAt,
					EstimatedAt: got.EstimatedAt, QuotesAt: got.QuotesAt, NoSalesSince: got.NoSalesSince, Rev: 1, Quotes: []refresh.MarketSnapshot{snap, other},
				})
			}
		}
		s = f.estimates(b, 30)
		snap.Ask, other.Ask = 99, 98
		for i := range s.Items {
			if s.Items[i].Key.Name == "A" {
				s.Items[i].NewQuotes = []refresh.MarketSnapshot{snap, other}
			}
		}
		f.Tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
		snaps, err = view.Snapshots(f.Context(), f.DB, got.ID)
		f.Must(err)
		f.Is("number of snapshots after the second job", len(snaps), 2)
		f.Is("snapshot that was replaced", snaps[0].MarketSnapshot, snap)
		f.Is("snapshot that did not change", snaps[1].MarketSnapshot, other)
		f.Is("check time of the confirmed item", f.item("A").CheckedAt, f.Now)
		f.Is("failures after a success", f.item("C").Failures, int64(0))
	})
}

func TestStoreEstimates_WritesLargeLists(t *testing.T) {
	each(t, func(f *fixture) {
		const n = 12_000 // in every table, more rows than the parameters of one statement allow
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprint("name ", i)
		}
		ids := f.items(names...)
		userKey := f.own("u", ids...)
		units := make([]refresh.FetchUnit, 3_000)
		for i := range units {
			units[i] = unit("s", "")
			units[i].State = refresh.UnitFailed
		}
		id := f.plan(refresh.Bulk, 1, units...)
		f.storeValidation(id)
		f.estimate(f.claimBatch(), 10)
		f.Is("updated items", f.job(id).Counts.Updated, int64(n))
		list, err := refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		f.Is("number of units", len(list), 3_000)
		f.Is("number of rows", len(f.values(userKey)), n)
	})
}
