package view_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/randtest"
	"assay/internal/refresh"
	"assay/internal/view"
)

// units returns whole units of a currency.
func units(n int64) money.Micro { return money.Micro(n) * money.Scale }

// history returns all pages of the history as text: the time since start and the figures.
func (w *world) history(f view.HistoryFilter, start time.Time, limit int) string {
	w.Helper()
	var lines []string
	for cursor := ""; ; {
		h, err := w.History(w.Context(), catalog.Key{AppID: catalog.CS2, Name: "A"}, f, cursor, limit)
		w.must(err)
		for _, p := range h.Points {
			text := fmt.Sprintf("%v: %v", p.At.Sub(start), p.Price)
			if p.Price != nil {
				text = fmt.Sprintf("%v: %v", p.At.Sub(start), *p.Price)
			}
			if p.PriceStatus != nil {
				text += " " + *p.PriceStatus
			}
			if p.Quote != nil {
				text += fmt.Sprintf(" %s used %t", p.Quote.Currency, p.Quote.Used)
			}
			lines = append(lines, text)
		}
		for _, c := range h.Candles {
			lines = append(lines, fmt.Sprintf("%v: %v %v %v %v, %d", c.At.Sub(start), c.Open, c.High, c.Low, c.Close, c.Changes))
		}
		if h.NextCursor == nil {
			return strings.Join(lines, "\n")
		}
		cursor = *h.NextCursor
	}
}

// TestHistory_HasPointsAndCandles prices an item in several runs. One market quotes the price.
// The quote of the other market never changes.
func TestHistory_HasPointsAndCandles(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	start := w.now
	m1, m2 := refresh.MarketName{Provider: "p", Key: "m1"}, refresh.MarketName{Provider: "p", Key: "m2"}
	var ids map[refresh.MarketName]int64
	w.tx(func(tx *db.Tx) (err error) {
		ids, err = refresh.MarketIDs(tx, []refresh.MarketName{m1, m2})
		return err
	})
	var moments []time.Time
	for k, price := range []int64{10, 10, 12, 9, 11} {
		w.now = start.Add(time.Duration(k) * 7 * time.Hour)
		w.quotes = func() []refresh.MarketSnapshot {
			return []refresh.MarketSnapshot{
				{MarketID: ids[m1], Currency: "USD", Ask: units(price), FetchedAt: w.now},
				{MarketID: ids[m2], Currency: "EUR", Ask: units(50), Reason: pricing.Outlier, FetchedAt: w.now},
			}
		}
		w.price(map[string]money.Micro{"A": units(price)})
		moments = append(moments, w.now)
	}
	w.now = start.Add(40 * time.Hour)

	points := "0s: 10 ok\n14h0m0s: 12 ok\n21h0m0s: 9 ok\n28h0m0s: 11 ok"
	for _, limit := range []int{1, 2, 100} {
		if got := w.history(view.HistoryFilter{}, start, limit); got != points {
			t.Errorf("got the points, %d per page:\n%s\nwant\n%s", limit, got, points)
		}
	}
	for name, test := range map[string]struct {
		filter view.HistoryFilter
		want   string
	}{
		"from a time between points": {view.HistoryFilter{From: start.Add(15 * time.Hour)}, "14h0m0s: 12 ok\n21h0m0s: 9 ok\n28h0m0s: 11 ok"},
		"to the time of a point":     {view.HistoryFilter{To: start.Add(21 * time.Hour)}, "0s: 10 ok\n14h0m0s: 12 ok"},
		"before the first price":     {view.HistoryFilter{To: start}, ""},
		"the market with the price":  {view.HistoryFilter{Market: "p/m1"}, "0s: 10 USD used true\n14h0m0s: 12 USD used true\n21h0m0s: 9 USD used true\n28h0m0s: 11 USD used true"},
		"the market without changes": {view.HistoryFilter{Market: "p/m2"}, "0s: 50 EUR used false"},
		"candles of a day":           {view.HistoryFilter{Interval: 24 * time.Hour}, "-12h0m0s: 10 10 10 10, 0\n12h0m0s: 10 12 9 11, 3\n36h0m0s: 11 11 11 11, 0"},
		"candles from a later time":  {view.HistoryFilter{Interval: 24 * time.Hour, From: start.Add(30 * time.Hour)}, "12h0m0s: 10 12 9 11, 3\n36h0m0s: 11 11 11 11, 0"},
		"candles to an earlier time": {view.HistoryFilter{Interval: 24 * time.Hour, To: start.Add(12 * time.Hour)}, "-12h0m0s: 10 10 10 10, 0"},
		"candles of a market":        {view.HistoryFilter{Interval: 24 * time.Hour, Market: "p/m2"}, "-12h0m0s: 50 50 50 50, 0\n12h0m0s: 50 50 50 50, 0\n36h0m0s: 50 50 50 50, 0"},
	} {
		for _, limit := range []int{1, 100} {
			if got := w.history(test.filter, start, limit); got != test.want {
				t.Errorf("%s, %d per page: got\n%s\nwant\n%s", name, limit, got, test.want)
			}
		}
	}
	if got := strings.Count(w.history(view.HistoryFilter{Interval: 5 * time.Minute}, start, 7), "\n"); got != 40*12-1 {
		t.Errorf("got %d candles of five minutes in 40 hours, want %d", got+1, 40*12)
	}

	for k, want := range []int64{10, 10, 12, 9, 11} {
		for _, later := range []time.Duration{0, 6 * time.Hour} {
			at := moments[k].Add(later)
			got, err := w.PriceAt(w.Context(), catalog.Key{AppID: catalog.CS2, Name: "A"}, at, false, "")
			w.must(err)
			if got.CurrentPrice != units(want) || got.EstimatedAt.After(at) || got.AgeSeconds != int64(at.Sub(got.EstimatedAt)/time.Second) {
				t.Errorf("after %v: got %+v, want the price %d", at.Sub(start), got, want)
			}
		}
	}
	_, err := w.PriceAt(w.Context(), catalog.Key{AppID: catalog.CS2, Name: "A"}, start.Add(-time.Second), false, "")
	if f := fault.Of(err); f == nil || f.Code != "price_not_found" {
		t.Errorf("before the first price: got %v, want price_not_found", err)
	}
}

