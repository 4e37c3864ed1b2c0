package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/app"
	"assay/internal/provider"
	"assay/internal/provider/providertest"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// clock is a wall clock that tests can set.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// jump moves the clock by the given duration.
func (c *clock) jump(by time.Duration) { c.offset.Add(int64(by)) }

// sharedClock is the path of a file with the offset of a wall clock. All server processes of a test
// read the time from it.
type sharedClock string

// newSharedClock returns a clock without an offset.
func newSharedClock(t *testing.T) sharedClock {
	t.Helper()
	c := sharedClock(filepath.Join(t.TempDir(), "clock"))
	c.set(t, 0)
	return c
}

// set replaces the file, so that no process reads a half-written offset.
func (c sharedClock) set(t *testing.T, offset time.Duration) {
	t.Helper()
	next := string(c) + ".new"
	err := os.WriteFile(next, []byte(offset.String()), 0o600)
	if err == nil {
		err = os.Rename(next, string(c))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (c sharedClock) now() time.Time {
	text, err := os.ReadFile(string(c))
	if err != nil {
		panic(err)
	}
	offset, err := time.ParseDuration(string(text))
	if err != nil {
		panic(err)
	}
	return time.Now().Add(offset)
}

// setting makes the processes of a server read this clock.
func (c sharedClock) setting() string { return clockFile + "=" + string(c) }

const day = 24 * time.Hour

// jumps are the tested clock changes.
var jumps = []struct {
	name string
	by   time.Duration
}{
	{"an hour forward", time.Hour},
	{"an hour back", -time.Hour},
	{"half an hour back", -30 * time.Minute},
	{"400 days forward", 400 * day},
	{"400 days back", -400 * day},
}

// onClock returns a server in this process that uses the clock c. Its provider requests have
// the given timeout.
func onClock(t *testing.T, on engine, c *clock, timeout time.Duration, env ...string) *server {
	t.Helper()
	s := on.newServer(t, append([]string{"MARKET_PRICE_PROVIDERS=sim"}, env...)...)
	s.now = c.now
	s.within(app.Options{Now: c.now, Client: func(o *provider.Options) { o.Timeout = timeout }})
	return s
}

func TestClock_ChangeDuringRunLosesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, testSetDuringRun)
}

func testSetDuringRun(t *testing.T, on engine) {
	t.Parallel()
	r := randtest.New(t)
	for _, jump := range jumps {
		after := time.Duration(r.IntN(150)) * time.Millisecond
		t.Run(jump.name, func(t *testing.T) {
			t.Parallel()
			c := &clock{}
			markets, url := simulator(t, sim.Options{Names: 300, Now: c.now, Latency: 20 * time.Millisecond})
			s := onClock(t, on, c, provider.DefaultTimeout, "SIM_BASE_URL="+url, "MARKET_PRICE_SCHEDULE=every 30m")
			pushNames(s, markets.Names()[:250], 1)
			s.awaitPriced()
			markets.Advance(2_000)
			id := s.refresh()
			time.Sleep(after)
			c.jump(jump.by)
			if end := s.awaitEnd(); end.Status.State != "finished" {
				t.Errorf("run: got %+v, want it finished", end)
			}
			checkJob(t, s, id, 250)
			checkRows(t, s, 1)

			// The next run, the queue and the schedule must work too.
			markets.Advance(2_000)
			s.push("user1", 730, []asset{{AssetID: "1", MarketHashName: markets.Names()[299]}})
			s.awaitPriced()
			db := s.open()
			if on == onSQLite { // River's timers use the system clock, which tests cannot set
				s.awaitSchedule(c)
				c.jump(31 * time.Minute)
				s.await("a scheduled run", func() bool {
					return len(rows(t, db, `SELECT id FROM refresh_job WHERE requested_by = 'schedule' AND state = 'finished'`)) > 0
				})
			}
			checkRows(t, s, 2)
			checkInvariants(t, db)
			s.noNegativeTimes()
		})
	}
}

// awaitSchedule waits until the scheduler has used the new time.
func (s *server) awaitSchedule(c *clock) {
	s.t.Helper()
	s.await("a schedule that uses the new time", func() bool {
		var d struct {
			Scheduled []struct {
				Name string
				At   time.Time
			}
		}
		s.get("/api/market-prices/job-debug", &d)
		for _, task := range d.Scheduled {
			if wait := task.At.Sub(c.now()); task.Name == "refresh" && wait > 0 && wait <= 30*time.Minute {
				return true
			}
		}
		return false
	})
}

