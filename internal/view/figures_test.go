package view_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/randtest"
	"assay/internal/refresh"
	"assay/internal/view"
)

// minutely computes the figures of a period from the price of each minute. Volatility uses the
// moves between prices that are step minutes apart.
func minutely(prices []money.Micro, step int) view.PeriodFigures {
	sorted := slices.Sorted(slices.Values(prices))
	f := view.PeriodFigures{
		Open: prices[0], Close: prices[len(prices)-1], Low: sorted[0], High: sorted[len(sorted)-1], Median: sorted[(len(sorted)-1)/2],
	}
	var sum float64
	for _, p := range prices {
		sum += float64(p)
	}
	f.Mean = money.Micro(math.RoundToEven(sum / float64(len(prices))))
	change, _ := money.Ratio(f.Close-f.Open, f.Open)
	f.Change = &change
	var moves []float64
	at := func(minute int) float64 { return float64(prices[min(minute, len(prices)-1)]) }
	for k := len(prices); k-step >= 0; k -= step {
		moves = append(moves, at(k)/at(k-step)-1)
	}
	if len(moves) < 2 {
		return f
	}
	var mean, squares float64
	for _, m := range moves {
		mean += m / float64(len(moves))
	}
	for _, m := range moves {
		squares += (m - mean) * (m - mean)
	}
	f.Volatility = new(money.Micro(math.Round(math.Sqrt(squares/float64(len(moves)-1)) * 1e6)))
	return f
}

// TestFigures_AreThoseOfEachMinute compares the figures of random prices with figures that are
// computed from a list of the price in each minute. Folding older points must not change the
// figures of a period.
func TestFigures_AreThoseOfEachMinute(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	r := randtest.New(t)
	key := catalog.Key{AppID: catalog.CS2, Name: "A"}
	if got, err := w.Figures(w.Context(), key, ""); err != nil || len(got.Periods) != 0 {
		t.Errorf("the figures of an item without a price are %+v, %v, want none", got, err)
	}
	w.price(nil) // a point without a price
	var minutes []money.Micro
	for range randtest.Count(60, 600) {
		price := units(10 + r.Int64N(6))
		w.price(map[string]money.Micro{"A": price})
		pause := 6*60 + r.IntN(60*60) // the item is due again
		minutes = append(minutes, slices.Repeat([]money.Micro{price}, pause)...)
		w.now = w.now.Add(time.Duration(pause) * time.Minute)

		got, err := w.Figures(w.Context(), key, "")
		w.must(err)
		for k, p := range []struct{ days, step int }{{1, 60}, {7, 24 * 60}, {30, 24 * 60}, {90, 24 * 60}} {
			n := min(p.days*24*60, len(minutes))
			want := minutely(minutes[len(minutes)-n:], p.step)
			want.Days, want.From = int64(p.days), w.now.Add(-time.Duration(n)*time.Minute)
			f := got.Periods[k]
			if v := f.Volatility; v != nil && want.Volatility != nil && max(*v-*want.Volatility, *want.Volatility-*v) <= 1 {
				want.Volatility = v // both sums add the floating-point numbers in a different order
			}
			if !reflect.DeepEqual(f, want) {
				t.Fatalf("the figures of %d days after %d minutes are\n%+v\nwant\n%+v", p.days, len(minutes), f, want)
			}
		}
	}

	before, err := w.Figures(w.Context(), key, "")
	w.must(err)
	w.must(refresh.Fold(w.Context(), w.store, w.now.Add(-31*24*time.Hour).Truncate(24*time.Hour)))
	after, err := w.Figures(w.Context(), key, "")
	w.must(err)
	if !reflect.DeepEqual(after.Periods[:3], before.Periods[:3]) {
		t.Errorf("after folding the figures are\n%+v\nwant\n%+v", after, before)
	}
	if a, b := after.Periods[3], before.Periods[3]; a.Low != b.Low || a.High != b.High || a.Close != b.Close || a.Mean < a.Low || a.Mean > a.High {
		t.Errorf("after folding the figures of 90 days are\n%+v\nwant the range and the last price of\n%+v", a, b)
	}
	_, err = w.Figures(w.Context(), catalog.Key{AppID: catalog.CS2, Name: "unknown"}, "")
	if f := fault.Of(err); f == nil || f.Code != "item_not_found" {
		t.Errorf("the figures of an unknown item return %v, want item_not_found", err)
	}
}
