package pricing

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"assay/internal/money"
	"assay/internal/randtest"
)

func TestOutlier_Rule(t *testing.T) {
	const o = Outlier
	tests := []struct {
		rule   string
		prices []money.Micro
		want   []Reason
		robust money.Micro
		status Status
	}{
		{"one quote: nothing can be told", []money.Micro{5}, []Reason{""}, 5, Thin},
		{"two that are close", []money.Micro{100, 150}, []Reason{"", ""}, 125, Thin},
		{"two that differ by more than half again", []money.Micro{100, 151}, []Reason{"", ""}, 126, Disputed},
		{"two far apart: no filter can help", []money.Micro{100, 143_816_800}, []Reason{"", ""}, 71_908_450, Disputed},
		{"three: the joke goes", []money.Micro{100, 110, 143_816_800}, []Reason{"", "", o}, 105, OK},
		{"three: a giveaway goes", []money.Micro{100, 110, 1}, []Reason{"", "", o}, 105, OK},
		{"the ends of the band stay", []money.Micro{100, 300, 900}, []Reason{"", "", ""}, 433, OK},
		{"just outside of them goes", []money.Micro{99, 300, 900}, []Reason{o, "", ""}, 600, OK},
		{"just outside of them goes", []money.Micro{100, 300, 901}, []Reason{"", "", o}, 200, OK},
		{"the band's ends are exact", []money.Micro{34, 100, 300}, []Reason{"", "", ""}, 145, OK},
		{"the band's ends are exact", []money.Micro{33, 100, 300}, []Reason{o, "", ""}, 200, OK},
		{"three apart: more than one would go", []money.Micro{1, 100, 10_000}, []Reason{"", "", ""}, 100, Disputed},
		{"four in two camps: all would go", []money.Micro{1, 1, 100, 100}, []Reason{"", "", "", ""}, 50, Disputed},
		{"four: one may go", []money.Micro{100, 100, 110, 1000}, []Reason{"", "", "", o}, 103, OK},
		{"four: two may not", []money.Micro{10, 100, 110, 1000}, []Reason{"", "", "", ""}, 105, Disputed},
		{"five: two may", []money.Micro{10, 100, 110, 120, 1000}, []Reason{o, "", "", "", o}, 110, OK},
		{"five left: the log scale", []money.Micro{100, 101, 102, 103, 290}, []Reason{"", "", "", "", o}, 102, OK},
		{"four left: no log scale", []money.Micro{100, 101, 102, 290}, []Reason{"", "", "", ""}, 148, OK},
		{"four left of five: no log scale", []money.Micro{100, 101, 102, 290, 9000}, []Reason{"", "", "", "", o}, 148, OK},
		{"within 0.175 nothing goes", []money.Micro{1000, 1000, 1000, 1000, 1191}, []Reason{"", "", "", "", ""}, 1038, OK},
		{"beyond 0.175 it does", []money.Micro{1000, 1000, 1000, 1000, 1192}, []Reason{"", "", "", "", o}, 1000, OK},
		{"downwards too", []money.Micro{1000, 1000, 1000, 1000, 839}, []Reason{"", "", "", "", o}, 1000, OK},
		{"a wide spread forgives", []money.Micro{1000, 1100, 1250, 1400, 1900}, []Reason{"", "", "", "", ""}, 1330, OK},
		{
			"both steps count together",
			[]money.Micro{1000, 1000, 1001, 1002, 1002, 1900, 9000, 100},
			[]Reason{"", "", "", "", "", o, o, o},
			1001, OK,
		},
		{
			// Six are left, of whom two more would go: four of nine is the most.
			"four of nine may go",
			[]money.Micro{1000, 1000, 1001, 1002, 1002, 1900, 1901, 9000, 100},
			[]Reason{"", "", "", "", "", o, o, o, o},
			1001, OK,
		},
	}
	for _, tt := range tests {
		e := estimate(usd(), asks(tt.prices...), Last{})
		if got := reasons(&e); !slices.Equal(got, tt.want) || e.Robust != tt.robust || e.Status != tt.status {
			t.Errorf("%s: %d give %q, robust %d, %s; want %q, %d, %s", tt.rule, tt.prices, got, e.Robust, e.Status, tt.want, tt.robust, tt.status)
		}
	}
}

