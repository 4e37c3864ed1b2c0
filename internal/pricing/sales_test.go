package pricing

import (
	"testing"
	"time"
)

func TestSales_DistinguishesUnknownFromNone(t *testing.T) {
	const day = 24 * time.Hour
	type market struct {
		sales  int64
		window time.Duration
		age    time.Duration
	}
	tests := []struct {
		rule    string
		markets []market
		want    SalesSignal
	}{
		{"no markets", nil, SalesUnknown},
		{"no market reports sales", []market{{-1, 0, 0}, {-1, 0, 0}}, SalesUnknown},
		{"0 in a long window", []market{{0, 30 * day, 0}}, SalesNone},
		{"0 in a long window, another market without a count", []market{{0, 30 * day, 0}, {-1, 0, 0}}, SalesNone},
		{"0 in a longer window", []market{{0, 90 * day, 0}}, SalesNone},
		{"0 in short windows", []market{{0, 30*day - 1, 0}, {0, day, 0}}, SalesUnknown},
		{"missing 24 h volume", []market{{-1, day, 0}}, SalesUnknown},
		{"sales in a short window", []market{{1, day, 0}, {0, 30 * day, 0}}, SalesSome},
		{"sales in a short window, other order", []market{{0, 30 * day, 0}, {1, day, 0}}, SalesSome},
		{"sales without a window", []market{{0, 30 * day, 0}, {3, 0, 0}}, SalesSome},
		{"0 and a missing count in long windows", []market{{0, 30 * day, 0}, {-1, 30 * day, 0}}, SalesUnknown},
		{"0 in all windows", []market{{0, 30 * day, 0}, {0, 60 * day, 0}, {0, 7 * day, 0}}, SalesNone},
		{"stale count of 0", []market{{0, 30 * day, 25 * time.Hour}}, SalesUnknown},
		{"stale sales, fresh count of 0", []market{{5, 30 * day, 25 * time.Hour}, {0, 30 * day, 0}}, SalesNone},
	}
	for _, tt := range tests {
		// Asks do not matter here, so half of the markets have none.
		quotes := asks(0, 5, 0, 5)[:len(tt.markets)]
		for i, m := range tt.markets {
			quotes[i].Sales, quotes[i].SalesWindow, quotes[i].FetchedAt = m.sales, m.window, noon.Add(-m.age)
		}
		if e := estimate(usd(), quotes); e.Sales != tt.want {
			t.Errorf("%s: %v: got sales %s, want %s", tt.rule, tt.markets, e.Sales, tt.want)
		}
	}
}

func TestSales_UsesTheWindowOfThePolicy(t *testing.T) {
	policy := usd()
	policy.NoSalesWindow = 7 * 24 * time.Hour
	quotes := asks(5)
	quotes[0].Sales, quotes[0].SalesWindow = 0, 7*24*time.Hour
	if e := estimate(policy, quotes); e.Sales != SalesNone {
		t.Errorf("got sales %s, want none", e.Sales)
	}
}
