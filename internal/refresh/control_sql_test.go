package refresh_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestItemIDs_ComparesBytes(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A")
		got, err := refresh.ItemIDs(f.Context(), f.DB, []catalog.Key{key("A")})
		f.Must(err)
		f.Is("ids of A", fmt.Sprint(got), fmt.Sprint(ids))
		_, err = refresh.ItemIDs(f.Context(), f.DB, []catalog.Key{key("a")})
		f.Is("a is unknown", fault.Of(err) != nil && fault.Of(err).Kind == fault.NotFound, true)
	})
}

func TestAcceptItems_PublishesTheHeldPrice(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A", "B")
		u := f.own("u", ids[0], ids[1])
		f.finish(f.run(10))
		f.Now = f.Now.Add(7 * time.Hour)
		id := f.plan(refresh.Bulk, 1)
		f.storeValidation(id)
		b := f.claimBatch()
		s := f.estimates(b, 10)
		s.Items[0].Estimate.State.Held = pricing.HeldPrice{Candidate: 40, At: f.Now}
		name := s.Items[0].Key.Name
		f.Tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
		f.Is("check time of an item with a held price", f.item(name).CheckedAt, dbtest.Epoch)
		f.Now = f.Now.Add(time.Hour)
		accept := func(items ...int64) (n int) {
			f.Tx(func(tx *db.Tx) (err error) {
				n, err = refresh.AcceptItems(tx, items)
				return err
			})
			return n
		}
		bucket, before := catalog.Bucket(name), f.versions()
		f.Is("accepted prices", accept(ids...), 1)
		f.Is("version of the item's bucket", f.versions()[bucket], before[bucket]+1)
		got := f.item(name)
		f.Is("item after the acceptance", fmt.Sprint(int64(got.Price), int64(got.Candidate), got.CandidateAt.IsZero(), got.UpdatedAt.Equal(f.Now), got.CheckedAt.Equal(f.Now)), "40 0 true true true")
		want := []money.Micro{40, 0} // the price of the other item is applied later
		if name == "B" {
			slices.Reverse(want)
		}
		if got := f.values(u); !slices.Equal(got, want) {
			f.Errorf("got the values %v, want %v", got, want)
		}
		f.Is("prices accepted again", accept(ids...), 0)
	})
}

func TestNoteProvider_StoresTheStateOfProvidersAndFiles(t *testing.T) {
	each(t, func(f *fixture) {
		f.Tx(func(tx *db.Tx) error { return refresh.NoteProvider(tx, "s", "f", "") })
		later := f.Now.Add(time.Hour)
		want := view.ProviderState{LastSuccess: f.Now}
		state := func() view.ProviderState {
			states, err := view.ProviderStates(f.Context(), f.DB)
			f.Must(err)
			return states["s"]
		}
		f.Is("state of the provider after a success", state(), want)
		f.Now = later
		f.Tx(func(tx *db.Tx) error { return refresh.NoteProvider(tx, "s", "f", "why") })
		want.LastError, want.LastErrorAt = "why", later
		f.Is("state of the provider after a failure", state(), want)
		f.Tx(func(tx *db.Tx) error { return refresh.NoteProvider(tx, "s", "f", "why else") })
		f.Tx(func(tx *db.Tx) error { return refresh.NoteProvider(tx, "s", "", "") })
		files, err := view.ProviderFiles(f.Context(), f.DB)
		f.Must(err)
		f.Is("number of files", len(files["s"]), 2)
		f.Is("file of the calls for names", files["s"][""], view.ProviderFile{LastSuccess: later})
		f.Is("failed file", files["s"]["f"], view.ProviderFile{LastSuccess: later.Add(-time.Hour), LastError: "why else", LastErrorAt: later, Failures: 2})
		f.Tx(func(tx *db.Tx) error { return refresh.NoteProvider(tx, "s", "f", "") })
		files, err = view.ProviderFiles(f.Context(), f.DB)
		f.Must(err)
		f.Is("file that succeeded after a failure", files["s"]["f"], view.ProviderFile{LastSuccess: later, LastError: "why else", LastErrorAt: later})
		want.LastSuccess, want.LastError = later, "why else"
		f.Tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", true) })
		want.Paused = true
		f.Is("state of the paused provider", state(), want)

		m := f.market("s", "m")
		f.Is("id of the same market", f.market("s", "m"), m)
		f.Is("the same market key of another provider has another id", f.market("t", "m") != m, true)
		markets, err := view.Markets(f.Context(), f.DB)
		f.Must(err)
		f.Is("stored market", markets[m], refresh.MarketName{Provider: "s", Key: "m", Title: "m"})
		f.Is("number of markets", len(markets), 2)
	})
}

