package refresh_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/refresh"
	"assay/internal/user"
	"assay/internal/view"
)

func TestClaimUnit_ManyWorkersClaimEachUnitOnce(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		const n = 200
		units := make([]refresh.FetchUnit, n)
		for i := range units {
			units[i] = unit("s", fmt.Sprint("f", i))
		}
		id := f.plan(refresh.Bulk, 1, units...)
		var mu sync.Mutex
		claimed := map[int64]int{}
		dbtest.AtOnce(8, func(i int) {
			for range n { // claims succeed until no unit is left
				var u *refresh.FetchUnit
				f.Try(func(tx *db.Tx) (err error) {
					u, err = refresh.ClaimUnit(tx, refresh.Claim{Provider: "s", Owner: fmt.Sprint("worker ", i)})
					return err
				})
				if u == nil {
					return
				}
				mu.Lock()
				claimed[u.ID]++
				mu.Unlock()
			}
		})
		f.Is("claimed units", len(claimed), n)
		for unit, times := range claimed {
			if times != 1 {
				f.Errorf("unit %d of job %d was claimed %d times, want once", unit, id, times)
			}
		}
	})
}

func TestClaimBatch_ManyWorkersClaimEachBatchOnce(t *testing.T) {
	each(t, func(f *fixture) {
		names := make([]string, 1000)
		for i := range names {
			names[i] = fmt.Sprint("name ", i)
		}
		f.own("u", f.items(names...)...)
		f.storeValidation(f.plan(refresh.Bulk, catalog.Buckets))
		var claimed, items atomic.Int64
		dbtest.AtOnce(8, func(int) {
			for range catalog.Buckets {
				var b *refresh.Batch
				f.Try(func(tx *db.Tx) (err error) {
					b, err = refresh.ClaimBatch(tx, "me")
					return err
				})
				if b == nil {
					return
				}
				list, err := refresh.BatchItems(f.Context(), f.DB, *b)
				if err != nil {
					f.Error(err)
				}
				claimed.Add(1)
				items.Add(int64(len(list)))
				f.Is("token of the claimed batch", b.Token, int64(1))
			}
		})
		f.Is("items of all batches", items.Load(), int64(len(names)))
	})
}

func TestInsertJob_ConcurrentCallersInsertOneJob(t *testing.T) {
	each(t, func(f *fixture) {
		for round := range 5 {
			var mu sync.Mutex
			ids, made := map[int64]bool{}, 0
			dbtest.AtOnce(16, func(int) {
				var id int64
				var mine bool
				f.Try(func(tx *db.Tx) (err error) {
					id, mine, err = refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk, RequestedBy: "test"})
					return err
				})
				mu.Lock()
				defer mu.Unlock()
				ids[id] = true
				if mine {
					made++
				}
			})
			f.Is(fmt.Sprint("jobs made in round ", round), made, 1)
			f.Is(fmt.Sprint("ids returned in round ", round), len(ids), 1)
			for id := range ids {
				f.Tx(func(tx *db.Tx) error { return refresh.FailJob(tx, id, "enough") })
			}
		}
	})
}

// syncer returns a service that syncs inventories.
func (f *fixture) syncer() *inventory.Service {
	return &inventory.Service{
		InTx:        f.DB.InTx,
		Queued:      func() {},
		Inspectable: func() {},
		Synced:      market.InventoryTouched,
	}
}

// push returns an inventory with one asset of each name.
func (f *fixture) push(names ...string) inventory.Push {
	p := inventory.Push{AppID: app, ContextID: "2", SnapshotAt: f.Now}
	for i, n := range names {
		p.Assets = append(p.Assets, inventory.Asset{AssetID: fmt.Sprint(i), Name: n, Amount: 1})
	}
	return p
}

// headstart is how long a test watches a blocked transaction to check that it waits.
const headstart = 300 * time.Millisecond

// giveHeadstart waits until done is closed, or for the headstart if it is not.
func giveHeadstart(done <-chan struct{}) {
	t := time.NewTimer(headstart)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// A sync copies the old price of one item and queues another item that has no price. Then an
// estimate and its apply begin.
func TestStoreEstimates_WaitsForASyncThatHoldsThePrice(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A", "B")
		f.own("u", ids[0])
		f.finish(f.run(10))
		f.own("v", ids[1])
		f.Now = f.Now.Add(7 * time.Hour)
		copied, apply := make(chan struct{}), make(chan struct{})
		var late sync.WaitGroup
		late.Go(func() {
			ready := sync.OnceFunc(func() { close(copied) })
			defer ready()
			f.Try(func(tx *db.Tx) error {
				user, err := user.Ensure(tx, "late")
				if err != nil {
					return err
				}
				prices, err := catalog.LockPrices(tx, ids)
				if err != nil {
					return err
				}
				if err := addRows(tx, user, ids, prices); err != nil {
					return err
				}
				if _, _, err := catalog.QueueMissing(tx, ids[1:]); err != nil {
					return err
				}
				ready()
				giveHeadstart(apply)
				return nil
			})
		})
		<-copied
		job := f.run(20)
		f.openShards(job, 4)
		f.apply(job)
		f.finish(job)
		close(apply)
		late.Wait()
		user, _, err := user.Key(f.Context(), f.DB, "late")
		f.Must(err)
		if got := f.values(user); !slices.Equal(got, []money.Micro{20, 20}) {
			f.Errorf("values of the rows that the sync wrote: got %v, want 20 and 20", got)
		}
		q, err := view.ReadMissingQueue(f.Context(), f.DB, f.Now)
		f.Must(err)
		f.Is("queued items that have a price", q.PendingItems+q.WaitingItems, int64(0))
	})
}

const syncers = 8

// A sync reads the old price while a batch is estimated and applied. No row may keep the old
// price.
func TestStoreEstimates_ConcurrentSyncsGetTheNewPrice(t *testing.T) {
	each(t, func(f *fixture) {
		s := f.syncer()
		names := []string{"A", "B", "C", "D"}
		f.own("owner", f.items(names...)...)
		for round := range 10 {
			f.Now = f.Now.Add(7 * time.Hour)
			price := money.Micro(10 + round)
			var syncing sync.WaitGroup
			for i := range syncers {
				p := f.push(names...)
				if (round+i)%2 == 0 {
					p = f.push("D", "B") // changes some rows and removes others
				}
				syncing.Go(func() {
					for range 3 {
						if _, err := s.Sync(f.Context(), fmt.Sprint("user ", i), p, inventory.Normal); err != nil {
							f.Error(err)
						}
					}
				})
			}
			job := f.run(price)
			f.openShards(job, 4)
			f.apply(job)
			f.Is("state of the job", f.finish(job), refresh.Finished)
			syncing.Wait()
			f.checkValues(price)
		}
	})
}

// checkValues fails the test if the value of a row is not price.
func (f *fixture) checkValues(price money.Micro) {
	f.Helper()
	for i := range syncers + 1 {
		name := fmt.Sprint("user ", i)
		if i == syncers {
			name = "owner"
		}
		key, _, err := user.Key(f.Context(), f.DB, name)
		f.Must(err)
		for _, v := range f.values(key) {
			if v != price {
				f.Fatalf("row of %s: got the value %v, want %v", name, v, price)
			}
		}
	}
}
