package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/refresh"
	"assay/internal/view"
)

// described is a provider whose Fetch is never called.
type described struct{ provider.Description }

func (d described) Describe() provider.Description { return d.Description }

func (d described) Fetch(context.Context, provider.Call, provider.Sink) (provider.Result, error) {
	return provider.Result{}, nil
}

func TestDebug_ShowsBudgetCountsAndForecast(t *testing.T) {
	w := newWorld(t, false)
	w.now = time.Date(2026, 3, 10, 6, 0, 0, 0, time.UTC)
	host := provider.Host{Quota: provider.Quota{Day: 20}, Headers: provider.HeadersOfDay}
	client := provider.NewClient(provider.Options{Provider: "sim"})
	t.Cleanup(client.Close)
	readers := view.New(view.Options{
		Store: w.store, Currency: "USD", Now: func() time.Time { return w.now },
		Providers: []provider.Provider{described{provider.Description{Name: "sim", Hosts: []provider.Host{host}}}},
		Clients:   map[string]provider.Clients{"sim": {"": client}},
	})
	a := allowance.New(w.store, "sim", host)
	for range 12 {
		_, err := a.Take(t.Context())
		w.must(err)
	}
	w.must(a.StoreReported(t.Context(), provider.Rate{Limit: 20, Left: 1, Reset: 12 * time.Hour}))
	debug, err := readers.Providers.ProviderDebug(t.Context())
	w.must(err)
	b := debug.Providers[0].Budget
	q := b.Quotas[0]
	if q.Used != 12 || q.Left != 8 || q.Low || q.Pace.Requests != 12 || q.Pace.Seconds != 3600 || !q.RunsOutAt.Equal(w.now.Add(40*time.Minute)) {
		t.Errorf("counted quota: got %+v, pace %+v, runs out at %v, want 12 used, 8 left, empty in 40 minutes", q, q.Pace, q.RunsOutAt)
	}
	reported := b.Reported
	if *reported.Period != "day" || *reported.Limit != 20 || reported.Left != 1 || !reported.Low || !reported.RunsOutAt.Equal(w.now.Add(5*time.Minute)) || !reported.ReportedAt.Equal(w.now) {
		t.Errorf("reported quota: got %+v, runs out at %v, want 1 of 20 a day left, empty in 5 minutes", reported, reported.RunsOutAt)
	}
	if !b.Low || b.Pace != nil || b.RunsOutAt != nil {
		t.Errorf("budget: got %+v, want it low, without a pace and an end", b)
	}
}

func TestDebug_ShowsAllInstancesAndTheirClaims(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	sim := refresh.Endpoint{Provider: "sim", File: "f"}
	reported := view.ProviderReport{Requests: 7, Breaker: "open", LatencyMs: view.Latency{P50: 1.5}, ResponsesByStatus: map[string]int64{"500": 7}, OpenHosts: []string{"h"}}
	report, err := json.Marshal(map[string]view.ProviderReport{"sim": reported})
	w.must(err)
	w.tx(func(tx *db.Tx) error {
		for n, asks := range [][]refresh.Endpoint{{sim, {Provider: "sim", File: "g"}}, {sim, {Provider: "list"}}} {
			i := refresh.Instance{Owner: fmt.Sprint("host-", n), Version: "v1", Endpoints: asks, StartedAt: w.now.Add(time.Duration(n) * time.Second), Report: string(report)}
			if err := refresh.Register(tx, i); err != nil {
				return err
			}
		}
		id, _, err := refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk})
		if err != nil {
			return err
		}
		if err := refresh.InsertUnits(tx, []refresh.FetchUnit{{JobID: id, Provider: "sim", AppID: catalog.CS2, File: "f", State: refresh.UnitPending}}); err != nil {
			return err
		}
		_, err = refresh.ClaimUnit(tx, refresh.Claim{Provider: "sim", Owner: "host-1"})
		return err
	})
	readers := view.New(view.Options{
		Store: w.store, Owner: "host-0", Currency: "USD", Now: func() time.Time { return w.now },
		Providers: []provider.Provider{described{provider.Description{Name: "sim"}}},
		Scheduled: func() map[string]time.Time { return nil },
	})
	jobs, err := readers.Jobs.JobDebug(t.Context())
	w.must(err)
	for n, i := range jobs.Instances {
		i.HeartbeatAt = nil
		want := []view.Instance{
			{Owner: "host-0", Version: "v1", ServesRequest: true, StartedAt: w.now, Providers: []string{"sim"}},
			{Owner: "host-1", Version: "v1", StartedAt: w.now.Add(time.Second), Providers: []string{"list", "sim"}, Working: 1},
		}[n]
		if fmt.Sprint(i) != fmt.Sprint(want) {
			t.Errorf("instance: got %+v, want %+v", i, want)
		}
	}
	work := []view.Claim{{Owner: "host-1", Kind: "fetch", Work: "sim f", Since: w.now, Token: 1, Provider: "sim"}}
	if fmt.Sprint(jobs.Workers) != fmt.Sprint(work) {
		t.Errorf("workers of all jobs: got %+v, want %+v", jobs.Workers, work)
	}
	providers, err := readers.Providers.ProviderDebug(t.Context())
	w.must(err)
	s := providers.Providers[0]
	if fmt.Sprint(s.Workers) != fmt.Sprint(work) {
		t.Errorf("workers of the provider: got %+v, want %+v", s.Workers, work)
	}
	want := []view.ProviderInstance{
		{Owner: "host-0", ServesRequest: true, ProviderReport: view.ProviderReport{Breaker: "closed", ResponsesByStatus: map[string]int64{}, OpenHosts: []string{}}},
		{Owner: "host-1", ProviderReport: reported},
	}
	if fmt.Sprint(s.Instances) != fmt.Sprint(want) {
		t.Errorf("instances of the provider: got %+v, want %+v", s.Instances, want)
	}
}

func TestDebug_ShowsTheNewestEvents(t *testing.T) {
	w := newWorld(t, false)
	w.tx(func(tx *db.Tx) error {
		for n := range 60 {
			if err := event.Add(tx, event.BudgetLow{Provider: "sim", Budget: "day", Left: int64(n), Limit: 1000}); err != nil {
				return err
			}
		}
		return nil
	})
	debug, err := view.New(view.Options{
		Store: w.store, Now: func() time.Time { return w.now }, Scheduled: func() map[string]time.Time { return nil },
	}).Jobs.JobDebug(t.Context())
	w.must(err)
	if len(debug.Events) != 50 {
		t.Fatalf("got %d events, want 50", len(debug.Events))
	}
	e := debug.Events[0]
	var data event.BudgetLow
	w.must(json.Unmarshal(e.Data, &data))
	if e.ID != "60" || e.Kind != "budget.low" || !e.At.Equal(w.now) || data.Left != 59 {
		t.Errorf("newest event: got %+v with the data %+v, want number 60, with 59 left", e, data)
	}
}
