package refresh_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"assay/internal/db/dbtest"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/randtest"
)

func TestBackground_StopsOnPauseCancelAndOpenBreaker(t *testing.T) {
	list := names("Item", 60)
	steam := slow("steam", list, "s1")
	w := priced(t, list, steam)
	must(t, w.engine.PauseProvider(t.Context(), "steam"))
	w.run(false)
	equal(t, "calls while it is paused", len(steam.requested()), 0)
	must(t, w.engine.ResumeProvider(t.Context(), "steam"))
	steam.admit = func(context.Context, provider.Call) error {
		return &provider.Error{Provider: "steam", Kind: provider.KindBreaker, RetryAfter: 30 * time.Second}
	}
	w.drain()
	w.limit(steam)
	w.drain()
	equal(t, "calls with an open breaker", len(steam.requested()), 0)
	equal(t, "counted requests", w.count(`SELECT sum(requests) FROM fetch_unit WHERE provider = 'steam'`), 0)
	w.clock.Add(30 * time.Second)
	w.drain()
	equal(t, "calls", len(steam.requested()), 25)
	equal(t, "names with a rank", w.count(`SELECT count(*) FROM background_name WHERE rank > 0`), 35)

	id := w.begin(true)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	must(t, w.engine.Cancel(t.Context(), id))
	w.clock.Add(6 * time.Minute)
	w.drain()
	equal(t, "calls after the job was cancelled", len(steam.requested()), 0)
	w.checkIdle()
}

func TestBackground_ErrorKeepsQuotesAndContinues(t *testing.T) {
	list := names("Item", 10)
	steam := slow("steam", list, "s1")
	w := priced(t, list, steam)
	w.run(false)
	w.clock.Add(7 * time.Hour)
	equal(t, "calls", len(steam.requested()), 10)
	before := w.count(`SELECT count(*) FROM market_snapshot WHERE ask > 0`)
	steam.fail = func(_ int, c provider.Call) error {
		if c.Names[0] == list[0] {
			return steam.broken(provider.KindProtocol)
		}
		return nil
	}
	w.run(false)
	equal(t, "calls", len(steam.requested()), 10)
	equal(t, "snapshots", w.count(`SELECT count(*) FROM market_snapshot WHERE ask > 0`), before)
	equal(t, "names with a rank", w.count(`SELECT count(*) FROM background_name WHERE rank > 0`), 0)
	steam.fail = func(int, provider.Call) error { return steam.broken(provider.KindAuth) }
	w.clock.Add(7 * time.Hour)
	w.run(false)
	equal(t, "calls with a wrong key", len(steam.requested()), 1)
	equal(t, "names with a rank", w.count(`SELECT count(*) FROM background_name WHERE rank > 0`), 10)
	w.checkIdle()
}

// The response has a rejected row for one market and a valid quote from the other market.
func TestBackground_RejectedRowKeepsStoredQuote(t *testing.T) {
	list := names("Item", 3)
	steam := slow("steam", list, "s1", "s2")
	w := priced(t, list, steam)
	w.runFirst(false)
	const offers = `SELECT count(*) FROM market_snapshot s JOIN market m ON m.id = s.market_id WHERE m.provider = 'steam' AND s.ask > 0`
	equal(t, "offers", w.count(offers), 6)
	steam.edit = func(q *provider.Quote) bool {
		if q.Market == "s1" && q.Name == list[0] {
			q.Ask = -1
		}
		return q.Market != "s1" || q.Name != list[1]
	}
	w.clock.Add(7 * time.Hour)
	w.runFirst(false)
	equal(t, "offers left after an item was delisted", w.count(offers), 5)
	equal(t, "offers of the item whose row was rejected", w.count(offers+` AND s.item_id = $1`, w.named(list[0]).ID), 2)
	w.checkIdle()
}

func TestBackground_KillLosesAndDuplicatesNothing(t *testing.T) {
	list := names("Item", 2)
	story := func(t *testing.T) (*world, *fakeProvider) {
		steam := slow("steam", list, "s1")
		w := priced(t, list, steam)
		w.runFirst(false)
		steam.requested()
		w.clock.Add(7 * time.Hour)
		steam.price = func(string, string) money.Micro { return units(1_100) }
		return w, steam
	}
	const result = `SELECT i.name, i.price, i.rev, s.market_id, s.ask, s.fetched_at, s.reason
		FROM item i JOIN market_snapshot s ON s.item_id = i.id ORDER BY i.name, s.market_id`
	w, steam := story(t)
	calls := 0
	w.faults = func(string) error { calls++; return nil }
	w.runFirst(false)
	var want, got strings.Builder
	w.print(&want, result)
	equal(t, "calls", len(steam.requested()), 2)
	for kill := 1; kill <= calls; kill++ {
		if !dbtest.RunsCase(kill) || kill%2 != 0 && !randtest.Long() {
			continue
		}
		w, steam := story(t)
		n := 0
		w.faults = func(p string) error {
			if n++; n < kill {
				return nil
			}
			panic(killed{p})
		}
		if !untilKilled(func() { w.runFirst(false) }) {
			t.Fatalf("got the end of the run before point %d, want a kill there", kill)
		}
		w.faults = nil
		w.restart()
		if w.count(`SELECT count(*) FROM refresh_job WHERE kind = 'bulk' AND created_at = $1`, w.clock.Now().UnixMicro()) == 0 {
			w.begin(false)
		}
		w.finish()
		w.drain()
		w.checkIdle()
		got.Reset()
		w.print(&got, result)
		if got.String() != want.String() {
			t.Fatalf("after a kill at point %d: got a different result, want the result without a kill: %s", kill, differ(got.String(), want.String()))
		}
		if n := len(steam.requested()); n > 3 {
			t.Errorf("after a kill at point %d: the provider got %d calls, want at most 3", kill, n)
		}
		w.stop()
	}
}

func TestBackground_LostClaimWritesNothing(t *testing.T) {
	list := names("Item", 3)
	steam := slow("steam", list, "s1")
	w := priced(t, list, steam)
	w.begin(false)
	w.finish()
	steam.before = func(context.Context, provider.Call) {
		w.exec(`UPDATE fetch_unit SET state = 'pending', token = token + 1 WHERE state = 'running'`) // another process takes over the unit
	}
	_, err := w.engine.Fetch(t.Context(), "steam", "")
	must(t, err)
	equal(t, "calls", len(steam.requested()), 1)
	equal(t, "names with a rank", w.count(`SELECT count(*) FROM background_name WHERE rank > 0`), 3)
	equal(t, "snapshots", w.count(`SELECT count(*) FROM market_snapshot WHERE reason = 'awaiting'`), 0)
	steam.before = nil
	w.drain()
	equal(t, "calls", len(steam.requested()), 3)
	equal(t, "snapshots", w.count(`SELECT count(*) FROM market_snapshot WHERE reason = 'awaiting'`), 3)
	w.checkIdle()
}
