package storetest

import (
	"bytes"
	"log/slog"
	"strings"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/allowance"
)

// forecasts sends requests at a pace and asks when the quotas run out.
func forecasts(f *fixture) {
	f.now = time.Date(2026, 3, 10, 6, 0, 0, 0, time.UTC)
	host := provider.Host{Key: "h", Quota: provider.Quota{Day: 150, Month: 10_000}}
	a := allowance.New(f.s, "s", host)
	quotas := func() (day, month provider.QuotaUsed) {
		f.Helper()
		b, _, err := a.State(f.Context())
		f.must(err)
		return b.Quotas[0], b.Quotas[1]
	}
	hour := func(n int) {
		f.Helper()
		f.is("sent", f.takeAll([]provider.Allowance{a}, n), n)
		f.now = f.now.Add(time.Hour)
	}
	day, _ := quotas()
	f.is("before anything is sent", day.Forecast, provider.Forecast{Pace: provider.Pace{Over: 24 * time.Hour}})
	hour(10)
	hour(10)
	day, month := quotas() // of the two hours that there were
	f.is("pace", day.Forecast.Pace, provider.Pace{Requests: 20, Over: 2 * time.Hour})
	f.is("the day runs out", day.Forecast.RunsOutAt, f.now.Add(13*time.Hour))
	f.is("the month does not", month.Forecast.RunsOutAt.IsZero(), true)
	f.is("the day is not low", day.Forecast.Low, false)
	for range 10 {
		hour(0)
	}
	day, _ = quotas()
	f.is("at a slower pace it does not", day.Forecast.RunsOutAt.IsZero(), true)
	f.now = f.now.Add(40 * 24 * time.Hour)
	day, _ = quotas()
	f.is("long after", day.Forecast.Pace, provider.Pace{Over: 24 * time.Hour})
}

// lowBudgets uses quota, limit and what a host left up to their ends, by eight
// processes. Each is told to be low once in its window.
func lowBudgets(f *fixture) {
	f.now = time.Date(2026, 3, 10, 6, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		host  provider.Host
		told  provider.Rate
		quiet int // requests before it is low
		loud  int
		next  time.Duration // to the next window
	}{
		"day":      {provider.Host{Quota: provider.Quota{Day: 100}}, provider.Rate{}, 90, 10, 24 * time.Hour},
		"month":    {provider.Host{Quota: provider.Quota{Month: 100}}, provider.Rate{}, 90, 10, 31 * 24 * time.Hour},
		"limit":    {provider.Host{Limit: provider.Limit{Requests: 100, Per: 3 * time.Hour}}, provider.Rate{}, 90, 10, 7 * time.Hour},
		"reported": {provider.Host{}, provider.Rate{Limit: 100, Left: 40, Reset: 20 * time.Hour}, 30, 10, 24 * time.Hour},
	} {
		var log bytes.Buffer
		s := f.logging(slog.New(slog.NewTextHandler(&log, nil)))
		c.host.Key = name
		all := make([]provider.Allowance, processes)
		for i := range all {
			all[i] = allowance.New(s, "s", c.host)
		}
		low := func() bool {
			f.Helper()
			b, _, err := allowance.New(s, "s", c.host).State(f.Context())
			f.must(err)
			return b.Low()
		}
		for window := 1; window <= 2; window++ {
			if c.told.Reset > 0 {
				f.must(all[0].StoreReported(f.Context(), c.told))
			}
			f.is(name+": quiet", f.takeAll(all[:1], c.quiet), c.quiet)
			f.is(name+": flag", low(), false)
			f.is(name+": warnings before", strings.Count(log.String(), "budget is low"), window-1)
			for range c.loud {
				f.is(name+": loud", f.takeAll(all[window:window+1], 1), 1)
			}
			for _, a := range all {
				f.take(a)
			}
			f.is(name+": flag", low(), true)
			f.is(name+": warnings", strings.Count(log.String(), "budget is low"), window)
			f.is(name+": named", strings.Count(log.String(), "budget="+name), window)
			f.now = f.now.Add(c.next)
		}
	}
}

// shortLimits has a limit of a few minutes at its end: that is how it is used.
func shortLimits(f *fixture) {
	limit := provider.Limit{Requests: 10, Per: 5 * time.Minute}
	a := allowance.New(f.s, "s", provider.Host{Key: "h", Limit: limit})
	f.is("sent", f.takeAll([]provider.Allowance{a}, 12), 10)
	b, _, err := a.State(f.Context())
	f.must(err)
	f.is("no forecast", b.Forecast, provider.Forecast{})
	f.is("not low", b.Low(), false)
}
