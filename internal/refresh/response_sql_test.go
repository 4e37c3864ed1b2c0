package refresh_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/refresh"
)

func TestBlobs_AreReadByBucket(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"))
		blob := func(bucket int) refresh.Blob {
			return refresh.Blob{Bucket: bucket, Data: []byte(fmt.Sprint("bucket ", bucket, "\x00\xff"))}
		}
		a := f.fetch("s", blob(3), blob(1), blob(127))
		b := f.fetch("s", blob(1), blob(2))
		var got []string
		read := func(units []int64, buckets ...int64) {
			got = nil
			f.Must(refresh.Blobs(f.Context(), f.DB, units, buckets, func(b refresh.Blob) error {
				got = append(got, fmt.Sprint(b.Bucket, b.Unit))
				f.Is("data of the bucket", string(b.Data), string(blob(b.Bucket).Data))
				return nil
			}))
		}
		read([]int64{a.ID, b.ID, 999}, 3, 1, 2)
		if want := []string{fmt.Sprint(1, a.ID), fmt.Sprint(1, b.ID), fmt.Sprint(2, b.ID), fmt.Sprint(3, a.ID)}; !slices.Equal(got, want) {
			f.Errorf("buckets and units read: got %q, want %q", got, want)
		}
		read([]int64{a.ID}, 5, catalog.Buckets-1)
		f.Is("blobs of the last bucket", len(got), 1)
		all := make([]int64, catalog.Buckets) // more than one query reads
		for i := range all {
			all[i] = int64(i)
		}
		read([]int64{a.ID, b.ID}, all...)
		if want := []string{fmt.Sprint(1, a.ID), fmt.Sprint(1, b.ID), fmt.Sprint(2, b.ID), fmt.Sprint(3, a.ID), fmt.Sprint(127, a.ID)}; !slices.Equal(got, want) {
			f.Errorf("all buckets: got %q, want %q", got, want)
		}
		f.Is("the error of the reader of all buckets is returned", errors.Is(
			refresh.Blobs(f.Context(), f.DB, []int64{a.ID}, all, func(refresh.Blob) error { return errTest }), errTest), true)
		read(nil, 1)
		f.Is("blobs without a unit", len(got), 0)
		read([]int64{a.ID})
		f.Is("blobs of an empty range", len(got), 0)
		err := refresh.Blobs(f.Context(), f.DB, []int64{a.ID}, []int64{1}, func(refresh.Blob) error { return errTest })
		f.Is("the error of the reader is returned", errors.Is(err, errTest), true)
	})
}

func TestResponseCache_ReadsTheSameInTheSameOrder(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"), unit("s", "h"))
		stored := map[int64][]refresh.Blob{}
		var units []int64
		for i, buckets := range [][]int{{0, 3, 127}, {1, 3, 4}, {3, 126, 127}} {
			var blobs []refresh.Blob
			for _, bucket := range buckets {
				blobs = append(blobs, refresh.Blob{Bucket: bucket, Data: fmt.Append(nil, "unit ", i, " bucket ", bucket)})
			}
			u := f.fetch("s", blobs...)
			stored[u.ID], units = blobs, append(units, u.ID)
		}
		type reads func(context.Context, []int64, []int64, func(refresh.Blob) error) error
		list := func(read reads, buckets []int64) (out []string) {
			f.Must(read(f.Context(), append(units, 999), buckets, func(b refresh.Blob) error {
				out = append(out, fmt.Sprintf("%d/%d: %s", b.Bucket, b.Unit, b.Data))
				return nil
			}))
			return out
		}
		fromDatabase := func(ctx context.Context, units, buckets []int64, fn func(refresh.Blob) error) error {
			return refresh.Blobs(ctx, f.DB, units, buckets, fn)
		}
		for cached := range 1 << len(units) {
			r := refresh.NewCachedReader(f.DB)
			for i, id := range units {
				if cached>>i&1 == 1 {
					r.Add(id, stored[id])
				}
			}
			for _, buckets := range [][]int64{{0, 1, 3, 4, 126, 127}, {3}, {2}, {127, 4}, nil} {
				if got, want := list(r.Read, buckets), list(fromDatabase, buckets); !slices.Equal(got, want) {
					f.Errorf("buckets %v with cached units %03b: got %q, want %q", buckets, cached, got, want)
				}
			}
			err := r.Read(f.Context(), units, []int64{3}, func(refresh.Blob) error { return errTest })
			f.Is("the error of the reader is returned", errors.Is(err, errTest), true)
		}
	})
}

