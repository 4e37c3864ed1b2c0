package refresh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestClaimUnit_ClaimsAUnitOnce(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		bulk := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"), unit("other", "h"))
		f.Tx(func(tx *db.Tx) error { _, _, err := catalog.QueueMissing(tx, f.missingIn(tx, "B")); return err })
		missing := f.plan(refresh.Missing, 1, unit("s", "f"))
		var got []string
		for range 4 {
			if u := f.claim("s"); u != nil {
				got = append(got, fmt.Sprint(u.JobID, u.File, u.Token, u.Attempts))
			}
		}
		// Units of missing-price jobs come first, then the others in order.
		want := []string{fmt.Sprint(missing, "f", 1, 1), fmt.Sprint(bulk, "f", 1, 1), fmt.Sprint(bulk, "g", 1, 1)}
		if !slices.Equal(got, want) {
			f.Errorf("got the claims %q, want %q", got, want)
		}
		f.Must(refresh.Recover(f.Context(), f.DB))
		again := f.claim("s")
		f.Is("job, token and attempts of the unit after the recovery", fmt.Sprint(again.JobID, again.Token, again.Attempts), fmt.Sprint(missing, 2, 2))
	})
}

func TestEndUnit_RejectsLostClaim(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		id := f.plan(refresh.Bulk, 1, unit("s", "f"))
		late := f.claim("s")
		f.Must(refresh.Recover(f.Context(), f.DB))
		f.claim("s")
		late.State, late.Requests, late.Bytes = refresh.UnitDone, 2, 20
		f.Tx(func(tx *db.Tx) error {
			ended, _, err := refresh.EndUnit(tx, *late, []refresh.MarketFetch{{MarketID: 1, Outcome: refresh.OutcomeOK}}, []refresh.Blob{{Bucket: 1, Data: []byte("x")}})
			f.Is("the unit ended with a lost claim", ended, false)
			if err != nil {
				return err
			}
			return refresh.ReturnUnit(tx, *late)
		})
		units, err := refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		f.Is("state of the unit", units[0].State, refresh.UnitRunning)
		f.Is("requests that were sent with the lost claim", units[0].Requests, int64(4))
		outcomes, err := refresh.ReadOutcomes(f.Context(), f.DB, id)
		f.Must(err)
		f.Is("number of outcomes", len(outcomes), 0)
	})
}

func TestEndUnit_IsIdempotent(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		id := f.plan(refresh.Bulk, 1, unit("s", "f"))
		u := f.claim("s")
		u.State, u.Requests, u.Bytes, u.FetchedAt, u.StatedAt = refresh.UnitDone, 2, 20, f.Now, f.Now.Add(-time.Hour)
		for i := range 2 {
			f.Tx(func(tx *db.Tx) error {
				ended, _, err := refresh.EndUnit(tx, *u, []refresh.MarketFetch{{MarketID: 5, Quotes: 3, Rejected: 1, Outcome: refresh.OutcomeOK}},
					[]refresh.Blob{{Bucket: 1, Data: []byte("x")}})
				f.Is("the unit ended in this call", ended, i == 0)
				return err
			})
		}
		units, err := refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		got := units[0]
		f.Is("ended unit", fmt.Sprintln(got.State, got.Requests, got.Bytes, got.ResponseUnitID == got.ID, got.FetchedAt.Equal(f.Now), got.StatedAt.Equal(u.StatedAt)),
			"done 2 20 true true true\n")
		outcomes, err := refresh.ReadOutcomes(f.Context(), f.DB, id)
		f.Must(err)
		f.Is("outcome of the market", outcomes[refresh.UnitMarket{Unit: u.ID, Market: 5}],
			refresh.MarketFetch{MarketID: 5, Quotes: 3, Rejected: 1, Outcome: refresh.OutcomeOK})
	})
}

func TestReturnUnit_PostponesTheUnit(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		id := f.plan(refresh.Bulk, 1, unit("s", "f"))
		u := f.claim("s")
		u.Requests, u.NotBefore = 1, f.Now.Add(time.Minute)
		for range 2 { // returning is idempotent
			f.Tx(func(tx *db.Tx) error { return refresh.ReturnUnit(tx, *u) })
		}
		f.Is("no unit can be claimed before the retry", f.claim("s") == nil, true)
		f.Now = f.Now.Add(time.Minute - time.Microsecond)
		f.Is("no unit can be claimed just before the retry", f.claim("s") == nil, true)
		f.Now = f.Now.Add(time.Microsecond)
		u = f.claim("s")
		f.Is("a unit can be claimed at the time of the retry", u != nil, true)
		f.Is("attempts of the unit", u.Attempts, int64(2))
		f.Is("requests of this attempt", u.Requests, int64(0))
		u.NotBefore = f.Now.Add(time.Minute)
		f.Tx(func(tx *db.Tx) error { return refresh.ReturnUnit(tx, *u) })
		f.Now = f.Now.Add(-refresh.Patience)
		f.Is("a unit can be claimed by a clock that was set back", f.claim("s") != nil, true)
		units, err := refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		f.Is("requests of the unit", units[0].Requests, int64(1))
	})
}

