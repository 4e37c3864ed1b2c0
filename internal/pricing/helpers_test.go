package pricing

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"assay/internal/money"
)

// noon is the default time of estimates in tests.
var noon = time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)

// units converts a decimal number to micro-units.
func units(t testing.TB, text string) money.Micro {
	t.Helper()
	m, err := money.Parse([]byte(text), 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// asks returns one fresh quote per price, from different markets.
func asks(prices ...money.Micro) []Quote {
	quotes := make([]Quote, 0, len(prices))
	for i, p := range prices {
		quotes = append(quotes, Quote{
			Provider: "s", Market: "m" + strconv.Itoa(i), Currency: "USD", Ask: p, Sales: -1, FetchedAt: noon.Add(-time.Minute),
		})
	}
	return quotes
}

func usd() Policy { return Policy{Currency: "USD"} }

// estimate prices an item at noon with an empty Set and an empty State.
func estimate(p Policy, quotes []Quote) Priced { return estimateFrom(p, quotes, State{}) }

func estimateFrom(p Policy, quotes []Quote, state State) Priced {
	var e Priced
	NewPricer(p, NewSet(money.Scale)).Price(noon, Rest, quotes, state, References{}, &e)
	return e
}

// reasons returns the reasons of all quotes.
func reasons(e *Priced) []Reason {
	var all []Reason
	for i := range e.Quotes {
		all = append(all, e.Quotes[i].Reason)
	}
	return all
}

// anyPrice returns a random valid price. Most prices are below 1,000 units.
func anyPrice(r *rand.Rand) money.Micro {
	if r.IntN(20) == 0 {
		return maxPrice - money.Micro(r.IntN(3))
	}
	return money.Micro(1 + r.Int64N(int64(maxPrice)>>r.IntN(40)))
}

// around returns a random price with a log-normal distribution. center is the median and
// sigma the standard deviation of the logarithm.
func around(r *rand.Rand, center, sigma float64) money.Micro {
	return money.Micro(max(1, math.Round(center*math.Exp(sigma*r.NormFloat64()))))
}
