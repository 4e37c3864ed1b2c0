package storetest

import (
	"fmt"
	"time"

	"assay/internal/db"
	"assay/internal/refresh"
)

// register notes an instance and what it can ask for.
func (f *fixture) register(owner string, asks ...refresh.Endpoint) {
	f.Helper()
	f.tx(func(tx *db.Tx) error {
		return refresh.Register(tx, refresh.Instance{Owner: owner, Version: "v1", Endpoints: asks, StartedAt: f.now})
	})
}

// remove removes an instance whose counter was seen at beat.
func (f *fixture) remove(owner string, beat int64) (removed bool) {
	f.Helper()
	f.tx(func(tx *db.Tx) (err error) {
		removed, err = refresh.RemoveInstance(tx, refresh.Heartbeat{Owner: owner, Count: beat})
		return err
	})
	return removed
}

func (f *fixture) beat(owner string) (known bool) {
	f.Helper()
	f.tx(func(tx *db.Tx) (err error) {
		known, err = refresh.WriteHeartbeat(tx, owner, "report of "+owner, 3)
		return err
	})
	return known
}

// pulses lists the counters of all instances in any order of owners.
func (f *fixture) pulses() map[string]int64 {
	f.Helper()
	list, err := refresh.ReadHeartbeats(f.Context(), f.s)
	f.must(err)
	out := map[string]int64{}
	for _, p := range list {
		if _, twice := out[p.Owner]; twice {
			f.Errorf("%s has two counters", p.Owner)
		}
		out[p.Owner] = p.Count
	}
	return out
}

func instancesAreKnown(f *fixture) {
	asks := []refresh.Endpoint{{Provider: "s", File: "a/b"}, {Provider: "t"}}
	f.register("a", asks...)
	f.is("a beat of nobody", f.beat("b"), false)
	f.now = f.now.Add(time.Second)
	f.register("b")
	for range 3 {
		f.is("a beat", f.beat("a"), true)
	}
	f.is("counters", fmt.Sprint(f.pulses()), "map[a:3 b:0]")
	all, err := refresh.Instances(f.Context(), f.s)
	f.must(err)
	f.is("instances", len(all), 2)
	f.is("the first", fmt.Sprint(all[0]), fmt.Sprint(refresh.Instance{
		Owner: "a", Version: "v1", Endpoints: asks, StartedAt: f.now.Add(-time.Second), Heartbeat: 3, HeartbeatAt: f.now, Report: "report of a",
	}))
	f.is("what the second can ask for", len(all[1].Endpoints), 0)
	f.tx(func(tx *db.Tx) error {
		return refresh.Register(tx, refresh.Instance{Owner: "b", Heartbeat: 7, StartedAt: f.now})
	})
	f.is("registered anew", f.pulses()["b"], int64(7))
}

func deadInstances(f *fixture) {
	f.own("u", f.items("A", "B")...)
	f.register("me")
	f.register("other")
	id := f.plan(refresh.Bulk, 1, unit("s", "f"))
	late := f.claim("s")
	f.is("seen too early", f.remove("me", 5), false)
	f.is("removed", f.remove("me", 0), true)
	f.is("removed twice", f.remove("me", 0), false)
	f.is("counters", fmt.Sprint(f.pulses()), "map[other:0]")

	again := f.claim("s")
	f.is("the unit", again.ID, late.ID)
	late.State, late.FetchedAt, late.Requests, late.Reserved = refresh.UnitDone, f.now, 1, 0
	f.tx(func(tx *db.Tx) error {
		ended, _, err := refresh.EndUnit(tx, *late, nil, []refresh.Blob{{Bucket: 1, Data: []byte("late")}})
		f.is("a late end", ended, false)
		return err
	})
	f.tx(func(tx *db.Tx) error {
		counted, err := refresh.ReserveRequests(tx, *late, 1)
		f.is("a late request", counted, false)
		return err
	})
	late.Requests = 0 // told above
	f.tx(func(tx *db.Tx) error { return refresh.ReturnUnit(tx, *late) })
	f.is("after a late return", f.claim("s") == nil, true)
	again.State, again.FetchedAt = refresh.UnitDone, f.now
	f.tx(func(tx *db.Tx) error { _, _, err := refresh.EndUnit(tx, *again, nil, nil); return err })
	units, err := refresh.JobUnits(f.Context(), f.s, id)
	f.must(err)
	f.is("what the late one cost", units[0].Requests, int64(1))

	f.storeVerdict(id)
	f.register("me")
	b := f.claimBatch()
	f.is("removed", f.remove("me", 0), true)
	lateEstimates := f.estimates(b, 99)
	next := f.claimBatch()
	f.is("the batch", next.Batch, b.Batch)
	f.tx(func(tx *db.Tx) error {
		estimated, err := refresh.StoreEstimates(tx, *b, lateEstimates)
		f.is("a late estimates", estimated, false)
		return err
	})
	f.tx(func(tx *db.Tx) error { return refresh.ReturnBatch(tx, *b) })
	f.is("after a late return", f.claimBatch() == nil, true)
	f.estimate(next, 10)
	f.is("updated", f.job(id).Counts.Updated, int64(2))
}

func livingInstances(f *fixture) {
	f.own("u", f.items("A")...)
	f.register("me")
	f.plan(refresh.Bulk, 1, unit("s", "f"))
	u := f.claim("s")
	seen := f.pulses()["me"]
	f.beat("me")
	f.is("removed", f.remove("me", seen), false)
	f.is("removed as nobody", f.remove("me", refresh.NoHeartbeat), false)
	u.State, u.FetchedAt = refresh.UnitDone, f.now
	f.tx(func(tx *db.Tx) error {
		ended, _, err := refresh.EndUnit(tx, *u, nil, nil)
		f.is("ended", ended, true)
		return err
	})
}

func claimsOfNobody(f *fixture) {
	f.own("u", f.items("A")...)
	id := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"))
	f.claim("s")
	f.claim("s")
	f.is("counters", fmt.Sprint(f.pulses()), "map[me:-1]")
	f.is("removed", f.remove("me", refresh.NoHeartbeat), true)
	f.is("counters", len(f.pulses()), 0)
	f.fetch("s")
	f.fetch("s")
	f.storeVerdict(id)
	b := f.claimBatch()
	f.is("counters", fmt.Sprint(f.pulses()), "map[me:-1]")
	f.is("removed", f.remove("me", refresh.NoHeartbeat), true)
	f.is("the batch", f.claimBatch().Token, b.Token+2)
}

func restartForgets(f *fixture) {
	f.register("a")
	f.register("b")
	f.must(refresh.Recover(f.Context(), f.s))
	f.is("counters", len(f.pulses()), 0)
}
