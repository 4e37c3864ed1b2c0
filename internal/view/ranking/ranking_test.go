package ranking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"assay/internal/fault"
	"assay/internal/market"
	"assay/internal/randtest"
	"assay/internal/store"
)

// fake is a store of figures in memory, the same for all periods.
type fake struct {
	mu       sync.Mutex
	versions store.TraderVersions
	traders  map[int64]store.Trader
	changed  map[int64]int64 // the version of slot 0
	err      error
	whole    int           // times that all lists were made of all
	hold     chan struct{} // what keeps them from being made; nil: nothing
}

func newFake() *fake { return &fake{traders: map[int64]store.Trader{}, changed: map[int64]int64{}} }

func (f *fake) put(t store.Trader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.versions[0]++
	f.changed[t.Key] = f.versions[0]
	f.traders[t.Key] = t
}

func (f *fake) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fake) TraderVersions(context.Context) (store.TraderVersions, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.versions, f.err
}

func (f *fake) ChangedTraders(_ context.Context, since store.TraderVersions, limit int) (users []int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for user, version := range f.changed {
		if version > since[0] && len(users) < limit {
			users = append(users, user)
		}
	}
	return users, f.err
}

func (f *fake) EachTrader(ctx context.Context, days store.Days, tell func(store.Trader)) error {
	f.mu.Lock()
	hold := f.hold
	f.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if days == (store.Days{}) {
		f.whole++
	}
	for _, t := range f.traders {
		if t.Trades > 0 {
			tell(t)
		}
	}
	return f.err
}

func (f *fake) Traders(_ context.Context, _ store.Days, users []int64) (traders []store.Trader, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, user := range users {
		if t := f.traders[user]; t.Trades > 0 {
			traders = append(traders, t)
		}
	}
	return traders, f.err
}

// ranks is the first ranks by the slowest way there is.
func (f *fake) ranks(by string) (keys []int64) {
	l := &list{figure: figures()[by]}
	for _, t := range f.traders {
		if t.Trades > 0 {
			l.top = append(l.top, t)
		}
	}
	l.sort()
	return keysOf(l.top[:min(Ranks, len(l.top))])
}

func keysOf(traders []store.Trader) (keys []int64) {
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

func newRanking(f *fake, now func() time.Time) *Ranking {
	return New(Options{Store: f, Now: now, Logger: slog.New(slog.DiscardHandler)})
}

// TestRefresh_OfThoseWhoChangedIsThatOfAll changes figures at random, most of them
// of those who are at the top.
func TestRefresh_OfThoseWhoChangedIsThatOfAll(t *testing.T) {
	r := randtest.New(t)
	f := newFake()
	ranked := newRanking(f, time.Now)
	figure := func(key, most int64) store.Trader {
		return store.Trader{Key: key, Trades: r.Int64N(most), Others: r.Int64N(most), Ranked: r.Int64N(most)}
	}
	const users = 5 * maxKept
	for key := range int64(users) {
		f.put(figure(key, 1_000))
	}
	for step := range randtest.Count(60, 3_000) {
		most := []int64{3, 900, 2_000}[r.IntN(3)]
		top := f.ranks("trades")
		for range r.IntN(80) {
			key := r.Int64N(users)
			if r.IntN(2) == 0 && len(top) > 0 {
				key = top[r.IntN(len(top))]
			}
			f.put(figure(key, most))
		}
		if err := ranked.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for by := range figures() {
			if got, want := ranked.keys(t, by), f.ranks(by); !slices.Equal(got, want) {
				t.Fatalf("step %d, by %s: %v, want %v", step, by, got, want)
			}
		}
	}
	t.Logf("made of all %d times", f.whole)
}

func TestRefresh_LooksAtWhoChangedAlone(t *testing.T) {
	f := newFake()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r := newRanking(f, func() time.Time { return now })
	for key := range int64(10 * maxKept) {
		f.put(store.Trader{Key: key, Trades: 1 + key})
	}
	refresh := func(why string, whole int) {
		t.Helper()
		if err := r.Refresh(t.Context()); err != nil || f.whole != whole {
			t.Fatalf("%s: made of all %d times, want %d; %v", why, f.whole, whole, err)
		}
	}
	refresh("first", 1)
	refresh("nothing changed", 1)
	f.put(store.Trader{Key: 3, Trades: 1_000_000})
	refresh("one changed", 1)
	if top := r.keys(t, "trades"); top[0] != 3 || len(top) != Ranks {
		t.Errorf("%v", top)
	}
	for key := range int64(10 * maxKept) {
		if key >= 10*maxKept-2*maxKept {
			f.put(store.Trader{Key: key, Trades: 1})
		}
	}
	refresh("all that were at the top fell back", 2)
	now = now.Add(24 * time.Hour)
	refresh("another day", 3)
	for key := range int64(mostChanged + 1) {
		f.put(store.Trader{Key: key, Trades: 7})
	}
	refresh("too many changed", 4)
	f.versions[0] -= 2
	refresh("the database was set back", 5)
}

func TestTop_AnswersFromTheLastWhileTheNextIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		r := newRanking(f, time.Now)
		f.put(store.Trader{Key: 1, Trades: 1})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		began := time.Now()
		synctest.Wait()
		f.mu.Lock()
		f.hold = make(chan struct{})
		f.mu.Unlock()
		for key := range int64(mostChanged + 1) { // so that all are to be looked at
			f.put(store.Trader{Key: key, Trades: 2})
		}
		<-time.After(30 * time.Second)
		top, asOf, err := r.Top(t.Context(), Key{"7d", "trades"})
		if err != nil || len(top) != 1 || !asOf.Equal(began) {
			t.Errorf("%d ranks as of %v, %v", len(top), asOf, err)
		}
		close(f.hold)
		synctest.Wait()
		if top, _, _ = r.Top(t.Context(), Key{"7d", "trades"}); len(top) != Ranks {
			t.Errorf("%d ranks", len(top))
		}
		stop()
		<-done
	})
}

