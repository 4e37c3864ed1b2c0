package pricing

import (
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/randtest"
)

// anyQuotes returns up to 14 random quotes of one item. Some are absurd, stale, empty,
// duplicates, or in a foreign currency, and some markets share listings.
func anyQuotes(r *rand.Rand) []Quote {
	center := math.Exp(9 + 12*r.Float64())
	quotes := make([]Quote, r.IntN(15))
	for i := range quotes {
		q := &quotes[i]
		q.Provider = "s" + strconv.Itoa(r.IntN(3))
		q.Market = "m" + strconv.Itoa(r.IntN(12))
		q.Currency = [...]money.Currency{"USD", "USD", "USD", "EUR", "XXX"}[r.IntN(5)]
		q.FetchedAt = noon.Add(-time.Duration(r.IntN(30)) * time.Hour)
		q.Sales, q.SalesWindow = r.Int64N(4)-1, time.Duration(r.IntN(60))*24*time.Hour
		if r.IntN(4) == 0 {
			q.Pool = "p" + strconv.Itoa(r.IntN(2))
		}
		if r.IntN(4) == 0 {
			q.MarketTime = noon.Add(-time.Duration(r.IntN(10)-1) * 24 * time.Hour)
		}
		if r.IntN(5) > 0 {
			q.Ask = around(r, center, 0.3)
		}
		if r.IntN(8) == 0 {
			q.Ask = around(r, center, 4)
		}
		if r.IntN(3) == 0 {
			q.Sale = around(r, center, 0.3)
		}
	}
	return quotes
}

func anyGuarded(r *rand.Rand) State {
	s := State{Price: money.Micro(r.Int64N(3) * (1 + r.Int64N(1e7)))}
	if s.Price > 0 && r.IntN(2) == 0 {
		s.Held = HeldPrice{
			Candidate: money.Micro(1 + r.Int64N(1e7)), Side: [...]Side{Fall, Rise}[r.IntN(2)], At: noon.Add(-time.Duration(r.IntN(90)) * time.Minute),
			EvidenceAt: noon.Add(-time.Duration(r.IntN(90)) * time.Minute), Readings: r.IntN(3),
		}
		s.SuspectUntil = noon.Add(time.Duration(r.IntN(48)-24) * time.Hour)
	}
	return s
}

// market returns random prices of three or more markets, with some outliers.
func market(r *rand.Rand) []money.Micro {
	center, sigma := math.Exp(9+12*r.Float64()), 0.4*r.Float64()
	var prices []money.Micro
	for range 3 + r.IntN(12) {
		p := around(r, center, sigma)
		if r.IntN(6) == 0 {
			p = around(r, center, 3)
		}
		prices = append(prices, min(p, maxPrice))
	}
	return prices
}

func anyPolicy(r *rand.Rand) Policy {
	return Policy{
		Method: [...]Method{"", Consensus, Average, Median}[r.IntN(4)], Guard: [...]Guard{"", Flag, Hold}[r.IntN(3)],
		Currency: "USD", Rates: Rates{"EUR": {Value: 1_083_400_000_000, Date: noon}},
	}
}

func TestProperty_EstimatesDoNotDependOnTheOrderOfQuotes(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(10_000, 300_000) {
		policy, quotes, state := anyPolicy(r), anyQuotes(r), anyGuarded(r)
		want := estimateFrom(policy, quotes, state)
		order := r.Perm(len(quotes))
		shuffled := make([]Quote, len(quotes))
		for to, from := range order {
			shuffled[to] = quotes[from]
		}
		got := estimateFrom(policy, shuffled, state)
		back := make([]QuoteResult, len(quotes))
		for to, from := range order {
			back[from] = got.Quotes[to]
		}
		got.Quotes = back
		// If two quotes have the same provider and market, either of them may be used.
		if distinct(quotes) && !slices.Equal(got.Quotes, want.Quotes) {
			t.Fatalf("results in another order: got\n%+v, want\n%+v, quotes %+v", got.Quotes, want.Quotes, quotes)
		}
		got.Quotes, want.Quotes = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("estimate in another order: got\n%+v, want\n%+v, quotes %+v", got, want, quotes)
		}
	}
}

// distinct reports whether all pairs of provider and market are different.
func distinct(quotes []Quote) bool {
	seen := map[[2]string]bool{}
	for _, q := range quotes {
		seen[[2]string{q.Provider, q.Market}] = true
	}
	return len(seen) == len(quotes)
}

func TestProperty_AQuoteEqualToTheAverageDoesNotChangeIt(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(20_000, 500_000) {
		prices := market(r)
		before := estimate(usd(), asks(prices...)).Average
		if after := estimate(usd(), asks(append(prices, before)...)).Average; after != before {
			t.Fatalf("average of %d and their average: got %d, want %d", prices, after, before)
		}
	}
}