// wantInvalid fails the test unless err is a fault of one parameter of the query.
func wantInvalid(t *testing.T, what string, err error, parameter string) {
	t.Helper()
	f := fault.Of(err)
	if f == nil || f.Code != "invalid_parameters" || len(f.Fields) != 1 || f.Fields[0].Pointer != "/query/"+parameter || f.Fields[0].Detail == "" {
		t.Errorf("%s: got %v, want invalid_parameters with one error at /query/%s", what, err, parameter)
	}
}

// TestHistory_EndsNow requests the future of a price and of a market. The history must end now, also
// with a cursor of a longer period.
// A change of the interval alone is a point of the price's history, which equals the item.
func TestHistory_HasIntervals(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	start := w.now
	m := w.marketID(refresh.MarketName{Provider: "p", Key: "m"})
	for k, low := range []int64{9, 8, 8} {
		w.now = start.Add(time.Duration(k) * 7 * time.Hour)
		w.quotes = func() []refresh.MarketSnapshot {
			return []refresh.MarketSnapshot{{MarketID: m, Currency: "USD", Ask: units(10), FetchedAt: w.now}}
		}
		id := w.begin(1)
		w.estimateWith(map[string]pricing.Priced{"A": {
			Price: units(10), Estimated: units(10), UsedMarkets: 1, Interval: pricing.Interval{Low: units(low), High: units(11)},
		}})
		w.end(id)
	}
	h, err := w.History(w.Context(), catalog.Key{AppID: catalog.CS2, Name: "A"}, view.HistoryFilter{From: start, To: w.now.Add(time.Second)}, "", 10)
	w.must(err)
	var got []string
	for _, p := range h.Points {
		got = append(got, fmt.Sprint(p.At.Sub(start), " ", p.Interval.Low, " to ", p.Interval.High))
	}
	w.is("intervals", strings.Join(got, ", "), "0s 9 to 11, 7h0m0s 8 to 11")
}

