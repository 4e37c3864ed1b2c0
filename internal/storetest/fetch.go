package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/refresh"
	"assay/internal/view"
)

func unitsAreClaimedOnce(f *fixture) {
	f.own("u", f.items("A")...)
	bulk := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"), unit("other", "h"))
	f.tx(func(tx *db.Tx) error { _, _, err := catalog.QueueMissing(tx, f.missingIn(tx, "B")); return err })
	missing := f.plan(refresh.Missing, 1, unit("s", "f"))
	var got []string
	for range 4 {
		if u := f.claim("s"); u != nil {
			got = append(got, fmt.Sprint(u.JobID, u.File, u.Token, u.Attempts))
		}
	}
	// Missing prices first, then in order, each once.
	want := []string{fmt.Sprint(missing, "f", 1, 1), fmt.Sprint(bulk, "f", 1, 1), fmt.Sprint(bulk, "g", 1, 1)}
	if !slices.Equal(got, want) {
		f.Errorf("claimed %q, want %q", got, want)
	}
	f.must(refresh.Recover(f.Context(), f.s))
	again := f.claim("s")
	f.is("after a recovery", fmt.Sprint(again.JobID, again.Token, again.Attempts), fmt.Sprint(missing, 2, 2))
}

func lateEndsAreRefused(f *fixture) {
	f.own("u", f.items("A")...)
	id := f.plan(refresh.Bulk, 1, unit("s", "f"))
	late := f.claim("s")
	f.must(refresh.Recover(f.Context(), f.s))
	f.claim("s")
	late.State, late.Requests, late.Bytes = refresh.UnitDone, 2, 20
	f.tx(func(tx *db.Tx) error {
		ended, _, err := refresh.EndUnit(tx, *late, []refresh.MarketFetch{{MarketID: 1, Outcome: refresh.OutcomeOK}}, []refresh.Blob{{Bucket: 1, Data: []byte("x")}})
		f.is("ended", ended, false)
		if err != nil {
			return err
		}
		return refresh.ReturnUnit(tx, *late)
	})
	units, err := refresh.JobUnits(f.Context(), f.s, id)
	f.must(err)
	f.is("state", units[0].State, refresh.UnitRunning)
	f.is("what it cost all the same", units[0].Requests, int64(4))
	outcomes, err := refresh.ReadOutcomes(f.Context(), f.s, id)
	f.must(err)
	f.is("outcomes", len(outcomes), 0)
}

func endingTwice(f *fixture) {
	f.own("u", f.items("A")...)
	id := f.plan(refresh.Bulk, 1, unit("s", "f"))
	u := f.claim("s")
	u.State, u.Requests, u.Bytes, u.FetchedAt, u.StatedAt = refresh.UnitDone, 2, 20, f.now, f.now.Add(-time.Hour)
	for i := range 2 {
		f.tx(func(tx *db.Tx) error {
			ended, _, err := refresh.EndUnit(tx, *u, []refresh.MarketFetch{{MarketID: 5, Quotes: 3, Rejected: 1, Outcome: refresh.OutcomeOK}},
				[]refresh.Blob{{Bucket: 1, Data: []byte("x")}})
			f.is("ended", ended, i == 0)
			return err
		})
	}
	units, err := refresh.JobUnits(f.Context(), f.s, id)
	f.must(err)
	got := units[0]
	f.is("unit", fmt.Sprintln(got.State, got.Requests, got.Bytes, got.BlobUnit == got.ID, got.FetchedAt.Equal(f.now), got.StatedAt.Equal(u.StatedAt)),
		"done 2 20 true true true\n")
	outcomes, err := refresh.ReadOutcomes(f.Context(), f.s, id)
	f.must(err)
	f.is("outcome", outcomes[refresh.UnitMarket{Unit: u.ID, Market: 5}],
		refresh.MarketFetch{MarketID: 5, Quotes: 3, Rejected: 1, Outcome: refresh.OutcomeOK})
}

func unitsArePutOff(f *fixture) {
	f.own("u", f.items("A")...)
	id := f.plan(refresh.Bulk, 1, unit("s", "f"))
	u := f.claim("s")
	u.Requests, u.NotBefore = 1, f.now.Add(time.Minute)
	for range 2 { // to say it twice is to say it once
		f.tx(func(tx *db.Tx) error { return refresh.ReturnUnit(tx, *u) })
	}
	f.is("too early", f.claim("s") == nil, true)
	f.now = f.now.Add(time.Minute - time.Microsecond)
	f.is("still too early", f.claim("s") == nil, true)
	f.now = f.now.Add(time.Microsecond)
	u = f.claim("s")
	f.is("now", u != nil, true)
	f.is("attempts", u.Attempts, int64(2))
	f.is("requests of this attempt", u.Requests, int64(0))
	u.NotBefore = f.now.Add(time.Minute)
	f.tx(func(tx *db.Tx) error { return refresh.ReturnUnit(tx, *u) })
	f.now = f.now.Add(-refresh.Patience)
	f.is("by a clock set back", f.claim("s") != nil, true)
	units, err := refresh.JobUnits(f.Context(), f.s, id)
	f.must(err)
	f.is("requests", units[0].Requests, int64(1))
}

