package pricing

import (
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/randtest"
)

// anySet returns a random set with the given number of markets. If flat is true, each
// market has the same level in all price bands.
func anySet(r *rand.Rand, markets int, flat bool) *Set {
	s := NewSet(money.Scale)
	s.Kappa = money.Micro(1_000_000 + r.Int64N(1_500_000))
	for b := range s.Median {
		s.Median[b] = Log(r.Int64N(int64(logOne) / 5))
	}
	for k := range markets {
		m := SetMarket{
			ID: int64(k + 1), Known: true, Level: Log(r.Int64N(int64(logOne))) - logOne/2,
			Noise: Log(r.Int64N(int64(logOne) / 4)), Far: money.Micro(r.Int64N(300_000)), ChangedAt: noon.Add(-time.Hour),
		}
		for b := range m.Bands {
			m.Bands[b] = m.Level
			if !flat {
				m.Bands[b] += Log(r.Int64N(int64(logOne)/4)) - logOne/8
			}
		}
		s.Markets = append(s.Markets, m)
	}
	return s
}

// setQuotes returns fresh quotes of the markets 1, 2, ...
func setQuotes(prices ...money.Micro) []Quote {
	quotes := asks(prices...)
	for i := range quotes {
		quotes[i].ID = int64(i + 1)
	}
	return quotes
}

func priceOf(s *Set, quotes []Quote, state State, refs References) Priced {
	var p Priced
	NewPricer(usd(), s).Price(noon, Rest, quotes, state, refs, &p)
	return p
}

// scattered returns n random prices with some outliers.
func scattered(r *rand.Rand, n int) []money.Micro {
	center := 1e5 * float64(1+r.IntN(1_000_000))
	out := make([]money.Micro, n)
	for i := range out {
		out[i] = min(maxPrice/1000, around(r, center, 0.15))
		if r.IntN(8) == 0 {
			out[i] = min(maxPrice/1000, around(r, center*10, 1.5))
		}
	}
	return out
}

func TestPricer_DoesNotDependOnTheOrderOfQuotes(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(3_000, 200_000) {
		quotes := setQuotes(scattered(r, 1+r.IntN(7))...)
		set := anySet(r, len(quotes), false)
		a := priceOf(set, quotes, State{}, References{})
		order := r.Perm(len(quotes))
		var other []Quote
		for _, i := range order {
			other = append(other, quotes[i])
		}
		b := priceOf(set, other, State{}, References{})
		for k, i := range order {
			if a.Quotes[i] != b.Quotes[k] {
				t.Fatalf("quote %d in another order: got %+v, want %+v", i, b.Quotes[k], a.Quotes[i])
			}
		}
		a.Quotes, b.Quotes = nil, nil
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("in another order: got\n%+v, want\n%+v", b, a)
		}
	}
}

func TestPricer_ScalingTheQuotesScalesThePrice(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(3_000, 200_000) {
		prices := scattered(r, 1+r.IntN(7))
		set := anySet(r, len(prices), true)
		k := money.Micro(2 + r.IntN(100))
		var times []money.Micro
		for _, p := range prices {
			times = append(times, p*k)
		}
		a, b := priceOf(set, setQuotes(prices...), State{}, References{}), priceOf(set, setQuotes(times...), State{}, References{})
		// Each quote and the mean are rounded to micro-units.
		if diff := abs(a.Consensus*k - b.Consensus); diff > 2*k {
			t.Fatalf("prices %d times %d: got %d, want %d times %d", prices, k, b.Consensus, a.Consensus, k)
		}
	}
}

func TestPricer_PriceIsWithinTheUsedLevelledQuotes(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(3_000, 200_000) {
		quotes := setQuotes(scattered(r, 1+r.IntN(7))...)
		p := priceOf(anySet(r, len(quotes), false), quotes, State{}, References{})
		low, high, used := maxPrice, money.Micro(0), 0
		for _, q := range p.Quotes {
			if q.Reason == Used {
				low, high, used = min(low, q.Levelled), max(high, q.Levelled), used+1
			}
			if q.Levelled != levelled(q.Price, q.Level) {
				t.Fatalf("quote: got %+v, want the levelled price %d", q, levelled(q.Price, q.Level))
			}
		}
		if p.Consensus < low || p.Consensus > high || high > 2*low || used != p.UsedMarkets || p.Majority != (2*used > len(quotes)) {
			t.Fatalf("price: got %+v, want a consensus within the %d used quotes from %d to %d", p, used, low, high)
		}
		if p.Interval.Low > p.Consensus || p.Interval.High < p.Consensus || p.Price != p.Consensus {
			t.Fatalf("price: got %+v, want the consensus as price, within the interval", p)
		}
	}
}

