//go:build unix

package river_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"assay/internal/dispatch"
	"assay/internal/dispatch/dispatchtest"
	"assay/internal/dispatch/river"
	"assay/internal/pgtest"
)

// never is a sweep that does not come while a test lasts.
const never = 24 * time.Hour

func TestCluster_AWakeIsFollowedByEveryInstance(t *testing.T) {
	t.Parallel() // it mostly waits
	const instances, slots = 3, 2
	_, open := cluster(t)
	var ready atomic.Bool
	var inside, looks atomic.Int64
	work := func(ctx context.Context) (bool, error) {
		looks.Add(1)
		if !ready.Load() {
			return false, nil
		}
		inside.Add(1)
		<-ctx.Done()
		return false, nil
	}
	var all []dispatch.Dispatcher
	for range instances {
		d := open(dispatchtest.Options{
			Sweep: never, Logger: discard(),
			Workers: []dispatch.Worker{{Kind: "work", Queue: dispatch.QueueBulk, Slots: slots, Work: work}},
		})
		dispatchtest.Start(t, d)
		all = append(all, d)
	}
	// Each slot looks when it starts and when its instance has begun to listen.
	dispatchtest.Until(t, "everybody to listen", func() bool { return looks.Load() >= 2*instances*slots })
	ready.Store(true)
	all[0].Wake("work")
	dispatchtest.Until(t, "every slot at work", func() bool { return inside.Load() == instances*slots })
}

func TestCluster_ATaskRunsOnceAtEachOfItsTimes(t *testing.T) {
	t.Parallel() // it mostly waits
	url, open := cluster(t)
	var ran atomic.Int64
	begun := time.Now()
	var stops []func()
	for range 3 {
		stops = append(stops, dispatchtest.Start(t, open(dispatchtest.Options{
			Sweep: never, Logger: discard(),
			Tasks: []dispatch.Task{{
				Name: "task", Next: everySecond,
				Run: func(context.Context) error { ran.Add(1); return nil },
			}},
		})))
	}
	for _, stop := range stops { // one after another, so that another one leads
		n := ran.Load()
		dispatchtest.Until(t, "runs under this leader", func() bool { return ran.Load() >= n+2 })
		stop()
	}
	if n := query(t, url, `SELECT count(*) - count(DISTINCT args ->> 'at') FROM river_job WHERE kind = 'run:task'`); n != 0 {
		t.Errorf("%d moments had two runs", n)
	}
	if n, most := ran.Load(), int64(time.Since(begun)/time.Second)+2; n > most {
		t.Errorf("ran %d times at %d moments", n, most)
	}
}

func TestCluster_ANewLeaderMakesUpForAMomentWithoutOne(t *testing.T) {
	t.Parallel() // it mostly waits
	_, open := cluster(t)
	now := time.Now().UTC()
	moment := now.Add(-5 * time.Second) // when there was no leader
	ran := make(chan struct{}, 10)
	for range 2 {
		dispatchtest.Start(t, open(dispatchtest.Options{
			Sweep: never, Logger: discard(),
			Tasks: []dispatch.Task{{
				Name: "task", Next: func(after time.Time) time.Time {
					if after.Before(moment) {
						return moment
					}
					return now.Add(time.Hour)
				},
				Run: func(context.Context) error { ran <- struct{}{}; return nil },
			}},
		}))
	}
	<-ran
	if len(ran) > 0 {
		t.Error("it ran twice")
	}
}

// everySecond is the shortest schedule that there is.
func everySecond(after time.Time) time.Time {
	return after.UTC().Truncate(time.Second).Add(time.Second)
}

// goesOn checks that two instances wake each other and keep their schedule after
// each of some mishaps.
func goesOn(t *testing.T, open dispatchtest.Cluster, mishap func()) {
	t.Helper()
	var p dispatchtest.Pile
	var ran atomic.Int64
	var all []dispatch.Dispatcher
	for range 2 {
		d := open(dispatchtest.Options{
			Sweep: never, Logger: discard(),
			Workers: []dispatch.Worker{{Kind: "work", Slots: 1, Work: p.Work}},
			Tasks:   []dispatch.Task{{Name: "task", Next: everySecond, Run: func(context.Context) error { ran.Add(1); return nil }}},
		})
		dispatchtest.Start(t, d)
		all = append(all, d)
	}
	dispatchtest.Until(t, "a run", func() bool { return ran.Load() > 0 })
	for range 2 {
		mishap()
		p.Add(1)
		all[0].Wake("work")
		dispatchtest.Until(t, "an empty pile", func() bool { return p.Left() == 0 })
		looks := p.Looks()
		dispatchtest.Until(t, "a wake from afar", func() bool {
			all[1].Wake("work")
			return p.Looks() > looks+1
		})
		n := ran.Load()
		dispatchtest.Until(t, "another run", func() bool { return ran.Load() > n })
	}
}