func TestResponseCache_KeepsTheNewestWithinItsSize(t *testing.T) {
	r := refresh.NewCachedReader(nil)
	third := []refresh.Blob{{Bucket: 1, Data: make([]byte, refresh.ResponseCacheSize/6)}, {Bucket: 2, Data: make([]byte, refresh.ResponseCacheSize/6, refresh.ResponseCacheSize)}}
	for unit := range int64(5) {
		r.Add(unit, third)
		r.Add(unit, third)
	}
	r.Add(5, []refresh.Blob{{Data: make([]byte, refresh.ResponseCacheSize+1)}})
	units, size := r.Cached()
	equal(t, "cached units", units, 3)
	equal(t, "their bytes", size, refresh.ResponseCacheSize/6*6)
	for unit := int64(2); unit < 5; unit++ {
		n := 0
		must(t, r.Read(t.Context(), []int64{unit}, []int64{2}, func(refresh.Blob) error { n++; return nil }))
		equal(t, "blobs of a newest unit", n, 1)
	}
}

// A process reads the responses that it stored itself from PostgreSQL only if they do not fit
// into memory.
func TestResponseCache_SavesReadsFromPostgreSQL(t *testing.T) {
	w := newWorld(t, bulk("alpha", names("Item", 20), "a1"))
	w.push("u", 730, names("Item", 20)...)
	w.clearMissing()
	w.begin(true)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	_, err = w.engine.Fetch(t.Context(), "alpha", "")
	must(t, err)
	w.exec(`UPDATE fetch_blob SET bucket = -1 - bucket`)
	w.drain()
	priced := int64(0)
	if w.store.Dialect == db.PostgreSQL {
		priced = 20
	}
	equal(t, "items with a price", w.count(`SELECT count(*) FROM item WHERE price > 0`), priced)
}

func TestBlobs_AreDeletedWhenUnused(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		market := f.market("s", "m")
		held := func(u refresh.FetchUnit) bool {
			n := 0
			f.Must(refresh.Blobs(f.Context(), f.DB, []int64{u.ID}, []int64{1}, func(refresh.Blob) error { n++; return nil }))
			return n > 0
		}
		run := func(file string, good bool) refresh.FetchUnit {
			id := f.plan(refresh.Bulk, 1, unit("s", file))
			u := f.fetch("s", refresh.Blob{Bucket: 1, Data: []byte("x")})
			u.ResponseUnitID = u.ID
			v := refresh.ValidationResult{Unit: u, Fetch: refresh.MarketFetch{MarketID: market, Quotes: 1, Outcome: refresh.OutcomeOK}}
			if !good {
				v.Quarantine, v.Fetch.Outcome = "anomaly", refresh.OutcomeQuarantined
			}
			f.storeValidation(id, v)
			if b := f.claimBatch(); b != nil {
				f.estimate(b, 10)
			}
			f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
			f.Is("the response is stored before the job ends", held(u), true)
			f.finish(id)
			f.Now = f.Now.Add(24 * time.Hour)
			return u
		}
		first := run("f", true)
		f.Is("the newest good response is stored", held(first), true)
		newest := func() int64 {
			var id int64
			f.Tx(func(tx *db.Tx) error {
				u, err := refresh.NewestUnit(tx, "s", app, "f")
				if u != nil {
					id = u.ID
				}
				return err
			})
			return id
		}
		f.Is("newest good response after the first", newest(), first.ID)
		quarantined := run("f", false)
		f.Is("quarantined response is stored", held(quarantined), false)
		f.Is("good response is still stored after a quarantined one", held(first), true)
		f.Is("newest good response after a quarantined one", newest(), first.ID)
		second := run("f", true)
		f.Is("replaced response is stored", held(first), false)
		f.Is("second good response is stored", held(second), true)
		f.Is("newest good response after the second", newest(), second.ID)
	})
}

