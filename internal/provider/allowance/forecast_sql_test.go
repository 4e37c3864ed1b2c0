package allowance_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/event"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
)

// The test sends requests at a steady pace and checks when the quotas run out.
func TestState_ForecastsEndOfQuota(t *testing.T) {
	each(t, func(f *fixture) {
		f.Now = time.Date(2026, 3, 10, 6, 0, 0, 0, time.UTC)
		host := provider.Host{Key: "h", Quota: provider.Quota{Day: 150, Month: 10_000}}
		a := allowance.New(f.DB, "s", host)
		quotas := func() (day, month provider.QuotaUsed) {
			f.Helper()
			b, _, err := a.State(f.Context())
			f.Must(err)
			return b.Quotas[0], b.Quotas[1]
		}
		hour := func(n int) {
			f.Helper()
			f.Is("sent requests", f.takeAll([]provider.Allowance{a}, n), n)
			f.Now = f.Now.Add(time.Hour)
		}
		day, _ := quotas()
		f.Is("forecast before the first request", day.Forecast, provider.Forecast{Pace: provider.Pace{Over: 24 * time.Hour}})
		hour(10)
		hour(10)
		day, month := quotas() // the pace covers the two hours with requests
		f.Is("pace of the day quota", day.Forecast.Pace, provider.Pace{Requests: 20, Over: 2 * time.Hour})
		f.Is("time when the day quota runs out", day.Forecast.RunsOutAt, f.Now.Add(13*time.Hour))
		f.Is("the month quota does not run out", month.Forecast.RunsOutAt.IsZero(), true)
		f.Is("the day quota is low", day.Forecast.Low, false)
		for range 10 {
			hour(0)
		}
		day, _ = quotas()
		f.Is("the day quota does not run out at a slower pace", day.Forecast.RunsOutAt.IsZero(), true)
		f.Now = f.Now.Add(40 * 24 * time.Hour)
		day, _ = quotas()
		f.Is("pace 40 days later", day.Forecast.Pace, provider.Pace{Over: 24 * time.Hour})
	})
}

// Eight processes use up a quota, a limit and a reported quota. Each low budget is logged once
// per window.
func TestTake_LogsLowBudgetOncePerWindow(t *testing.T) {
	each(t, func(f *fixture) {
		f.Now = time.Date(2026, 3, 10, 6, 0, 0, 0, time.UTC)
		for name, c := range map[string]struct {
			host     provider.Host
			reported provider.Rate
			normal   int           // requests before the budget is low
			low      int           // requests while the budget is low
			next     time.Duration // time until the next window
		}{
			"day":      {provider.Host{Quota: provider.Quota{Day: 100}}, provider.Rate{}, 90, 10, 24 * time.Hour},
			"month":    {provider.Host{Quota: provider.Quota{Month: 100}}, provider.Rate{}, 90, 10, 31 * 24 * time.Hour},
			"limit":    {provider.Host{Limit: provider.Limit{Requests: 100, Per: 3 * time.Hour}}, provider.Rate{}, 90, 10, 7 * time.Hour},
			"reported": {provider.Host{}, provider.Rate{Limit: 100, Left: 40, Reset: 20 * time.Hour}, 30, 10, 24 * time.Hour},
		} {
			f.Logged.Reset()
			c.host.Key = name
			all := make([]provider.Allowance, processes)
			for i := range all {
				all[i] = allowance.New(f.DB, "s", c.host)
			}
			isLow := func() bool {
				f.Helper()
				b, _, err := allowance.New(f.DB, "s", c.host).State(f.Context())
				f.Must(err)
				return b.Low()
			}
			for window := 1; window <= 2; window++ {
				if c.reported.Reset > 0 {
					f.Must(all[0].StoreReported(f.Context(), c.reported))
				}
				f.Is(name+": normal requests", f.takeAll(all[:1], c.normal), c.normal)
				f.Is(name+": the budget is low after normal requests", isLow(), false)
				f.Is(name+": earlier warnings", strings.Count(f.Logged.String(), `msg="budget low"`), window-1)
				for range c.low {
					f.Is(name+": sent requests when the budget is low", f.takeAll(all[window:window+1], 1), 1)
				}
				for _, a := range all {
					f.take(a)
				}
				f.Is(name+": the budget is low", isLow(), true)
				f.Is(name+": number of warnings", strings.Count(f.Logged.String(), `msg="budget low"`), window)
				f.Is(name+": warnings with the budget", strings.Count(f.Logged.String(), "budget="+name), window)
				f.Now = f.Now.Add(c.next)
			}
		}
	})
}

// A limit of a few minutes is often used up, so it has no forecast.
func TestState_ShortLimitHasNoForecast(t *testing.T) {
	each(t, func(f *fixture) {
		limit := provider.Limit{Requests: 10, Per: 5 * time.Minute}
		a := allowance.New(f.DB, "s", provider.Host{Key: "h", Limit: limit})
		f.Is("sent requests", f.takeAll([]provider.Allowance{a}, 12), 10)
		b, _, err := a.State(f.Context())
		f.Must(err)
		f.Is("forecast of a short limit", b.Forecast, provider.Forecast{})
		f.Is("the short limit is low", b.Low(), false)
	})
}

// Many processes detect the same low budget at the same time.
func TestTake_LowBudgetAddsOneEvent(t *testing.T) {
	each(t, func(f *fixture) {
		f.Now = time.Date(2026, 3, 10, 6, 0, 0, 0, time.UTC)
		host := provider.Host{Key: "h", Quota: provider.Quota{Day: 100}}
		f.Is("sent requests", f.takeAll([]provider.Allowance{allowance.New(f.DB, "s", host)}, 90), 90)
		f.Is("events before the budget is low", len(f.events()), 0)
		var wg sync.WaitGroup
		for range processes {
			wg.Go(func() {
				if _, err := allowance.New(f.DB, "s", host).Take(f.Context()); err != nil {
					f.Errorf("got error %v, want none", err)
				}
			})
		}
		wg.Wait()
		f.take(allowance.New(f.DB, "s", host))
		events := f.events()
		f.Is("number of events", len(events), 1)
		resets := time.Date(2026, 3, 11, 0, 0, 0, 0, time.UTC)
		stored, err := event.List(f.Context(), f.DB, 1)
		f.Must(err)
		f.Is("kind of the event", stored[0].Kind, event.BudgetIsLow)
		for _, part := range []string{`"provider":"s","host":"h","budget":"day"`, `"limit":100`, fmt.Sprintf(`"resetsAt":%q`, resets.Format(time.RFC3339))} {
			f.Is(part, strings.Contains(events[0], part), true)
		}
	})
}

// events returns the events as "kind data", newest first.
func (f *fixture) events() []string {
	f.Helper()
	events, err := event.List(f.Context(), f.DB, 1000)
	f.Must(err)
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = fmt.Sprintf("%s %s", e.Kind, e.Data)
	}
	return out
}
