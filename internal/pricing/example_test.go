package pricing_test

import (
	"cmp"
	"fmt"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// Three markets agree. A fourth market quotes a price a hundred times as high, and the
// quote of a fifth market is too old.
func ExamplePricer_Price() {
	now := time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	rates := pricing.Rates{}
	if err := rates.Add("CNY=0.14@2026-10-05"); err != nil {
		fmt.Println(err)
	}
	quotes := []pricing.Quote{
		{Market: "skinport", Currency: "USD", Ask: 10_400_000, Sales: -1, FetchedAt: now},
		{Market: "csfloat", Currency: "USD", Ask: 10_000_000, Sales: -1, FetchedAt: now},
		{Market: "buff163", Currency: "CNY", Ask: 69_000_000, Sales: -1, FetchedAt: now},
		{Market: "waxpeer", Currency: "USD", Ask: 1_000_000_000, Sales: -1, FetchedAt: now},
		{Market: "dmarket", Currency: "USD", Ask: 3_000_000, Sales: -1, FetchedAt: now.Add(-48 * time.Hour)},
	}
	pricer := pricing.NewPricer(pricing.Policy{Currency: "USD", Rates: rates}, pricing.NewSet(money.Scale))
	var p pricing.Priced
	pricer.Price(now, pricing.ClassOf("AK-47 | Redline (Field-Tested)"), quotes, pricing.State{}, pricing.References{}, &p)
	fmt.Println(p.Price, p.Status, "by", p.DecidedBy, "from", p.Interval.Low, "to", p.Interval.High)
	for i, q := range p.Quotes {
		fmt.Println(quotes[i].Market, q.Price, cmp.Or(q.Reason, "used"))
	}
	// Output:
	// 10 ok by majority from 8.516589 to 11.74179
	// skinport 10.4 used
	// csfloat 10 used
	// buff163 9.66 used
	// waxpeer 1000 outlier
	// dmarket 3 staleFetch
}

// The price jumps on one market. The guard holds it until a later response confirms it.
func ExamplePricer_Price_held() {
	now := time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	pricer := pricing.NewPricer(pricing.Policy{Currency: "USD"}, pricing.NewSet(money.Scale))
	state := pricing.State{Price: 10_000_000}
	for _, hours := range []int{0, 1} {
		at := now.Add(time.Duration(hours) * time.Hour)
		quote := pricing.Quote{Market: "skinport", Currency: "USD", Ask: 30_000_000, Sales: -1, FetchedAt: at, ChangedAt: at}
		var p pricing.Priced
		pricer.Price(at, pricing.Rest, []pricing.Quote{quote}, state, pricing.References{}, &p)
		fmt.Println(p.Price, p.Status, p.Move.Decision, p.State.Held.Candidate)
		state = p.State
	}
	// Output:
	// 10 suspect held 30
	// 30 suspect released 0
}

// A response in cents instead of dollars is refused as a whole.
func ExampleRound() {
	now := time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	response := func(at time.Time, factor money.Micro) *pricing.Response {
		r := &pricing.Response{At: at, Rate: money.RateScale}
		for i := range 500 {
			name := fmt.Sprintf("Skin %d (Field-Tested)", i)
			amount := money.Micro(200_000+i*10_000) * factor
			r.Points = append(r.Points, pricing.Point{Key: pricing.KeyOf(name, ""), Traits: pricing.TraitsOf(name), Amount: amount})
		}
		return r
	}
	round := pricing.NewRound(now, pricing.NewSet(money.Scale))
	market := pricing.Market{ID: 1}
	if err := round.Add(market, response(now.Add(-6*time.Hour), 1), response(now, 100)); err != nil {
		fmt.Println(err)
	}
	result := round.Finish(func() {})
	fmt.Println(result.Markets[0].Refusal)
	// Output: prices are 100 times those of the last response (median of 500 names); the limits are 0.5 and 2
}
