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

// completeTrades sells one asset to each buyer and completes the trades.
func (w *fixture) completeTrades(seller string, price int64, buyers ...string) []market.Trade {
	w.Helper()
	assets := make([]inventory.Asset, len(buyers))
	for i := range buyers {
		assets[i] = asset(strconv.FormatInt(w.now.Load(), 10)+"-"+strconv.Itoa(i), "x")
	}
	w.push(seller, assets...)
	w.fund(buyers...)
	out := make([]market.Trade, len(buyers))
	for i, buyer := range buyers {
		var err error
		out[i], err = w.m.Complete(w.Context(), w.sell(seller, buyer, assets[i].AssetID, price).ID)
		w.must(err)
	}
	return out
}

func (w *fixture) reader() *view.TraderReader {
	return view.New(view.Options{Store: w.s, Currency: "USD", Now: w.clock}).Traders
}

func (w *fixture) topTraders(r *view.TraderReader, period, by string) []view.TopTrader {
	w.Helper()
	w.must(r.RefreshRanking(w.Context()))
	top, err := r.TopTraders(w.Context(), period, by, 100)
	w.must(err)
	return top.Items
}

func (w *fixture) setName(id, name string, shown bool) {
	w.Helper()
	w.must(w.s.InTx(w.Context(), func(tx *db.Tx) error {
		return user.Put(tx, user.User{ID: id, DisplayName: name, Leaderboard: shown})
	}))
}

func TestTopTraders_CountCompletedTradesOfThePeriod(t *testing.T) {
	w := newFixture(t)
	r, other := w.reader(), w.reader() // two instances
	if got := w.topTraders(r, "all", "volume"); len(got) != 0 {
		t.Errorf("without trades: got %+v, want none", got)
	}
	w.setName("u", "Ada", true)
	trades := w.completeTrades("u", 1000, "b", "c", "b")
	for _, r := range []*view.TraderReader{r, other} {
		got := w.topTraders(r, "7d", "volume")
		if len(got) != 3 || got[0] != (view.TopTrader{
			Rank: 1, DisplayName: "Ada", Trades: 3, Volume: 30 * money.Scale, RankedVolume: 30 * money.Scale, Counterparties: 2, CompletedShare: 1,
		}) || got[1].Trades != 2 || got[1].DisplayName != "anonymous" || got[2].Counterparties != 1 {
			t.Errorf("got traders %+v, want Ada first, with 3 trades, and two anonymous traders", got)
		}
	}
	_, err := w.m.Reverse(t.Context(), trades[1].ID)
	w.must(err)
	w.setName("u", "Ada", false)
	if got := w.topTraders(r, "all", "counterparties"); len(got) != 2 || got[0].Trades != 2 || got[0].Volume != 20*money.Scale ||
		got[0].Counterparties != 1 || got[0].CompletedShare != 0.6666 || got[0].DisplayName != "anonymous" {
		t.Errorf("after a reversal and an opt-out: got %+v, want two anonymous traders with 2 trades", got)
	}
	w.advance(7 * 24 * time.Hour)
	if len(w.topTraders(r, "7d", "trades")) != 0 || len(w.topTraders(r, "30d", "trades")) != 2 || len(w.topTraders(r, "all", "trades")) != 2 {
		t.Error("after 7 days: got wrong lengths, want 0 traders for 7d and 2 for 30d and all")
	}
}

// TestTopTraders_HidesNamesImmediatelyAfterAnOptOut reads the list after each change,
// without a refresh of the ranking.
func TestTopTraders_HidesNamesImmediatelyAfterAnOptOut(t *testing.T) {
	w := newFixture(t)
	w.completeTrades("u", 1000, "b")
	r := w.reader()
	w.must(r.RefreshRanking(t.Context()))
	for _, step := range []struct {
		shown bool
		want  string
	}{{true, "Ada"}, {false, "anonymous"}, {true, "Ada"}} {
		w.setName("u", "Ada", step.shown)
		top, err := r.TopTraders(t.Context(), "all", "volume", 1)
		w.must(err)
		if top.Items[0].DisplayName != step.want || !top.AsOf.Equal(w.clock()) {
			t.Errorf("leaderboard %v: got %+v, want the name %s", step.shown, top, step.want)
		}
	}
}

