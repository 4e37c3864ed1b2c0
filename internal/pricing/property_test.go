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

// anyQuotes returns what up to 14 sources might say of one item: good and
// absurd, fresh and stale, shared, doubled, foreign, nothing at all.
func anyQuotes(r *rand.Rand) []Quote {
	center := math.Exp(9 + 12*r.Float64())
	quotes := make([]Quote, r.IntN(15))
	for i := range quotes {
		q := &quotes[i]
		q.Source = "s" + strconv.Itoa(r.IntN(3))
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

func anyLast(r *rand.Rand) Last {
	return Last{
		Price: money.Micro(r.Int64N(3) * (1 + r.Int64N(1e7))), UpdatedAt: noon.Add(-time.Duration(r.IntN(48)) * time.Hour),
		Candidate: money.Micro(r.Int64N(2) * (1 + r.Int64N(1e7))), CandidateAt: noon.Add(-time.Duration(r.IntN(90)) * time.Minute),
	}
}

func anyPolicy(r *rand.Rand) Policy {
	return Policy{
		Method: [...]Method{"", Robust, Average, Median}[r.IntN(4)], Guard: [...]Guard{"", Flag, Hold}[r.IntN(3)],
		Currency: "USD", Rates: Rates{"EUR": {Value: 1_083_400_000_000, Date: noon}},
	}
}

func TestProperty_OrderOfQuotesNeverMatters(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(10_000, 300_000) {
		policy, quotes, last := anyPolicy(r), anyQuotes(r), anyLast(r)
		want := estimate(policy, quotes, last)
		order := r.Perm(len(quotes))
		shuffled := make([]Quote, len(quotes))
		for to, from := range order {
			shuffled[to] = quotes[from]
		}
		got := estimate(policy, shuffled, last)
		back := make([]Verdict, len(quotes))
		for to, from := range order {
			back[from] = got.Verdicts[to]
		}
		got.Verdicts = back
		// Of quotes alike in everything either may count.
		if distinct(quotes) && !slices.Equal(got.Verdicts, want.Verdicts) {
			t.Fatalf("verdicts differ:\n%+v\n%+v\nof %+v", got.Verdicts, want.Verdicts, quotes)
		}
		got.Verdicts, want.Verdicts = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("estimates differ:\n%+v\n%+v\nof %+v", got, want, quotes)
		}
	}
}

// distinct reports whether no two quotes are of the same source and market.
func distinct(quotes []Quote) bool {
	seen := map[[2]string]bool{}
	for _, q := range quotes {
		seen[[2]string{q.Source, q.Market}] = true
	}
	return len(seen) == len(quotes)
}

func TestProperty_ScalingTheQuotesScalesThePrice(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(20_000, 500_000) {
		prices := market(r)
		k := money.Micro(2 + r.IntN(1000))
		var scaled []money.Micro
		for i, p := range prices {
			prices[i] = max(2, min(p, maxPrice/k)&^1) // an even number, so that its median is exact
			scaled = append(scaled, prices[i]*k)
		}
		a, b := estimate(usd(), asks(prices...), Last{}), estimate(usd(), asks(scaled...), Last{})
		if !slices.Equal(reasons(&a), reasons(&b)) || a.Status != b.Status {
			t.Fatalf("%d times %d is decided otherwise: %q, %q", prices, k, reasons(&a), reasons(&b))
		}
		for _, f := range [][2]money.Micro{{a.Price, b.Price}, {a.Average, b.Average}, {a.Median, b.Median}, {a.Robust, b.Robust}} {
			// Each mean is off by half a micro-unit at most, the first one k times.
			if diff := f[0]*k - f[1]; 2*max(diff, -diff) > k+1 {
				t.Fatalf("%d times %d: %d becomes %d", prices, k, f[0], f[1])
			}
		}
	}
}

func TestProperty_AQuoteEqualToTheAverageLeavesIt(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(20_000, 500_000) {
		prices := market(r)
		before := estimate(usd(), asks(prices...), Last{}).Average
		if after := estimate(usd(), asks(append(prices, before)...), Last{}).Average; after != before {
			t.Fatalf("average of %d is %d, with itself added %d", prices, before, after)
		}
	}
}

func TestProperty_EveryFigureLiesWithinMinAndMax(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(20_000, 500_000) {
		quotes := anyQuotes(r)
		e := estimate(anyPolicy(r), quotes, Last{})
		used := 0
		for _, v := range e.Verdicts {
			if v.Reason == Used || v.Reason == Outlier {
				used++
			}
		}
		for _, f := range []money.Micro{e.Price, e.Estimated, e.Average, e.Median, e.Robust} {
			if f < e.Min || f > e.Max || (f <= 0) != (used == 0) {
				t.Fatalf("%d is not within [%d, %d] of %d quotes: %+v", f, e.Min, e.Max, used, quotes)
			}
		}
		if e.Robust > 3*e.Median && used > 0 {
			t.Fatalf("robust %d is more than 3 times the median %d", e.Robust, e.Median)
		}
		if len(e.Verdicts) != len(quotes) || e.Markets != len(quotes) || (used == 0) != (e.Status == NoPrice) {
			t.Fatalf("%+v of %+v", e, quotes)
		}
	}
}

func TestProperty_AverageEqualsARationalOracle(t *testing.T) {
	r := randtest.New(t)
	estimator := New(usd())
	var e Estimate
	for range randtest.Count(20_000, 1_000_000) {
		quotes := asks(make([]money.Micro, 1+r.IntN(12))...)
		sum := new(big.Int)
		for i := range quotes {
			quotes[i].Ask = anyPrice(r)
			sum.Add(sum, big.NewInt(int64(quotes[i].Ask)))
		}
		estimator.Estimate(noon, quotes, Last{}, &e)
		if want := roundHalfEven(new(big.Rat).SetFrac(sum, big.NewInt(int64(len(quotes))))); int64(e.Average) != want {
			t.Fatalf("average of %+v is %d, want %d", quotes, e.Average, want)
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

func TestProperty_OneCorruptedQuoteHardlyMovesRobust(t *testing.T) {
	r := randtest.New(t)
	for _, up := range []bool{false, true} {
		var moves []float64
		for range randtest.Count(4_000, 100_000) {
			// Six markets differ by 1.6 at the median, as real ones do.
			prices := make([]money.Micro, 5+r.IntN(6))
			center := math.Exp(11 + 10*r.Float64())
			for i := range prices {
				prices[i] = around(r, center, 0.18)
			}
			honest := estimate(usd(), asks(prices...), Last{}).Robust
			i, factor := r.IntN(len(prices)), 10*math.Exp(7*r.Float64())
			if up {
				prices[i] = min(maxPrice, money.Micro(float64(prices[i])*factor))
			} else {
				prices[i] = max(1, money.Micro(float64(prices[i])/factor))
			}
			corrupted := estimate(usd(), asks(prices...), Last{}).Robust
			moves = append(moves, math.Abs(float64(corrupted)/float64(honest)-1))
		}
		slices.Sort(moves)
		mid, worst := moves[len(moves)/2], moves[len(moves)-1]
		t.Logf("corrupted upwards: %t: robust moves by %.2f %% at the median, %.1f %% at most", up, 100*mid, 100*worst)
		if mid > 0.05 {
			t.Errorf("robust moves by %.1f %% at the median, want at most 5 %%", 100*mid)
		}
	}
}

// What is stored of a price is enough to make it again: times to the
// microsecond, without zone or monotonic clock.
func TestProperty_APriceCanBeMadeAgainFromWhatIsStored(t *testing.T) {
	r := randtest.New(t)
	keep := func(at time.Time) time.Time {
		if at.IsZero() {
			return at
		}
		return time.UnixMicro(at.UnixMicro()).UTC()
	}
	for range randtest.Count(5_000, 100_000) {
		policy, quotes, last := anyPolicy(r), anyQuotes(r), anyLast(r)
		now := time.Now()
		shift := now.Sub(noon) + time.Duration(r.Int64N(2_000))
		for i := range quotes {
			quotes[i].FetchedAt = quotes[i].FetchedAt.Add(shift).In(time.FixedZone("x", 7200))
			if r.IntN(4) == 0 {
				quotes[i].FetchedAt = now.Add(-24*time.Hour - time.Duration(r.Int64N(3_000)-1_500))
			}
		}
		last.UpdatedAt, last.CandidateAt = now.Add(-24*time.Hour-time.Duration(r.Int64N(3_000)-1_500)), now.Add(-30*time.Minute-time.Duration(r.Int64N(3_000)-1_500))
		var live, again Estimate
		New(policy).Estimate(now, quotes, last, &live)
		for i := range quotes {
			quotes[i].FetchedAt, quotes[i].MarketTime = keep(quotes[i].FetchedAt), keep(quotes[i].MarketTime)
		}
		last.UpdatedAt, last.CandidateAt = keep(last.UpdatedAt), keep(last.CandidateAt)
		New(policy).Estimate(keep(now), quotes, last, &again)
		live.CandidateAt, again.CandidateAt = keep(live.CandidateAt), keep(again.CandidateAt)
		if !reflect.DeepEqual(live, again) {
			t.Fatalf("made again it differs:\n%+v\n%+v", live, again)
		}
	}
}

func TestEstimate_MemoryOfOneItemDoesNotReachTheNext(t *testing.T) {
	r := randtest.New(t)
	var reused Estimate
	for range randtest.Count(2_000, 50_000) {
		policy, quotes, last := anyPolicy(r), anyQuotes(r), anyLast(r)
		estimator := New(policy)
		estimator.Estimate(noon, quotes, last, &reused)
		clean := estimate(policy, quotes, last)
		if len(quotes) == 0 {
			clean.Verdicts = reused.Verdicts // nil or empty
		}
		if !reflect.DeepEqual(reused, clean) {
			t.Fatalf("reused %+v\nclean %+v", reused, clean)
		}
	}
}

func TestEstimator_MayBeUsedConcurrently(t *testing.T) {
	estimator := New(usd())
	quotes := asks(100, 101, 102, 103, 290, 9000)
	want := estimate(usd(), quotes, Last{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var e Estimate
			for range 500 {
				if estimator.Estimate(noon, quotes, Last{}, &e); e.Price != want.Price {
					t.Errorf("price %d, want %d", e.Price, want.Price)
					return
				}
			}
		})
	}
	wg.Wait()
}
