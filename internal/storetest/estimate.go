package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/view"
)

func batchesAreClaimed(f *fixture) {
	names := []string{"A", "B", "C", "D", "E", "F", "G", "H"}
	f.own("u", f.items(names...)...)
	slices.SortFunc(names, func(a, b string) int { return catalog.Bucket(a) - catalog.Bucket(b) })
	half := unit("t", "")
	half.BatchFrom, half.BatchTo = 0, catalog.Bucket(names[3])
	id := f.plan(refresh.Bulk, catalog.Buckets, half, unit("s", "f"))
	f.is("while a file is open", f.claimBatch() == nil, true)
	f.fetch("s")
	f.is("before it is judged", f.claimBatch() == nil, true)
	f.storeVerdict(id)
	b := f.claimBatch()
	f.is("the first that waits for nothing", b.Batch > half.BatchTo, true)
	f.is("batch", *b, refresh.Batch{JobID: id, Kind: refresh.Bulk, Batch: b.Batch, Token: 1})
	items, err := refresh.BatchItems(f.Context(), f.s, *b)
	f.must(err)
	for _, i := range items {
		f.is("bucket of "+i.Key.Name, catalog.Bucket(i.Key.Name), b.Batch)
	}
	f.tx(func(tx *db.Tx) error { return refresh.ReturnBatch(tx, *b) })
	again := f.claimBatch()
	f.is("given back", again.Batch, b.Batch)
	f.tx(func(tx *db.Tx) error { return refresh.ReturnBatch(tx, *b) }) // by the former owner
	f.estimate(again, 10)
	half.JobID = id
	free, err := refresh.Releases(f.Context(), f.s, half)
	f.must(err)
	f.is("a unit that is open", free, false)
	f.fetch("t")
	free, err = refresh.Releases(f.Context(), f.s, half)
	f.must(err)
	f.is("a unit that was the last of some batches", free, true)
	n := 1
	for b := f.claimBatch(); b != nil; b = f.claimBatch() {
		f.estimate(b, 10)
		n++
	}
	f.is("updated", f.job(id).Counts.Updated, int64(8))

	// Missing prices come first.
	f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
	f.finish(id)
	f.now = f.now.Add(7 * time.Hour)
	bulk := f.plan(refresh.Bulk, 1)
	f.tx(func(tx *db.Tx) error { _, _, err := catalog.QueueMissing(tx, f.missingIn(tx, "new")); return err })
	missing := f.plan(refresh.Missing, 1)
	f.storeVerdict(bulk)
	f.storeVerdict(missing)
	f.is("first", f.claimBatch().JobID, missing)
	f.is("second", f.claimBatch().JobID, bulk)
}

// missingIn makes an item within a transaction.
func (f *fixture) missingIn(tx *db.Tx, name string) []int64 {
	f.Helper()
	items, err := catalog.EnsureItems(tx, app, []catalog.Key{key(name)})
	f.must(err)
	return []int64{items[key(name)].ID}
}

func batchesAreEstimatedOnce(f *fixture) {
	f.own("u", f.items("A", "B")...)
	id := f.plan(refresh.Bulk, 1)
	f.storeVerdict(id)
	late := f.claimBatch()
	f.must(refresh.Recover(f.Context(), f.s))
	b := f.claimBatch()
	s := f.estimates(b, 10)
	for i, by := range []*refresh.Batch{late, b, b, late} {
		f.tx(func(tx *db.Tx) error {
			done, err := refresh.StoreEstimates(tx, *by, s)
			f.is(fmt.Sprint("estimated ", i), done, by == b && i == 1)
			return err
		})
	}
	c := f.job(id).Counts
	f.is("counts", c, refresh.Counts{Total: 2, Updated: 2, Changed: 2})
	items, err := refresh.BatchItems(f.Context(), f.s, *b)
	f.must(err)
	f.is("items left to estimate", len(items), 0)
}

