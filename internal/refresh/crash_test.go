package refresh_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/randtest"
	"assay/internal/refresh"
)

// drama is a scenario that runs with and without faults. The result must be the same.
type drama struct {
	kind     refresh.Kind
	levelled int // markets whose level is learned
	world    func(tb testing.TB) *world
}

// bulkDrama is a bulk job with providers of every shape. Some prices change, one item is no
// longer quoted, and one provider fails.
func bulkDrama(items int) drama {
	return drama{kind: refresh.Bulk, world: func(tb testing.TB) *world {
		list := names("Item", items)
		late := false
		price := func(market, name string) money.Micro {
			at := 10 * level(market)
			if late && strings.Contains(name, "3") {
				at = 12 * level(market)
			}
			return at
		}
		a, b := bulk("alpha", list, "a1", "a2"), batch("beta", items/3, list, "b1")
		c, d := single("gamma", list[:10], "c1"), bulk("delta", list, "d1")
		for _, s := range []*fakeProvider{a, b, c, d} {
			s.price = price
		}
		w := newWorld(tb, a, b, c, d)
		w.push("u1", 730, append(slices.Clone(list), "Unknown to all")...)
		w.push("u2", 730, list...)
		w.drain()
		w.clock.Add(7 * time.Hour)
		w.forget()
		late = true
		d.fail = func(int, provider.Call) error { return d.broken(provider.KindServer) }
		return w
	}}
}

// levelDrama is a bulk job with enough names to learn levels. A market responds for the first
// time, so validation waits for all units and the result does not depend on their order.
func levelDrama() drama {
	d := bulkDrama(levelNames)
	d.levelled = 5
	known := d.world
	d.world = func(tb testing.TB) *world {
		w := known(tb)
		w.providers = append(w.providers, bulk("epsilon", names("Item", levelNames), "e1"))
		w.restart()
		return w
	}
	return d
}

// missingDrama is a sync with unknown names. One of them has no quote.
func missingDrama() drama {
	return drama{kind: refresh.Missing, levelled: 2, world: func(tb testing.TB) *world {
		list := names("Item", levelNames)
		a, b := bulk("alpha", list, "a1", "a2"), batch("beta", 50, list, "b1")
		a.price = func(market, _ string) money.Micro { return 10 * level(market) }
		w := newWorld(tb, a, b)
		w.push("u1", 730, append(slices.Clone(list), "Unknown to all")...)
		w.push("u2", 730, list[10:]...)
		return w
	}}
}

// levelNames is how many names a small scenario has. Levels can be learned from this many.
const levelNames = 120

// level returns the level of a market in a scenario, as a factor.
func level(market string) money.Micro {
	if market == "a2" {
		return money.Scale * 11 / 10
	}
	return money.Scale
}

// begin starts the job of the scenario, unless it has started already.
func (d drama) begin(w *world) error {
	if d.kind == refresh.Missing || w.count(`SELECT count(*) FROM refresh_job WHERE kind = 'bulk'`) > 0 {
		return nil // the queue starts its own job
	}
	_, err := w.engine.Start(w.tb.Context(), false, "test")
	return err
}

// dump returns all data that must be the same in the end.
func (d drama) dump(w *world) string {
	w.tb.Helper()
	var out strings.Builder
	queries := []string{
		`SELECT name || phase, price, status, method, average, median, consensus, low, high, interval_low, interval_high, markets, used_markets, candidate,
			candidate_at, guard, range_low, range_high, price_updated_at, price_checked_at, estimated_at, quotes_at, no_sales_since, retry_at, failures, rev,
			` + setOf("item.level_set") + ` FROM item ORDER BY name`,
		`SELECT i.name, s.market_id, s.currency, s.ask, s.bid, s.sale, s.listings, s.sales, s.fetched_at, s.reason
			FROM market_snapshot s JOIN item i ON i.id = s.item_id ORDER BY i.name, s.market_id`,
		`SELECT i.name, p.at, p.price, p.status, p.interval_low, p.interval_high, p.used, ` + setOf("p.level_set") + `
			FROM price_point p JOIN item i ON i.id = p.item_id ORDER BY i.name, p.at`,
		`SELECT j.kind, r.app_id, ` + setOf("r.level_set") + ` FROM refresh_level r JOIN refresh_job j ON j.id = r.job_id ORDER BY j.id, r.app_id`,
		`SELECT user_key, asset_id, value FROM inventory ORDER BY user_key, asset_id`,
		`SELECT i.name, r.state, r.reason, r.attempts, r.price_before, r.price_after, r.error
			FROM refresh_item r JOIN item i ON i.id = r.item_id ORDER BY i.name`,
		`SELECT kind, state, stage, total, skipped_ttl, skipped_no_sales, last_error FROM refresh_job ORDER BY id`,
		`SELECT i.name, m.due_at, m.attempts, m.job_id FROM missing_price m JOIN item i ON i.id = m.item_id ORDER BY i.name`,
		`SELECT market_id, app_id, file, fetched_at, quotes, quarantine FROM market_file ORDER BY market_id, file`,
		`SELECT provider, paused, last_success, last_error FROM provider_state ORDER BY provider`,
	}
	if d.levelled > 0 {
		queries = append(queries,
			`SELECT app_id, learned_at, data FROM level_set ORDER BY id`,
			`SELECT app_id, movers FROM refresh_level ORDER BY job_id, app_id`,
			`SELECT market_id, app_id, state, history FROM market_memory ORDER BY market_id, app_id`)
	}
	for _, query := range queries {
		w.print(&out, query)
	}
	return out.String()
}