func TestReserveRequests_CountsBeforeSending(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		id := f.plan(refresh.Bulk, 1, unit("s", "f"))
		claim := func() (u *refresh.FetchUnit) {
			f.Tx(func(tx *db.Tx) (err error) {
				u, err = refresh.ClaimUnit(tx, refresh.Claim{Provider: "s", Owner: "me", Reserve: 1})
				return err
			})
			return u
		}
		counted := func(what string, want int64) {
			f.Helper()
			uses, err := view.RequestCounts(f.Context(), f.DB, []int64{id})
			f.Must(err)
			f.Is(what, uses[0].Requests, want)
		}
		reserve := func(u *refresh.FetchUnit, more int64) (valid bool) {
			f.Tx(func(tx *db.Tx) (err error) {
				valid, err = refresh.ReserveRequests(tx, *u, more)
				return err
			})
			return valid
		}
		killed := claim()
		counted("requests counted with the claim", 0)
		f.Is("requests were reserved with a valid claim", reserve(killed, 3), true)
		counted("requests counted from the first reservation", 1)
		f.Tx(func(tx *db.Tx) error { return refresh.Reclaim(tx, "me", nil, nil) })
		counted("requests counted after a kill, reserved ones included", 4)
		u := claim()
		counted("requests counted with the second claim", 4)
		f.Is("requests were reserved with a lost claim", reserve(killed, 1), false)
		u.Requests = 3
		f.Tx(func(tx *db.Tx) error { return refresh.ReturnUnit(tx, *u) })
		counted("requests counted after three were sent", 7)
		u = claim()
		u.State = refresh.UnitDeferred // nothing was sent
		f.Tx(func(tx *db.Tx) error { _, _, err := refresh.EndUnit(tx, *u, nil, nil); return err })
		counted("requests counted at the end", 7)
	})
}

func TestSplitUnit_SplitsNames(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A", "B", "C")...)
		whole := unit("s", "")
		whole.Names = []string{"A", "B", "C"}
		id := f.plan(refresh.Bulk, 1, whole)
		u := f.claim("s")
		failed, later := *u, *u
		failed.State, failed.Names, failed.Error, failed.ErrorKind = refresh.UnitFailed, []string{"B"}, "why", "protocol"
		later.State, later.Names, later.NotBefore = refresh.UnitPending, []string{"C"}, f.Now.Add(time.Minute)
		u.State, u.Names = refresh.UnitDone, []string{"A"}
		f.Tx(func(tx *db.Tx) error {
			if _, _, err := refresh.EndUnit(tx, *u, nil, nil); err != nil {
				return err
			}
			return refresh.SplitUnit(tx, *u, []refresh.FetchUnit{failed, later})
		})
		units, err := refresh.BatchUnits(f.Context(), f.DB, refresh.Batch{JobID: id})
		f.Must(err)
		var got []string
		for _, u := range units {
			got = append(got, fmt.Sprintf("%s %s %s", u.Names, u.State, u.Error))
		}
		if want := []string{"[A] done ", "[B] failed why", "[C] pending "}; !slices.Equal(got, want) {
			f.Errorf("got the units %q, want %q", got, want)
		}
		f.Is("last error of the job", f.job(id).LastError, "why")
		f.Is("no unit can be claimed before the retry", f.claim("s") == nil, true)
		f.Now = f.Now.Add(time.Minute)
		if u := f.claim("s"); u == nil || !slices.Equal(u.Names, []string{"C"}) {
			f.Errorf("got the claim %+v, want one of name C", u)
		}
	})
}

func TestPauseProvider_DefersItsUnits(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		pause := func(paused bool) {
			f.Tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", paused) })
		}
		id := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"), unit("t", "h"))
		u := f.claim("s")
		pause(true)
		u.NotBefore = f.Now
		f.Tx(func(tx *db.Tx) error { return refresh.ReturnUnit(tx, *u) })
		f.Is("no unit of the paused provider can be claimed", f.claim("s") == nil, true)
		f.Is("a unit of another provider can be claimed", f.claim("t") != nil, true)
		units, err := refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		for _, u := range units[:2] {
			f.Is("state and error of the deferred unit", string(u.State)+" "+u.Error, "deferred s: paused by an operator")
		}
		paused, err := refresh.PausedProviders(f.Context(), f.DB)
		f.Must(err)
		f.Is("paused providers", fmt.Sprint(paused), "map[s:true]")
		pause(false)
		paused, err = refresh.PausedProviders(f.Context(), f.DB)
		f.Must(err)
		f.Is("number of paused providers after the provider resumed", len(paused), 0)
	})
}

// No job waits for a unit of the background fetch, so a pause does not defer it.
func TestPauseProvider_KeepsBackgroundUnits(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		id := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"))
		f.inBackground("g")
		f.Tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", true) })
		units, err := refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		f.Is("state of the unit of the job", units[0].State, refresh.UnitDeferred)
		f.Is("state of the unit of the background fetch", units[1].State, refresh.UnitPending)
	})
}