func TestMarketStates_RemainAfterTheirJobs(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		m := f.market("s", "m")
		state := func(what string, want refresh.MarketState) {
			f.Helper()
			states, err := refresh.MarketStates(f.Context(), f.DB)
			f.Must(err)
			want.MarketID = m
			f.Is(what, states[m], want)
		}
		end := func(u *refresh.FetchUnit, quotes int64) {
			u.State, u.FetchedAt = refresh.UnitDone, f.Now
			f.Tx(func(tx *db.Tx) error {
				_, _, err := refresh.EndUnit(tx, *u, []refresh.MarketFetch{{MarketID: m, Quotes: quotes, Rejected: 1, Outcome: refresh.OutcomeOK}}, nil)
				return err
			})
		}
		run := func(units ...refresh.FetchUnit) (id int64) {
			id = f.plan(refresh.Bulk, 1, units...)
			for range units {
				end(f.claim("s"), 3)
			}
			return id
		}
		finish := func(id int64) {
			if b := f.claimBatch(); b != nil {
				f.estimate(b, 10)
			}
			f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
			f.finish(id)
		}
		id := run(unit("s", ""), unit("s", ""))
		want := refresh.MarketState{FetchedAt: f.Now, Quotes: 6, Rejected: 2, Outcome: "ok", LastSuccess: f.Now}
		state("state after two responses to names", want)
		f.storeValidation(id)
		finish(id)

		f.Now = f.Now.Add(24 * time.Hour)
		f.Tx(func(tx *db.Tx) error { return refresh.NoteMarkets(tx, []int64{m}, "why") })
		want.LastError, want.LastErrorAt = "why", f.Now
		state("state after a failure", want)

		f.Now = f.Now.Add(time.Hour)
		id = run(unit("s", "f"))
		want.FetchedAt, want.Quotes, want.Rejected = f.Now, 3, 1
		state("state before the validation of a file", want)
		units, err := refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		f.storeValidation(id, refresh.ValidationResult{Unit: units[0], Fetch: refresh.MarketFetch{MarketID: m, Quotes: 3, Outcome: refresh.OutcomeOK}})
		want.LastSuccess = f.Now
		state("state after a good file", want)
		finish(id)

		f.Now = f.Now.Add(24 * time.Hour)
		id = run(unit("s", "f"))
		units, err = refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		f.storeValidation(id, refresh.ValidationResult{Unit: units[0], Fetch: refresh.MarketFetch{MarketID: m, Outcome: refresh.OutcomeQuarantined}, Quarantine: "anomaly"})
		want.FetchedAt, want.Outcome, want.Quarantine, want.QuarantinedSince = f.Now, "quarantined", "anomaly", f.Now
		want.LastError, want.LastErrorAt = "anomaly", f.Now
		state("state after a quarantined file", want)
		finish(id)

		f.Now = f.Now.Add(24 * time.Hour)
		f.Tx(func(tx *db.Tx) error {
			_, err := refresh.Retain(tx, refresh.Retention{}, 100)
			return err
		})
		if _, err := refresh.ReadJob(f.Context(), f.DB, id); err == nil {
			f.Error("got the deleted job, want an error")
		}
		state("state without a job", want)
	})
}

