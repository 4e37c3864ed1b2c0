package pricing

import (
	"math"
	"slices"
	"testing"
	"time"

	"assay/internal/money"
)

func TestEstimate_PriceOfAMarketIsItsAskElseItsSale(t *testing.T) {
	tests := []struct {
		rule      string
		ask, sale money.Micro
		want      Verdict
	}{
		{"the ask counts", 5, 0, Verdict{5, Ask, Used}},
		{"the ask counts before the sale", 5, 9, Verdict{5, Ask, Used}},
		{"where nothing is offered the sale serves", 0, 9, Verdict{9, Sale, Used}},
		{"neither is no price", 0, 0, Verdict{0, "", NotOffered}},
		{"an invalid ask is not mended by a sale", -5, 9, Verdict{0, Ask, InvalidAmount}},
		{"a negative sale is invalid", 0, -9, Verdict{0, Sale, InvalidAmount}},
		{"the least price", 1, 0, Verdict{1, Ask, Used}},
		{"ten million units are valid", maxPrice, 0, Verdict{maxPrice, Ask, Used}},
		{"more is not", maxPrice + 1, 0, Verdict{0, Ask, InvalidAmount}},
		{"the extremes are not", math.MaxInt64, 0, Verdict{0, Ask, InvalidAmount}},
		{"the extremes are not", math.MinInt64, 0, Verdict{0, Ask, InvalidAmount}},
	}
	for _, tt := range tests {
		q := asks(tt.ask)
		q[0].Sale = tt.sale
		if e := estimate(usd(), q); e.Quotes[0].Verdict != tt.want {
			t.Errorf("%s: ask %d, sale %d give %+v, want %+v", tt.rule, tt.ask, tt.sale, e.Quotes[0].Verdict, tt.want)
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
		{"many units of a small currency are valid", "50000000", "VND", "1900", Used},
		{"no more than ten million of the base", "9500000", "EUR", "0", InvalidAmount},
		{"less than a micro-unit is nothing", "0.01", "VND", "0", InvalidAmount},
		{"beyond all numbers", "9000000000000", "DDD", "0", InvalidAmount},
		{"unknown currency", "1", "XXX", "0", NoRate},
		{"no currency", "1", "", "0", NoRate},
		{"rate without a date", "1", "AAA", "0", NoRate},
		{"rate of nothing", "1", "BBB", "0", NoRate},
		{"negative rate", "1", "CCC", "0", NoRate},
	}
	for _, tt := range tests {
		q := asks(units(t, tt.ask))
		q[0].Currency = tt.currency
		v := estimate(policy, q).Quotes[0]
		if v.Price != units(t, tt.want) || v.Reason != tt.reason {
			t.Errorf("%s: %s %s give %s, %q; want %s, %q", tt.rule, tt.ask, tt.currency, v.Price, v.Reason, tt.want, tt.reason)
		}
	}
}

func TestEstimate_LeavesOutWhatIsStale(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		rule            string
		fetched, market time.Duration // before noon; market 0: not stated
		maxAge          time.Duration
		want            Reason
	}{
		{"fetched a day ago", day, 0, 0, Used},
		{"fetched longer ago", day + time.Microsecond, 0, 0, StaleFetch},
		{"the market's own maximum is longer", 30 * time.Hour, 0, 36 * time.Hour, Used},
		{"the market's own maximum is shorter", 2 * time.Hour, 0, time.Hour, StaleFetch},
		{"stated a week ago", 0, 7 * day, 0, Used},
		{"frozen for longer", 0, 7*day + time.Microsecond, 0, StaleMarket},
		{"frozen for a year and fetched daily", time.Minute, 365 * day, 0, StaleMarket},
		{"fetched in the future: our clock was set back", -400 * day, 0, 0, Used},
		{"a market time in the future does not count", 0, -400 * day, 0, Used},
		{"nor does it help against our own", 25 * time.Hour, -400 * day, 0, StaleFetch},
	}
	for _, tt := range tests {
		q := asks(1)
		q[0].FetchedAt, q[0].MaxAge = noon.Add(-tt.fetched), tt.maxAge
		if tt.market != 0 {
			q[0].MarketTime = noon.Add(-tt.market)
		}
		if e := estimate(usd(), q); e.Quotes[0].Reason != tt.want {
			t.Errorf("%s: reason %q, want %q", tt.rule, e.Quotes[0].Reason, tt.want)
		}
	}
}

