package pricing

import (
	"testing"
	"time"
)

func TestSales_UnknownIsNotNone(t *testing.T) {
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
		{"no market", nil, SalesUnknown},
		{"no market reports sales", []market{{-1, 0, 0}, {-1, 0, 0}}, SalesUnknown},
		{"a long window says none", []market{{0, 30 * day, 0}}, SalesNone},
		{"and others nothing", []market{{0, 30 * day, 0}, {-1, 0, 0}}, SalesNone},
		{"a longer one too", []market{{0, 90 * day, 0}}, SalesNone},
		{"a short window cannot say none", []market{{0, 30*day - 1, 0}, {0, day, 0}}, SalesUnknown},
		{"a missing 24 h volume says nothing", []market{{-1, day, 0}}, SalesUnknown},
		{"a short window can say some", []market{{1, day, 0}, {0, 30 * day, 0}}, SalesSome},
		{"in any order", []market{{0, 30 * day, 0}, {1, day, 0}}, SalesSome},
		{"a count without a window is a count", []market{{0, 30 * day, 0}, {3, 0, 0}}, SalesSome},
		{"all long windows must say none", []market{{0, 30 * day, 0}, {-1, 30 * day, 0}}, SalesUnknown},
		{"all long windows say none", []market{{0, 30 * day, 0}, {0, 60 * day, 0}, {0, 7 * day, 0}}, SalesNone},
		{"what is stale says nothing", []market{{0, 30 * day, 25 * time.Hour}}, SalesUnknown},
		{"what is stale says nothing", []market{{5, 30 * day, 25 * time.Hour}, {0, 30 * day, 0}}, SalesNone},
	}
	for _, tt := range tests {
		// The offer does not matter: half of the markets have none.
		quotes := asks(0, 5, 0, 5)[:len(tt.markets)]
		for i, m := range tt.markets {
			quotes[i].Sales, quotes[i].SalesWindow, quotes[i].FetchedAt = m.sales, m.window, noon.Add(-m.age)
		}
		if e := estimate(usd(), quotes); e.Sales != tt.want {
			t.Errorf("%s: %v say %s, want %s", tt.rule, tt.markets, e.Sales, tt.want)
		}
	}
}

func TestSales_WindowIsThePolicys(t *testing.T) {
	policy := usd()
	policy.NoSalesWindow = 7 * 24 * time.Hour
	quotes := asks(5)
	quotes[0].Sales, quotes[0].SalesWindow = 0, 7*24*time.Hour
	if e := estimate(policy, quotes); e.Sales != SalesNone {
		t.Errorf("%s, want none", e.Sales)
	}
}