func TestStoreValidation_StoresTheOutcomeOfAFile(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		m := f.market("s", "m")
		validate := func(quotes int64, outcome refresh.Outcome, quarantine string, reused bool) refresh.FetchUnit {
			id := f.plan(refresh.Bulk, 1, unit("s", "f"))
			u := f.fetch("s")
			u.ResponseUnitID = u.ID
			f.storeValidation(id, refresh.ValidationResult{
				Unit: u, Quarantine: quarantine, Reused: reused,
				Fetch: refresh.MarketFetch{MarketID: m, Quotes: quotes, Outcome: outcome},
			})
			outcomes, err := refresh.ReadOutcomes(f.Context(), f.DB, id)
			f.Must(err)
			f.Is("outcome of the market", outcomes[refresh.UnitMarket{Unit: u.ID, Market: m}].Outcome, outcome)
			if b := f.claimBatch(); b != nil {
				f.estimate(b, 10)
			}
			f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
			f.finish(id)
			f.Now = f.Now.Add(24 * time.Hour)
			return u
		}
		file := func() refresh.MarketFile {
			files, err := refresh.MarketFiles(f.Context(), f.DB)
			f.Must(err)
			if len(files) != 1 {
				f.Fatalf("got %d files, want 1", len(files))
			}
			return files[0]
		}
		good := validate(100, refresh.OutcomeOK, "", false)
		want := refresh.MarketFile{MarketID: m, AppID: app, File: "f", UnitID: good.ID, FetchedAt: good.FetchedAt, Quotes: 100}
		f.Is("state after a good response", file(), want)
		since := f.Now
		validate(3, refresh.OutcomeQuarantined, "anomaly", false)
		want.Quarantine = "anomaly"
		f.Is("state after a quarantined response", file(), want)
		validate(4, refresh.OutcomeQuarantined, "still an anomaly", false)
		states, err := refresh.MarketStates(f.Context(), f.DB)
		f.Must(err)
		f.Is("start of the quarantine", states[m].QuarantinedSince, since)
		f.Is("reason of the quarantine", states[m].Quarantine, "still an anomaly")
		validate(0, refresh.OutcomeSilent, "", false)
		validate(5, refresh.OutcomeOK, "", true)
		want.Quarantine = "still an anomaly"
		f.Is("state after a missing market and a reused response", file(), want)
		accept := func(provider, market string) (n int64) {
			f.Tx(func(tx *db.Tx) (err error) {
				n, err = refresh.AcceptProvider(tx, provider, market)
				return err
			})
			return n
		}
		f.Is("accepted markets of another provider", accept("t", ""), int64(0))
		f.Is("accepted markets with another key", accept("s", "elsewhere"), int64(0))
		f.Is("accepted markets", accept("s", "m"), int64(1))
		f.Is("accepted markets of a second call", accept("s", ""), int64(0))
		want.Quarantine, want.AcceptedAt = "", f.Now
		f.Is("state after the acceptance", file(), want)
		good = validate(7, refresh.OutcomeOK, "", false)
		f.Is("state after the next response", file(), refresh.MarketFile{MarketID: m, AppID: app, File: "f", UnitID: good.ID, FetchedAt: good.FetchedAt, Quotes: 7})

		// A unit that reuses an earlier response has the outcome of that response.
		reuse := unit("s", "f")
		reuse.State, reuse.ResponseUnitID, reuse.FetchedAt = refresh.UnitDone, good.ID, good.FetchedAt
		id := f.plan(refresh.Bulk, 1, reuse)
		outcomes, err := refresh.ReadOutcomes(f.Context(), f.DB, id)
		f.Must(err)
		units, err := refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		f.Is("outcome of the reused response", outcomes[refresh.UnitMarket{Unit: units[0].ID, Market: m}],
			refresh.MarketFetch{MarketID: m, Quotes: 7, Outcome: refresh.OutcomeOK})
	})
}

func TestFilesChanged_FindsWhatAnotherJobOrAnOperatorChanged(t *testing.T) {
	each(t, func(f *fixture) {
		m := f.market("s", "m")
		f.Tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`INSERT INTO market_file (market_id, app_id, file, quarantine, quarantined_since) VALUES ($1, $2, 'f', 'too low', 1)`, m, app)
			return err
		})
		read, err := refresh.MarketFiles(f.Context(), f.DB)
		f.Must(err)
		changed := func(game int32) (is bool) {
			f.Tx(func(tx *db.Tx) (err error) {
				is, err = refresh.FilesChanged(tx, read, map[int32]bool{game: true})
				return err
			})
			return is
		}
		f.Is("nothing changed", changed(app), false)
		f.Tx(func(tx *db.Tx) error {
			_, err := refresh.AcceptProvider(tx, "s", "m")
			return err
		})
		f.Is("an operator accepted the response", changed(app), true)
		f.Is("a file of another game changed", changed(app+1), false)
	})
}
