package refresh_test

import (
	"context"
	"database/sql"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/admission"
	"assay/internal/db"
	"assay/internal/dispatch"
	"assay/internal/inventory"
	"assay/internal/pgtest"
	"assay/internal/provider"
	"assay/internal/randtest"
	"assay/internal/refresh"
)

// instance is one of several processes on a world's database. The test controls its
// heartbeats and its monotonic clock.
type instance struct {
	*refresh.Engine
	name     string
	elapsed  atomic.Int64
	priority *admission.Priority
	// atNow is called whenever the engine reads the wall clock.
	atNow atomic.Pointer[func()]
}

// cluster is a world that several instances share. On PostgreSQL each instance has its own
// store.
type cluster struct {
	*world
	open func() *db.DB
}

// join adds an instance with its own providers to the cluster.
func (w *cluster) join(name string, providers ...*fakeProvider) *instance {
	w.tb.Helper()
	i := &instance{name: name, priority: admission.NewPriority()}
	var list []provider.Provider
	for _, s := range providers {
		list = append(list, s)
	}
	var err error
	i.Engine, err = refresh.New(w.tb.Context(), refresh.Options{
		Store: w.open(), Config: w.cfg, Providers: list, Wake: func(string) { w.woken.Store(true) },
		Owner: name, Version: "test", Shared: true, Priority: i.priority,
		Elapsed: func() time.Duration { return time.Duration(i.elapsed.Load()) },
		Now: func() time.Time {
			if fn := i.atNow.Load(); fn != nil {
				(*fn)()
			}
			return w.clock.Now()
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	must(w.tb, err)
	return i
}

// pass advances the clocks of living instances in steps of half a second, with a heartbeat per step.
func (w *cluster) pass(d time.Duration, living ...*instance) {
	w.tb.Helper()
	const step = 500 * time.Millisecond
	for range d / step {
		for _, i := range living {
			i.elapsed.Add(int64(step))
			must(w.tb, i.Heartbeat(w.tb.Context()))
			must(w.tb, i.CheckPeers(w.tb.Context()))
		}
	}
}

// drainBy runs instances alternately until no work is left.
func (w *cluster) drainBy(living ...*instance) {
	w.tb.Helper()
	for range 10_000 {
		w.woken.Store(false)
		some := false
		for _, i := range living {
			for _, worker := range i.Workers() {
				more, err := worker.Work(w.tb.Context())
				must(w.tb, err)
				some = some || more
			}
		}
		if !some && !w.woken.Load() {
			return
		}
	}
	w.tb.Fatal("got more work after every step, want an end")
}

// owners returns the registered instances.
func (w *cluster) owners() (names []string) {
	w.tb.Helper()
	all, err := refresh.Instances(w.tb.Context(), w.store)
	must(w.tb, err)
	for _, i := range all {
		names = append(names, i.Owner)
	}
	slices.Sort(names)
	return names
}

// shared runs a test on both databases. On SQLite all instances share one process.
func shared(t *testing.T, test func(t *testing.T, w *cluster)) {
	t.Helper()
	t.Run("one process", func(t *testing.T) {
		w := newWorld(t)
		w.exec(`DELETE FROM instance`) // the world's own engine is not part of the cluster
		test(t, &cluster{w, func() *db.DB { return w.store }})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := pgtest.Shared(t).NewDatabase(t)
		w := &world{tb: t, clock: &clock{now: epoch}, cfg: defaults()}
		open := func() *db.DB {
			s, err := db.Open(t.Context(), db.Options{URL: url, Now: w.clock.Now})
			must(t, err)
			t.Cleanup(func() { must(t, s.Close()) })
			return s
		}
		var err error
		w.store = open()
		w.raw, err = sql.Open("pgx", url)
		must(t, err)
		t.Cleanup(func() { must(t, w.raw.Close()) })
		w.sync = &inventory.Service{
			InTx:        w.store.InTx,
			Queued:      func() {},
			Inspectable: func() {},
		}
		test(t, &cluster{w, open})
	})
}

// One of two instances is already configured to request the provider by name.
func TestClaim_InstanceByNameClaimsNoFiles(t *testing.T) {
	shared(t, func(t *testing.T, w *cluster) {
		list := names("Item", 30)
		files, byName := w.join("a", bulk("alpha", list, "a1")), w.join("b", batch("alpha", 10, list, "a1"))
		w.push("u", 730, list...)
		w.clearMissing()
		s, err := files.Start(t.Context(), false, "test")
		must(t, err)
		_, err = files.Plan(t.Context())
		must(t, err)
		w.drainBy(byName, files)
		j := w.job(s.JobID)
		equal(t, "updated", j.Counts.Updated, 30)
		equal(t, "the last error", j.LastError, "")
	})
}

func TestLease_UnitOfAStoppedInstanceIsRequestedAgain(t *testing.T) {
	shared(t, func(t *testing.T, w *cluster) {
		list := names("Item", 50)
		stuck := bulk("alpha", list, "a1")
		calling, goOn := make(chan struct{}), make(chan struct{})
		stuck.before = func(context.Context, provider.Call) { close(calling); <-goOn }
		stuck.edit = func(q *provider.Quote) bool { q.Ask = units(99); return true } // an accepted response would change the price
		a, b, c := w.join("a", bulk("alpha", list, "a1")), w.join("b", bulk("alpha", list, "a1")), w.join("c", stuck)
		w.push("u", 730, list...)
		w.clearMissing()
		for n, i := range []*instance{a, b, c} {
			s, err := i.Start(t.Context(), false, "test")
			must(t, err)
			equal(t, "whether a job started", s.Started, n == 0)
		}
		_, err := a.Plan(t.Context())
		must(t, err)
		w.pass(time.Second, a, b, c)

		var fetching sync.WaitGroup
		fetching.Go(func() {
			_, err := c.Workers()[len(c.Workers())-1].Work(t.Context())
			must(t, err)
		})
		<-calling // c stops for three lease periods
		w.drainBy(a, b)
		equal(t, "blobs while instance c may be alive", w.count(`SELECT count(*) FROM fetch_blob`), 0)
		w.pass(3*refresh.Lease, a, b)
		equal(t, "instances", slices.Equal(w.owners(), []string{"a", "b"}), true)
		w.drainBy(a, b)
		job := w.last(refresh.Bulk)
		equal(t, "state", job.State, refresh.Finished)
		before := w.count(`SELECT sum(length(data)) FROM fetch_blob`)

		close(goOn) // c continues
		fetching.Wait()
		equal(t, "bytes of responses", w.count(`SELECT sum(length(data)) FROM fetch_blob`), before)
		equal(t, "requests", w.count(`SELECT sum(requests) FROM fetch_unit`), 2)
		w.pass(time.Second, a, b, c)
		equal(t, "whether all instances remain", slices.Equal(w.owners(), []string{"a", "b", "c"}), true)
		stuck.before = nil
		w.drainBy(a, b, c)
		equal(t, "the price from the other markets", w.named(list[0]).Price, units(10))
		equal(t, "updated", w.job(job.ID).Counts.Updated, 50)
		equal(t, "jobs", w.count(`SELECT count(*) FROM refresh_job`), 1)
		w.checkIdle()
	})
}

func TestLease_BatchOfAStoppedInstanceIsEstimatedOnce(t *testing.T) {
	shared(t, func(t *testing.T, w *cluster) {
		list := names("Item", 700) // two batches
		provider := func() *fakeProvider { return bulk("alpha", list, "a1") }
		a, b, c := w.join("a", provider()), w.join("b", provider()), w.join("c", provider())
		w.push("u", 730, list...)
		w.clearMissing()
		_, err := a.Start(t.Context(), false, "test")
		must(t, err)
		for _, work := range []string{refresh.WorkPlan, refresh.FetchKind("alpha", "")} {
			for _, worker := range a.Workers() {
				if worker.Kind == work {
					_, err := worker.Work(t.Context())
					must(t, err)
				}
			}
		}
		_, err = a.Estimate(t.Context()) // validates
		must(t, err)
		w.pass(time.Second, a, b, c)

		estimating, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		stop := func() { once.Do(func() { close(estimating); <-goOn }) }
		c.atNow.Store(&stop)
		var worker sync.WaitGroup
		worker.Go(func() {
			_, err := c.Estimate(t.Context())
			must(t, err)
		})
		<-estimating // c has claimed and read a batch but has not written it
		w.pass(3*refresh.Lease, a, b)
		w.drainBy(a, b)
		job := w.last(refresh.Bulk)
		equal(t, "state", job.State, refresh.Finished)

		close(goOn)
		worker.Wait()
		w.pass(time.Second, a, b, c)
		w.drainBy(a, b, c)
		equal(t, "updated", w.job(job.ID).Counts.Updated, 700)
		equal(t, "items not estimated exactly once", w.count(`SELECT count(*) FROM refresh_item WHERE attempts <> 1`), 0)
		equal(t, "estimates", w.count(`SELECT count(*) FROM item WHERE rev <> 1`), 0)
		w.checkIdle()
	})
}

func TestLease_HeartbeatKeepsClaims(t *testing.T) {
	shared(t, func(t *testing.T, w *cluster) {
		list := names("Item", 10)
		slow := bulk("alpha", list, "a1")
		calling, goOn := make(chan struct{}), make(chan struct{})
		slow.before = func(context.Context, provider.Call) { close(calling); <-goOn }
		a, b := w.join("a", bulk("alpha", list, "a1")), w.join("b", slow)
		w.push("u", 730, list...)
		w.clearMissing()
		_, err := a.Start(t.Context(), false, "test")
		must(t, err)
		_, err = a.Plan(t.Context())
		must(t, err)
		var fetching sync.WaitGroup
		fetching.Go(func() {
			_, err := b.Workers()[len(b.Workers())-1].Work(t.Context())
			must(t, err)
		})
		<-calling
		w.pass(10*refresh.Lease, a, b)
		w.drainBy(a)
		close(goOn)
		fetching.Wait()
		w.drainBy(a, b)
		equal(t, "requests", w.count(`SELECT sum(requests) FROM fetch_unit`), 1)
		equal(t, "updated", w.last(refresh.Bulk).Counts.Updated, 10)
	})
}

func TestLease_HeartbeatsReportSyncsToOtherInstances(t *testing.T) {
	shared(t, func(t *testing.T, w *cluster) {
		a, b := w.join("a"), w.join("b")
		w.pass(time.Second, a, b)
		equal(t, "busy before a sync", a.priority.Busy(), false)
		end := b.priority.Write()
		w.pass(time.Second, b, a)
		equal(t, "busy while another instance runs a sync", a.priority.Busy(), true)
		end()
	})
}

// Until the row of a killed process is deleted, each lookup asks the database for changes.
func TestLease_AnnouncementOfADeadInstanceExpires(t *testing.T) {
	shared(t, func(t *testing.T, w *cluster) {
		a := w.join("a")
		w.exec(`INSERT INTO price_writer (owner) VALUES ('dead')`)
		w.pass(refresh.Lease/2, a)
		equal(t, "announcements before the lease expires", w.count(`SELECT count(*) FROM price_writer`), 1)
		w.pass(refresh.Lease, a)
		equal(t, "announcements after the lease expired", w.count(`SELECT count(*) FROM price_writer`), 0)
	})
}

func TestLease_DatabaseOutageExpiresNoLease(t *testing.T) {
	shared(t, func(t *testing.T, w *cluster) {
		a, b := w.join("a"), w.join("b")
		w.pass(time.Second, a, b)
		for _, i := range []*instance{a, b} { // no heartbeat or read for a minute
			i.elapsed.Add(int64(time.Minute))
		}
		must(t, a.CheckPeers(t.Context()))
		must(t, b.CheckPeers(t.Context()))
		equal(t, "instances", len(w.owners()), 2)
		w.pass(10*refresh.Lease, a)
		equal(t, "only instance a is left after b was removed", slices.Equal(w.owners(), []string{"a"}), true)
	})
}

func TestLease_LeaveReleasesClaimsImmediately(t *testing.T) {
	shared(t, func(t *testing.T, w *cluster) {
		a := w.join("a", bulk("alpha", names("Item", 10), "a1"), bulk("beta", names("Item", 10), "b1"))
		b := w.join("b", bulk("alpha", names("Item", 10), "a1"))
		w.push("u", 730, names("Item", 10)...)
		w.clearMissing()
		_, err := a.Start(t.Context(), false, "test")
		must(t, err)
		_, err = a.Plan(t.Context())
		must(t, err)
		must(t, a.Leave(t.Context()))
		equal(t, "instances", slices.Equal(w.owners(), []string{"b"}), true)
		w.drainBy(b)
		job := w.last(refresh.Bulk)
		equal(t, "items updated without the removed provider", job.Counts.Updated, 10)
		equal(t, "the last error", job.LastError, "beta: no longer configured")
		w.checkIdle()
	})
}

func TestLease_RollingUpdateKeepsUnitsOfConfiguredProviders(t *testing.T) {
	shared(t, func(t *testing.T, w *cluster) {
		list := names("Item", 10)
		old := w.join("old", bulk("alpha", list, "a1"), bulk("beta", list, "b1"))
		w.push("u", 730, list...)
		w.clearMissing()
		_, err := old.Start(t.Context(), false, "test")
		must(t, err)
		_, err = old.Plan(t.Context())
		must(t, err)
		w.join("new", bulk("alpha", list, "a1"))
		equal(t, "units that failed", w.count(`SELECT count(*) FROM fetch_unit WHERE state = 'failed'`), 0)
		w.drainBy(old)
		equal(t, "snapshots", w.count(`SELECT count(*) FROM market_snapshot`), 20)
	})
}

func TestLease_InstancesShareWorkDuringTakeover(t *testing.T) {
	shared(t, func(t *testing.T, w *cluster) {
		w.cfg.FetchSlots, w.cfg.EstimateSlots = 2, 2
		list := names("Item", randtest.Count(3_000, 30_000))
		provider := func() []*fakeProvider {
			return []*fakeProvider{bulk("alpha", list, "a1", "a2", "a3"), batch("beta", 100, list, "b1")}
		}
		w.push("u", 730, list...)
		w.clearMissing()
		run := func(i *instance) (stop func()) {
			ctx, cancel := context.WithCancel(w.tb.Context())
			local := dispatch.NewLocal(dispatch.LocalOptions{
				Workers: i.Workers(), Sweep: 20 * time.Millisecond, Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler),
			})
			var running sync.WaitGroup
			running.Go(func() { local.Run(ctx) })
			return func() { cancel(); running.Wait() }
		}
		a, b, c := w.join("a", provider()...), w.join("b", provider()...), w.join("c", provider()...)
		stops := []func(){run(a), run(b), run(c)}
		var starting sync.WaitGroup
		var started atomic.Int64
		for _, i := range []*instance{a, b, c} {
			starting.Go(func() {
				s, err := i.Start(t.Context(), false, "test")
				if err != nil {
					t.Error(err)
				}
				if s.Started {
					started.Add(1)
				}
			})
		}
		starting.Wait()
		equal(t, "jobs started", started.Load(), 1)
		// Instance c works without heartbeats, so a and b take over its claims repeatedly.
		// The work must still be counted once.
		until(t, "the end of the job", func() bool {
			w.pass(refresh.Lease+time.Second, a, b)
			return !w.last(refresh.Bulk).State.Live()
		})
		for _, stop := range stops {
			stop()
		}
		job := w.last(refresh.Bulk)
		equal(t, "updated", job.Counts.Updated, int64(len(list)))
		equal(t, "items not estimated exactly once", w.count(`SELECT count(*) FROM refresh_item WHERE attempts <> 1`), 0)
		equal(t, "jobs", w.count(`SELECT count(*) FROM refresh_job`), 1)
		w.checkIdle()
	})
}