func conflicts(f *fixture) {
	f.own("u", f.items("A", "B")...)
	id := f.plan(refresh.Bulk, 1)
	f.storeVerdict(id)
	b := f.claimBatch()
	s := f.estimates(b, 10)
	// Another job estimates one of the two meanwhile.
	f.tx(func(tx *db.Tx) error { _, _, err := catalog.QueueMissing(tx, f.missingIn(tx, "B")); return err })
	other := f.plan(refresh.Missing, 1)
	f.storeVerdict(other)
	f.estimate(f.claimBatch(), 20)
	err := f.s.InTx(f.Context(), func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
	if !errors.Is(err, refresh.ErrConflict) {
		f.Fatalf("estimated over another job's price: %v", err)
	}
	f.is("price of the other job", f.item("B").Price, money.Micro(20))
	f.is("nothing is written", f.item("A").Price, money.Micro(0))
	f.is("counts", f.job(id).Counts.Pending, int64(2))
	f.estimate(b, 10)
	f.is("afterwards", f.item("B").Price, money.Micro(10))
}

func estimatesAreWritten(f *fixture) {
	ids := f.items("A", "B", "C", "D")
	f.own("u", ids...)
	m1, m2 := f.market("s", "m1"), f.market("s", "m2")
	id := f.plan(refresh.Bulk, 1)
	f.storeVerdict(id)
	b := f.claimBatch()
	items, err := refresh.BatchItems(f.Context(), f.s, *b)
	f.must(err)
	at := func(d time.Duration) time.Time { return f.now.Add(d) }
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
		{Item: byName["A"], State: refresh.ItemUpdated, Answered: true, Estimate: est, LevelSet: 8, Bounds: pricing.Range{Low: 9, High: 10}, Used: "1,2", AsOf: at(-time.Minute), QuotedAt: at(-time.Minute), QuietSince: at(-2 * time.Hour), RetryAt: at(time.Hour)},
		{Item: byName["B"], State: refresh.ItemNoQuote, Answered: true, Estimate: pricing.Priced{Status: pricing.NoPrice}, AsOf: at(-time.Minute)},
		{Item: byName["C"], State: refresh.ItemFailed, Error: "why"},
		{Item: byName["D"], State: refresh.ItemSkipped, Reason: refresh.SkipBudget},
	}
	snap := refresh.Snapshot{
		MarketID: m1, Currency: "EUR", Ask: 1, Bid: 2, Sale: 3, Listings: -1, Sales: 4,
		SalesWindow: time.Hour, MarketTime: at(0).Truncate(time.Hour), Reason: pricing.Outlier,
	}
	other := snap
	other.MarketID, other.FetchedAt, other.Reason = m2, at(-time.Minute), ""
	s.Items[0].NewQuotes = []refresh.Snapshot{snap, other}
	f.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })

	got := f.item("A")
	f.is("item", got, view.StoredItem{
		ID: got.ID, Key: key("A"), Price: 10, Status: pricing.Suspect, Method: "median", MethodVersion: pricing.MethodVersion,
		Average: 12, Median: 13, Consensus: 14, Min: 15, Max: 16, Interval: pricing.Interval{Low: 20, High: 21}, Markets: 17, UsedMarkets: 18,
		Guard: guard, LevelSet: 8, Candidate: 19, CandidateAt: at(-time.Hour), UpdatedAt: f.now, EstimatedAt: f.now, QuotesAt: at(-time.Minute),
		NoSalesSince: at(-2 * time.Hour), RetryAt: at(time.Hour), RateSet: 7,
	})
	noQuote, failed, skipped := f.item("B"), f.item("C"), f.item("D")
	f.is("no quote", fmt.Sprint(noQuote.Price, noQuote.EstimatedAt.Equal(f.now), noQuote.CheckedAt.IsZero(), noQuote.Failures), "0 true true 0")
	f.is("failed", fmt.Sprint(failed.EstimatedAt.IsZero(), failed.Failures), "true 1")
	f.is("skipped", fmt.Sprint(skipped.EstimatedAt.IsZero(), skipped.Failures), "true 0")
	f.is("counts", f.job(id).Counts, refresh.Counts{Total: 4, Updated: 1, NoQuote: 1, Failed: 1, SkippedBudget: 1, Changed: 1})
	list, err := view.JobItems(f.Context(), f.s, id, "", -1, 0, 10)
	f.must(err)
	for _, i := range list {
		want := map[string]string{"A": "updated  10 ", "B": "noQuote  0 ", "C": "failed  0 why", "D": "skipped budget 0 "}[i.Key.Name]
		f.is("item of the job", fmt.Sprint(i.State, " ", i.Reason, " ", int64(i.PriceAfter), " ", i.Error), want)
		f.is("attempts", i.Attempts, int64(1))
	}
	snaps, err := view.Snapshots(f.Context(), f.s, got.ID)
	f.must(err)
	f.is("snapshots", len(snaps), 2)
	f.is("first", snaps[0], view.StoredSnapshot{Snapshot: snap, Provider: "s", Market: "m1", Title: "m1"})
	f.is("second", snaps[1].Snapshot, other)

	// The next batch reads them as they were written, and overwrites them.
	f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
	f.finish(id)
	f.now = at(8 * time.Hour)
	id = f.plan(refresh.Bulk, 1)
	f.storeVerdict(id)
	b = f.claimBatch()
	items, err = refresh.BatchItems(f.Context(), f.s, *b)
	f.must(err)
	for _, i := range items {
		if i.Key.Name == "A" {
			f.is("item read back", i, refresh.Item{
				ID: got.ID, Key: key("A"), Price: 10, Status: pricing.Suspect, Candidate: 19, CandidateAt: got.CandidateAt,
				Guard: guard, Range: pricing.Range{Low: 9, High: 10}, UpdatedAt: got.UpdatedAt,
				QuotesAt: got.QuotesAt, NoSalesSince: got.NoSalesSince, Rev: 1, Quotes: []refresh.Snapshot{snap, other},
			})
		}
	}
	s = f.estimates(b, 30)
	snap.Ask, other.Ask = 99, 98
	for i := range s.Items {
		if s.Items[i].Key.Name == "A" {
			s.Items[i].NewQuotes = []refresh.Snapshot{snap, other}
		}
	}
	f.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
	snaps, err = view.Snapshots(f.Context(), f.s, got.ID)
	f.must(err)
	f.is("snapshots after it", len(snaps), 2)
	f.is("overwritten", snaps[0].Snapshot, snap)
	f.is("changed", snaps[1].Snapshot, other)
	f.is("confirmed", f.item("A").CheckedAt, f.now)
	f.is("no failure any more", f.item("C").Failures, int64(0))
}