func TestHistory_EndsNow(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	m := refresh.MarketName{Provider: "p", Key: "m"}
	w.quotes = func() []refresh.MarketSnapshot {
		return []refresh.MarketSnapshot{{MarketID: w.marketID(m), Currency: "USD", Ask: units(10), FetchedAt: w.now}}
	}
	start := w.now.Truncate(24 * time.Hour)
	w.price(map[string]money.Micro{"A": units(10)})
	w.now = start.Add(60 * time.Hour)
	key, future := catalog.Key{AppID: catalog.CS2, Name: "A"}, w.now.Add(40*24*time.Hour)
	for _, market := range []string{"", "p/m", "m"} {
		f := view.HistoryFilter{Market: market, Interval: 24 * time.Hour, From: start, To: future}
		w.is("days of the market "+market, w.history(f, start, 2), "0s: 10 10 10 10, 0\n24h0m0s: 10 10 10 10, 0\n48h0m0s: 10 10 10 10, 0")
		for _, interval := range []time.Duration{0, 24 * time.Hour} {
			f.Interval = interval
			for _, at := range []time.Time{w.now, future.Add(-24 * time.Hour), future.Add(24 * time.Hour)} {
				cursor := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `["history",%d]`, at.UnixMicro()))
				h, err := w.History(w.Context(), key, f, cursor, 100)
				w.must(err)
				if len(h.Points)+len(h.Candles) > 0 || h.NextCursor != nil {
					t.Errorf("market %q, interval %s, a cursor at %s: got %+v, want an empty last page", market, interval, at, h)
				}
			}
		}
	}
}

// TestHistory_RefusesTimesOfTheFuture requests times around the tolerance for clocks that differ.
func TestHistory_RefusesTimesOfTheFuture(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	w.price(map[string]money.Micro{"A": units(10)})
	w.now = w.now.Add(time.Hour)
	key := catalog.Key{AppID: catalog.CS2, Name: "A"}
	for later, invalid := range map[time.Duration]bool{0: false, 5 * time.Minute: false, 5*time.Minute + 1: true, 200 * 365 * 24 * time.Hour: true} {
		_, err := w.PriceAt(w.Context(), key, w.now.Add(later), false, "")
		h, historyErr := w.History(w.Context(), key, view.HistoryFilter{From: w.now.Add(later)}, "", 1)
		if invalid {
			wantInvalid(t, "time "+later.String(), err, "time")
			wantInvalid(t, "from "+later.String(), historyErr, "from")
			continue
		}
		w.must(err)
		w.must(historyErr)
		if len(h.Points) != 1 {
			t.Errorf("from %s: got %+v, want the current point", later, h.Points)
		}
	}
	_, err := w.History(w.Context(), key, view.HistoryFilter{From: w.now.Add(-time.Minute), To: w.now.Add(-2 * time.Minute)}, "", 1)
	wantInvalid(t, "from after to", err, "from")
}

// TestMarket_HasTwoForms names markets of two providers, one of them shared, in a history and in a list.
func TestMarket_HasTwoForms(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	shared, other, single := refresh.MarketName{Provider: "p", Key: "m"}, refresh.MarketName{Provider: "o", Key: "m"}, refresh.MarketName{Provider: "p", Key: "n"}
	w.quotes = func() (out []refresh.MarketSnapshot) {
		for i, m := range []refresh.MarketName{shared, other, single} {
			out = append(out, refresh.MarketSnapshot{MarketID: w.marketID(m), Currency: "USD", Ask: units(int64(10 + i)), FetchedAt: w.now})
		}
		return out
	}
	w.price(map[string]money.Micro{"A": units(10)})
	start := w.now
	w.now = w.now.Add(time.Minute)
	for market, want := range map[string]string{"p/m": "10", "o/m": "11", "p/n": "12", "n": "12"} {
		w.is("the market "+market, w.history(view.HistoryFilter{Market: market}, start, 10), "0s: "+want+" USD used true")
		list, err := w.Items(w.Context(), view.ItemFilter{AppID: catalog.CS2, Market: market}, "", 10)
		w.must(err)
		w.is("items on the market "+market, len(list.Items), 1)
	}
	for market, want := range map[string]string{"m": "o/m, p/m", "p/none": "p/none", "none": "none"} {
		_, err := w.History(w.Context(), catalog.Key{AppID: catalog.CS2, Name: "A"}, view.HistoryFilter{Market: market}, "", 1)
		wantInvalid(t, "the market "+market, err, "market")
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("the market %s: got %v, want %s in the text", market, err, want)
		}
		_, listed := w.Items(w.Context(), view.ItemFilter{AppID: catalog.CS2, Market: market}, "", 1)
		w.is("error of a list of items on the market "+market, fmt.Sprint(listed), fmt.Sprint(err))
	}
}

