package market_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/db"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/randtest"
	"assay/internal/refresh"
	"assay/internal/user"
	"assay/internal/view"
)

// traded sells assets of a seller to buyers and completes the trades.
func (w *world) traded(seller string, price int64, buyers ...string) []market.Trade {
	w.Helper()
	assets := make([]inventory.Asset, len(buyers))
	for i := range buyers {
		assets[i] = asset(strconv.FormatInt(w.now.Load(), 10)+"-"+strconv.Itoa(i), "x")
	}
	w.push(seller, assets...)
	w.give(buyers...)
	out := make([]market.Trade, len(buyers))
	for i, buyer := range buyers {
		var err error
		out[i], err = w.m.Complete(w.Context(), w.sold(seller, buyer, assets[i].AssetID, price).ID)
		w.must(err)
	}
	return out
}

func (w *world) reader() *view.TraderReader {
	return view.New(view.Options{Store: w.s, Currency: "USD", Now: w.clock}).Traders
}

func (w *world) top(r *view.TraderReader, period, by string) []view.TopTrader {
	w.Helper()
	w.must(r.RefreshRanking(w.Context()))
	top, err := r.TopTraders(w.Context(), period, by, 100)
	w.must(err)
	return top.Items
}

func (w *world) name(id, name string, shown bool) {
	w.Helper()
	w.must(w.s.InTx(w.Context(), func(tx *db.Tx) error {
		return user.Put(tx, user.User{ID: id, DisplayName: name, Leaderboard: shown})
	}))
}