func TestSetCurrency_RefusesAnotherCurrency(t *testing.T) {
	each(t, func(f *fixture) {
		f.Must(refresh.SetCurrency(f.Context(), f.DB, "EUR"))
		f.Must(refresh.SetCurrency(f.Context(), f.DB, "EUR"))
		if err := refresh.SetCurrency(f.Context(), f.DB, "USD"); err == nil {
			f.Error("SetCurrency with another currency: got no error, want one")
		}
		f.Must(refresh.SetCurrency(f.Context(), f.DB, "EUR"))
	})
}

// Two jobs store levels of the same game. Retention keeps the newest set.
func TestStoreValidation_StoresLevelsOnceAndReadsThemByGame(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		learn := func(unit money.Micro, history pricing.History) {
			id := f.plan(refresh.Bulk, 1)
			set := pricing.NewSet(unit)
			l := refresh.Learned{AppID: 730, Set: set, Movers: pricing.Movers{{Key: 7, Market: 1, Move: 5}}, States: []refresh.ValidationState{
				{MarketID: 1, State: pricing.ValidationState{Dispersions: []money.Micro{unit}}, History: history},
			}}
			f.Tx(func(tx *db.Tx) error {
				first, err := refresh.StoreValidation(tx, id, nil, []refresh.Learned{l})
				f.Is("the first validation of the job is stored", first, true)
				return err
			})
			f.Tx(func(tx *db.Tx) error {
				first, err := refresh.StoreValidation(tx, id, nil, []refresh.Learned{{AppID: 730, Set: pricing.NewSet(unit + 1)}})
				f.Is("the second validation of the job is stored", first, false)
				return err
			})
			if b := f.claimBatch(); b != nil {
				f.estimate(b, 5)
			}
			f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
			f.finish(id)
		}
		read := func() money.Micro {
			set, err := refresh.LevelSet(f.Context(), f.DB, 730)
			f.Must(err)
			if set == nil {
				return 0
			}
			return set.Unit
		}
		f.Is("dispersion before any job", read(), money.Micro(0))
		for i, unit := range []money.Micro{1, 2, 2} {
			learn(unit, []pricing.History{{1, 0}, nil, nil}[i])
			f.Is("dispersion of the newest job", read(), unit)
			states, err := refresh.ValidationStates(f.Context(), f.DB, 730)
			f.Must(err)
			f.Is("dispersion of the state", states[1].Dispersions[0], unit)
			history, err := refresh.MarketHistory(f.Context(), f.DB, 730, 1)
			f.Must(err)
			f.Is("length of the history", len(history), 2) // the second job stores no history, so the first one remains
		}
		other, err := refresh.LevelSet(f.Context(), f.DB, 570)
		f.Must(err)
		f.Is("another game has no dispersion", other == nil, true)
	})
}

