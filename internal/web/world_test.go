package web

import (
	"fmt"
	"time"

	"assay/internal/catalog"
	"assay/internal/event"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/view"
)

// newFakeAssay creates the data for the page: a few runs, two providers, some items, and one
// item with different prices on ten markets.
func newFakeAssay(now func() time.Time) *fakeAssay {
	f := &fakeAssay{now: now, details: map[catalog.Key]view.ItemDetail{}}
	f.jobs = sampleJobs(now())
	f.providers = sampleProviders(now())
	f.items = sampleItems(now())
	f.failed = sampleFailures()
	redline := sampleRedline(now())
	f.details[catalog.Key{AppID: 730, Name: redline.MarketHashName}] = redline
	return f
}

func sampleJobs(now time.Time) []view.Job {
	job := func(id, kind, state string, ago, took time.Duration) view.Job {
		start, end := now.Add(-ago), now.Add(took-ago)
		return view.Job{
			ID: id, Kind: kind, State: state, Stage: "done", RequestedBy: "schedule", CreatedAt: start, StartedAt: &start, FinishedAt: &end,
			TotalItems: 30325, UpdatedItems: 29970, ChangedItems: 18112, SkippedItems: view.Skipped{TTL: 33, NoSales: 310}, NoQuoteItems: 12,
			Usage: view.Usage{RequestCount: 72, ByProvider: map[string]int64{"sim": 71, "pricelist": 1}},
		}
	}
	last := job("42", "bulk", "finished", 26*time.Minute, 48*time.Second)
	last.UpdatedItems, last.FailedItems = 29940, 30
	last.LastError = new("pricelist: https://lists.example/prices.csv: 503 Service Unavailable, given up after 4 attempts")
	last.Deferred = []string{"pricelist/skinport", "sim/ember"}
	last.Outcome = new("partial")
	last.Gaps.Items = []event.ItemGap{{Reason: "failed", Items: 30, Share: 0.001}}
	last.Gaps.Markets = []event.MarketGap{{Provider: "pricelist", Market: "skinport", Reason: "failed", Share: 1, Detail: *last.LastError}}
	forced := job("41", "bulk", "finished", 6*time.Hour, 93*time.Second)
	forced.Forced, forced.SkippedItems, forced.UpdatedItems, forced.RequestedBy = true, view.Skipped{}, 30313, "page"
	cancelled := job("38", "bulk", "cancelled", 13*time.Hour, 12*time.Second)
	cancelled.UpdatedItems, cancelled.CancelledItems = 8000, 21970
	failed := job("35", "bulk", "failed", 19*time.Hour, 4*time.Second)
	failed.UpdatedItems, failed.FailedItems, failed.LastError = 0, 29970, new("sim: connection refused")
	missing := job("40", "missing", "finished", 9*time.Hour, 2*time.Second)
	missing.TotalItems, missing.UpdatedItems, missing.NoQuoteItems, missing.SkippedItems = 14, 13, 1, view.Skipped{}
	missing.Usage = view.Usage{RequestCount: 1, ByProvider: map[string]int64{"sim": 1}}
	return []view.Job{last, forced, missing, cancelled, failed, job("29", "bulk", "finished", 25*time.Hour, 51*time.Second)}
}

