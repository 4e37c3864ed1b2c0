package ranking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/market"
	"assay/internal/randtest"
)

// book keeps the figures of traders in the database and in memory. The figures of a trader are
// the same in all periods.
type book struct {
	tb      testing.TB
	db      *db.DB
	day     int64 // day of all trades
	traders map[int64]Trader
	mu      sync.Mutex
	whole   int           // number of full rebuilds
	hold    chan struct{} // if not nil, blocks rebuilds until it is closed
}

func newBook(tb testing.TB, now time.Time) *book {
	tb.Helper()
	d, err := db.Open(tb.Context(), db.Options{Path: filepath.Join(tb.TempDir(), "a.db")})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = d.Close() })
	return &book{tb: tb, db: d, day: market.Day(now), traders: map[int64]Trader{}}
}

// tx executes statements in one transaction.
func (b *book) tx(fn func(exec func(query string, args ...any))) {
	b.tb.Helper()
	err := b.db.InTx(b.tb.Context(), func(tx *db.Tx) (err error) {
		fn(func(query string, args ...any) {
			if err == nil {
				_, err = tx.Exec(query, args...)
			}
		})
		return err
	})
	if err != nil {
		b.tb.Fatal(err)
	}
}

// put stores the figures of traders. If a trader is repeated, the last figures count. A trader
// with trades has at least one counterparty and at least one trade with each of them.
func (b *book) put(traders ...Trader) {
	b.tb.Helper()
	b.tx(func(exec func(query string, args ...any)) {
		for _, t := range traders {
			t.Others = min(max(t.Others, 1), t.Trades)
			b.traders[t.Key] = t
			exec(`DELETE FROM trader_pair WHERE user_key = $1 AND day IN (0, $2)`, t.Key, b.day)
			exec(`
				WITH RECURSIVE other (n) AS (SELECT 1 WHERE $5 > 0 UNION ALL SELECT n + 1 FROM other WHERE n < $5)
				INSERT INTO trader_pair (day, user_key, other_key, trades, reversed, volume, ranked)
				SELECT day.at, $1, other.n, CASE other.n WHEN 1 THEN $3 - $5 + 1 ELSE 1 END, 0, 0, CASE other.n WHEN 1 THEN $4 ELSE 0 END
				FROM other CROSS JOIN (SELECT 0 AS at UNION ALL SELECT $2) day`, t.Key, b.day, t.Trades, t.Ranked, t.Others)
			exec(`INSERT INTO trader_version (slot, version) VALUES (0, 1) ON CONFLICT (slot) DO UPDATE SET version = trader_version.version + 1`)
			exec(`
				INSERT INTO trader (user_key, slot, version) SELECT $1, 0, version FROM trader_version WHERE slot = 0
				ON CONFLICT (user_key) DO UPDATE SET version = excluded.version`, t.Key)
		}
	})
}

// each calls eachTrader and counts the full rebuilds. It waits while hold is open.
func (b *book) each(ctx context.Context, d *db.DB, days Days, report func(Trader)) error {
	b.mu.Lock()
	hold := b.hold
	if days == (Days{}) {
		b.whole++
	}
	b.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return eachTrader(ctx, d, days, report)
}

// ranks computes the ranks by sorting all traders.
func (b *book) ranks(by string) (keys []int64) {
	l := &list{figure: figures()[by]}
	for _, t := range b.traders {
		if t.Trades > 0 {
			l.top = append(l.top, t)
		}
	}
	l.sort()
	return keysOf(l.top[:min(Ranks, len(l.top))])
}

func keysOf(traders []Trader) (keys []int64) {
	for _, t := range traders {
		keys = append(keys, t.Key)
	}
	return keys
}

func (r *Ranking) keys(t *testing.T, by string) []int64 {
	t.Helper()
	top, _, err := r.Top(t.Context(), Key{"all", by})
	if err != nil {
		t.Fatal(err)
	}
	return keysOf(top)
}

func newRanking(b *book, now func() time.Time) *Ranking {
	r := New(Options{Store: b.db, Now: now, Logger: slog.New(slog.DiscardHandler)})
	r.each = b.each
	return r
}

// TestRefresh_FromChangesEqualsFullRebuild changes figures at random, mostly of traders at the
// top.
func TestRefresh_FromChangesEqualsFullRebuild(t *testing.T) {
	r := randtest.New(t)
	b := newBook(t, time.Now())
	ranked := newRanking(b, time.Now)
	figure := func(key, most int64) Trader {
		// each counterparty is a row
		return Trader{Key: key, Trades: r.Int64N(most), Others: r.Int64N(min(most, 20)), Ranked: r.Int64N(most)}
	}
	const users = 5 * maxKept
	var all []Trader
	for key := range int64(users) {
		all = append(all, figure(key, 1_000))
	}
	b.put(all...)
	for step := range randtest.Count(60, 3_000) {
		most := []int64{3, 900, 2_000}[r.IntN(3)]
		top := b.ranks("trades")
		var changed []Trader
		for range r.IntN(80) {
			key := r.Int64N(users)
			if r.IntN(2) == 0 && len(top) > 0 {
				key = top[r.IntN(len(top))]
			}
			changed = append(changed, figure(key, most))
		}
		b.put(changed...)
		if err := ranked.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for by := range figures() {
			if got, want := ranked.keys(t, by), b.ranks(by); !slices.Equal(got, want) {
				t.Fatalf("step %d, by %s: got %v, want %v", step, by, got, want)
			}
		}
	}
	t.Logf("%d full rebuilds", b.whole)
}

// many returns more changed traders than a refresh handles one by one.
func many(trades int64) (traders []Trader) {
	for key := range int64(mostChanged + 1) {
		traders = append(traders, Trader{Key: key, Trades: trades})
	}
	return traders
}

