package view

import (
	"context"
	"math"
	"slices"
	"sort"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
)

// ItemFigures summarizes the prices of an item over the last day, week, month and quarter.
type ItemFigures struct {
	Currency money.Currency   `json:"currency"`
	Rates    []ConversionRate `json:"rates,omitempty"`
	To       time.Time        `json:"to"` // end of all periods
	Periods  []PeriodFigures  `json:"periods"`
}

// PeriodFigures summarizes the prices of a period. Each price counts for as long as it was
// valid.
type PeriodFigures struct {
	Days       int64        `json:"days"` // length of the period: 1, 7, 30 or 90
	From       time.Time    `json:"from"` // start of the period, or the time of the first known price in it
	Open       money.Micro  `json:"open"`
	Close      money.Micro  `json:"close"`
	High       money.Micro  `json:"high"`
	Low        money.Micro  `json:"low"`
	Mean       money.Micro  `json:"mean"`
	Median     money.Micro  `json:"median"` // the price was at most this for half of the time
	Change     *money.Micro `json:"change"` // (close - open) / open; null if it is too large
	Volatility *money.Micro `json:"volatility"`
}

// priceChange is a price and the time from which it is valid. low and high differ from price
// only for a stored day, which does not record when its price changed.
type priceChange struct {
	at               time.Time
	price, low, high money.Micro
}

// Figures returns the figures of an item. It omits periods without a price. A stored day counts
// as its closing price. All amounts are converted to currency at the rates in force, so that a
// move of a rate does not look like a move of the price.
func (r *HistoryReader) Figures(ctx context.Context, key catalog.Key, currency money.Currency) (ItemFigures, error) {
	to := r.o.Now().UTC()
	convert, err := r.o.converter(ctx, currency, to)
	if err != nil {
		return ItemFigures{}, err
	}
	out := ItemFigures{Currency: convert.to, Rates: convert.used(), To: to, Periods: []PeriodFigures{}}
	item, err := r.ids.of(ctx, key)
	if err != nil {
		return out, err
	}
	changes, err := priceChanges(ctx, r.o.Store, item, to.Add(-90*day))
	if err != nil {
		return out, err
	}
	for _, days := range []int64{1, 7, 30, 90} {
		step := day // of the volatility
		if days == 1 {
			step = time.Hour
		}
		if f, ok := figuresOf(changes, to.Add(-time.Duration(days)*day), to, step); ok {
			f.Days = days
			convert.all(&f.Open, &f.Close, &f.High, &f.Low, &f.Mean, &f.Median)
			out.Periods = append(out.Periods, f)
		}
	}
	return out, nil
}

// figuresOf returns the figures of a period. It returns false if there is no price before its
// end.
func figuresOf(changes []priceChange, from, to time.Time, step time.Duration) (f PeriodFigures, ok bool) {
	first := sort.Search(len(changes), func(i int) bool { return changes[i].at.After(from) })
	if first > 0 {
		first-- // this price is valid at the start
	}
	changes = changes[first:]
	if len(changes) == 0 || !changes[0].at.Before(to) {
		return f, false
	}
	if changes[0].at.After(from) {
		from = changes[0].at
	}
	f = PeriodFigures{From: from.UTC(), Open: changes[0].price, Close: changes[len(changes)-1].price, High: changes[0].price, Low: changes[0].price}
	valid := map[money.Micro]time.Duration{}
	var sum money.Sum
	for i, c := range changes {
		begin, end := c.at, to
		if c.at.Before(from) {
			begin = from
		} else {
			f.High, f.Low = max(f.High, c.high), min(f.Low, c.low)
		}
		if i+1 < len(changes) {
			end = changes[i+1].at
		}
		valid[c.price] += end.Sub(begin)
		sum = sum.Add(c.price, int64(end.Sub(begin)))
	}
	f.Mean, _ = sum.Div(int64(to.Sub(from))) // a mean of amounts cannot overflow
	f.Median = medianOf(valid, to.Sub(from))
	f.Change = relativeChange(f.Open, f.Close)
	f.Volatility = volatility(changes, from, to, step)
	return f, true
}

// medianOf returns the lowest price that was not exceeded for half of the time.
func medianOf(valid map[money.Micro]time.Duration, total time.Duration) money.Micro {
	prices := make([]money.Micro, 0, len(valid))
	for p := range valid {
		prices = append(prices, p)
	}
	slices.Sort(prices)
	var sum time.Duration
	for _, p := range prices {
		if sum += valid[p]; sum >= total-sum {
			return p
		}
	}
	return prices[len(prices)-1]
}

func relativeChange(before, after money.Micro) *money.Micro {
	change, ok := money.Ratio(after-before, before)
	if !ok {
		return nil
	}
	return &change
}

// volatility returns the sample standard deviation of the relative price changes between times
// that are one step apart, counted back from the end. It returns nil for fewer than two changes.
func volatility(changes []priceChange, from, to time.Time, step time.Duration) *money.Micro {
	var moves []float64
	k, later := len(changes)-1, 0.0
	for at := to; !at.Before(from); at = at.Add(-step) {
		for k > 0 && changes[k].at.After(at) {
			k--
		}
		price := float64(changes[k].price)
		if later > 0 {
			moves = append(moves, later/price-1)
		}
		later = price
	}
	if len(moves) < 2 {
		return nil
	}
	var sum, squares float64
	for _, m := range moves {
		sum += m
	}
	mean := sum / float64(len(moves))
	for _, m := range moves {
		squares += (m - mean) * (m - mean)
	}
	deviation := math.Sqrt(squares / float64(len(moves)-1))
	if deviation > math.MaxInt32 {
		return nil
	}
	return new(money.Micro(math.Round(deviation * float64(money.Scale))))
}
