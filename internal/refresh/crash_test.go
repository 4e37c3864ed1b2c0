package refresh_test

import (
	"testing"

	"assay/internal/db/dbtest"
	"assay/internal/inventory"
	"assay/internal/randtest"
	"assay/internal/refresh"
)

// killed is the panic value of a simulated kill. Deferred functions still run, but the
// database has the same state as after a real kill.
type killed struct{ point string }

// untilKilled runs fn and reports whether it was killed.
func untilKilled(fn func()) (dead bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(killed); !ok {
				panic(p)
			}
			dead = true
		}
	}()
	fn()
	return false
}

// reserved is the maximum number of requests of a unit that are counted but not sent when
// the process is killed.
const reserved = 10

// counted returns the sum of the request counts of all jobs.
func (w *world) counted() int {
	return int(w.count(`SELECT coalesce(sum(requests), 0) FROM fetch_unit`))
}

// requests returns the number of requests that all providers got since the previous call.
func (w *world) requests() int {
	n := 0
	for _, s := range w.providers {
		n += len(s.requested())
	}
	return n
}

func TestRule8_KillAtAnyCommitLosesAndDuplicatesNothing(t *testing.T) {
	for name, d := range map[string]drama{"bulk": bulkDrama(60), "levels": levelDrama(), "missing": missingDrama()} {
		t.Run(name, func(t *testing.T) {
			w := d.world(t)
			w.requests()
			// Kills are tested only at commits that change something.
			calls, points := 0, []int{}
			version := w.version()
			w.faults = func(point string) error {
				calls++
				if v := w.version(); point == "after commit" && v != version {
					version = v
					points = append(points, calls-1, calls)
				}
				return nil
			}
			w.everyStep = w.checkCounts
			must(t, d.begin(w))
			w.drain()
			w.checkIdle()
			d.checkLearned(w)
			want, quiet := d.dump(w), w.requests()
			w.stop()
			if len(points) < 20 {
				t.Fatalf("found %d points for a kill, want at least 20", len(points))
			}
			for nth, kill := range points {
				if !dbtest.RunsCase(nth) {
					continue
				}
				w := d.world(t)
				w.requests()
				counted := w.counted()
				n, point := 0, ""
				w.faults = func(p string) error {
					if n++; n < kill {
						return nil
					}
					if n == kill {
						point = p
					}
					panic(killed{p}) // nothing is written after this point
				}
				dead := untilKilled(func() {
					must(t, d.begin(w))
					w.drain()
				})
				if !dead {
					t.Fatalf("got the end of the run before point %d, want a kill there", kill)
				}
				w.faults = nil
				w.restart()
				w.checkCounts()
				must(t, d.begin(w))
				w.drain()
				if got := d.dump(w); got != want {
					t.Fatalf("after a kill at point %d (%s): got a different result, want the result without a kill: %s", kill, point, differ(got, want))
				}
				w.checkIdle()
				// The unit in progress is requested again. It has at most 50 names.
				n = w.requests()
				if n > quiet+50 {
					t.Errorf("after a kill at point %d: got %d requests, want at most 50 more than the %d without a kill", kill, n, quiet)
				}
				if got := w.counted() - counted; got < n || got > n+reserved {
					t.Errorf("after a kill at point %d (%s): got %d counted requests, want the %d that the providers got and at most 10 more", kill, point, got, n)
				}
				w.stop()
			}
		})
	}
}

func TestRule8_RepeatedKillsLoseNothing(t *testing.T) {
	r := randtest.New(t)
	d := bulkDrama(randtest.Count(600, 2_000)) // several batches
	w := d.world(t)
	must(t, d.begin(w))
	w.drain()
	want := d.dump(w)
	w.stop()
	for round := range randtest.Count(1, 20) {
		w := d.world(t)
		w.requests()
		kills, counted := 0, w.counted()
		for {
			left := 1 + r.IntN(12)
			w.faults = func(p string) error {
				if left--; left <= 0 {
					panic(killed{p}) // nothing is written after this point
				}
				return nil
			}
			if kills == 200 {
				w.faults = nil
			}
			if !untilKilled(func() { must(t, d.begin(w)); w.drain() }) {
				break
			}
			kills++
			w.faults = nil
			w.restart()
			w.checkCounts()
		}
		w.checkIdle()
		if got := d.dump(w); got != want {
			t.Fatalf("round %d, after %d kills: got a different result, want the result without kills: %s", round, kills, differ(got, want))
		}
		if got, sent := w.counted()-counted, w.requests(); got < sent || got > sent+kills*reserved {
			t.Errorf("in round %d after %d kills: got %d counted requests, want the %d that the providers got and at most 10 more per kill", round, kills, got, sent)
		}
		w.stop()
	}
}

