package view

import (
	"time"

	"assay/internal/refresh"
)

// DryRun is what a refresh would do.
type DryRun struct {
	DryRun       bool          `json:"dryRun"`
	Forced       bool          `json:"forced"`
	TotalItems   int64         `json:"totalItems"`
	DueItems     int64         `json:"dueItems"`
	SkippedItems Skipped       `json:"skippedItems"`
	Providers    []PlannedCost `json:"providers"`
	Requests     int64         `json:"requests"`
	Seconds      float64       `json:"seconds"` // at the providers' limits
}

// PlannedCost is the planned requests of one provider.
type PlannedCost struct {
	Provider string `json:"provider"`
	Requests int64  `json:"requests"`
	Deferred int64  `json:"deferred"` // more, which would be deferred
	// Background means that no run waits for the provider: deferred names are fetched
	// between runs, as its budget allows.
	Background bool          `json:"background"`
	Seconds    float64       `json:"seconds"` // at its limit, after what counts already
	Hosts      []PlannedHost `json:"hosts"`   // each has limits of its own; none of a paused provider
}

// PlannedHost is the planned requests of one host of a provider. Deferred
// requests exceed one of its budgets now.
type PlannedHost struct {
	Host          string     `json:"host"` // empty where the provider has one
	Requests      int64      `json:"requests"`
	Deferred      int64      `json:"deferred"`
	DeferredFiles []string   `json:"deferredFiles"`
	DeferredNames int64      `json:"deferredNames"` // of a provider that is requested by name: those of the lowest priority
	Why           *string    `json:"why"`           // limit, day, month, reported, hold, background; null: nothing is deferred
	FreeAt        *time.Time `json:"freeAt"`        // when some of it can be requested; null: nothing is deferred, or it is fetched between runs
	Seconds       float64    `json:"seconds"`
}

// DryRunOf returns a forecast as API and page show it.
func DryRunOf(f *refresh.Forecast, forced bool) DryRun {
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
		out.Seconds = max(out.Seconds, s.Time.Seconds()) // providers are fetched side by side
	}
	return out
}