func TestTopTraders_CountCompletedTradesOfThePeriod(t *testing.T) {
	w := newWorld(t)
	r, other := w.reader(), w.reader() // two instances
	if got := w.top(r, "all", "volume"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	w.name("u", "Ada", true)
	trades := w.traded("u", 1000, "b", "c", "b")
	for _, r := range []*view.TraderReader{r, other} {
		got := w.top(r, "7d", "volume")
		if len(got) != 3 || got[0] != (view.TopTrader{
			Rank: 1, DisplayName: "Ada", Trades: 3, Volume: 30 * money.Scale, RankedVolume: 30 * money.Scale, Counterparties: 2, CompletedShare: 1,
		}) || got[1].Trades != 2 || got[1].DisplayName != "anonymous" || got[2].Counterparties != 1 {
			t.Errorf("%+v", got)
		}
	}
	_, err := w.m.Reverse(t.Context(), trades[1].ID)
	w.must(err)
	w.name("u", "Ada", false)
	if got := w.top(r, "all", "counterparties"); len(got) != 2 || got[0].Trades != 2 || got[0].Volume != 20*money.Scale ||
		got[0].Counterparties != 1 || got[0].CompletedShare != 0.6666 || got[0].DisplayName != "anonymous" {
		t.Errorf("%+v", got)
	}
	w.pass(7 * 24 * time.Hour)
	if len(w.top(r, "7d", "trades")) != 0 || len(w.top(r, "30d", "trades")) != 2 || len(w.top(r, "all", "trades")) != 2 {
		t.Error("a window does not move")
	}
}

// TestTopTraders_NameNobodyWhoOptedOut asks, after each change, without the ranks
// having been made anew.
func TestTopTraders_NameNobodyWhoOptedOut(t *testing.T) {
	w := newWorld(t)
	w.traded("u", 1000, "b")
	r := w.reader()
	w.must(r.RefreshRanking(t.Context()))
	for _, step := range []struct {
		shown bool
		want  string
	}{{true, "Ada"}, {false, "anonymous"}, {true, "Ada"}} {
		w.name("u", "Ada", step.shown)
		top, err := r.TopTraders(t.Context(), "all", "volume", 1)
		w.must(err)
		if top.Items[0].DisplayName != step.want || !top.AsOf.Equal(w.clock()) {
			t.Errorf("shown %v: %+v", step.shown, top)
		}
	}
}

// TestTopTraders_CountNoMoreThanTheFirstTradesOfADayAtOnce is two users whose trades
// are all completed in the same moment.
func TestTopTraders_CountNoMoreThanTheFirstTradesOfADayAtOnce(t *testing.T) {
	w := newWorld(t)
	const trades = 4 * market.RankedTrades
	w.give("b")
	var assets []inventory.Asset
	for i := range trades {
		assets = append(assets, asset(strconv.Itoa(i), "x"))
	}
	w.push("u", assets...)
	var wg sync.WaitGroup
	for _, a := range assets {
		id := w.sold("u", "b", a.AssetID, 1000).ID
		wg.Go(func() {
			if _, err := w.m.Complete(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := w.top(w.reader(), "7d", "volume"); len(got) != 2 || got[0].Trades != trades || got[0].RankedVolume != market.RankedTrades*10*money.Scale {
		t.Errorf("%+v", got)
	}
}

// TestTopTraders_OfThoseWhoChangedAreThoseOfAll completes and reverses trades at
// random, and compares what was kept up to date with what is made of all.
func TestTopTraders_OfThoseWhoChangedAreThoseOfAll(t *testing.T) {
	w := newWorld(t)
	random := randtest.New(t)
	users := []string{"a", "b", "c", "d", "e"}
	w.give(users...)
	kept := w.reader()
	for step := range randtest.Count(12, 200) {
		seller, buyer := random.IntN(len(users)), random.IntN(len(users)-1)
		if buyer >= seller {
			buyer++
		}
		for _, trade := range w.traded(users[seller], 100+random.Int64N(1_000), users[buyer]) {
			if random.IntN(3) == 0 {
				_, err := w.m.Reverse(t.Context(), trade.ID)
				w.must(err)
			}
		}
		w.must(kept.RefreshRanking(t.Context()))
		for _, period := range []string{"7d", "30d", "all"} {
			got, want := w.top(kept, period, "volume"), w.top(w.reader(), period, "volume")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("step %d, %s: %s", step, period, diff)
			}
		}
		w.pass(time.Duration(1+random.IntN(36)) * time.Hour)
	}
}

// TestTopTraders_DampWashTrading is of two who trade with each other all day.
func TestTopTraders_DampWashTrading(t *testing.T) {
	w := newWorld(t)
	w.name("honest", "Honest", true)
	w.traded("honest", 1000, "a", "b", "c", "d", "e", "f")
	w.traded("washer", 1000, "z", "z", "z", "z", "z", "z", "z", "z")
	r := w.reader()
	for _, by := range []string{"volume", "counterparties"} {
		if got := w.top(r, "all", by); got[0].DisplayName != "Honest" {
			t.Errorf("by %s: %+v", by, got)
		}
	}
	got := w.top(r, "all", "trades")
	if got[0].Trades != 8 || got[0].Volume != 80*money.Scale || got[0].RankedVolume != market.RankedTrades*10*money.Scale {
		t.Errorf("%+v", got[0])
	}
}

func TestTopTraders_ConvertVolumesOnce(t *testing.T) {
	w := newWorld(t)
	w.rates = pricing.Rates{}
	w.must(w.rates.Add("EUR=1.5@2026-03-01"))
	w.push("u", asset("1", "x"), asset("2", "x"))
	for i, currency := range []money.Currency{"EUR", "SEK"} {
		offers := market.Offers{UserID: "u", AppID: app, ContextID: ctx, Offers: []market.Offer{{AssetID: strconv.Itoa(i + 1), Price: 1000, Currency: currency}}}
		var id int64
		w.must(w.m.Create(t.Context(), offers, func(_ *db.Tx, made []market.Created) error {
			id = made[0].Listing.ID
			return nil
		}))
		w.deposit("b", currency, 1000)
		trade, err := w.buy(id, "b")
		w.must(err)
		_, err = w.m.Complete(t.Context(), trade.ID)
		w.must(err)
	}
	w.rates = nil
	if got := w.top(w.reader(), "all", "volume"); got[0].Trades != 2 || got[0].Volume != 15*money.Scale {
		t.Errorf("%+v", got[0])
	}
}

// TestRule2_NamesOfActiveListingsAreInScope is contract, rule 2.
func TestRule2_NamesOfActiveListingsAreInScope(t *testing.T) {
	w := newWorld(t)
	w.push("u", asset("1", "x"), asset("2", "y"))
	l := w.mustList("u", "1", 1)
	w.raw(`DELETE FROM inventory`) // as an item that a listing alone still names
	due := func() int64 {
		t.Helper()
		byApp, err := refresh.ReadDue(t.Context(), w.s, refresh.Rules{Now: w.clock()})
		w.must(err)
		return byApp[app].Due.Due
	}
	if n := due(); n != 1 {
		t.Errorf("%d items are in scope", n)
	}
	_, err := w.m.Cancel(t.Context(), l.ID)
	w.must(err)
	if n := due(); n != 0 {
		t.Errorf("%d items are in scope", n)
	}
}
