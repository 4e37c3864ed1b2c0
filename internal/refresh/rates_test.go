package refresh_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"assay/internal/exchange"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

// The configured rates change after a job. Until the next job, the explanation of a price
// uses the rates of its estimate.
func TestEstimate_StoresItsRates(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	damage(func(q *provider.Quote) { q.Currency = "EUR" })(s)
	w := newWorld(t, s)
	explains := func(want pricing.Rates) {
		t.Helper()
		got, err := exchange.ReadRates(t.Context(), w.store, w.named("A").RateSet)
		must(t, err)
		equal(t, "rates", maps.Equal(got, want), true)
	}
	day := epoch.Truncate(24 * time.Hour)
	was := pricing.Rates{"EUR": {Value: 1_100_000_000_000, Date: day}}
	w.cfg.Policy.Rates = was
	w.restart()
	w.push("u", 730, "A")
	w.drain()
	equal(t, "price", w.named("A").Price, units(11))
	explains(was)

	now := pricing.Rates{"EUR": {Value: 1_200_000_000_000, Date: day.AddDate(0, 0, 1)}}
	w.cfg.Policy.Rates = now
	w.restart()
	explains(was)
	w.clock.Add(7 * time.Hour)
	w.begin(false)
	w.drain()
	equal(t, "price", w.named("A").Price, units(12))
	explains(now)
}

// The rates change between plan and estimate. A process with other rates still uses the rates
// of the plan.
func TestEstimate_UsesTheRatesOfThePlan(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	damage(func(q *provider.Quote) { q.Currency = "EUR" })(s)
	w := newWorld(t, s)
	day := epoch.Truncate(24 * time.Hour)
	planned := pricing.Rates{"EUR": {Value: 1_100_000_000_000, Date: day}}
	w.cfg.Policy.Rates = planned
	w.restart()
	w.push("u", 730, "A")
	w.clearMissing()
	job := w.begin(true)
	more, err := w.engine.Plan(t.Context())
	must(t, err)
	equal(t, "planned", more, true)

	w.cfg.Policy.Rates = pricing.Rates{"EUR": {Value: 1_200_000_000_000, Date: day.AddDate(0, 0, 1)}}
	w.restart()
	w.drain()
	equal(t, "price", w.named("A").Price, units(11))
	equal(t, "rates of the item", w.named("A").RateSet, w.job(job).RateSet)
	got, err := exchange.ReadRates(t.Context(), w.store, w.job(job).RateSet)
	must(t, err)
	equal(t, "rates of the plan", maps.Equal(got, planned), true)
	w.run(true)
	equal(t, "price of the next job", w.named("A").Price, units(12))
}

// The only quote has a currency without a rate. The item must have no price rather than a
// wrong one.
func TestEstimate_IgnoresQuotesWithoutRate(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	damage(func(q *provider.Quote) { q.Currency = "RUB" })(s)
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.clearMissing()
	job := w.run(true)
	equal(t, "items without a quote", job.Counts.NoQuote, 1)
	equal(t, "price", w.named("A").Price, 0)
	snaps, err := view.Snapshots(t.Context(), w.store, w.named("A").ID)
	must(t, err)
	equal(t, "snapshots", len(snaps), 1)
	equal(t, "reason", snaps[0].Reason, pricing.NoRate)
	equal(t, "the currency of the quote", snaps[0].Currency, "RUB")
}

// Another process is fetching the first rates when the job begins.
func TestPlan_WaitsForTheFirstRates(t *testing.T) {
	w := newWorld(t, bulk("alpha", []string{"A"}, "a1"))
	w.push("u", 730, "A")
	w.clearMissing()
	pending := refresh.ErrNoRatesYet
	w.rates = func(context.Context) (pricing.Rates, error) { return nil, pending }
	w.restart()
	job := w.begin(true)
	w.drain()
	equal(t, "state", w.job(job).State, refresh.Queued)
	pending = nil
	w.drain()
	equal(t, "state", w.job(job).State, refresh.Finished)
}
