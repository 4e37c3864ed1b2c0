package refresh_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"assay/internal/db/dbtest"
	"assay/internal/dispatch"
	"assay/internal/inventory"
	"assay/internal/provider"
	"assay/internal/randtest"
	"assay/internal/refresh"
)

// work runs the engine's workers in the background until stop is called.
func (w *world) work() (stop func()) {
	ctx, cancel := context.WithCancel(w.tb.Context())
	local := dispatch.NewLocal(dispatch.LocalOptions{
		Workers: w.engine.Workers(), Sweep: 20 * time.Millisecond, Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler),
	})
	var running sync.WaitGroup
	running.Go(func() { local.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// until waits for a condition. It fails the test after a timeout.
func until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.After(time.Duration(randtest.Count(2, 20)) * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			tb.Fatalf("timed out waiting for %s", what)
		case <-tick.C:
		}
	}
}

// idle reports whether no job is live and no queued item is due.
func (w *world) idle() bool {
	return w.count(`SELECT (SELECT count(*) FROM refresh_job WHERE state IN ('queued', 'running'))
		+ (SELECT count(*) FROM missing_price WHERE job_id <> 0 OR due_at <= $1)`, w.clock.Now().UnixMicro()) == 0
}

func TestConcurrency_OverlappingSyncsQueueEachUnknownNameOnce(t *testing.T) {
	dbtest.NewDatabase(t) // starts the PostgreSQL server, whose goroutines stay
	leaks := goleak.IgnoreCurrent()
	users, size := 200, 20
	if randtest.Count(0, 1) == 1 {
		users, size = 1000, 500
	}
	common := names("Common", size*6/10)
	var all []string
	own := make([][]string, users)
	for u := range own {
		own[u] = names(fmt.Sprintf("Of user %d", u), size-len(common))
		all = append(all, own[u]...)
	}
	all = append(all, common...)
	w := newWorld(t, bulk("alpha", all, "a1", "a2"), batch("beta", 500, all, "b1"))
	w.cfg.FetchSlots, w.cfg.EstimateSlots = 2, 2
	w.restart()
	stop := w.work()

	var pushing sync.WaitGroup
	var queued atomic.Int64
	start := make(chan struct{})
	for u := range users {
		p := inventory.Push{AppID: 730, ContextID: "2", SnapshotAt: epoch}
		for i, n := range append(own[u], common...) {
			p.Assets = append(p.Assets, inventory.Asset{AssetID: fmt.Sprint(i), Name: n, Amount: 1})
		}
		pushing.Go(func() {
			<-start
			r, err := w.sync.Sync(t.Context(), fmt.Sprint("user ", u), p, inventory.Normal)
			if err != nil {
				t.Error(err)
			}
			queued.Add(r.QueuedNames)
		})
	}
	close(start)
	pushing.Wait()
	until(t, "an empty queue", w.idle)
	stop()
	equal(t, "names queued", queued.Load(), int64(len(all)))
	equal(t, "names in all jobs, with repetitions", w.count(`SELECT count(*) FROM refresh_item`), int64(len(all)))
	equal(t, "names priced", w.count(`SELECT count(*) FROM item WHERE price > 0`), int64(len(all)))
	equal(t, "rows with a value", w.count(`SELECT count(*) FROM inventory WHERE value IS NOT NULL`), int64(users*size))
	w.checkIdle()
	w.stop()
	goleak.VerifyNone(t, leaks)
}

func TestConcurrency_CountsAlwaysAddUpAndNeverDecrease(t *testing.T) {
	list := names("Item", randtest.Count(2_000, 30_000))
	a, b := bulk("alpha", list, "a1", "a2", "a3"), batch("beta", 100, list, "b1")
	w := newWorld(t, a, b)
	w.cfg.FetchSlots, w.cfg.EstimateSlots = 2, 2
	w.restart()
	w.push("u", 730, list...)
	w.clearMissing()
	stop := w.work()
	id := w.begin(false)
	last := refresh.Counts{Pending: int64(len(list))}
	planned := false
	until(t, "the end of the job", func() bool {
		j := w.job(id)
		c := j.Counts
		if sum := c.Pending + c.Updated + c.NoQuote + c.Failed + c.Cancelled + c.SkippedTTL + c.SkippedNoSales + c.SkippedBudget; sum != c.Total {
			t.Fatalf("the counts add up to %d, want %d: %+v", sum, c.Total, c)
		}
		if planned = planned || c.Total > 0; planned {
			equal(t, "items", c.Total, int64(len(list)))
			if c.Pending > last.Pending || c.Updated < last.Updated {
				t.Fatalf("the counts changed from %+v to %+v, want pending to fall and updated to grow", last, c)
			}
			last = c
		}
		return !j.State.Live()
	})
	stop()
	equal(t, "updated", w.job(id).Counts.Updated, int64(len(list)))
	w.checkIdle()
}

func TestConcurrency_BulkAndMissingJobEstimateTheSameItems(t *testing.T) {
	list := names("Item", 300)
	for range randtest.Count(3, 100) {
		w := newWorld(t, bulk("alpha", list, "a1", "a2", "a3"), batch("beta", 40, list, "b1"))
		w.cfg.FetchSlots, w.cfg.EstimateSlots = 2, 2
		w.restart()
		w.push("u", 730, list...)
		stop := w.work()
		w.begin(false)
		until(t, "the end of both jobs", func() bool {
			return w.idle() && w.count(`SELECT count(*) FROM refresh_job`) >= 1
		})
		stop()
		equal(t, "priced names", w.count(`SELECT count(*) FROM item WHERE `+around("price", units(10))), 300)
		w.checkIdle()
		w.stop()
	}
}

func TestConcurrency_HangingProviderDelaysNoOther(t *testing.T) {
	list := names("Item", 40)
	hangs, good := batch("alpha", 40, list[:20], "a1"), bulk("beta", list, "b1")
	calling := make(chan struct{}, 10)
	hangs.before = func(ctx context.Context, _ provider.Call) {
		calling <- struct{}{}
		<-ctx.Done()
	}
	w := newWorld(t, hangs, good)
	w.push("u", 730, list...)
	w.clearMissing()
	stop := w.work()
	id := w.begin(false)
	<-calling
	until(t, "the response of the other provider", func() bool { return w.count(`SELECT count(*) FROM fetch_blob`) > 0 })
	// The stop does not wait for the hanging request. The next start sends the request again.
	stop()
	equal(t, "state", w.job(id).State, refresh.Running)
	equal(t, "claimed units", w.count(`SELECT count(*) FROM fetch_unit WHERE state = 'running'`), 0)
	hangs.before = nil
	w.restart()
	w.drain()
	equal(t, "updated", w.job(id).Counts.Updated, 40)
	w.checkIdle()
}
