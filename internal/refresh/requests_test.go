package refresh_test

import (
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/provider"
	"assay/internal/refresh"
)

func TestNames_AreRequestedInFewestCalls(t *testing.T) {
	for _, c := range []struct{ names, size, calls int }{{1, 1, 1}, {1, 7, 1}, {7, 7, 1}, {8, 7, 2}, {1300, 100, 13}, {1301, 100, 14}} {
		list := names("Item", c.names)
		b := batch("alpha", c.size, list, "a1")
		w := newWorld(t, b)
		w.push("u", 730, list...)
		w.clearMissing()
		j := w.run(false)
		calls := b.requested()
		equal(t, "calls", len(calls), c.calls)
		for _, call := range calls {
			if len(call.Names) > c.size {
				t.Errorf("got a call of %d names, want at most %d", len(call.Names), c.size)
			}
		}
		equal(t, "updated", j.Counts.Updated, int64(c.names))
		equal(t, "requests counted", w.count(`SELECT sum(requests) FROM fetch_unit`), int64(c.calls))
		w.stop()
	}
}

func TestGames_AreRequestedSeparately(t *testing.T) {
	a := bulk("alpha", []string{"Same name"}, "a1")
	b := batch("beta", 10, []string{"Same name"}, "b1")
	a.items[catalog.Rust], b.items[catalog.Rust] = []string{"Same name"}, []string{"Same name"}
	a.d.Markets[0].AppIDs = []int32{catalog.CS2, catalog.Rust}
	a.d.Files = append(a.d.Files, provider.File{Key: "rust.json", AppID: catalog.Rust, Markets: []string{"a1"}})
	b.d.Markets[0].AppIDs = []int32{catalog.Rust, catalog.CS2}
	calls := 0
	b.edit = func(q *provider.Quote) bool {
		if calls++; calls == 2 { // the call for the second game, Rust
			q.Ask = units(20)
		}
		return true
	}
	w := newWorld(t, a, b)
	w.push("u", catalog.CS2, "Same name")
	w.push("u", catalog.Rust, "Same name")
	w.push("u", catalog.Dota, "Same name")
	w.drain()
	equal(t, "price in CS2", w.named("Same name").Price, units(10))
	equal(t, "price in Rust", w.item(catalog.Key{AppID: catalog.Rust, Name: "Same name"}).Price, units(15))
	equal(t, "price in Dota 2, without quotes", w.item(catalog.Key{AppID: catalog.Dota, Name: "Same name"}).Price, 0)
	for i, call := range b.requested() {
		equal(t, "requested game", call.AppID, []int32{catalog.CS2, catalog.Rust}[i])
	}
	j := w.last(refresh.Missing)
	equal(t, "failed items", j.Counts.Failed, 1)
	w.checkIdle()

	// A file is not requested if no item of its game is due.
	w.clock.Add(7 * time.Hour)
	w.push("u", catalog.Rust)
	a.requested()
	w.run(false)
	equal(t, "files", len(a.requested()), 1)
}

func TestRetryAfter_UnitIsRetriedAtTheStatedTime(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.clearMissing()
	waits := 3
	s.fail = func(int, provider.Call) error {
		if waits--; waits >= 0 {
			return s.wait(time.Minute)
		}
		return nil
	}
	id := w.begin(false)
	for i := range 4 {
		w.drain()
		equal(t, "calls", len(s.requested()), 1)
		if i == 1 {
			w.restart()
		}
		w.clock.Add(time.Minute - time.Microsecond)
		w.drain()
		equal(t, "calls before the retry", len(s.requested()), 0)
		w.clock.Add(time.Microsecond)
	}
	equal(t, "updated", w.job(id).Counts.Updated, 1)
	equal(t, "requests counted", w.count(`SELECT requests FROM fetch_unit`), 4)
	w.checkIdle()
}

func TestRetryAfter_LongOrRepeatedWaitDefersTheUnit(t *testing.T) {
	for _, wait := range []time.Duration{0, refresh.Patience + 1, time.Minute} {
		s := bulk("alpha", []string{"A"}, "a1")
		w := newWorld(t, s)
		w.push("u", 730, "A")
		w.clearMissing()
		s.fail = func(int, provider.Call) error { return s.wait(wait) }
		id := w.begin(false)
		for range 12 {
			w.drain()
			w.clock.Add(time.Minute)
		}
		equal(t, "items skipped by the breaker", w.job(id).Counts.SkippedBackoff, 1)
		want := 1
		if wait == time.Minute {
			want = 10
		}
		equal(t, "calls", len(s.requested()), want)
		w.stop()
	}
}