func requestsAreReserved(f *fixture) {
	f.own("u", f.items("A")...)
	id := f.plan(refresh.Bulk, 1, unit("s", "f"))
	claim := func() (u *refresh.Unit) {
		f.tx(func(tx *db.Tx) (err error) {
			u, err = refresh.ClaimUnit(tx, refresh.Claim{Provider: "s", Owner: "me", Reserve: 1})
			return err
		})
		return u
	}
	counted := func(what string, want int64) {
		f.Helper()
		uses, err := view.Use(f.Context(), f.s, []int64{id})
		f.must(err)
		f.is(what, uses[0].Requests, want)
	}
	reserve := func(u *refresh.Unit, more int64) (valid bool) {
		f.tx(func(tx *db.Tx) (err error) {
			valid, err = refresh.ReserveRequests(tx, *u, more)
			return err
		})
		return valid
	}
	killed := claim()
	counted("with the claim", 0)
	f.is("a valid claim", reserve(killed, 3), true)
	counted("before three more", 1)
	f.tx(func(tx *db.Tx) error { return refresh.Reclaim(tx, "me", nil, nil) })
	counted("after a kill, all that may have been sent", 4)
	u := claim()
	counted("with the second claim", 4)
	f.is("a claim that is lost", reserve(killed, 1), false)
	u.Requests = 3
	f.tx(func(tx *db.Tx) error { return refresh.ReturnUnit(tx, *u) })
	counted("given back after three", 7)
	u = claim()
	u.State = refresh.UnitDeferred // nothing was sent
	f.tx(func(tx *db.Tx) error { _, _, err := refresh.EndUnit(tx, *u, nil, nil); return err })
	counted("at the end", 7)
}

func unitsAreDivided(f *fixture) {
	f.own("u", f.items("A", "B", "C")...)
	whole := unit("s", "")
	whole.Names = []string{"A", "B", "C"}
	id := f.plan(refresh.Bulk, 1, whole)
	u := f.claim("s")
	failed, later := *u, *u
	failed.State, failed.Names, failed.Error, failed.ErrorKind = refresh.UnitFailed, []string{"B"}, "why", "protocol"
	later.State, later.Names, later.NotBefore = refresh.UnitPending, []string{"C"}, f.now.Add(time.Minute)
	u.State, u.Names = refresh.UnitDone, []string{"A"}
	f.tx(func(tx *db.Tx) error {
		if _, _, err := refresh.EndUnit(tx, *u, nil, nil); err != nil {
			return err
		}
		return refresh.SplitUnit(tx, *u, []refresh.Unit{failed, later})
	})
	units, err := refresh.BatchUnits(f.Context(), f.s, refresh.Batch{JobID: id})
	f.must(err)
	var got []string
	for _, u := range units {
		got = append(got, fmt.Sprintf("%s %s %s", u.Names, u.State, u.Error))
	}
	if want := []string{"[A] done ", "[B] failed why", "[C] pending "}; !slices.Equal(got, want) {
		f.Errorf("units %q, want %q", got, want)
	}
	f.is("last error", f.job(id).LastError, "why")
	f.is("too early", f.claim("s") == nil, true)
	f.now = f.now.Add(time.Minute)
	if u := f.claim("s"); u == nil || !slices.Equal(u.Names, []string{"C"}) {
		f.Errorf("claimed %+v", u)
	}
}

func pausedProviders(f *fixture) {
	f.own("u", f.items("A")...)
	pause := func(paused bool) {
		f.tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", paused) })
	}
	id := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"), unit("t", "h"))
	u := f.claim("s")
	pause(true)
	u.NotBefore = f.now
	f.tx(func(tx *db.Tx) error { return refresh.ReturnUnit(tx, *u) })
	f.is("what came back", f.claim("s") == nil, true)
	f.is("another provider", f.claim("t") != nil, true)
	units, err := refresh.JobUnits(f.Context(), f.s, id)
	f.must(err)
	for _, u := range units[:2] {
		f.is("state", string(u.State)+" "+u.Error, "deferred s: paused by an operator")
	}
	paused, err := refresh.PausedProviders(f.Context(), f.s)
	f.must(err)
	f.is("paused", fmt.Sprint(paused), "map[s:true]")
	pause(false)
	paused, err = refresh.PausedProviders(f.Context(), f.s)
	f.must(err)
	f.is("resumed", len(paused), 0)
}

