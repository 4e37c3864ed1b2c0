package pricing

import (
	"math"
	"slices"
	"testing"
	"time"

	"assay/internal/money"
)

func TestEstimate_UsesTheAskOrElseTheSale(t *testing.T) {
	tests := []struct {
		rule      string
		ask, sale money.Micro
		want      QuoteCheck
	}{
		{"only an ask", 5, 0, QuoteCheck{5, Ask, Used}},
		{"ask and sale", 5, 9, QuoteCheck{5, Ask, Used}},
		{"only a sale", 0, 9, QuoteCheck{9, Sale, Used}},
		{"no ask and no sale", 0, 0, QuoteCheck{0, "", NotOffered}},
		{"invalid ask with a valid sale", -5, 9, QuoteCheck{0, Ask, InvalidAmount}},
		{"negative sale", 0, -9, QuoteCheck{0, Sale, InvalidAmount}},
		{"smallest price", 1, 0, QuoteCheck{1, Ask, Used}},
		{"largest price", maxPrice, 0, QuoteCheck{maxPrice, Ask, Used}},
		{"above the largest price", maxPrice + 1, 0, QuoteCheck{0, Ask, InvalidAmount}},
		{"maximum integer", math.MaxInt64, 0, QuoteCheck{0, Ask, InvalidAmount}},
		{"minimum integer", math.MinInt64, 0, QuoteCheck{0, Ask, InvalidAmount}},
	}
	for _, tt := range tests {
		q := asks(tt.ask)
		q[0].Sale = tt.sale
		if e := estimate(usd(), q); e.Quotes[0].QuoteCheck != tt.want {
			t.Errorf("%s: ask %d, sale %d: got %+v, want %+v", tt.rule, tt.ask, tt.sale, e.Quotes[0].QuoteCheck, tt.want)
		}
	}
}

func TestEstimate_ConvertsAtADatedRate(t *testing.T) {
	day := noon.Truncate(24 * time.Hour)
	policy := usd()
	policy.Rates = Rates{
		"EUR": {Value: 1_083_400_000_000, Date: day},
		"VND": {Value: 38_000_000, Date: day},
		"AAA": {Value: 1_000_000_000_000},
		"BBB": {Value: 0, Date: day},
		"CCC": {Value: -1, Date: day},
		"DDD": {Value: math.MaxInt64, Date: day},
	}
	tests := []struct {
		rule     string
		ask      string
		currency money.Currency
		want     string
		reason   Reason
	}{
		{"base currency", "10.5", "USD", "10.5", Used},
		{"exact", "10.5", "EUR", "11.3757", Used},
		{"rounded half to even", "0.000005", "EUR", "0.000005", Used},
		{"large amount of a small currency", "50000000", "VND", "1900", Used},
		{"more than ten million in the base currency", "9500000", "EUR", "0", InvalidAmount},
		{"less than a micro-unit", "0.01", "VND", "0", InvalidAmount},
		{"overflow", "9000000000000", "DDD", "0", InvalidAmount},
		{"unknown currency", "1", "XXX", "0", NoRate},
		{"no currency", "1", "", "0", NoRate},
		{"rate without a date", "1", "AAA", "0", NoRate},
		{"rate of zero", "1", "BBB", "0", NoRate},
		{"negative rate", "1", "CCC", "0", NoRate},
	}
	for _, tt := range tests {
		q := asks(units(t, tt.ask))
		q[0].Currency = tt.currency
		v := estimate(policy, q).Quotes[0]
		if v.Price != units(t, tt.want) || v.Reason != tt.reason {
			t.Errorf("%s: %s %s: got %s, %q, want %s, %q", tt.rule, tt.ask, tt.currency, v.Price, v.Reason, tt.want, tt.reason)
		}
	}
}

func TestEstimate_IgnoresStaleQuotes(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		rule            string
		fetched, market time.Duration // before noon; market 0: no market time
		maxAge          time.Duration
		want            Reason
	}{
		{"fetched a day ago", day, 0, 0, Used},
		{"fetched more than a day ago", day + time.Microsecond, 0, 0, StaleFetch},
		{"longer maximum age of the quote", 30 * time.Hour, 0, 36 * time.Hour, Used},
		{"shorter maximum age of the quote", 2 * time.Hour, 0, time.Hour, StaleFetch},
		{"market time a week ago", 0, 7 * day, 0, Used},
		{"market time more than a week ago", 0, 7*day + time.Microsecond, 0, StaleMarket},
		{"market time a year ago, fetched now", time.Minute, 365 * day, 0, StaleMarket},
		{"fetch time in the future", -400 * day, 0, 0, Used},
		{"market time in the future", 0, -400 * day, 0, Used},
		{"market time in the future, fetched too long ago", 25 * time.Hour, -400 * day, 0, StaleFetch},
	}
	for _, tt := range tests {
		q := asks(1)
		q[0].FetchedAt, q[0].MaxAge = noon.Add(-tt.fetched), tt.maxAge
		if tt.market != 0 {
			q[0].MarketTime = noon.Add(-tt.market)
		}
		if e := estimate(usd(), q); e.Quotes[0].Reason != tt.want {
			t.Errorf("%s: got the reason %q, want %q", tt.rule, e.Quotes[0].Reason, tt.want)
		}
	}
}

