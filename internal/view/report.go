package view

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"assay/internal/provider"
	"assay/internal/refresh"
)

// ProviderInstance is what one instance knows of a provider, by its own requests
// since it started.
type ProviderInstance struct {
	Owner     string `json:"owner"`
	Answering bool   `json:"answering"` // it serves this request
	ProviderReport
}

// ProviderReport is an instance's report of a provider, published with its heartbeat.
// It holds no address, no response and no secret.
type ProviderReport struct {
	Requests          int64            `json:"requests"` // that it sent
	Breaker           string           `json:"breaker"`  // closed, open, halfOpen
	BlockedUntil      *time.Time       `json:"blockedUntil"`
	LastSuccess       *time.Time       `json:"lastSuccess"`
	LastErrorAt       *time.Time       `json:"lastErrorAt"`
	LatencyMs         Latency          `json:"latencyMs"`
	ResponsesByStatus map[string]int64 `json:"responsesByStatus"`
	// OpenHosts are those of the provider's hosts whose breaker is not closed: twenty
	// at most.
	OpenHosts []string `json:"openHosts"`
}

// maxOpenHosts bounds a report.
const maxOpenHosts = 20

// Report returns the report of an instance with these clients, by provider.
func Report(providers map[string]provider.Clients) string {
	all := make(map[string]ProviderReport, len(providers))
	for provider, clients := range providers {
		all[provider] = providerReport(clients)
	}
	text, _ := json.Marshal(all) // of such types it never fails
	return string(text)
}

func providerReport(clients provider.Clients) ProviderReport {
	hosts := clients.Snapshot()
	c := provider.Summary(hosts)
	r := ProviderReport{
		Breaker: string(c.Breaker), BlockedUntil: when(c.BlockedUntil), LastSuccess: when(c.LastSuccess), LastErrorAt: when(c.LastErrorAt),
		LatencyMs: latency(c.Latency), ResponsesByStatus: answers(c.Statuses), OpenHosts: []string{},
	}
	for _, n := range c.Statuses {
		r.Requests += n
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		if hosts[host].Breaker != provider.BreakerClosed && len(r.OpenHosts) < maxOpenHosts {
			r.OpenHosts = append(r.OpenHosts, host)
		}
	}
	return r
}

// providerInstance returns what an instance reports of a provider: this process now,
// another one as of its last heartbeat.
func (r *ProviderReader) providerInstance(i refresh.Instance, p string) ProviderInstance {
	out := ProviderInstance{Owner: i.Owner, Answering: i.Owner == r.o.Owner}
	if out.Answering {
		out.ProviderReport = providerReport(r.o.Clients[p])
		return out
	}
	var all map[string]ProviderReport
	_ = json.Unmarshal([]byte(i.Report), &all) // another version may report other fields
	out.ProviderReport = all[p]
	if out.Breaker == "" {
		out.Breaker, out.ResponsesByStatus, out.OpenHosts = string(provider.BreakerClosed), map[string]int64{}, []string{}
	}
	return out
}
