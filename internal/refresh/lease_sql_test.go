package refresh_test

import (
	"fmt"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/refresh"
)

// register registers an instance with its endpoints.
func (f *fixture) register(owner string, endpoints ...refresh.Endpoint) {
	f.Helper()
	f.Tx(func(tx *db.Tx) error {
		return refresh.Register(tx, refresh.Instance{Owner: owner, Version: "v1", Endpoints: endpoints, StartedAt: f.Now})
	})
}

// remove removes an instance whose counter was last read as count.
func (f *fixture) remove(owner string, count int64) (removed bool) {
	f.Helper()
	f.Tx(func(tx *db.Tx) (err error) {
		removed, err = refresh.RemoveInstance(tx, refresh.Heartbeat{Owner: owner, Count: count})
		return err
	})
	return removed
}

func (f *fixture) heartbeat(owner string) (known bool) {
	f.Helper()
	f.Tx(func(tx *db.Tx) (err error) {
		known, err = refresh.WriteHeartbeat(tx, owner, "report of "+owner, 3)
		return err
	})
	return known
}

// heartbeats returns the counters of all instances, by owner.
func (f *fixture) heartbeats() map[string]int64 {
	f.Helper()
	list, err := refresh.ReadHeartbeats(f.Context(), f.DB)
	f.Must(err)
	out := map[string]int64{}
	for _, p := range list {
		if _, twice := out[p.Owner]; twice {
			f.Errorf("instance %s has two counters, want one", p.Owner)
		}
		out[p.Owner] = p.Count
	}
	return out
}

func TestRegister_StoresAnInstance(t *testing.T) {
	each(t, func(f *fixture) {
		endpoints := []refresh.Endpoint{{Provider: "s", File: "a/b"}, {Provider: "t"}}
		f.register("a", endpoints...)
		f.Is("heartbeat of an unknown instance was stored", f.heartbeat("b"), false)
		f.Now = f.Now.Add(time.Second)
		f.register("b")
		for range 3 {
			f.Is("heartbeat was stored", f.heartbeat("a"), true)
		}
		f.Is("counters of the instances", fmt.Sprint(f.heartbeats()), "map[a:3 b:0]")
		all, err := refresh.Instances(f.Context(), f.DB)
		f.Must(err)
		f.Is("number of instances", len(all), 2)
		f.Is("first instance", fmt.Sprint(all[0]), fmt.Sprint(refresh.Instance{
			Owner: "a", Version: "v1", Endpoints: endpoints, StartedAt: f.Now.Add(-time.Second), Heartbeat: 3, HeartbeatAt: f.Now, Report: "report of a",
		}))
		f.Is("number of endpoints of the second instance", len(all[1].Endpoints), 0)
		f.Tx(func(tx *db.Tx) error {
			return refresh.Register(tx, refresh.Instance{Owner: "b", Heartbeat: 7, StartedAt: f.Now})
		})
		f.Is("counter of the instance that registered again", f.heartbeats()["b"], int64(7))
	})
}

func TestRemoveInstance_ReleasesItsClaims(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A", "B")...)
		f.register("me")
		f.register("other")
		id := f.plan(refresh.Bulk, 1, unit("s", "f"))
		late := f.claim("s")
		f.Is("instance with an old counter was removed", f.remove("me", 5), false)
		f.Is("instance was removed", f.remove("me", 0), true)
		f.Is("instance was removed twice", f.remove("me", 0), false)
		f.Is("counters of the instances", fmt.Sprint(f.heartbeats()), "map[other:0]")

		again := f.claim("s")
		f.Is("unit claimed after the removal", again.ID, late.ID)
		late.State, late.FetchedAt, late.Requests, late.Reserved = refresh.UnitDone, f.Now, 1, 0
		f.Tx(func(tx *db.Tx) error {
			ended, _, err := refresh.EndUnit(tx, *late, nil, []refresh.Blob{{Bucket: 1, Data: []byte("late")}})
			f.Is("unit ended with the lost claim", ended, false)
			return err
		})
		f.Tx(func(tx *db.Tx) error {
			counted, err := refresh.ReserveRequests(tx, *late, 1)
			f.Is("request was counted with the lost claim", counted, false)
			return err
		})
		late.Requests = 0 // counted above
		f.Tx(func(tx *db.Tx) error { return refresh.ReturnUnit(tx, *late) })
		f.Is("no unit can be claimed after a release with the lost claim", f.claim("s") == nil, true)
		again.State, again.FetchedAt = refresh.UnitDone, f.Now
		f.Tx(func(tx *db.Tx) error { _, _, err := refresh.EndUnit(tx, *again, nil, nil); return err })
		units, err := refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		f.Is("requests of the late claim", units[0].Requests, int64(1))

		f.storeValidation(id)
		f.register("me")
		b := f.claimBatch()
		f.Is("instance was removed", f.remove("me", 0), true)
		lateEstimates := f.estimates(b, 99)
		next := f.claimBatch()
		f.Is("batch claimed after the removal", next.Batch, b.Batch)
		f.Tx(func(tx *db.Tx) error {
			estimated, err := refresh.StoreEstimates(tx, *b, lateEstimates)
			f.Is("batch was estimated with the lost claim", estimated, false)
			return err
		})
		f.Tx(func(tx *db.Tx) error { return refresh.ReturnBatch(tx, *b) })
		f.Is("no batch can be claimed after a release with the lost claim", f.claimBatch() == nil, true)
		f.estimate(next, 10)
		f.Is("updated items", f.job(id).Counts.Updated, int64(2))
	})
}

func TestRemoveInstance_KeepsClaimsOfALiveInstance(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		f.register("me")
		f.plan(refresh.Bulk, 1, unit("s", "f"))
		u := f.claim("s")
		seen := f.heartbeats()["me"]
		f.heartbeat("me")
		f.Is("instance that sent a heartbeat was removed", f.remove("me", seen), false)
		f.Is("instance with a heartbeat was removed as one without", f.remove("me", refresh.NoHeartbeat), false)
		u.State, u.FetchedAt = refresh.UnitDone, f.Now
		f.Tx(func(tx *db.Tx) error {
			ended, _, err := refresh.EndUnit(tx, *u, nil, nil)
			f.Is("unit ended with a valid claim", ended, true)
			return err
		})
	})
}

func TestReadHeartbeats_FindsOrphanedClaims(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		id := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"))
		f.claim("s")
		f.claim("s")
		f.Is("counters of the instances", fmt.Sprint(f.heartbeats()), "map[me:-1]")
		f.Is("instance without a heartbeat was removed", f.remove("me", refresh.NoHeartbeat), true)
		f.Is("number of counters", len(f.heartbeats()), 0)
		f.fetch("s")
		f.fetch("s")
		f.storeValidation(id)
		b := f.claimBatch()
		f.Is("counters after the next claim", fmt.Sprint(f.heartbeats()), "map[me:-1]")
		f.Is("instance without a heartbeat was removed again", f.remove("me", refresh.NoHeartbeat), true)
		f.Is("token of the batch", f.claimBatch().Token, b.Token+2)
	})
}

func TestRecover_RemovesAllInstances(t *testing.T) {
	each(t, func(f *fixture) {
		f.register("a")
		f.register("b")
		f.Must(refresh.Recover(f.Context(), f.DB))
		f.Is("number of counters", len(f.heartbeats()), 0)
	})
}