// setOf returns SQL for the position of a level set in the order of ids. Ids may have gaps.
func setOf(column string) string {
	return `(SELECT count(*) FROM level_set l WHERE l.id <= ` + column + `)`
}

// checkLearned fails if the scenario has learned no levels.
func (d drama) checkLearned(w *world) {
	w.tb.Helper()
	if d.levelled == 0 {
		return
	}
	sets := int64(1)
	if d.kind == refresh.Bulk {
		sets = 2
	}
	equal(w.tb, "level sets", w.count(`SELECT count(*) FROM level_set`), sets)
	set, err := refresh.LevelSet(w.tb.Context(), w.store, catalog.CS2)
	must(w.tb, err)
	known := 0
	for _, m := range set.Markets {
		if m.Known {
			known++
		}
	}
	equal(w.tb, "markets with a level", known, d.levelled)
}

// print writes the rows of a query.
func (w *world) print(out io.Writer, query string) {
	w.tb.Helper()
	rows, err := w.raw.QueryContext(w.tb.Context(), query)
	must(w.tb, err)
	defer rows.Close()
	columns, err := rows.Columns()
	must(w.tb, err)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		must(w.tb, rows.Scan(into...))
		fmt.Fprintln(out, values...)
	}
	must(w.tb, rows.Err())
}

// differ returns the first line in which two dumps differ.
func differ(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d of %d and %d\n got %s\nwant %s", i, len(g), len(w), at(g, i), at(w, i))
		}
	}
	return ""
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(nothing)"
}

// killed is the panic value of a simulated kill. Deferred functions still run, but the
// database is as after a real kill.
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

// reserved is how many requests of a unit may be counted but not sent when the process is
// killed.
const reserved = 10

// counted returns the number of requests that all jobs count.
func (w *world) counted() int {
	return int(w.count(`SELECT coalesce(sum(requests), 0) FROM fetch_unit`))
}

// requests returns the number of requests to all providers since its last call.
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
				t.Fatalf("only %d points to be killed at", len(points))
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
					panic(killed{p}) // and nothing else is written
				}
				dead := untilKilled(func() {
					must(t, d.begin(w))
					w.drain()
				})
				if !dead {
					t.Fatalf("did not reach point %d", kill)
				}
				w.faults = nil
				w.restart()
				w.checkCounts()
				must(t, d.begin(w))
				w.drain()
				if got := d.dump(w); got != want {
					t.Fatalf("killed at point %d, %s: %s", kill, point, differ(got, want))
				}
				w.checkIdle()
				// The unit in progress is requested again. It has at most 50 names.
				n = w.requests()
				if n > quiet+50 {
					t.Errorf("killed at point %d: %d requests, %d without", kill, n, quiet)
				}
				if got := w.counted() - counted; got < n || got > n+reserved {
					t.Errorf("killed at point %d, %s: %d requests counted, %d sent", kill, point, got, n)
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
					panic(killed{p}) // and nothing else is written
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
			t.Fatalf("round %d, %d kills: %s", round, kills, differ(got, want))
		}
		if got, sent := w.counted()-counted, w.requests(); got < sent || got > sent+kills*reserved {
			t.Errorf("round %d, %d kills: %d requests counted, %d sent", round, kills, got, sent)
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
					t.Fatalf("%s, round %d, %v %%, %d faults: %s", name, round, percent, failed, differ(got, want))
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
			t.Fatal("no error was injected")
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
	w.forget()
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
	equal(t, "more", more, true)
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
	w.forget()
	w.begin(false)
	full := false
	w.faults = func(string) error {
		if full {
			return errTest
		}
		return nil
	}
	for range 12 { // between any two steps, and within them
		_, err := w.step()
		must(t, err)
		full = true
		_, _ = w.step()
		full = false
	}
	w.drain()
	equal(t, "updated", w.last(refresh.Bulk).Counts.Updated, 90)
	if n := len(s.requested()); n > 3+12 {
		t.Errorf("%d requests", n)
	}
	w.checkIdle()
}
