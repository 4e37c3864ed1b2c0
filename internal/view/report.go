package view

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"assay/internal/provider"
	"assay/internal/refresh"
)

// ProviderInstance is the state of a provider on one instance, based on the requests that the
// instance has sent since its start.
type ProviderInstance struct {
	Owner         string `json:"owner"`
	ServesRequest bool   `json:"servesRequest"` // this instance serves the request
	ProviderReport
}

// ProviderReport is an instance's report about a provider, published with its heartbeat. It
// contains no addresses, responses or secrets.
type ProviderReport struct {
	Requests          int64            `json:"requests"` // sent by this instance
	Breaker           string           `json:"breaker"`  // closed, open or halfOpen
	BlockedUntil      *time.Time       `json:"blockedUntil"`
	LastSuccess       *time.Time       `json:"lastSuccess"`
	LastErrorAt       *time.Time       `json:"lastErrorAt"`
	LatencyMs         Latency          `json:"latencyMs"`
	ResponsesByStatus map[string]int64 `json:"responsesByStatus"`
	// OpenHosts lists up to twenty hosts of the provider whose breaker is not closed.
	OpenHosts []string `json:"openHosts"`
}

// maxOpenHosts limits the size of a report.
const maxOpenHosts = 20

// Report returns the reports of an instance for all its providers, as JSON.
func Report(providers map[string]provider.Clients) string {
	all := make(map[string]ProviderReport, len(providers))
	for provider, clients := range providers {
		all[provider] = providerReport(clients)
	}
	text, _ := json.Marshal(all) // marshalling these types never fails
	return string(text)
}

func providerReport(clients provider.Clients) ProviderReport {
	hosts := clients.Snapshot()
	c := provider.Summary(hosts)
	r := ProviderReport{
		Breaker: string(c.Breaker), BlockedUntil: when(c.BlockedUntil), LastSuccess: when(c.LastSuccess), LastErrorAt: when(c.LastErrorAt),
		LatencyMs: latency(c.Latency), ResponsesByStatus: statusCounts(c.Statuses), OpenHosts: []string{},
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

// providerInstance returns the state of a provider on an instance. For this process it is
// current. For others it is from the last heartbeat.
func (r *ProviderReader) providerInstance(i refresh.Instance, p string) ProviderInstance {
	out := ProviderInstance{Owner: i.Owner, ServesRequest: i.Owner == r.o.Owner}
	if out.ServesRequest {
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