func forgoneProviders(f *fixture) {
	f.own("u", f.items("A")...)
	id := f.plan(refresh.Bulk, 1, unit("gone", "f"), unit("gone", "g"), unit("kept", "h"), unit("kept", "dropped"), unit("other", ""))
	done := f.fetch("gone")
	forgo := func() { f.tx(func(tx *db.Tx) error { return refresh.AbandonUnits(tx) }) }
	open := func() string {
		units, err := refresh.JobUnits(f.Context(), f.s, id)
		f.must(err)
		var out []string
		for _, u := range units {
			if u.State == refresh.UnitPending {
				out = append(out, u.Provider+"/"+u.File)
			} else if u.ID != done.ID {
				f.is("state", u.State, refresh.UnitFailed)
			}
		}
		return strings.Join(out, " ")
	}
	forgo() // nobody is there who could know
	f.is("without an instance", open(), "gone/g kept/h kept/dropped other/")
	f.register("old", refresh.Endpoint{Provider: "gone", File: "g"}, refresh.Endpoint{Provider: "kept", File: "dropped"})
	f.register("new", refresh.Endpoint{Provider: "kept", File: "h"}, refresh.Endpoint{Provider: "other"})
	forgo()
	f.is("while both live", open(), "gone/g kept/h kept/dropped other/")
	f.is("last error", f.job(id).LastError, "")
	f.is("removed", f.remove("old", 0), true)
	forgo()
	f.is("with what is left", open(), "kept/h other/")
	f.is("last error", f.job(id).LastError, "gone: not configured any more")
	f.is("removed", f.remove("new", 0), true)
	f.register("none")
	forgo()
	f.is("with none configured", open(), "")
}

func reclaims(f *fixture) {
	names := []string{"A", "B", "C", "D", "E", "F"}
	f.own("u", f.items(names...)...)
	id := f.plan(refresh.Bulk, catalog.Buckets, unit("t", ""), unit("t", ""), unit("t", ""))
	for i := range 3 { // they wait for no batch
		u := f.claim("t")
		f.is("unit", u != nil, true)
		if i == 2 {
			f.tx(func(tx *db.Tx) error { return refresh.Reclaim(tx, "me", []int64{u.ID}, nil) })
		}
	}
	f.tx(func(tx *db.Tx) error { return refresh.Reclaim(tx, "somebody else", nil, nil) })
	units, err := refresh.JobUnits(f.Context(), f.s, id)
	f.must(err)
	f.is("units", fmt.Sprintln(units[0].State, units[1].State, units[2].State), "pending pending running\n")
	for range 2 {
		f.fetch("t")
	}
	last := units[2]
	last.State = refresh.UnitFailed
	f.tx(func(tx *db.Tx) error { _, _, err := refresh.EndUnit(tx, last, nil, nil); return err })
	f.storeVerdict(id)
	kept, lost := f.claimBatch(), f.claimBatch()
	f.tx(func(tx *db.Tx) error { return refresh.Reclaim(tx, "me", nil, []refresh.Batch{*kept}) })
	again := f.claimBatch()
	f.is("the lost batch", again.Batch, lost.Batch)
	f.is("its token", again.Token, lost.Token+1)
	f.tx(func(tx *db.Tx) error { return refresh.Reclaim(tx, "me", nil, []refresh.Batch{*kept, *again}) })
	f.estimate(kept, 10)
}

func blobsByBucket(f *fixture) {
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
		f.must(refresh.Blobs(f.Context(), f.s, units, buckets, func(b refresh.Blob) error {
			got = append(got, fmt.Sprint(b.Bucket, b.Unit))
			f.is("data", string(b.Data), string(blob(b.Bucket).Data))
			return nil
		}))
	}
	read([]int64{a.ID, b.ID, 999}, 3, 1, 2)
	if want := []string{fmt.Sprint(1, a.ID), fmt.Sprint(1, b.ID), fmt.Sprint(2, b.ID), fmt.Sprint(3, a.ID)}; !slices.Equal(got, want) {
		f.Errorf("got %q, want %q", got, want)
	}
	read([]int64{a.ID}, 5, catalog.Buckets-1)
	f.is("the last bucket", len(got), 1)
	read(nil, 1)
	f.is("no unit", len(got), 0)
	read([]int64{a.ID})
	f.is("no bucket", len(got), 0)
	err := refresh.Blobs(f.Context(), f.s, []int64{a.ID}, []int64{1}, func(refresh.Blob) error { return errTest })
	f.is("the reader's own error", errors.Is(err, errTest), true)
}