func sampleProviders(now time.Time) []view.ProviderDebug {
	market := func(key, title string, quotes int64) view.MarketDebug {
		return view.MarketDebug{
			Market: key, Title: title, AppIDs: []int32{730, 570}, SalesWindowSeconds: 30 * 86400,
			LastFetchedAt: new(now.Add(-26 * time.Minute)), LastOutcome: "ok", Quotes: quotes, Rejected: 3,
		}
	}
	quarantined := market("skinport", "Skinport list", 14032)
	quarantined.Quarantine = new("14,032 names instead of 31,207; the last valid response is used")
	quarantined.QuarantinedSince = new(now.Add(-26 * time.Minute))
	ember := market("ember", "Ember", 29101)
	ember.Pool, ember.SalesWindowSeconds = "ember", 0
	return []view.ProviderDebug{
		{
			Provider: "sim", Title: "Market simulator", Configured: true, Health: provider.HealthHealthy, Shape: "bulk", BatchSize: 500, IntervalSeconds: 300, Breaker: "closed",
			Terms:       "generated prices for tests",
			Budget:      view.Budget{Limit: 1000, PeriodSeconds: 3600, Used: 213, Left: new(int64(787)), ResetsAt: new(now.Add(34 * time.Minute))},
			LastSuccess: new(now.Add(-26 * time.Minute)), LatencyMs: view.Latency{P50: 42, P95: 131, P99: 412},
			ResponsesByStatus: map[string]int64{"200": 209, "429": 3, "0": 1},
			Markets:           []view.MarketDebug{market("aurum", "Aurum", 30120), market("basalt", "Basalt", 28770), market("cobalt", "Cobalt Exchange", 30002), ember},
			Requests:          sampleRequests(now),
		},
		{
			Provider: "pricelist", Title: "Price lists", Configured: true, Health: provider.HealthDegraded, Shape: "bulk", BatchSize: 1, Breaker: "closed", Terms: "yours",
			LastSuccess: new(now.Add(-26 * time.Minute)), LastError: new("503 Service Unavailable"), LastErrorAt: new(now.Add(-25 * time.Minute)),
			LatencyMs: view.Latency{P50: 840, P95: 2210, P99: 2930}, ResponsesByStatus: map[string]int64{"200": 4, "503": 4},
			Markets: []view.MarketDebug{quarantined},
		},
		{Provider: "waxpeer", Title: "Waxpeer", Configured: true, Shape: "single", Breaker: "open", BlockedUntil: new(now.Add(4 * time.Minute)), Health: provider.HealthDown, LastError: new("timeout"), LastErrorAt: new(now.Add(-2 * time.Minute))},
	}
}

func sampleRequests(now time.Time) []view.RequestDebug {
	requests := make([]view.RequestDebug, 0, 50)
	for i := range 50 {
		r := view.RequestDebug{
			At: now.Add(-26*time.Minute - time.Duration(i)*time.Second), Method: "GET", Host: "127.0.0.1:41873",
			Path: fmt.Sprintf("/v1/markets/aurum/batch?page=%d&key=***", i), Status: 200, DurationMs: 30 + float64(i*7%90), Bytes: 48211, Attempt: 1,
		}
		if i == 3 {
			r.Status, r.Error, r.Attempt = 429, "retry after 2 s", 2
		}
		requests = append(requests, r)
	}
	return requests
}

func sampleItems(now time.Time) []view.ItemPrice {
	item := func(name, phase, status string, price money.Micro) view.ItemPrice {
		return view.ItemPrice{AppID: 730, MarketHashName: name, Phase: phase, Status: status, CurrentPrice: price, PriceUpdatedAt: new(now.Add(-26 * time.Minute))}
	}
	items := []view.ItemPrice{
		item("AK-47 | Redline (Field-Tested)", "", "ok", 32_041_250),
		item("AK-47 | Redline (Minimal Wear)", "", "disputed", 118_900_000),
		item("StatTrak™ AK-47 | Redline (Field-Tested)", "", "thin", 71_500_000),
		item("AWP | Dragon Lore (Factory New)", "", "suspect", 11_480_000_000),
		item("Sealed Graffiti | Rage Mode (Monarch Blue)", "", "stale", 34_500),
		{AppID: 730, MarketHashName: "No Such Item | At All (Factory New)", Status: "noPrice"},
	}
	for _, name := range trapNames {
		items = append(items, item(name, "", "ok", 1_234_567))
	}
	items = append(items, item("★ Karambit | Doppler (Factory New)", "Sapphire", "ok", 7_204_000_000))
	for i := range 90 {
		items = append(items, item(fmt.Sprintf("Sticker | Team %02d (Holo)", i), "", "ok", money.Micro(100_000+i*13_700)))
	}
	return items
}