func TestOutlier_DisputedIsServedByTheMedian(t *testing.T) {
	quotes := asks(10, 100, 110, 1000)
	for method, want := range map[Method]struct {
		made  Method
		price money.Micro
	}{
		Robust: {Median, 105}, Median: {Median, 105}, Average: {Average, 305},
	} {
		policy := usd()
		policy.Method = method
		e := estimate(policy, quotes, Last{})
		if e.Status != Disputed || e.Method != want.made || e.Price != want.price || e.UsedMarkets != 4 {
			t.Errorf("%s: %s, made by %s: %d from %d", method, e.Status, e.Method, e.Price, e.UsedMarkets)
		}
	}
}

func TestOutlier_NeverTouchesAverageAndMedian(t *testing.T) {
	for _, method := range []Method{Robust, Average, Median} {
		policy := usd()
		policy.Method = method
		e := estimate(policy, asks(30_000, 30_000, 1_438_168_000), Last{})
		used := 3
		if method == Robust {
			used = 2
		}
		if e.Average != 479_409_333 || e.Median != 30_000 || e.Robust != 30_000 || e.UsedMarkets != used || e.Method != method {
			t.Errorf("%s: %+v", method, e)
		}
		if e.Min != 30_000 || e.Max != 1_438_168_000 || e.Spread() != 1_438_138_000 || e.Markets != 3 {
			t.Errorf("%s: %+v", method, e)
		}
	}
}

// A second implementation, in floating point and without any of the shortcuts,
// must agree wherever no quote is within its error of a threshold.
func TestOutlier_AgreesWithTheRuleAsWritten(t *testing.T) {
	r := randtest.New(t)
	sure := 0
	count := randtest.Count(20_000, 500_000)
	for range count {
		prices := market(r)
		want, disputed, ok := ruleAsWritten(prices)
		if !ok {
			continue
		}
		sure++
		e := estimate(usd(), asks(prices...), Last{})
		for i := range prices {
			if out := e.Verdicts[i].Reason == Outlier; out != (want[i] && !disputed) {
				t.Fatalf("%d: quote %d is out: %t, want %t (disputed: %t)", prices, i, out, want[i], disputed)
			}
		}
		if disputed && e.Status != Disputed {
			t.Fatalf("%d: %s, want disputed", prices, e.Status)
		}
	}
	if sure < count/2 {
		t.Errorf("only %d of %d cases compared", sure, count)
	}
}

// market returns the prices of 3 to 14 markets of which some are absurd.
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

// ruleAsWritten tells which prices step 5 drops, and whether it may; false
// where that is a close call.
func ruleAsWritten(prices []money.Micro) (out []bool, disputed, ok bool) {
	middle := func(x []float64) float64 {
		x = slices.Sorted(slices.Values(x))
		return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
	}
	var all []float64
	for _, p := range prices {
		all = append(all, float64(p))
	}
	ok = true
	beyond := func(x, limit float64) bool {
		ok = ok && math.Abs(x-limit) > 1e-3
		return x > limit
	}
	out = make([]bool, len(prices))
	dropped := 0
	m := middle(all)
	var left []float64
	for i, p := range all {
		if out[i] = beyond(math.Abs(math.Log(p/m)), math.Log(3)); out[i] {
			dropped++
		} else {
			left = append(left, p)
		}
	}
	if len(left) >= 5 {
		m = middle(left)
		var devs []float64
		for _, p := range left {
			devs = append(devs, math.Abs(math.Log(p)-math.Log(m)))
		}
		limit := 3.5 * max(middle(devs)/0.6745, 0.05)
		for i, p := range all {
			if !out[i] && beyond(math.Abs(math.Log(p)-math.Log(m)), limit) {
				out[i] = true
				dropped++
			}
		}
	}
	return out, dropped > (len(prices)-1)/2, ok
}