func missingWaits(f *fixture) {
	ids := f.items("found", "not found", "not asked")
	f.tx(func(tx *db.Tx) error { _, _, err := catalog.QueueMissing(tx, ids); return err })
	waits := []int{1, 2, 4, 8, 16, 32, 64, 72, 72}
	for round, hours := range waits {
		id := f.plan(refresh.Missing, 1)
		f.storeVerdict(id)
		b := f.claimBatch()
		s := f.estimates(b, 0)
		for i := range s.Items {
			switch s.Items[i].Key.Name {
			case "found":
				s.Items[i].Estimate.Price = 10
			case "not found":
				s.Items[i].State = refresh.ItemNoQuote
			default:
				s.Items[i].State, s.Items[i].Answered = refresh.ItemFailed, false
			}
		}
		f.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
		f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.finish(id)
		f.is("found is queued", f.item("found").Queued, false)
		f.now = f.now.Add(time.Hour)
		q, err := view.ReadMissingQueue(f.Context(), f.s, f.now)
		f.must(err)
		want := int64(1) // what could not be asked is due after the first pause
		if round == 0 {
			want = 2
		}
		f.is(fmt.Sprint("due after an hour of round ", round), q.Due, want)
		f.now = f.now.Add(time.Duration(hours-1) * time.Hour)
		q, err = view.ReadMissingQueue(f.Context(), f.s, f.now)
		f.must(err)
		f.is(fmt.Sprint("due after the pause of round ", round), q.Due, int64(2))
	}
}

func appliesByRange(f *fixture) {
	ids := f.items("A", "B")
	u := f.own("u", ids[0], ids[1], ids[0], 0) // rows 1 to 4
	id := f.run(10)
	f.is("values before it is applied", fmt.Sprintf("%d", f.values(u)), "[0 0 0 0]")
	f.shards(id, 0, 0)
	f.is("a range without shards", f.applyRange(id, 2, false), false)
	f.openShards(id, 2) // rows 1, and 2 to 4
	f.openShards(id, 3)
	f.shards(id, 2, 2)
	for i, want := range []string{"[10 0 0 0]", "[10 10 10 0]", "[10 10 10 0]"} {
		f.is(fmt.Sprint("range ", i), f.applyRange(id, 2, false), true)
		f.is(fmt.Sprint("values after range ", i), fmt.Sprintf("%d", f.values(u)), want)
		f.shards(id, 2, []int{1, 1, 0}[i])
	}
	f.is("a range after the last", f.applyRange(id, 2, false), false)
	f.finish(id)
	f.shards(id, 0, 0)
	f.openShards(id, 2)
	f.shards(id, 0, 0) // an ended job gets none

	f.now = f.now.Add(7 * time.Hour)
	id = f.run(30)
	f.openShards(id, 1)
	f.is("a range most of which differs", f.applyRange(id, 3, true), true)
	f.is("values after it", fmt.Sprintf("%d", f.values(u)), "[30 30 10 0]")
	f.is("the rest", f.applyRange(id, 3, true), true)
	f.is("values after the rest", fmt.Sprintf("%d", f.values(u)), "[30 30 30 0]")
	f.shards(id, 1, 0)
}

func (f *fixture) openShards(job int64, shards int) {
	f.Helper()
	f.tx(func(tx *db.Tx) error { return refresh.OpenShards(tx, job, shards) })
}

func (f *fixture) shards(job int64, all, open int) {
	f.Helper()
	gotAll, gotOpen, err := refresh.ApplyShards(f.Context(), f.s, job)
	f.must(err)
	f.is("shards", [2]int{gotAll, gotOpen}, [2]int{all, open})
}

func (f *fixture) applyRange(job, ids int64, most bool) (found bool) {
	f.Helper()
	f.tx(func(tx *db.Tx) (err error) {
		found, err = refresh.ApplyRange(tx, job, ids, most, ids%2 == 0)
		return err
	})
	return found
}