func TestProperty_FiguresAreBetweenMinAndMax(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(20_000, 500_000) {
		quotes := anyQuotes(r)
		e := estimate(anyPolicy(r), quotes)
		valid := 0
		for i := range e.Quotes {
			if reason := e.Quotes[i].Reason; reason == Used || reason == Outlier {
				valid++
			}
		}
		for _, f := range []money.Micro{e.Price, e.Estimated, e.Average, e.Median, e.Consensus} {
			if f < e.Min || f > e.Max || (f <= 0) != (valid == 0) {
				t.Fatalf("got the figure %d, want one in [%d, %d] from %d valid quotes of %+v", f, e.Min, e.Max, valid, quotes)
			}
		}
		if len(e.Quotes) != len(quotes) || e.Markets != len(quotes) || (valid == 0) != (e.Status == NoPrice) {
			t.Fatalf("got %+v from %d valid quotes of %+v, want a result per quote and noPrice only without valid quotes", e, valid, quotes)
		}
	}
}

func roundHalfEven(x *big.Rat) int64 {
	q, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	if c := rest.Lsh(rest, 1).Cmp(x.Denom()); c > 0 || (c == 0 && q.Bit(0) == 1) {
		return q.Int64() + 1
	}
	return q.Int64()
}

// Stored times have microsecond precision, no zone and no monotonic clock reading. A price
// that is recomputed from them must be the same.
func TestProperty_PricesCanBeRecomputedFromStoredValues(t *testing.T) {
	r := randtest.New(t)
	keep := func(at time.Time) time.Time {
		if at.IsZero() {
			return at
		}
		return time.UnixMicro(at.UnixMicro()).UTC()
	}
	for range randtest.Count(5_000, 100_000) {
		policy, quotes, state := anyPolicy(r), anyQuotes(r), anyGuarded(r)
		now := time.Now()
		shift := now.Sub(noon) + time.Duration(r.Int64N(2_000))
		near := func(age time.Duration) time.Time { return now.Add(-age - time.Duration(r.Int64N(3_000)-1_500)) }
		for i := range quotes {
			quotes[i].FetchedAt = quotes[i].FetchedAt.Add(shift).In(time.FixedZone("x", 7200))
			if r.IntN(4) == 0 {
				quotes[i].FetchedAt = near(24 * time.Hour)
			}
			quotes[i].ChangedAt = near(0)
		}
		refs := References{Day: Reference{money.Micro(1 + r.Int64N(1e7)), keep(near(24 * time.Hour))}}
		state.Held.At, state.Held.EvidenceAt, state.ReleasedAt = keep(near(time.Hour)), keep(near(EvidenceAfter)), keep(near(24*time.Hour))
		var live, again Priced
		pricer := NewPricer(policy, NewSet(money.Scale))
		pricer.Price(now, Rest, quotes, state, refs, &live)
		for i := range quotes {
			quotes[i].FetchedAt, quotes[i].MarketTime, quotes[i].ChangedAt = keep(quotes[i].FetchedAt), keep(quotes[i].MarketTime), keep(quotes[i].ChangedAt)
		}
		pricer.Price(keep(now), Rest, quotes, state, refs, &again)
		after, text := live.State, EncodeGuard(&live.State, &live.Move)
		if move, err := DecodeGuard(text, &after); err != nil || move != live.Move || EncodeGuard(&after, &move) != text {
			t.Fatalf("decode guard %s: got %+v, %+v, %v, want the encoded values", text, after, move, err)
		}
		live.State, again.State = State{Price: live.Price}, State{Price: again.Price}
		if !reflect.DeepEqual(live, again) {
			t.Fatalf("recomputed: got\n%+v, want\n%+v", again, live)
		}
	}
}

func TestPricer_ReusedMemoryDoesNotAffectResults(t *testing.T) {
	r := randtest.New(t)
	var reused Priced
	for range randtest.Count(2_000, 50_000) {
		policy, quotes, state := anyPolicy(r), anyQuotes(r), anyGuarded(r)
		NewPricer(policy, NewSet(money.Scale)).Price(noon, Rest, quotes, state, References{}, &reused)
		clean := estimateFrom(policy, quotes, state)
		if len(quotes) == 0 {
			clean.Quotes = reused.Quotes // nil or empty
		}
		if !reflect.DeepEqual(reused, clean) {
			t.Fatalf("with reused memory: got\n%+v, want\n%+v", reused, clean)
		}
	}
}

func TestPricer_IsSafeForConcurrentUse(t *testing.T) {
	pricer := NewPricer(usd(), NewSet(money.Scale))
	quotes := asks(100, 101, 102, 103, 290, 9000)
	want := estimate(usd(), quotes)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var e Priced
			for range 500 {
				if pricer.Price(noon, Rest, quotes, State{}, References{}, &e); e.Price != want.Price {
					t.Errorf("got the price %d, want %d", e.Price, want.Price)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestDecodeGuard_RejectsInvalidText(t *testing.T) {
	for _, text := range []string{"x", "[]", `{"side":"up"}`, `{"evidenceAt":"yesterday"}`} {
		if _, err := DecodeGuard(text, &State{}); err == nil {
			t.Errorf("DecodeGuard(%s): got nil, want an error", text)
		}
	}
}