// TestTopTraders_LimitRankedTradesOfConcurrentCompletions completes many trades between two
// users concurrently.
func TestTopTraders_LimitRankedTradesOfConcurrentCompletions(t *testing.T) {
	w := newFixture(t)
	const trades = 4 * market.RankedTrades
	w.fund("b")
	var assets []inventory.Asset
	for i := range trades {
		assets = append(assets, asset(strconv.Itoa(i), "x"))
	}
	w.push("u", assets...)
	var wg sync.WaitGroup
	for _, a := range assets {
		id := w.sell("u", "b", a.AssetID, 1000).ID
		wg.Go(func() {
			if _, err := w.m.Complete(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := w.topTraders(w.reader(), "7d", "volume"); len(got) != 2 || got[0].Trades != trades || got[0].RankedVolume != market.RankedTrades*10*money.Scale {
		t.Errorf("got traders %+v, want 2 with %d trades and a ranked volume of %d trades", got, trades, market.RankedTrades)
	}
}

// TestTopTraders_IncrementalRefreshMatchesAFullOne completes and reverses random trades. It
// compares an incrementally refreshed ranking with one that is computed from all trades.
func TestTopTraders_IncrementalRefreshMatchesAFullOne(t *testing.T) {
	w := newFixture(t)
	random := randtest.New(t)
	users := []string{"a", "b", "c", "d", "e"}
	w.fund(users...)
	kept := w.reader()
	for step := range randtest.Count(12, 200) {
		seller, buyer := random.IntN(len(users)), random.IntN(len(users)-1)
		if buyer >= seller {
			buyer++
		}
		for _, trade := range w.completeTrades(users[seller], 100+random.Int64N(1_000), users[buyer]) {
			if random.IntN(3) == 0 {
				_, err := w.m.Reverse(t.Context(), trade.ID)
				w.must(err)
			}
		}
		w.must(kept.RefreshRanking(t.Context()))
		for _, period := range []string{"7d", "30d", "all"} {
			got, want := w.topTraders(kept, period, "volume"), w.topTraders(w.reader(), period, "volume")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("step %d, period %s: the incremental ranking differs (-want +got):\n%s", step, period, diff)
			}
		}
		w.advance(time.Duration(1+random.IntN(36)) * time.Hour)
	}
}

// TestTopTraders_LimitWashTrading compares a trader with several buyers to two users who
// trade only with each other.
func TestTopTraders_LimitWashTrading(t *testing.T) {
	w := newFixture(t)
	w.setName("honest", "Honest", true)
	w.completeTrades("honest", 1000, "a", "b", "c", "d", "e", "f")
	w.completeTrades("washer", 1000, "z", "z", "z", "z", "z", "z", "z", "z")
	r := w.reader()
	for _, by := range []string{"volume", "counterparties"} {
		if got := w.topTraders(r, "all", by); got[0].DisplayName != "Honest" {
			t.Errorf("by %s: got %+v, want Honest first", by, got)
		}
	}
	got := w.topTraders(r, "all", "trades")
	if got[0].Trades != 8 || got[0].Volume != 80*money.Scale || got[0].RankedVolume != market.RankedTrades*10*money.Scale {
		t.Errorf("by trades: got %+v, want 8 trades and a ranked volume of %d trades", got[0], market.RankedTrades)
	}
}

func TestTopTraders_ConvertVolumesAtCompletion(t *testing.T) {
	w := newFixture(t)
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
	if got := w.topTraders(w.reader(), "all", "volume"); got[0].Trades != 2 || got[0].Volume != 15*money.Scale {
		t.Errorf("got trader %+v, want 2 trades and a volume of 15", got[0])
	}
}

// TestRule2_NamesOfActiveListingsAreInScope tests rule 2 of
// docs/explanation/refresh.md.
func TestRule2_NamesOfActiveListingsAreInScope(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "y"))
	l := w.mustList("u", "1", 1)
	w.raw(`DELETE FROM inventory`) // only the listing still refers to the item
	due := func() int64 {
		t.Helper()
		byApp, err := refresh.ReadDue(t.Context(), w.s, refresh.Rules{Now: w.clock()})
		w.must(err)
		return byApp[app].Due.Due
	}
	if n := due(); n != 1 {
		t.Errorf("active listing: got %d items in scope, want 1", n)
	}
	_, err := w.m.Cancel(t.Context(), l.ID)
	w.must(err)
	if n := due(); n != 0 {
		t.Errorf("cancelled listing: got %d items in scope, want 0", n)
	}
}