func TestRule8_DatabaseErrorsDoNotChangeTheResult(t *testing.T) {
	r := randtest.New(t)
	for name, d := range map[string]drama{"bulk": bulkDrama(60), "levels": levelDrama(), "missing": missingDrama()} {
		w := d.world(t)
		must(t, d.begin(w))
		w.drain()
		want := d.dump(w)
		w.stop()
		for _, percent := range []float64{1, 5} {
			for round := range randtest.Count(4, 100) {
				w := d.world(t)
				failed := 0
				w.faults = func(string) error {
					if r.Float64()*100 < percent/2 { // half before a commit, half after it
						failed++
						return errTest
					}
					return nil
				}
				for d.begin(w) != nil {
				}
				w.drainThrough()
				w.faults = nil
				w.drain()
				w.checkIdle()
				if got := d.dump(w); got != want {
					t.Fatalf("%s, round %d, %v %%, %d faults: got a different result, want the result without faults: %s", name, round, percent, failed, differ(got, want))
				}
				w.stop()
			}
		}
	}
}

func TestRule8_SyncWithUnknownCommitCanBeRepeated(t *testing.T) {
	for _, point := range []string{"before commit", "after commit"} {
		w := newWorld(t, bulk("alpha", []string{"A"}, "a1"))
		w.faults = func(p string) error {
			if p == point {
				return errTest
			}
			return nil
		}
		p := pushOf(w, [2]string{"A", ""}, [2]string{"B", ""})
		if _, err := w.sync.Sync(t.Context(), "u", p, inventory.Normal); err == nil {
			t.Fatal("Sync: got no error, want the injected one")
		}
		w.faults = nil
		w.pushed("u", p)
		equal(t, "entries", w.count(`SELECT count(*) FROM missing_price`), 2)
		equal(t, "rows", w.count(`SELECT count(*) FROM inventory`), 2)
		w.drain()
		equal(t, "value", w.valueOf("u", 0), units(10))
		w.checkIdle()
		w.stop()
	}
}

func TestRule8_StoringAResponseIsRetried(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.clearMissing()
	w.begin(false)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	n := 0
	w.faults = func(string) error {
		if n++; n == 3 || n == 6 { // the first commit is rolled back, the second has an unknown outcome
			return errTest
		}
		return nil
	}
	more, err := w.engine.Fetch(t.Context(), "alpha", "")
	must(t, err)
	equal(t, "whether there is more work", more, true)
	equal(t, "calls", len(s.requested()), 1)
	equal(t, "requests counted", w.count(`SELECT requests FROM fetch_unit`), 1)
	w.faults = nil
	w.drain()
	equal(t, "calls", len(s.requested()), 0)
	w.checkIdle()
}

func TestRule8_WorkContinuesAfterAFullDisk(t *testing.T) {
	list := names("Item", 90)
	s := batch("alpha", 30, list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	w.begin(false)
	full := false
	w.faults = func(string) error {
		if full {
			return errTest
		}
		return nil
	}
	for range 12 { // in each round, one step works and one step finds a full disk
		_, err := w.step()
		must(t, err)
		full = true
		_, _ = w.step()
		full = false
	}
	w.drain()
	equal(t, "updated", w.last(refresh.Bulk).Counts.Updated, 90)
	if n := len(s.requested()); n > 3+12 {
		t.Errorf("got %d requests, want at most 15", n)
	}
	w.checkIdle()
}
