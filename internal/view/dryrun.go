package view

import (
	"context"
	"errors"
	"time"

	"assay/internal/admission"
	"assay/internal/refresh"
)

// DryRun is the forecast of a refresh.
type DryRun struct {
	DryRun       bool          `json:"dryRun"`
	Forced       bool          `json:"forced"`
	TotalItems   int64         `json:"totalItems"`
	DueItems     int64         `json:"dueItems"`
	SkippedItems Skipped       `json:"skippedItems"`
	Providers    []PlannedCost `json:"providers"`
	Requests     int64         `json:"requests"`
	Seconds      float64       `json:"seconds"` // duration within the providers' limits
}

// PlannedCost is the number of requests planned for one provider, and their duration.
type PlannedCost struct {
	Provider string `json:"provider"`
	Requests int64  `json:"requests"`
	Deferred int64  `json:"deferred"` // names or files that exceed the budget
	// Background means that a run does not wait for this provider. The background fetch
	// requests deferred names between runs, within the budget.
	Background bool          `json:"background"`
	Seconds    float64       `json:"seconds"` // duration within the provider's limit, which counts requests already sent
	Hosts      []PlannedHost `json:"hosts"`   // each host has its own limits; empty if the provider is paused
}

// PlannedHost is the number of requests planned for one host of a provider. Deferred requests
// exceed one of its current budgets.
type PlannedHost struct {
	Host          string     `json:"host"` // empty if the provider has a single host
	Requests      int64      `json:"requests"`
	Deferred      int64      `json:"deferred"`
	DeferredFiles []string   `json:"deferredFiles"`
	DeferredNames int64      `json:"deferredNames"` // names with the lowest priority; only for a provider that is requested by name
	Why           *string    `json:"why"`           // limit, day, month, reported, retryAfter, background; null: nothing is deferred
	FreeAt        *time.Time `json:"freeAt"`        // earliest time at which a deferred request can be sent; null: nothing is deferred, or the background fetch sends it
	Seconds       float64    `json:"seconds"`
}

// DryRun forecasts a refresh. Concurrent callers share the result and must not change it.
func (r *JobReader) DryRun(ctx context.Context, forced bool) (DryRun, error) {
	return r.dryRuns[forced].Do(ctx, func(ctx context.Context) (DryRun, error) {
		leave, err := r.o.enter(ctx, admission.DryRun)
		if err != nil {
			return DryRun{}, err
		}
		defer leave()
		return r.forecast(ctx, forced)
	})
}

func (r *JobReader) forecast(ctx context.Context, forced bool) (DryRun, error) {
	f, err := r.o.Engine.Forecast(ctx, forced)
	if err != nil {
		return DryRun{}, err
	}
	return dryRunOf(&f, forced), nil
}

// RecentDryRun returns a forecast that is at most 15 seconds old, and its time. A forecast reads
// all items, so DryRun is too slow for a page that is opened again and again.
func (r *JobReader) RecentDryRun(ctx context.Context, forced bool) (DryRun, time.Time, error) {
	if last, at, ok := r.recent[forced].use(r.o.Now()); ok {
		return last, at, nil
	}
	return r.renewDryRun(ctx, forced, r.DryRun)
}

func (r *JobReader) renewDryRun(ctx context.Context, forced bool, read func(context.Context, bool) (DryRun, error)) (DryRun, time.Time, error) {
	now := r.o.Now()
	made, err := read(ctx, forced)
	if err != nil {
		return DryRun{}, time.Time{}, err
	}
	r.recent[forced].set(now, made)
	return made, now, nil
}

// renewDryRuns renews the forecasts that are in use and soon too old. It takes no slot of the
// admission gate, for which requests would wait.
func (r *JobReader) renewDryRuns(ctx context.Context) (err error) {
	for forced, d := range r.recent {
		if d.isDue(r.o.Now()) {
			_, _, failed := r.renewDryRun(ctx, forced, r.forecast)
			err = errors.Join(err, failed)
		}
	}
	return err
}

// dryRunOf converts a forecast to the type that the API and the page show.
func dryRunOf(f *refresh.Forecast, forced bool) DryRun {
	out := DryRun{
		DryRun: true, Forced: forced,
		TotalItems: f.Due.Due + f.Due.TTL + f.Due.NoSales, DueItems: f.Due.Due - f.Budget,
		SkippedItems: Skipped{TTL: f.Due.TTL, NoSales: f.Due.NoSales, Budget: f.Budget},
		Providers:    []PlannedCost{},
	}
	for _, s := range f.Providers {
		cost := PlannedCost{
			Provider: s.Provider, Requests: s.Requests, Deferred: s.Deferred, Background: s.Background, Seconds: s.Time.Seconds(), Hosts: []PlannedHost{},
		}
		for _, h := range s.Hosts {
			cost.Hosts = append(cost.Hosts, PlannedHost{
				Host: h.Host, Requests: h.Requests, Deferred: h.Deferred, DeferredFiles: append([]string{}, h.Files...), DeferredNames: h.Names,
				Why: text(string(h.Why)), FreeAt: when(h.FreeAt), Seconds: h.Time.Seconds(),
			})
		}
		out.Providers = append(out.Providers, cost)
		out.Requests += s.Requests
		out.Seconds = max(out.Seconds, s.Time.Seconds()) // providers are fetched concurrently
	}
	return out
}
