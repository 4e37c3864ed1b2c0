package refresh_test

import (
	"maps"
	"testing"
	"time"

	"assay/internal/pricing"
	"assay/internal/provider"
)

// TestSettle_KeepsTheRatesThatItEstimatedWith changes the configured rates after
// a run: a price is explained with those that made it, until the next run.
func TestSettle_KeepsTheRatesThatItEstimatedWith(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	spoil(func(q *provider.Quote) { q.Currency = "EUR" })(s)
	w := newWorld(t, s)
	explains := func(want pricing.Rates) {
		t.Helper()
		got, err := w.store.Rates(t.Context(), w.named("A").RateSet)
		must(t, err)
		equal(t, "rates", maps.Equal(got, want), true)
	}
	day := epoch.Truncate(24 * time.Hour)
	was := pricing.Rates{"EUR": {Micro: 1_100_000, Date: day}}
	w.cfg.Policy.Rates = was
	w.restart()
	w.push("u", 730, "A")
	w.drain()
	equal(t, "price", w.named("A").Price, units(11))
	explains(was)

	now := pricing.Rates{"EUR": {Micro: 1_200_000, Date: day.AddDate(0, 0, 1)}}
	w.cfg.Policy.Rates = now
	w.restart()
	explains(was)
	w.clock.Add(7 * time.Hour)
	w.begin(false)
	w.drain()
	equal(t, "price", w.named("A").Price, units(12))
	explains(now)
}
