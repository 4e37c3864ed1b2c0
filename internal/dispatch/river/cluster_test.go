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

// never is a sweep interval longer than any test.
const never = 24 * time.Hour

func TestCluster_WakeReachesEveryInstance(t *testing.T) {
	t.Parallel() // the test mostly waits
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
	// Each slot runs at the start, and again when its instance begins to listen.
	dispatchtest.Until(t, "all instances to listen", func() bool { return looks.Load() >= 2*instances*slots })
	ready.Store(true)
	all[0].Wake("work")
	dispatchtest.Until(t, "every slot to be active", func() bool { return inside.Load() == instances*slots })
}

func TestCluster_TaskRunsOnceAtEachScheduledTime(t *testing.T) {
	t.Parallel() // the test mostly waits
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
	for _, stop := range stops { // stop one after another, so that the leader changes
		n := ran.Load()
		dispatchtest.Until(t, "two runs with this leader", func() bool { return ran.Load() >= n+2 })
		stop()
	}
	if n := query(t, url, `SELECT count(*) - count(DISTINCT args ->> 'at') FROM river_job WHERE kind = 'run:task'`); n != 0 {
		t.Errorf("got %d times with two runs, want 0", n)
	}
	if n, most := ran.Load(), int64(time.Since(begun)/time.Second)+2; n > most {
		t.Errorf("got %d runs, want at most %d", n, most)
	}
}

func TestCluster_NewLeaderRunsAMissedTask(t *testing.T) {
	t.Parallel() // the test mostly waits
	_, open := cluster(t)
	now := time.Now().UTC()
	moment := now.Add(-5 * time.Second) // a time without a leader
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
		t.Error("the task ran twice, want once")
	}
}

// everySecond is the shortest schedule that dispatchers support.
func everySecond(after time.Time) time.Time {
	return after.UTC().Truncate(time.Second).Add(time.Second)
}

// survives checks that two instances still wake each other and run their task after each
// call of disrupt.
func survives(t *testing.T, open dispatchtest.Cluster, disrupt func()) {
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
	dispatchtest.Until(t, "a run of the task", func() bool { return ran.Load() > 0 })
	for range 2 {
		disrupt()
		p.Add(1)
		all[0].Wake("work")
		dispatchtest.Until(t, "all work to be done", func() bool { return p.Left() == 0 })
		looks := p.Looks()
		dispatchtest.Until(t, "a wake from the other instance", func() bool {
			all[1].Wake("work")
			return p.Looks() > looks+1
		})
		n := ran.Load()
		dispatchtest.Until(t, "another run of the task", func() bool { return ran.Load() > n })
	}
}

func TestCluster_SurvivesTerminatedSessions(t *testing.T) {
	t.Parallel() // the test mostly waits
	url, open := cluster(t)
	survives(t, open, func() {
		query(t, url, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()`)
	})
}

func TestCluster_SurvivesADatabaseRestart(t *testing.T) {
	t.Parallel() // the test mostly waits
	s := pgtest.Start(t, pgtest.Options{})
	survives(t, clusterOn(t, s.NewDatabase(t)), func() {
		for _, step := range []func() error{s.Stop, s.Restart} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestRun_StartsWhenTheDatabaseIsAvailable(t *testing.T) {
	t.Parallel() // the test mostly waits
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
	dispatchtest.Until(t, "a call of the worker without the database", func() bool { return p.Looks() > 0 })
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	dispatchtest.Until(t, "a run of the task", func() bool { return ran.Load() > 0 })
}

func TestWake_LimitsTheNumberOfRows(t *testing.T) {
	url, open := cluster(t)
	var p dispatchtest.Pile
	d := open(dispatchtest.Options{Sweep: never, Logger: discard(), Workers: []dispatch.Worker{{Kind: "work", Slots: 1, Work: p.Work}}})
	dispatchtest.Start(t, d)
	for range 10_000 {
		d.Wake("work")
	}
	jobs := func(where string) int64 { return query(t, url, `SELECT count(*) FROM river_job WHERE `+where) }
	dispatchtest.Until(t, "the hints to be completed", func() bool { return jobs(`state = 'completed'`) > 0 && jobs(`state <> 'completed'`) == 0 })
	if n := jobs(`true`); n > 100 {
		t.Errorf("got %d rows, want at most 100", n)
	}
	if n := jobs(`args <> '{}' OR state = 'discarded'`); n != 0 {
		t.Errorf("got %d hints with a payload or an error, want 0", n)
	}
}

func TestMigrate_AllowsConcurrentCalls(t *testing.T) {
	url := database(t)
	if err := river.Check(t.Context(), url, discard()); !errors.Is(err, river.ErrSchema) {
		t.Errorf("empty database: got error %v, want ErrSchema", err)
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
		t.Error("got no applied migrations, want some")
	}
	if err := river.Check(t.Context(), url, discard()); err != nil {
		t.Error(err)
	}
}

func TestNew_DoesNotShowThePassword(t *testing.T) {
	for _, url := range []string{"postgres://u:hush@host:port/x", "postgres://u:hush@host/x?pool_max_conns=hush"} {
		_, err := river.New(t.Context(), river.Options{URL: url, Logger: discard()})
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("got error %v, want one without the password", err)
		}
		if err := river.Migrate(t.Context(), url, discard()); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("got error %v, want one without the password", err)
		}
	}
}

func TestRun_LeavesNoGoroutines(t *testing.T) {
	_, open := cluster(t)
	leaks := goleak.IgnoreCurrent()
	var p dispatchtest.Pile
	d := open(dispatchtest.Options{Sweep: never, Logger: discard(), Workers: []dispatch.Worker{{Kind: "work", Slots: 2, Work: p.Work}}})
	stop := dispatchtest.Start(t, d)
	p.Add(10)
	d.Wake("work")
	dispatchtest.Until(t, "all work to be done", func() bool { return p.Left() == 0 })
	stop()
	goleak.VerifyNone(t, leaks)
}
