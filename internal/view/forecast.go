package view

import "assay/internal/refresh"

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