func appliesByBatch(f *fixture) {
	ids := f.items("A", "B")
	u := f.own("u", ids[0], ids[1], ids[0], 0)
	byBatch := func(id int64) (n int64) {
		f.tx(func(tx *db.Tx) (err error) {
			n, err = refresh.ApplyBatch(tx, id, 0)
			return err
		})
		return n
	}
	id := f.run(20)
	f.is("rows of a batch", byBatch(id), int64(3))
	f.is("cursor", f.job(id).ApplyCursor, int64(1))
	f.is("rows of it again", byBatch(id), int64(0))
	f.finish(id)
	f.now = f.now.Add(7 * time.Hour)
	id = f.run(20)
	f.is("rows of a batch that changed nothing", byBatch(id), int64(0))
	f.is("values", fmt.Sprintf("%d", f.values(u)), "[20 20 20 0]")
}

func acceptsItems(f *fixture) {
	ids := f.items("A", "B")
	u := f.own("u", ids[0], ids[1])
	f.finish(f.run(10))
	f.now = f.now.Add(7 * time.Hour)
	id := f.plan(refresh.Bulk, 1)
	f.storeVerdict(id)
	b := f.claimBatch()
	s := f.estimates(b, 10)
	s.Items[0].Estimate.State.Held = pricing.HeldPrice{Candidate: 40, At: f.now}
	name := s.Items[0].Key.Name
	f.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
	f.is("a held price confirms nothing", f.item(name).CheckedAt, dbtest.Epoch)
	f.now = f.now.Add(time.Hour)
	accept := func(k catalog.Key) (ok bool) {
		f.tx(func(tx *db.Tx) (err error) {
			ok, err = refresh.AcceptItem(tx, k)
			return err
		})
		return ok
	}
	bucket, before := catalog.Bucket(name), f.versions()
	f.is("accepted", accept(key(name)), true)
	f.is("version of its bucket", f.versions()[bucket], before[bucket]+1)
	got := f.item(name)
	f.is("item", fmt.Sprint(int64(got.Price), int64(got.Candidate), got.CandidateAt.IsZero(), got.UpdatedAt.Equal(f.now), got.CheckedAt.Equal(f.now)), "40 0 true true true")
	want := []money.Micro{40, 0} // the other is not applied yet
	if name == "B" {
		slices.Reverse(want)
	}
	if got := f.values(u); !slices.Equal(got, want) {
		f.Errorf("values %v", got)
	}
	f.is("accepted twice", accept(key(name)), false)
	f.is("of nobody", accept(key("nobody")), false)
}

func providerStates(f *fixture) {
	f.tx(func(tx *db.Tx) error { return refresh.NoteProvider(tx, "s", "f", "") })
	later := f.now.Add(time.Hour)
	want := view.ProviderState{LastSuccess: f.now}
	state := func() view.ProviderState {
		states, err := view.ProviderStates(f.Context(), f.s)
		f.must(err)
		return states["s"]
	}
	f.is("a success", state(), want)
	f.now = later
	f.tx(func(tx *db.Tx) error { return refresh.NoteProvider(tx, "s", "f", "why") })
	want.LastError, want.LastErrorAt = "why", later
	f.is("a failure", state(), want)
	f.tx(func(tx *db.Tx) error { return refresh.NoteProvider(tx, "s", "f", "why else") })
	f.tx(func(tx *db.Tx) error { return refresh.NoteProvider(tx, "s", "", "") })
	files, err := view.ProviderFiles(f.Context(), f.s)
	f.must(err)
	f.is("files", len(files["s"]), 2)
	f.is("names", files["s"][""], view.ProviderFile{LastSuccess: later})
	f.is("a file that fails", files["s"]["f"], view.ProviderFile{LastSuccess: later.Add(-time.Hour), LastError: "why else", LastErrorAt: later, Failures: 2})
	f.tx(func(tx *db.Tx) error { return refresh.NoteProvider(tx, "s", "f", "") })
	files, err = view.ProviderFiles(f.Context(), f.s)
	f.must(err)
	f.is("a file that is back", files["s"]["f"], view.ProviderFile{LastSuccess: later, LastError: "why else", LastErrorAt: later})
	want.LastSuccess, want.LastError = later, "why else"
	f.tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", true) })
	want.Paused = true
	f.is("a pause", state(), want)

	m := f.market("s", "m")
	f.is("the same market", f.market("s", "m"), m)
	f.is("another provider's", f.market("t", "m") != m, true)
	markets, err := view.Markets(f.Context(), f.s)
	f.must(err)
	f.is("market", markets[m], refresh.MarketName{Provider: "s", Key: "m", Title: "m"})
	f.is("markets", len(markets), 2)
}