func blobsAreDropped(f *fixture) {
	f.own("u", f.items("A")...)
	market := f.market("s", "m")
	held := func(u refresh.Unit) bool {
		n := 0
		f.must(refresh.Blobs(f.Context(), f.s, []int64{u.ID}, []int64{1}, func(refresh.Blob) error { n++; return nil }))
		return n > 0
	}
	run := func(file string, good bool) refresh.Unit {
		id := f.plan(refresh.Bulk, 1, unit("s", file))
		u := f.fetch("s", refresh.Blob{Bucket: 1, Data: []byte("x")})
		u.BlobUnit = u.ID
		v := refresh.Verdict{Unit: u, Fetch: refresh.MarketFetch{MarketID: market, Quotes: 1, Outcome: refresh.OutcomeOK}}
		if !good {
			v.Quarantine, v.Fetch.Outcome = "sick", refresh.OutcomeQuarantined
		}
		f.storeVerdict(id, v)
		if b := f.claimBatch(); b != nil {
			f.estimate(b, 10)
		}
		f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.is("while it lives", held(u), true)
		f.finish(id)
		f.now = f.now.Add(24 * time.Hour)
		return u
	}
	first := run("f", true)
	f.is("the newest good answer", held(first), true)
	newest := func() int64 {
		var id int64
		f.tx(func(tx *db.Tx) error {
			u, err := refresh.NewestUnit(tx, "s", app, "f")
			if u != nil {
				id = u.ID
			}
			return err
		})
		return id
	}
	f.is("the newest unit", newest(), first.ID)
	sick := run("f", false)
	f.is("a sick answer", held(sick), false)
	f.is("the good one beside it", held(first), true)
	f.is("the newest unit after it", newest(), first.ID)
	second := run("f", true)
	f.is("the one before", held(first), false)
	f.is("the new one", held(second), true)
	f.is("the newest unit at last", newest(), second.ID)
}

// market returns the id of a market.
func (f *fixture) market(provider, market string) (id int64) {
	f.Helper()
	name := refresh.MarketName{Provider: provider, Key: market, Title: market}
	f.tx(func(tx *db.Tx) error {
		ids, err := refresh.MarketIDs(tx, []refresh.MarketName{name})
		id = ids[name]
		return err
	})
	return id
}

func marketStates(f *fixture) {
	f.own("u", f.items("A")...)
	m := f.market("s", "m")
	state := func(what string, want refresh.MarketState) {
		f.Helper()
		states, err := refresh.MarketStates(f.Context(), f.s)
		f.must(err)
		want.MarketID = m
		f.is(what, states[m], want)
	}
	end := func(u *refresh.Unit, quotes int64) {
		u.State, u.FetchedAt = refresh.UnitDone, f.now
		f.tx(func(tx *db.Tx) error {
			_, _, err := refresh.EndUnit(tx, *u, []refresh.MarketFetch{{MarketID: m, Quotes: quotes, Rejected: 1, Outcome: refresh.OutcomeOK}}, nil)
			return err
		})
	}
	run := func(units ...refresh.Unit) (id int64) {
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
		f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.finish(id)
	}
	id := run(unit("s", ""), unit("s", ""))
	want := refresh.MarketState{FetchedAt: f.now, Quotes: 6, Rejected: 2, Outcome: "ok", LastSuccess: f.now}
	state("two answers to names", want)
	f.storeVerdict(id)
	finish(id)

	f.now = f.now.Add(24 * time.Hour)
	f.tx(func(tx *db.Tx) error { return refresh.NoteMarkets(tx, []int64{m}, "why") })
	want.LastError, want.LastErrorAt = "why", f.now
	state("a failure", want)

	f.now = f.now.Add(time.Hour)
	id = run(unit("s", "f"))
	want.FetchedAt, want.Quotes, want.Rejected = f.now, 3, 1
	state("a file that is not judged", want)
	units, err := refresh.JobUnits(f.Context(), f.s, id)
	f.must(err)
	f.storeVerdict(id, refresh.Verdict{Unit: units[0], Fetch: refresh.MarketFetch{MarketID: m, Quotes: 3, Outcome: refresh.OutcomeOK}})
	want.LastSuccess = f.now
	state("a good file", want)
	finish(id)

	f.now = f.now.Add(24 * time.Hour)
	id = run(unit("s", "f"))
	units, err = refresh.JobUnits(f.Context(), f.s, id)
	f.must(err)
	f.storeVerdict(id, refresh.Verdict{Unit: units[0], Fetch: refresh.MarketFetch{MarketID: m, Outcome: refresh.OutcomeQuarantined}, Quarantine: "sick"})
	want.FetchedAt, want.Outcome, want.Quarantine, want.QuarantinedSince = f.now, "quarantined", "sick", f.now
	want.LastError, want.LastErrorAt = "sick", f.now
	state("a sick file", want)
	finish(id)

	f.now = f.now.Add(24 * time.Hour)
	f.tx(func(tx *db.Tx) error {
		_, err := refresh.Retain(tx, refresh.Retention{}, 100)
		return err
	})
	if _, err := refresh.ReadJob(f.Context(), f.s, id); err == nil {
		f.Error("the job is not removed")
	}
	state("without any job", want)
}