func TestEstimate_SurvivesAnyTime(t *testing.T) {
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
				state := State{Price: 20, Held: HeldPrice{Candidate: 5, Side: Fall, At: a, EvidenceAt: b}, ReleasedAt: b, SuspectUntil: a, LoneUntil: b}
				refs := References{Day: Reference{20, a}, Week: Reference{20, b}}
				NewPricer(usd(), NewSet(money.Scale)).Price(now, Rest, q, state, refs, &e)
				if e.Price <= 0 {
					t.Errorf("now %v, fetched %v, market %v: price %d", now, a, b, e.Price)
				}
			}
		}
	}
}

func TestEstimate_NeverFetchedIsStale(t *testing.T) {
	q := asks(1)
	q[0].FetchedAt = time.Time{}
	if e := estimate(usd(), q); e.Quotes[0].Reason != StaleFetch {
		t.Errorf("reason %q, want %q", e.Quotes[0].Reason, StaleFetch)
	}
}

func TestEstimate_OneQuotePerMarketAndPool(t *testing.T) {
	at := func(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }
	tests := []struct {
		rule string
		a, b Quote // a must count, b not
		want Reason
	}{
		{
			"the fresher quote of a market",
			Quote{Provider: "x", Market: "m", FetchedAt: at(1)},
			Quote{Provider: "a", Market: "m", FetchedAt: at(2), MarketTime: at(1)},
			Duplicate,
		},
		{
			"fetched alike, the market's own time",
			Quote{Provider: "x", Market: "m", FetchedAt: at(1), MarketTime: at(3)},
			Quote{Provider: "a", Market: "m", FetchedAt: at(1), MarketTime: at(4)},
			Duplicate,
		},
		{
			"a stated time before none",
			Quote{Provider: "x", Market: "m", FetchedAt: at(1), MarketTime: at(60)},
			Quote{Provider: "a", Market: "m", FetchedAt: at(1)},
			Duplicate,
		},
		{
			"a lying time is none",
			Quote{Provider: "x", Market: "m", FetchedAt: at(1), MarketTime: at(60)},
			Quote{Provider: "a", Market: "m", FetchedAt: at(1), MarketTime: at(-9999)},
			Duplicate,
		},
		{
			"all alike, the lower provider",
			Quote{Provider: "a", Market: "m", FetchedAt: at(1)},
			Quote{Provider: "b", Market: "m", FetchedAt: at(1)},
			Duplicate,
		},
		{
			"the fresher market of a pool",
			Quote{Market: "z", Pool: "p", FetchedAt: at(1)},
			Quote{Market: "a", Pool: "p", FetchedAt: at(62)},
			SharedListings,
		},
		{
			"markets of a pool that were fetched in one run are as fresh",
			Quote{Market: "a", Pool: "p", FetchedAt: at(2)},
			Quote{Market: "z", Pool: "p", FetchedAt: at(1)},
			SharedListings,
		},
		{
			"fetched alike, the lower market key",
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
				t.Errorf("%s: reasons %q, price %d from %d", tt.rule, got, e.Price, e.UsedMarkets)
			}
		}
	}
}

func TestEstimate_UnusableQuotesDoNotCompete(t *testing.T) {
	q := asks(0, 5, maxPrice+1, 5, 5)
	for i := range q[:4] {
		q[i].Market = "m" + string(rune('a'+i/2)) // two of one market, two of another
		q[i].FetchedAt = noon.Add(-time.Duration(i) * time.Minute)
	}
	q[4].Pool = "p"
	q = append(q, q[4])
	q[5].Market, q[5].FetchedAt, q[5].MaxAge = "fresher but stale", noon.Add(-time.Second), time.Millisecond
	e := estimate(usd(), q)
	if got, want := reasons(&e), []Reason{NotOffered, Used, InvalidAmount, Used, Used, StaleFetch}; !slices.Equal(got, want) {
		t.Errorf("reasons %q, want %q", got, want)
	}
}

func TestEstimate_MarketsWithoutPoolAreTheirOwn(t *testing.T) {
	if e := estimate(usd(), asks(5, 5, 5)); e.UsedMarkets != 3 {
		t.Errorf("%d markets used, want 3", e.UsedMarkets)
	}
}