func TestPricer_OutliersNeverImproveTheStatus(t *testing.T) {
	r := randtest.New(t)
	worse := 0
	for range randtest.Count(5_000, 300_000) {
		prices := scattered(r, 1+r.IntN(6))
		set := anySet(r, len(prices)+1, false)
		a := priceOf(set, setQuotes(prices...), State{}, References{})
		odd := min(maxPrice, a.Consensus*money.Micro(5+r.IntN(1000)))
		if r.IntN(2) == 0 {
			odd = max(1, a.Consensus/money.Micro(5+r.IntN(1000)))
		}
		b := priceOf(set, setQuotes(append(prices, odd)...), State{}, References{})
		if b.Quotes[len(prices)].Reason != Outlier {
			continue // after levelling, the quote agrees with others
		}
		if b.Status < a.Status {
			t.Fatalf("prices %d with the outlier %d: got %s, want %s or worse\n%+v\n%+v", prices, odd, b.Status, a.Status, a, b)
		}
		if b.Status > a.Status {
			worse++
		}
	}
	if worse == 0 {
		t.Error("got no outlier that made the status worse, want at least one")
	}
}

func TestPricer_AverageMatchesRationalArithmetic(t *testing.T) {
	r := randtest.New(t)
	pricer := NewPricer(Policy{Currency: "USD", Method: Average}, NewSet(money.Scale))
	var p Priced
	for range randtest.Count(20_000, 1_000_000) {
		quotes := asks(make([]money.Micro, 1+r.IntN(12))...)
		sum := new(big.Int)
		for i := range quotes {
			quotes[i].Ask = anyPrice(r)
			sum.Add(sum, big.NewInt(int64(quotes[i].Ask)))
		}
		pricer.Price(noon, Rest, quotes, State{}, References{}, &p)
		want := roundHalfEven(new(big.Rat).SetFrac(sum, big.NewInt(int64(len(quotes)))))
		if int64(p.Average) != want || int64(p.Price) != want {
			t.Fatalf("average of %+v: got %d and the price %d, want %d", quotes, p.Average, p.Price, want)
		}
	}
}

// TestPricer_ReleasesTheLeastExtremeReadingOnNewEvidence prices one item on one to three
// markets. Some responses are new and others are unchanged.
func TestPricer_ReleasesTheLeastExtremeReadingOnNewEvidence(t *testing.T) {
	r := randtest.New(t)
	released := 0
	for range randtest.Count(400, 40_000) {
		markets := 1 + r.IntN(3)
		set := anySet(r, markets, true)
		for k := range set.Markets {
			set.Markets[k].Level, set.Markets[k].Bands = 0, [bands]Log{}
		}
		pricer := NewPricer(usd(), set)
		now, state := noon, State{}
		quotes := setQuotes(slices.Repeat([]money.Micro{money.Scale}, markets)...)
		var p Priced
		var readings []money.Micro
		for run := range 40 {
			changed := r.IntN(3) > 0
			if changed {
				center := []float64{1, 2.5, 3, 7, 0.2}[r.IntN(5)] * money.Scale
				for k := range quotes {
					quotes[k].Ask = around(r, center, 0.05)
					set.Markets[k].ChangedAt = now
				}
			}
			for k := range quotes {
				quotes[k].FetchedAt = now
			}
			before := state
			pricer.Price(now, Rest, quotes, state, References{}, &p)
			state = p.State
			switch p.Move.Decision {
			case HeldBack:
				if before.Held.Candidate == 0 || before.Held.Side != state.Held.Side {
					readings = readings[:0]
				}
				readings = append(readings, p.Estimated)
				if p.Price != before.Price {
					t.Fatalf("run %d: got the price %d during a hold, want %d", run, p.Price, before.Price)
				}
			case Released:
				released++
				readings = append(readings, p.Estimated)
				least := slices.Min(readings)
				if before.Held.Side == Fall {
					least = slices.Max(readings)
				}
				if !changed || p.Price != least {
					t.Fatalf("run %d: got the released price %d (new response: %t), want %d of %d and a new response", run, p.Price, changed, least, readings)
				}
			}
			now = now.Add(time.Duration(10+r.IntN(700)) * time.Minute)
		}
	}
	if released == 0 {
		t.Error("got no release, want at least one")
	}
}

