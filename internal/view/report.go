package view

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"assay/internal/provider"
	"assay/internal/refresh"
)

// SourceInstance is what one instance knows of a source, by its own requests
// since it started.
type SourceInstance struct {
	Owner     string `json:"owner"`
	Answering bool   `json:"answering"` // it served this request
	SourceReport
}

// SourceReport is an instance's report of a provider, published with its heartbeat.
// It holds no address, no text of an answer and no secret.
type SourceReport struct {
	Requests        int64            `json:"requests"` // that it sent
	Breaker         string           `json:"breaker"`  // closed, open, halfOpen
	BlockedUntil    *time.Time       `json:"blockedUntil"`
	LastSuccess     *time.Time       `json:"lastSuccess"`
	LastErrorAt     *time.Time       `json:"lastErrorAt"`
	LatencyMs       Latency          `json:"latencyMs"`
	AnswersByStatus map[string]int64 `json:"answersByStatus"`
	// OpenHosts are those of the source's hosts whose breaker is not closed: twenty
	// at most.
	OpenHosts []string `json:"openHosts"`
}

// maxOpenHosts bounds a report.
const maxOpenHosts = 20

// Report returns the report of an instance with these clients, by provider.
func Report(sources map[string]provider.Clients) string {
	all := make(map[string]SourceReport, len(sources))
	for source, clients := range sources {
		all[source] = sourceReport(clients)
	}
	text, _ := json.Marshal(all) // of such types it never fails
	return string(text)
}

func sourceReport(clients provider.Clients) SourceReport {
	hosts := clients.Snapshot()
	c := provider.Summary(hosts)
	r := SourceReport{
		Breaker: string(c.Breaker), BlockedUntil: when(c.BlockedUntil), LastSuccess: when(c.LastSuccess), LastErrorAt: when(c.LastErrorAt),
		LatencyMs: latency(c.Latency), AnswersByStatus: answers(c.Answers), OpenHosts: []string{},
	}
	for _, n := range c.Answers {
		r.Requests += n
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		if hosts[host].Breaker != provider.BreakerClosed && len(r.OpenHosts) < maxOpenHosts {
			r.OpenHosts = append(r.OpenHosts, host)
		}
	}
	return r
}

// sourceInstance returns what an instance reports of a provider: the one that answers
// as it is now, another one as of its last beat.
func (r *Reader) sourceInstance(i refresh.Instance, source string) SourceInstance {
	out := SourceInstance{Owner: i.Owner, Answering: i.Owner == r.o.Owner}
	if out.Answering {
		out.SourceReport = sourceReport(r.o.Clients[source])
		return out
	}
	var all map[string]SourceReport
	_ = json.Unmarshal([]byte(i.Report), &all) // another version may report other fields
	out.SourceReport = all[source]
	if out.Breaker == "" {
		out.Breaker, out.AnswersByStatus, out.OpenHosts = string(provider.BreakerClosed), map[string]int64{}, []string{}
	}
	return out
}