// marketID returns the id of a market.
func (w *world) marketID(m refresh.MarketName) (id int64) {
	w.Helper()
	w.tx(func(tx *db.Tx) error {
		ids, err := refresh.MarketIDs(tx, []refresh.MarketName{m})
		id = ids[m]
		return err
	})
	return id
}

// TestPriceAt_ReportsTheLastConfirmation confirms a price without a change, which stores no point.
func TestPriceAt_ReportsTheLastConfirmation(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	w.price(map[string]money.Micro{"A": units(10)})
	first := w.now
	w.now = first.Add(7 * time.Hour)
	w.price(map[string]money.Micro{"A": units(10)})
	confirmed := w.now
	w.now = confirmed.Add(time.Hour)
	for at, want := range map[time.Time]time.Time{first: first, confirmed.Add(-time.Second): first, confirmed: confirmed, w.now: confirmed} {
		got, err := w.PriceAt(w.Context(), catalog.Key{AppID: catalog.CS2, Name: "A"}, at, false, "")
		w.must(err)
		if got.PriceCheckedAt == nil || !got.PriceCheckedAt.Equal(want) || !got.EstimatedAt.Equal(first) {
			t.Errorf("at %s: got priceCheckedAt %v and estimatedAt %s, want %s and %s", at, got.PriceCheckedAt, got.EstimatedAt, want, first)
		}
	}
}

// TestHistory_DaysContinueAfterFolding changes a price at random times and folds old points.
// Folding must not change the daily candles of the item and its markets, or the price and explanation at the horizon.
// Several processes fold at the same time, and one of them is stopped before it finishes.
func TestHistory_DaysContinueAfterFolding(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	r := randtest.New(t)
	start := w.now
	key := catalog.Key{AppID: catalog.CS2, Name: "A"}
	m, n := refresh.MarketName{Provider: "p", Key: "m"}, refresh.MarketName{Provider: "p", Key: "n"}
	var ids map[refresh.MarketName]int64
	w.tx(func(tx *db.Tx) (err error) {
		ids, err = refresh.MarketIDs(tx, []refresh.MarketName{m, n})
		return err
	})
	w.price(nil) // the first point has no price
	var first time.Time
	for range randtest.Count(60, 600) {
		w.now = w.now.Add(time.Duration(r.IntN(30*60)+1) * time.Minute)
		price := units(10 + r.Int64N(4))
		quotes := []refresh.MarketSnapshot{
			{MarketID: ids[m], Currency: "USD", Ask: price, FetchedAt: w.now}, {MarketID: ids[n], Currency: "EUR", Sale: units(5 + r.Int64N(3)), FetchedAt: w.now},
		}
		w.quotes = func() []refresh.MarketSnapshot { return quotes }
		w.price(map[string]money.Micro{"A": price})
		if first.IsZero() {
			first = w.now
		}
	}
	end := w.now
	days := func() (all []string) {
		for _, f := range []view.HistoryFilter{{}, {From: start.Add(50 * time.Hour)}, {From: start.Add(9 * 24 * time.Hour), To: end.Add(-30 * time.Hour)}} {
			f.Interval = 24 * time.Hour
			for _, f.Market = range []string{"", "m", "n"} {
				all = append(all, w.history(f, start, 1+r.IntN(9)), w.history(f, start, 1_000))
			}
		}
		return all
	}
	priceAt := func(at time.Time) string {
		p, err := w.PriceAt(w.Context(), key, at, true, "")
		w.must(err)
		text, err := json.Marshal(p)
		w.must(err)
		return string(text)
	}
	code := func(at time.Time) string {
		_, err := w.PriceAt(w.Context(), key, at, false, "")
		if f := fault.Of(err); f != nil {
			return f.Code
		}
		return ""
	}
	want := days()
	folded := false
	for _, age := range []time.Duration{25 * 24 * time.Hour, 10 * 24 * time.Hour, 10 * 24 * time.Hour, 9 * 24 * time.Hour, 0} {
		horizon := end.Add(-age).Truncate(24 * time.Hour)
		if horizon.Before(first) {
			continue // no point is old enough to fold
		}
		before := priceAt(horizon)
		stopped, stop := context.WithTimeout(w.Context(), time.Duration(r.IntN(5))*time.Millisecond)
		var folds sync.WaitGroup
		for _, ctx := range []context.Context{stopped, w.Context(), w.Context()} {
			folds.Go(func() {
				if err := refresh.Fold(ctx, w.store, horizon); err != nil && ctx != stopped {
					t.Error(err)
				}
			})
		}
		folds.Wait()
		stop()
		if got := days(); !slices.Equal(got, want) {
			t.Fatalf("with points of %v the candles are\n%s\nwant\n%s", age, got, want)
		}
		if after := priceAt(horizon); after != before {
			t.Errorf("the price at the horizon is\n%s\nwant\n%s", after, before)
		}
		h, err := w.History(w.Context(), key, view.HistoryFilter{}, "", 1)
		w.must(err)
		if h.PointsFrom == nil {
			continue // only the last point was old enough to fold
		}
		folded = true
		if old, err := w.History(w.Context(), key, view.HistoryFilter{Market: "n", Interval: 24 * time.Hour, To: *h.PointsFrom}, "", 1); err != nil || old.Currency != "EUR" {
			t.Errorf("got the currency %s of the oldest day of the market, error %v, want EUR", old.Currency, err)
		}
		if !h.Points[0].At.Equal(*h.PointsFrom) || !h.PointsFrom.Before(horizon) {
			t.Errorf("got a first point at %v and pointsFrom %v, want both equal and before the horizon %v", h.Points[0].At, h.PointsFrom, horizon)
		}
		if got := code(h.PointsFrom.Add(-time.Second)); got != "history_expired" {
			t.Errorf("the code of a time before the first point is %q, want history_expired", got)
		}
		if got := code(first.Truncate(24 * time.Hour).Add(-time.Second)); got != "price_not_found" {
			t.Errorf("the code of a time before the day of the first price is %q, want price_not_found", got)
		}
	}
	if !folded {
		t.Error("got no folded point, want some")
	}
}