// noNegativeTimes checks that the API reports no negative durations.
func (s *server) noNegativeTimes() {
	s.t.Helper()
	for _, path := range []string{"/api/market-prices/status", "/api/market-prices/job-debug", "/api/market-prices/jobs", "/api/health"} {
		_, body, err := s.call(http.MethodGet, path, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, member := range strings.FieldsFunc(string(body), func(r rune) bool { return strings.ContainsRune("{},", r) }) {
			if strings.Contains(member, `econds":-`) {
				s.t.Errorf("%s returns the negative duration %s", path, member)
			}
		}
	}
}

// TestClock_SetBackDoesNotBlockQueuedNames queues names while a job of the queue is blocked.
// After the clock is set back, the due time of these names is in the future.
func TestClock_SetBackDoesNotBlockQueuedNames(t *testing.T) {
	t.Parallel()
	onBoth(t, testSetWhileQueued)
}

func testSetWhileQueued(t *testing.T, on engine) {
	t.Parallel()
	for _, jump := range jumps {
		t.Run(jump.name, func(t *testing.T) {
			t.Parallel()
			c := &clock{}
			markets, faulty := hanging(t, sim.Options{Names: 100, Now: c.now})
			s := onClock(t, on, c, 3*time.Second, "SIM_BASE_URL="+faulty.URL(), "SIM_SHAPE=batch")
			s.push("user0", 730, []asset{{AssetID: "1", MarketHashName: markets.Names()[0]}})
			if err := faulty.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			pushNames(s, markets.Names(), 1)
			c.jump(jump.by)
			faulty.Reset()
			db := s.open()
			s.await("a price for every name", func() bool {
				return len(rows(t, db, `SELECT item_id FROM missing_price`)) == 0
			})
			s.awaitPriced()
			checkRows(t, s, 1)
		})
	}
}

func TestClock_ChangeDoesNotAffectRetryAfter(t *testing.T) {
	t.Parallel()
	onBoth(t, testSetDuringOrder)
}

func testSetDuringOrder(t *testing.T, on engine) {
	t.Parallel()
	for _, jump := range jumps {
		t.Run(jump.name, func(t *testing.T) {
			t.Parallel()
			c := &clock{}
			markets, faulty := hanging(t, sim.Options{Names: 50, Now: c.now})
			faulty.Reset()
			s := onClock(t, on, c, provider.DefaultTimeout, "SIM_BASE_URL="+faulty.URL(), "SIM_SHAPE=batch")
			pushNames(s, markets.Names(), 1)
			s.awaitPriced()
			faulty.Reset()
			faulty.Always(providertest.Status(http.StatusTooManyRequests, "Retry-After", "2"))
			id := s.refresh()
			if err := faulty.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			first := faulty.Hits()[0].Time
			faulty.Reset()
			c.jump(jump.by)
			if end := s.awaitEnd(); end.Status.JobID != id || end.UpdatedItems != 50 {
				t.Errorf("run: got %+v, want 50 updated items", end)
			}
			if got := faulty.Hits()[0].Time.Sub(first); got < 2*time.Second {
				t.Errorf("got a request after %v, want at least 2s", got)
			}
		})
	}
}

// TestRule6_RetentionIgnoresClockChanges compares the kept jobs after each run with the rule,
// while the clock is set forward and back.
func TestRule6_RetentionIgnoresClockChanges(t *testing.T) {
	t.Parallel()
	onBoth(t, testSetRetention)
}

func testSetRetention(t *testing.T, on engine) {
	t.Parallel()
	c := &clock{}
	markets, url := simulator(t, sim.Options{Names: 20, Now: c.now})
	s := onClock(t, on, c, provider.DefaultTimeout, "SIM_BASE_URL="+url)
	pushNames(s, markets.Names(), 1)
	s.awaitPriced()
	db := s.open()
	var ended []kept
	for _, by := range []time.Duration{0, 0, day, 0, 400 * day, 0, -400 * day, 0, time.Hour, -time.Hour, 8 * day, 8 * day, 400 * day, 0, -day} {
		c.jump(by)
		id := s.refresh()
		s.awaitEnd()
		ended = append(ended, kept{id, c.now()})
		s.await("retention after the run", func() bool {
			want := retained(ended, c.now())
			got := rows(t, db, `SELECT id FROM refresh_job WHERE kind = 'bulk' ORDER BY id`)
			return fmt.Sprint(got) == fmt.Sprint(want)
		})
		ended = only(ended, rows(t, db, `SELECT id FROM refresh_job WHERE kind = 'bulk'`))
		checkInvariants(t, db)
	}
}

// kept is an ended job.
type kept struct {
	id  string
	end time.Time
}

// retained returns the jobs to keep: younger than seven days, or among the last three.
func retained(ended []kept, now time.Time) []string {
	var out []string
	for i, j := range ended {
		later := 0
		for k, o := range ended {
			if o.end.After(j.end) || (o.end.Equal(j.end) && k > i) {
				later++
			}
		}
		if later < 3 || now.Sub(j.end) < 7*day {
			out = append(out, j.id)
		}
	}
	return out
}

func only(ended []kept, ids []string) []kept {
	var out []kept
	for _, j := range ended {
		for _, id := range ids {
			if j.id == id {
				out = append(out, j)
			}
		}
	}
	return out
}