func TestRefresh_ReadsOnlyChangedTraders(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	b := newBook(t, now)
	r := newRanking(b, func() time.Time { return now })
	var all, fallen []Trader
	for key := range int64(10 * maxKept) {
		all = append(all, Trader{Key: key, Trades: 1 + key})
	}
	b.put(all...)
	refresh := func(why string, whole int) {
		t.Helper()
		if err := r.Refresh(t.Context()); err != nil || b.whole != whole {
			t.Fatalf("%s: got %d full rebuilds, want %d; error %v", why, b.whole, whole, err)
		}
	}
	refresh("first", 1)
	refresh("nothing changed", 1)
	b.put(Trader{Key: 3, Trades: 1_000_000})
	refresh("one changed", 1)
	if top := r.keys(t, "trades"); top[0] != 3 || len(top) != Ranks {
		t.Errorf("got the ranks %v, want %d with trader 3 first", top, Ranks)
	}
	for key := range int64(10 * maxKept) {
		if key >= 10*maxKept-2*maxKept {
			fallen = append(fallen, Trader{Key: key, Trades: 1})
		}
	}
	b.put(fallen...)
	refresh("all top traders lost their rank", 2)
	now = now.Add(24 * time.Hour)
	refresh("another day", 3)
	b.put(many(7)...)
	refresh("too many traders changed", 4)
	b.tx(func(exec func(query string, args ...any)) {
		exec(`UPDATE trader_version SET version = version - 2 WHERE slot = 0`)
	})
	refresh("an older database was restored", 5)
}

func TestTop_ReturnsLastResultDuringUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t, time.Now())
		r := newRanking(b, time.Now)
		b.put(Trader{Key: 1, Trades: 1})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		began := time.Now()
		synctest.Wait()
		b.mu.Lock()
		b.hold = make(chan struct{})
		b.mu.Unlock()
		b.put(many(2)...) // forces a full rebuild
		<-time.After(30 * time.Second)
		top, asOf, err := r.Top(t.Context(), Key{"7d", "trades"})
		if err != nil || len(top) != 1 || !asOf.Equal(began) {
			t.Errorf("during the update: got %d ranks as of %v, error %v, want 1 as of the start", len(top), asOf, err)
		}
		close(b.hold)
		synctest.Wait()
		if top, _, _ = r.Top(t.Context(), Key{"7d", "trades"}); len(top) != Ranks {
			t.Errorf("after the update: got %d ranks, want %d", len(top), Ranks)
		}
		stop()
		<-done
	})
}

func TestTop_FailedUpdateKeepsLastResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t, time.Now())
		r := newRanking(b, time.Now)
		b.put(Trader{Key: 1, Trades: 1})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		synctest.Wait()
		b.put(Trader{Key: 2, Trades: 2})
		rename := func(from, to string) {
			b.tx(func(exec func(query string, args ...any)) { exec(`ALTER TABLE ` + from + ` RENAME TO ` + to) })
		}
		rename("trader_version", "gone") // makes every refresh fail
		<-time.After(time.Minute)
		top, asOf, err := r.Top(t.Context(), Key{"7d", "trades"})
		if err != nil || len(top) != 1 || time.Since(asOf) != time.Minute {
			t.Errorf("failed update: got %d ranks as of %v, error %v, want 1 as of a minute ago", len(top), asOf, err)
		}
		rename("gone", "trader_version")
		<-time.After(2 * every)
		if top, asOf, err = r.Top(t.Context(), Key{"7d", "trades"}); err != nil || len(top) != 2 || time.Since(asOf) > every {
			t.Errorf("next update: got %d ranks as of %v, error %v, want 2 of the last update", len(top), asOf, err)
		}
		stop()
		<-done
	})
}

func TestTop_WaitsLimitedTimeForFirstUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t, time.Now())
		b.hold = make(chan struct{})
		r := newRanking(b, time.Now)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		began := time.Now()
		_, _, err := r.Top(t.Context(), Key{"all", "volume"})
		if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || f.Code != "ranking_not_ready" || time.Since(began) != firstWait {
			t.Errorf("before the first update: got error %v after %v, want ranking_not_ready after %v", err, time.Since(began), firstWait)
		}
		time.AfterFunc(time.Second, func() { close(b.hold) })
		if _, _, err := r.Top(t.Context(), Key{"all", "volume"}); err != nil {
			t.Error(err)
		}
		stop()
		<-done
	})
}

func TestTop_ReturnsWhenCallerCancels(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := newRanking(newBook(t, time.Now()), time.Now).Top(ctx, Key{"all", "volume"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPeriods_AreCalendarDays(t *testing.T) {
	day := market.Day(time.Date(2026, 11, 21, 23, 59, 59, 0, time.UTC))
	if got, want := fmt.Sprint(periods(day)), fmt.Sprintf("map[30d:{%d %d} 7d:{%d %d} all:{0 0}]", day-29, day, day-6, day); got != want {
		t.Errorf("periods: got %s, want %s", got, want)
	}
}

// BenchmarkRefresh_OfChangedTraders measures the update that runs every second.
func BenchmarkRefresh_OfChangedTraders(b *testing.B) {
	stored := newBook(b, time.Now())
	r := newRanking(stored, time.Now)
	var all []Trader
	for key := range int64(20_000) {
		all = append(all, Trader{Key: key, Trades: 1 + rand.Int64N(1_000)})
	}
	stored.put(all...)
	for b.Loop() {
		b.StopTimer()
		var changed []Trader
		for range 40 {
			changed = append(changed, Trader{Key: rand.Int64N(20_000), Trades: 1 + rand.Int64N(1_000)})
		}
		stored.put(changed...)
		b.StartTimer()
		if err := r.Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