func judges(f *fixture) {
	f.own("u", f.items("A")...)
	m := f.market("s", "m")
	judge := func(quotes int64, outcome refresh.Outcome, quarantine string, reused bool) refresh.Unit {
		id := f.plan(refresh.Bulk, 1, unit("s", "f"))
		u := f.fetch("s")
		u.BlobUnit = u.ID
		f.storeVerdict(id, refresh.Verdict{
			Unit: u, Quarantine: quarantine, Reused: reused,
			Fetch: refresh.MarketFetch{MarketID: m, Quotes: quotes, Outcome: outcome},
		})
		outcomes, err := refresh.ReadOutcomes(f.Context(), f.s, id)
		f.must(err)
		f.is("outcome", outcomes[refresh.UnitMarket{Unit: u.ID, Market: m}].Outcome, outcome)
		if b := f.claimBatch(); b != nil {
			f.estimate(b, 10)
		}
		f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.finish(id)
		f.now = f.now.Add(24 * time.Hour)
		return u
	}
	file := func() refresh.MarketFile {
		files, err := refresh.MarketFiles(f.Context(), f.s)
		f.must(err)
		if len(files) != 1 {
			f.Fatalf("%d files", len(files))
		}
		return files[0]
	}
	good := judge(100, refresh.OutcomeOK, "", false)
	want := refresh.MarketFile{MarketID: m, AppID: app, File: "f", UnitID: good.ID, FetchedAt: good.FetchedAt, Quotes: 100}
	f.is("a good answer", file(), want)
	since := f.now
	judge(3, refresh.OutcomeQuarantined, "sick", false)
	want.Quarantine = "sick"
	f.is("a sick one", file(), want)
	judge(4, refresh.OutcomeQuarantined, "still sick", false)
	states, err := refresh.MarketStates(f.Context(), f.s)
	f.must(err)
	f.is("since the first", states[m].QuarantinedSince, since)
	f.is("why", states[m].Quarantine, "still sick")
	judge(0, refresh.OutcomeSilent, "", false)
	judge(5, refresh.OutcomeOK, "", true)
	want.Quarantine = "still sick"
	f.is("silence and a reused answer", file(), want)
	accept := func(provider, market string) (n int64) {
		f.tx(func(tx *db.Tx) (err error) {
			n, err = refresh.AcceptProvider(tx, provider, market)
			return err
		})
		return n
	}
	f.is("another provider", accept("t", ""), int64(0))
	f.is("another market", accept("s", "elsewhere"), int64(0))
	f.is("accepted", accept("s", "m"), int64(1))
	f.is("accepted twice", accept("s", ""), int64(0))
	want.Quarantine, want.AcceptedAt = "", f.now
	f.is("after it", file(), want)
	good = judge(7, refresh.OutcomeOK, "", false)
	f.is("the next", file(), refresh.MarketFile{MarketID: m, AppID: app, File: "f", UnitID: good.ID, FetchedAt: good.FetchedAt, Quotes: 7})

	// A file that an earlier unit answers has what that brought.
	reuse := unit("s", "f")
	reuse.State, reuse.BlobUnit, reuse.FetchedAt = refresh.UnitDone, good.ID, good.FetchedAt
	id := f.plan(refresh.Bulk, 1, reuse)
	outcomes, err := refresh.ReadOutcomes(f.Context(), f.s, id)
	f.must(err)
	units, err := refresh.JobUnits(f.Context(), f.s, id)
	f.must(err)
	f.is("a reused answer", outcomes[refresh.UnitMarket{Unit: units[0].ID, Market: m}],
		refresh.MarketFetch{MarketID: m, Quotes: 7, Outcome: refresh.OutcomeOK})
}