// TestPriceAt_ExplainsLikeTheItem compares the explanation of a price point with the explanation
// of the item. One estimate uses five markets, and the other has no usable quote.
func TestPriceAt_ExplainsLikeTheItem(t *testing.T) {
	quotes := []refresh.MarketSnapshot{usd(11, 9, 1, 1), usd(11, 9, 1, 1), usd(11, 9, 1, 1), usd(11, 9, 1, 1), usd(11, 9, 1, 1)}
	w := newQuotesWorld(t, nil, quotes...)
	key, price := catalog.Key{AppID: catalog.CS2, Name: "x"}, units(11)
	for _, tt := range []struct {
		used   int
		reason pricing.Reason
		want   string
	}{
		{5, pricing.Used, "5 of 5 agree"},
		{0, pricing.StaleFetch, "No market has a usable quote now, so the last price is kept."},
	} {
		w.now = w.now.Add(7 * time.Hour)
		for k := range quotes {
			quotes[k].FetchedAt, quotes[k].Reason = w.now, tt.reason
		}
		id := w.begin(1)
		for w.estimateWith(map[string]pricing.Priced{"x": {
			Price: price, Estimated: price, Average: price, Median: price, Consensus: price, Markets: tt.used, UsedMarkets: tt.used,
		}}) {
		}
		w.end(id)
		item, err := w.Item(w.Context(), key, "")
		w.must(err)
		past, err := w.PriceAt(w.Context(), key, w.now, true, "")
		w.must(err)
		w.is(fmt.Sprintf("sentences with %d used markets", tt.used), past.Explanation.Sentences, item.Explanation.Sentences)
		if got := past.Explanation.Sentences[0]; !strings.Contains(got, tt.want) {
			t.Errorf("%d used markets: got %q, want a sentence with %q", tt.used, got, tt.want)
		}
	}
}