// A host wrongly reports that its quota is used up.
func TestPauseProvider_AResumedHostLosesItsReportedQuota(t *testing.T) {
	each(t, func(f *fixture) {
		all := make([]*allowance.Allowance, 8)
		for i := range all {
			all[i] = allowance.New(f.DB, "s", provider.Host{Key: "h", Limit: provider.Limit{Requests: 20, Per: time.Minute}, Quota: provider.Quota{Day: 3}})
		}
		take := func(a *allowance.Allowance) time.Duration {
			r, err := a.Take(f.Context())
			f.Must(err)
			return r.Wait
		}
		allowed := func() (n int) {
			for _, a := range all {
				if take(a) == 0 {
					n++
				}
			}
			return n
		}
		f.Must(all[0].StoreReported(f.Context(), provider.Rate{Limit: 30, Left: 0, Reset: time.Hour}))
		f.Must(allowance.New(f.DB, "other", provider.Host{Key: "h"}).StoreReported(f.Context(), provider.Rate{Left: 0, Reset: time.Hour}))
		f.Is("requests allowed after the report", allowed(), 0)
		f.Tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", true) })
		f.Is("requests allowed while paused", allowed(), 0)
		f.Tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", false) })
		f.Is("requests allowed after the pause, up to the quota", allowed(), 3)
		f.Is("wait of another provider", take(allowance.New(f.DB, "other", provider.Host{Key: "h"})), time.Hour)
		f.Must(all[0].StoreReported(f.Context(), provider.Rate{Limit: 30, Left: 0, Reset: time.Hour}))
		f.Is("wait after a second report", take(all[1]), time.Hour)
	})
}

// versions returns the price versions of all buckets. It fails the test unless their sum equals
// the stored sum and the known sum.
func (f *fixture) versions() [catalog.Buckets]int64 {
	f.Helper()
	sum, err := catalog.PriceVersion(f.Context(), f.DB)
	f.Must(err)
	all, err := catalog.PriceVersions(f.Context(), f.DB)
	f.Must(err)
	for _, v := range all {
		sum -= v
	}
	f.Is("sum of the versions minus the stored sum", sum, int64(0))
	if known, ok := catalog.KnownPriceVersion(f.DB); ok {
		sum, err = catalog.PriceVersion(f.Context(), f.DB)
		f.Must(err)
		f.Is("sum known without a query", known, sum)
	}
	return all
}

func TestStoreEstimates_IncrementsPriceVersionOfItsBuckets(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A", "B")...)
		a, b := catalog.Bucket("A"), catalog.Bucket("B")
		if a == b {
			f.Fatal("got A and B in one bucket, want two")
		}
		before := f.versions()
		expect := func(what string, wantA, wantB int64) {
			f.Helper()
			now := f.versions()
			f.Is(what+": changes of the versions of A and B", fmt.Sprint(now[a]-before[a], now[b]-before[b]), fmt.Sprint(wantA, wantB))
			now[a], now[b] = before[a], before[b]
			f.Is(what+": versions of other buckets", now, before)
			before = f.versions()
		}
		job := f.plan(refresh.Bulk, 1)
		f.Tx(func(tx *db.Tx) error { _, _, err := catalog.QueueMissing(tx, f.missingIn(tx, "A")); return err })
		expect("plan and queue", 0, 0)
		f.storeValidation(job)
		batch := f.claimBatch()
		s := f.estimates(batch, 10)
		for i := range s.Items {
			if s.Items[i].Key.Name == "B" {
				s.Items[i].State, s.Items[i].Responded = refresh.ItemFailed, false
			}
		}
		f.Must(catalog.AnnouncePrices(f.Context(), f.DB)) // a transaction of its own, which must not fail
		gone := errors.New("gone")
		f.Faults = func(point string) error {
			_, known := catalog.KnownPriceVersion(f.DB)
			if point == "after commit" {
				f.Is("sum is known before the commit ends", known, false)
				return gone
			}
			return nil
		}
		err := f.DB.InTx(f.Context(), func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *batch, s); return err })
		f.Is("the error is ErrCommitUnknown", errors.Is(err, db.ErrCommitUnknown), true)
		f.Faults = nil
		_, known := catalog.KnownPriceVersion(f.DB)
		f.Is("sum is known after an unknown outcome", known, false)
		expect("A is estimated, no provider responded for B", 1, 0)
		f.Tx(func(tx *db.Tx) error {
			n, err := refresh.AcceptItems(tx, []int64{f.item("A").ID})
			f.Is("accepted prices", n, 0)
			return err
		})
		expect("acceptance without a held price", 0, 0)
	})
}