func TestTop_AFailureLeavesWhatWasMadeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		r := newRanking(f, time.Now)
		f.put(store.Trader{Key: 1, Trades: 1})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		synctest.Wait()
		f.fail(errors.New("gone"))
		f.put(store.Trader{Key: 2, Trades: 2})
		<-time.After(time.Minute)
		top, asOf, err := r.Top(t.Context(), Key{"7d", "trades"})
		if err != nil || len(top) != 1 || time.Since(asOf) != time.Minute {
			t.Errorf("%d ranks as of %v, %v", len(top), asOf, err)
		}
		f.fail(nil)
		<-time.After(2 * every)
		if top, asOf, err = r.Top(t.Context(), Key{"7d", "trades"}); err != nil || len(top) != 2 || time.Since(asOf) > every {
			t.Errorf("%d ranks as of %v, %v", len(top), asOf, err)
		}
		stop()
		<-done
	})
}

func TestTop_WaitsForTheFirstButNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.hold = make(chan struct{})
		r := newRanking(f, time.Now)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		began := time.Now()
		_, _, err := r.Top(t.Context(), Key{"all", "volume"})
		if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || f.Code != "ranking_not_ready" || time.Since(began) != firstWait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { close(f.hold) })
		if _, _, err := r.Top(t.Context(), Key{"all", "volume"}); err != nil {
			t.Error(err)
		}
		stop()
		<-done
	})
}

func TestTop_GivesUpWithWhoAsks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := newRanking(newFake(), time.Now).Top(ctx, Key{"all", "volume"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPeriods_AreDaysOfTheCalendar(t *testing.T) {
	day := market.Day(time.Date(2026, 11, 21, 23, 59, 59, 0, time.UTC))
	if got, want := fmt.Sprint(periods(day)), fmt.Sprintf("map[30d:{%d %d} 7d:{%d %d} all:{0 0}]", day-29, day, day-6, day); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// BenchmarkRefresh_OfThoseWhoChanged is what a second costs beside the database.
func BenchmarkRefresh_OfThoseWhoChanged(b *testing.B) {
	f := newFake()
	r := newRanking(f, time.Now)
	for key := range int64(20_000) {
		f.put(store.Trader{Key: key, Trades: 1 + rand.Int64N(1_000)})
	}
	for b.Loop() {
		for range 40 {
			f.put(store.Trader{Key: rand.Int64N(20_000), Trades: 1 + rand.Int64N(1_000)})
		}
		if err := r.Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