func TestEstimate_AcceptsExtremeTimes(t *testing.T) {
	times := []time.Time{
		{}, time.Unix(0, 0), time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), time.Unix(1<<62, 999_999_999), time.Now(), noon,
	}
	for _, now := range times {
		for _, a := range times {
			for _, b := range times {
				q := asks(5, 5, 5)
				q[0].FetchedAt, q[1].FetchedAt = a, a
				q[0].MarketTime, q[1].MarketTime = b, a
				q[0].Pool, q[1].Pool = "p", "p"
				var e Priced
				state := State{Price: 20, Held: HeldPrice{Candidate: 5, Side: Fall, At: a, EvidenceAt: b}, ReleasedAt: b, SuspectUntil: a, SingleMarketUntil: b}
				refs := References{Day: Reference{20, a}, Week: Reference{20, b}}
				NewPricer(usd(), NewSet(money.Scale)).Price(now, Rest, q, state, refs, &e)
				if e.Price <= 0 {
					t.Errorf("now %v, fetched %v, market time %v: got the price %d, want a positive one", now, a, b, e.Price)
				}
			}
		}
	}
}

func TestEstimate_AQuoteWithoutFetchTimeIsStale(t *testing.T) {
	q := asks(1)
	q[0].FetchedAt = time.Time{}
	if e := estimate(usd(), q); e.Quotes[0].Reason != StaleFetch {
		t.Errorf("got the reason %q, want %q", e.Quotes[0].Reason, StaleFetch)
	}
}

func TestEstimate_UsesOneQuotePerMarketAndPool(t *testing.T) {
	at := func(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }
	tests := []struct {
		rule string
		a, b Quote // a must be used, and b must not
		want Reason
	}{
		{
			"later fetch time of a market",
			Quote{Provider: "x", Market: "m", FetchedAt: at(1)},
			Quote{Provider: "a", Market: "m", FetchedAt: at(2), MarketTime: at(1)},
			Duplicate,
		},
		{
			"same fetch time, later market time",
			Quote{Provider: "x", Market: "m", FetchedAt: at(1), MarketTime: at(3)},
			Quote{Provider: "a", Market: "m", FetchedAt: at(1), MarketTime: at(4)},
			Duplicate,
		},
		{
			"same fetch time, a market time and none",
			Quote{Provider: "x", Market: "m", FetchedAt: at(1), MarketTime: at(60)},
			Quote{Provider: "a", Market: "m", FetchedAt: at(1)},
			Duplicate,
		},
		{
			"same fetch time, a market time in the future",
			Quote{Provider: "x", Market: "m", FetchedAt: at(1), MarketTime: at(60)},
			Quote{Provider: "a", Market: "m", FetchedAt: at(1), MarketTime: at(-9999)},
			Duplicate,
		},
		{
			"same times, lower provider key",
			Quote{Provider: "a", Market: "m", FetchedAt: at(1)},
			Quote{Provider: "b", Market: "m", FetchedAt: at(1)},
			Duplicate,
		},
		{
			"later fetch time in a pool",
			Quote{Market: "z", Pool: "p", FetchedAt: at(1)},
			Quote{Market: "a", Pool: "p", FetchedAt: at(62)},
			SharedListings,
		},
		{
			"fetch times in a pool that differ by a minute, lower market key",
			Quote{Market: "a", Pool: "p", FetchedAt: at(2)},
			Quote{Market: "z", Pool: "p", FetchedAt: at(1)},
			SharedListings,
		},
		{
			"same fetch time in a pool, lower market key",
			Quote{Provider: "z", Market: "a", Pool: "p", FetchedAt: at(1)},
			Quote{Provider: "a", Market: "b", Pool: "p", FetchedAt: at(1)},
			SharedListings,
		},
	}
	for _, tt := range tests {
		tt.a.Currency, tt.b.Currency = "USD", "USD"
		tt.a.Ask, tt.b.Ask = 7, 5
		for _, quotes := range [][]Quote{{tt.a, tt.b}, {tt.b, tt.a}} {
			e := estimate(usd(), quotes)
			got := reasons(&e)
			if quotes[0] == tt.b {
				slices.Reverse(got)
			}
			if got[0] != Used || got[1] != tt.want || e.Price != 7 || e.UsedMarkets != 1 {
				t.Errorf("%s: got the reasons %q and the price %d from %d markets, want [%q %q] and 7 from 1", tt.rule, got, e.Price, e.UsedMarkets, Used, tt.want)
			}
		}
	}
}

func TestEstimate_UnusableQuotesDoNotReplaceUsableOnes(t *testing.T) {
	q := asks(0, 5, maxPrice+1, 5, 5)
	for i := range q[:4] {
		q[i].Market = "m" + string(rune('a'+i/2)) // two quotes each of two markets
		q[i].FetchedAt = noon.Add(-time.Duration(i) * time.Minute)
	}
	q[4].Pool = "p"
	q = append(q, q[4])
	q[5].Market, q[5].FetchedAt, q[5].MaxAge = "fresher but stale", noon.Add(-time.Second), time.Millisecond
	e := estimate(usd(), q)
	if got, want := reasons(&e), []Reason{NotOffered, Used, InvalidAmount, Used, Used, StaleFetch}; !slices.Equal(got, want) {
		t.Errorf("got the reasons %q, want %q", got, want)
	}
}

func TestEstimate_UsesAllMarketsWithoutAPool(t *testing.T) {
	if e := estimate(usd(), asks(5, 5, 5)); e.UsedMarkets != 3 {
		t.Errorf("got %d used markets, want 3", e.UsedMarkets)
	}
}