func sampleFailures() []view.JobItem {
	var failed []view.JobItem
	for i := range 27 {
		failed = append(failed, view.JobItem{
			AppID: 730, MarketHashName: fmt.Sprintf("MP9 | Hot Rod %02d (Factory New)", i), State: "failed", Attempts: 4,
			Error: new("pricelist: 503 Service Unavailable"), PriceBefore: money.Micro(41_000_000 + i),
		})
	}
	for _, name := range trapNames[:3] {
		failed = append(failed, view.JobItem{AppID: 730, MarketHashName: name, State: "failed", Attempts: 2, Error: new("sim: no response within 10 s")})
	}
	return failed
}

// sampleRedline has quotes of every kind.
func sampleRedline(now time.Time) view.ItemDetail {
	quote := func(title string, price money.Micro, reason string) view.MarketSnapshot {
		return view.MarketSnapshot{
			Provider: "sim", Market: title, Title: title, Currency: "USD", LowestAsk: &price, HighestBid: new(price * 94 / 100), Sale: new(price * 98 / 100),
			Listings: new(int64(412)), Sales: new(int64(1288)), SalesWindowSeconds: new(int64(30 * 86400)),
			FetchedAt: now.Add(-26 * time.Minute), Price: &price, Basis: "ask", Used: reason == "", Reason: reason, Explanation: inWords[reason], Level: new(money.Micro(1_020_000)), Levelled: &price,
		}
	}
	euro := quote("Basalt", 31_410_220, "")
	euro.Currency, euro.LowestAsk, euro.HighestBid, euro.Sale = "EUR", new(money.Micro(28_990_000)), nil, nil
	euro.Rate, euro.RateDate = new(money.Rate(1_083_400_000_000)), new(now.Truncate(24*time.Hour))
	sale := quote("Dune", 31_150_000, "")
	sale.LowestAsk, sale.HighestBid, sale.Listings, sale.Basis = nil, nil, new(int64(0)), "sale"
	old := quote("Gilt", 24_800_000, "staleMarket")
	old.MarketTime = new(now.Add(-9 * 24 * time.Hour))
	none := quote("Hoard", 1, "notOffered")
	none.LowestAsk, none.HighestBid, none.Sale, none.Price, none.Listings, none.Sales = nil, nil, nil, nil, nil, nil
	return view.ItemDetail{
		ItemPrice: view.ItemPrice{AppID: 730, MarketHashName: "AK-47 | Redline (Field-Tested)", CurrentPrice: 32_041_250, Status: "ok", PriceUpdatedAt: new(now.Add(-26 * time.Minute))},
		Currency:  "USD", PriceCheckedAt: new(now.Add(-26 * time.Minute)), AgeSeconds: new(int64(1560)), Method: "consensus", MethodVersion: 2,
		Average: 207_317_401, Median: 32_100_000, Consensus: 32_041_250, Interval: &view.Interval{Low: 29_310_000, High: 35_027_400}, Min: 24_800_000, Max: 1_438_000_000, Spread: new(money.Micro(57_983_870)),
		Markets: 10, UsedMarkets: 6, CandidatePrice: new(money.Micro(71_350_000)), CandidateAt: new(now.Add(-26 * time.Minute)),
		Explanation: &view.Explanation{Sentences: []string{
			"Quotes are compared at the usual level of all markets. 6 of 7 agree within a factor of 2, from 31.15 to 33.04 USD, and the price is their median: 32.04125 USD.",
			"71.35 USD is 2.226817 times 32.04125 USD, the price before, more than the limit of 2, so it has been held since 2026-10-05 13:37 UTC.",
		}},
		Snapshots: []view.MarketSnapshot{
			quote("Aurum", 31_870_000, ""), euro, quote("Cobalt Exchange", 32_100_000, ""), sale, quote("Ember", 32_900_000, ""),
			quote("Flint", 33_040_000, ""), old, none, quote("Ingot", 1_438_000_000, "outlier"), quote("Ember Mirror", 32_900_000, "sharedListings"),
		},
	}
}

// inWords explains why a quote is not used, by reason.
var inWords = map[string]string{
	"outlier":        "it is outside the deciding group of quotes",
	"notOffered":     "no offers or sales",
	"staleMarket":    "the market's own data is more than 7 days old",
	"sharedListings": "it resells the listings of another market, which are used only once",
}