func TestPricer_KeepsTheLastPriceIfAllMarketsAreLate(t *testing.T) {
	set := anySet(rand.New(rand.NewPCG(1, 1)), 1, true)
	set.Markets[0].Late = true
	p := priceOf(set, setQuotes(5*money.Scale), State{Price: 7}, References{})
	if p.Price != 7 || p.Status != Stale || p.Quotes[0].Reason != LateMarket || p.Average != 5*money.Scale {
		t.Errorf("got estimate %+v, want the stale last price 7", p)
	}
	if p := priceOf(set, setQuotes(5*money.Scale), State{}, References{}); p.Price != 0 || p.Status != NoPrice {
		t.Errorf("without a last price: got %+v, want no price", p)
	}
}

func TestPricer_UsesTheLevelOfTheConfiguredMarket(t *testing.T) {
	r := randtest.New(t)
	set := anySet(r, 3, false)
	for range randtest.Count(500, 20_000) {
		quotes := setQuotes(scattered(r, 3)...)
		var p Priced
		NewPricer(Policy{Currency: "USD", Level: 2}, set).Price(noon, Rest, quotes, State{}, References{}, &p)
		if q := p.Quotes[1]; q.Level != money.Scale || q.Levelled != quotes[1].Ask {
			t.Fatalf("level of market 2: got %s, want 1", q.Level)
		}
	}
}

func TestPricer_ReusesMemory(t *testing.T) {
	pricer, items := manyItems()
	var p Priced
	pricer.Price(noon, Rest, items[0], State{Price: 1e6}, References{}, &p)
	i := 0
	// The garbage collector may sometimes empty the pool, so the average is not exactly 0.
	if n := testing.AllocsPerRun(1000, func() {
		pricer.Price(noon, Rest, items[i%len(items)], State{Price: 1e6}, References{}, &p)
		i++
	}); n >= 1 {
		t.Errorf("got %v allocations per item, want less than 1", n)
	}
}

func manyItems() (*Pricer, [][]Quote) {
	items := tenMarkets()
	for i := range items {
		for k := range items[i] {
			items[i][k].ID = int64(k + 1)
			items[i][k].Market = "market-" + strconv.Itoa(k)
		}
	}
	return NewPricer(usd(), anySet(rand.New(rand.NewPCG(1, 2)), 10, false)), items
}

func BenchmarkPrice10Quotes(b *testing.B) {
	pricer, items := manyItems()
	var p Priced
	refs := References{Day: Reference{1e6, noon.Add(-24 * time.Hour)}, Week: Reference{1e6, noon.Add(-168 * time.Hour)}}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		pricer.Price(noon, Rest, items[i%len(items)], State{Price: 1e6}, refs, &p)
		i++
	}
}

// Among markets with shared listings, the freshest quote is used. A late market is used
// only if all of them are late.
func TestPricer_PrefersMarketsOfAPoolThatAreNotLate(t *testing.T) {
	set := NewSet(money.Scale)
	for id := range 4 {
		set.Markets = append(set.Markets, SetMarket{ID: int64(id + 1), Far: -1, Late: id == 2})
	}
	quotes := asks(units(t, "10"), units(t, "10.2"), units(t, "25"), units(t, "10.1"))
	for k := range quotes {
		quotes[k].ID = int64(k + 1)
	}
	quotes[2].Pool, quotes[3].Pool = "pool", "pool"
	quotes[3].FetchedAt = noon.Add(-3 * time.Hour)
	var e Priced
	price := func() {
		NewPricer(usd(), set).Price(noon, Rest, quotes, State{}, References{}, &e)
	}
	price()
	if want := []Reason{Used, Used, SharedListings, Used}; !slices.Equal(reasons(&e), want) {
		t.Errorf("one late: got %v, want %v", reasons(&e), want)
	}
	set.Markets[3].Late = true
	price()
	if want := []Reason{Used, Used, LateMarket, SharedListings}; !slices.Equal(reasons(&e), want) {
		t.Errorf("both late: got %v, want %v", reasons(&e), want)
	}
}

// A clock that was set forward and back leaves stored times that are far in the future.
// They must have no effect.
func TestPending_IgnoresTimesTooFarInTheFuture(t *testing.T) {
	for until, want := range map[time.Duration]bool{0: false, time.Second: true, suspectFor: true, suspectFor + time.Second: false, 400 * 24 * time.Hour: false, -time.Hour: false} {
		if got := pending(noon, noon.Add(until), suspectFor); got != want {
			t.Errorf("time in %v: got %v, want %v", until, got, want)
		}
	}
}