func TestCluster_GoesOnWhenItsSessionsAreEnded(t *testing.T) {
	t.Parallel() // it mostly waits
	url, open := cluster(t)
	goesOn(t, open, func() {
		query(t, url, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()`)
	})
}

func TestCluster_GoesOnWhenTheDatabaseIsRestarted(t *testing.T) {
	t.Parallel() // it mostly waits
	s := pgtest.Start(t, pgtest.Options{})
	goesOn(t, clusterOn(t, s.NewDatabase(t)), func() {
		for _, step := range []func() error{s.Stop, s.Restart} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestRun_BeginsWhenTheDatabaseComes(t *testing.T) {
	t.Parallel() // it mostly waits
	s := pgtest.Start(t, pgtest.Options{})
	open := clusterOn(t, s.NewDatabase(t))
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	var p dispatchtest.Pile
	var ran atomic.Int64
	dispatchtest.Start(t, open(dispatchtest.Options{
		Sweep: never, Logger: discard(),
		Workers: []dispatch.Worker{{Kind: "work", Slots: 1, Work: p.Work}},
		Tasks:   []dispatch.Task{{Name: "task", Next: everySecond, Run: func(context.Context) error { ran.Add(1); return nil }}},
	}))
	dispatchtest.Until(t, "a look without the database", func() bool { return p.Looks() > 0 })
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	dispatchtest.Until(t, "a run", func() bool { return ran.Load() > 0 })
}

func TestWake_LeavesFewRows(t *testing.T) {
	url, open := cluster(t)
	var p dispatchtest.Pile
	d := open(dispatchtest.Options{Sweep: never, Logger: discard(), Workers: []dispatch.Worker{{Kind: "work", Slots: 1, Work: p.Work}}})
	dispatchtest.Start(t, d)
	for range 10_000 {
		d.Wake("work")
	}
	jobs := func(where string) int64 { return query(t, url, `SELECT count(*) FROM river_job WHERE `+where) }
	dispatchtest.Until(t, "the hint to be done", func() bool { return jobs(`state = 'completed'`) > 0 && jobs(`state <> 'completed'`) == 0 })
	if n := jobs(`true`); n > 100 {
		t.Errorf("%d rows", n)
	}
	if n := jobs(`args <> '{}' OR state = 'discarded'`); n != 0 {
		t.Errorf("%d hints carry something, or failed", n)
	}
}

func TestMigrate_ByManyAtOnceIsDoneOnce(t *testing.T) {
	url := database(t)
	if err := river.Check(t.Context(), url, discard()); !errors.Is(err, river.ErrSchema) {
		t.Errorf("of an empty database: %v", err)
	}
	var migrating sync.WaitGroup
	for range 4 {
		migrating.Go(func() {
			if err := river.Migrate(t.Context(), url, discard()); err != nil {
				t.Error(err)
			}
		})
	}
	migrating.Wait()
	if n := query(t, url, `SELECT count(*) FROM river_migration`); n == 0 {
		t.Error("nothing was done")
	}
	if err := river.Check(t.Context(), url, discard()); err != nil {
		t.Error(err)
	}
}

func TestNew_TellsNoPassword(t *testing.T) {
	for _, url := range []string{"postgres://u:hush@host:port/x", "postgres://u:hush@host/x?pool_max_conns=hush"} {
		_, err := river.New(t.Context(), river.Options{URL: url, Logger: discard()})
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("error %v", err)
		}
		if err := river.Migrate(t.Context(), url, discard()); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("error %v", err)
		}
	}
}

func TestRun_LeavesNothingBehind(t *testing.T) {
	_, open := cluster(t)
	leaks := goleak.IgnoreCurrent()
	var p dispatchtest.Pile
	d := open(dispatchtest.Options{Sweep: never, Logger: discard(), Workers: []dispatch.Worker{{Kind: "work", Slots: 2, Work: p.Work}}})
	stop := dispatchtest.Start(t, d)
	p.Add(10)
	d.Wake("work")
	dispatchtest.Until(t, "an empty pile", func() bool { return p.Left() == 0 })
	stop()
	goleak.VerifyNone(t, leaks)
}