func TestAbandonUnits_FailsUnitsWithoutProvider(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		id := f.plan(refresh.Bulk, 1, unit("gone", "f"), unit("gone", "g"), unit("kept", "h"), unit("kept", "dropped"), unit("other", ""))
		done := f.fetch("gone")
		abandon := func() { f.Tx(func(tx *db.Tx) error { return refresh.AbandonUnits(tx) }) }
		open := func() string {
			units, err := refresh.JobUnits(f.Context(), f.DB, id)
			f.Must(err)
			var out []string
			for _, u := range units {
				if u.State == refresh.UnitPending {
					out = append(out, u.Provider+"/"+u.File)
				} else if u.ID != done.ID {
					f.Is("state of the unit", u.State, refresh.UnitFailed)
				}
			}
			return strings.Join(out, " ")
		}
		abandon() // no instance is registered, so the configured providers are unknown
		f.Is("open units without an instance", open(), "gone/g kept/h kept/dropped other/")
		f.register("old", refresh.Endpoint{Provider: "gone", File: "g"}, refresh.Endpoint{Provider: "kept", File: "dropped"})
		f.register("new", refresh.Endpoint{Provider: "kept", File: "h"}, refresh.Endpoint{Provider: "other"})
		abandon()
		f.Is("open units while both instances live", open(), "gone/g kept/h kept/dropped other/")
		f.Is("last error while both instances live", f.job(id).LastError, "")
		f.Is("the old instance was removed", f.remove("old", 0), true)
		abandon()
		f.Is("open units after the old instance was removed", open(), "kept/h other/")
		f.Is("last error after the old instance was removed", f.job(id).LastError, "gone: no longer configured")
		f.Is("the new instance was removed", f.remove("new", 0), true)
		f.register("none")
		abandon()
		f.Is("open units with an instance without endpoints", open(), "")
	})
}

func TestReclaim_ReleasesOrphans(t *testing.T) {
	each(t, func(f *fixture) {
		names := []string{"A", "B", "C", "D", "E", "F"}
		f.own("u", f.items(names...)...)
		id := f.plan(refresh.Bulk, catalog.Buckets, unit("t", ""), unit("t", ""), unit("t", ""))
		for i := range 3 { // no batch waits for these units
			u := f.claim("t")
			f.Is("a unit was claimed", u != nil, true)
			if i == 2 {
				f.Tx(func(tx *db.Tx) error { return refresh.Reclaim(tx, "me", []int64{u.ID}, nil) })
			}
		}
		f.Tx(func(tx *db.Tx) error { return refresh.Reclaim(tx, "other", nil, nil) })
		units, err := refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		f.Is("states of the units", fmt.Sprintln(units[0].State, units[1].State, units[2].State), "pending pending running\n")
		for range 2 {
			f.fetch("t")
		}
		last := units[2]
		last.State = refresh.UnitFailed
		f.Tx(func(tx *db.Tx) error { _, _, err := refresh.EndUnit(tx, last, nil, nil); return err })
		f.storeValidation(id)
		kept, lost := f.claimBatch(), f.claimBatch()
		f.Tx(func(tx *db.Tx) error { return refresh.Reclaim(tx, "me", nil, []refresh.Batch{*kept}) })
		again := f.claimBatch()
		f.Is("batch claimed after the lost one", again.Batch, lost.Batch)
		f.Is("token of the lost batch", again.Token, lost.Token+1)
		f.Tx(func(tx *db.Tx) error { return refresh.Reclaim(tx, "me", nil, []refresh.Batch{*kept, *again}) })
		f.estimate(kept, 10)
	})
}

// A worker opens a transaction only if there is a unit to claim or to defer.
func TestHasWork_FindsUnitsToClaimOrDefer(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		check := func(what string, c refresh.Claim, want bool) {
			f.Helper()
			c.Provider = "s"
			got, err := refresh.HasWork(f.Context(), f.DB, c)
			f.Must(err)
			f.Is(what, got, want)
		}
		check("without a unit", refresh.Claim{}, false)
		check("names of the background fetch", refresh.Claim{Background: true}, true)
		waits := unit("s", "f")
		waits.NotBefore = f.Now.Add(time.Minute)
		f.Tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", true) })
		f.plan(refresh.Bulk, 1, waits, unit("t", "f"))
		check("a unit of a paused provider", refresh.Claim{}, true)
		f.Tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", false) })
		check("a unit that waits", refresh.Claim{}, false)
		f.Now = f.Now.Add(time.Minute)
		check("a unit after its wait", refresh.Claim{}, true)
		check("a unit of this host", refresh.Claim{Files: []string{"e", "f"}}, true)
		check("a unit of another host", refresh.Claim{Files: []string{"e"}}, false)
		f.fetch("s")
		check("after the unit has ended", refresh.Claim{}, false)
	})
}
