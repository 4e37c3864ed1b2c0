package provider

import (
	"maps"
	"math"
	"slices"
)

// Clients holds the clients of a provider by host key.
type Clients map[string]*Client

// Snapshot returns the recorded state of each host. It sends no requests.
func (c Clients) Snapshot() map[string]ClientState {
	out := make(map[string]ClientState, len(c))
	for host, client := range c {
		out[host] = client.Snapshot()
	}
	return out
}

// Summary combines the states of several hosts into one. It adds up the counts. Breaker,
// retry-after and budget each come from the least restricted host. The provider therefore
// counts as blocked only if all its hosts are blocked.
func Summary(hosts map[string]ClientState) ClientState {
	keys := slices.Sorted(maps.Keys(hosts))
	if len(keys) == 0 {
		return ClientState{Breaker: BreakerClosed}
	}
	sum := hosts[keys[0]]
	sum.Statuses = maps.Clone(sum.Statuses)
	for _, key := range keys[1:] {
		sum.add(hosts[key])
	}
	slices.SortStableFunc(sum.Requests, func(a, b Sent) int { return b.Time.Compare(a.Time) })
	sum.Requests = sum.Requests[:min(len(sum.Requests), recordedRequests)]
	sum.Latency = percentiles(sum.latencies)
	return sum
}

func (s *ClientState) add(o ClientState) {
	for status, n := range o.Statuses {
		s.Statuses[status] += n
	}
	s.Requests = slices.Concat(s.Requests, o.Requests)
	s.latencies = slices.Concat(s.latencies, o.latencies)
	if o.LastSuccess.After(s.LastSuccess) {
		s.LastSuccess = o.LastSuccess
	}
	if o.LastErrorAt.After(s.LastErrorAt) {
		s.LastError, s.LastErrorAt = o.LastError, o.LastErrorAt
	}
	if o.BlockedUntil.Before(s.BlockedUntil) {
		s.BlockedUntil = o.BlockedUntil
	}
	if o.Breaker.rank() < s.Breaker.rank() || (o.Breaker == s.Breaker && o.BreakerUntil.Before(s.BreakerUntil)) {
		s.Breaker, s.BreakerUntil = o.Breaker, o.BreakerUntil
	}
	if o.Budget.remaining() > s.Budget.remaining() {
		s.Budget = o.Budget
	}
}

// rank returns the position of a breaker state, ordered from most to fewest admitted requests.
func (b BreakerState) rank() int {
	return slices.Index([]BreakerState{BreakerClosed, BreakerHalfOpen, BreakerOpen}, b)
}

// remaining returns how many requests a budget still allows. It considers the limit, the quotas
// and the reported quota. Without any of them it returns the largest number.
func (b Budget) remaining() int64 {
	left := int64(math.MaxInt64)
	if !b.Limit.None() {
		left = int64(b.Left)
	}
	for _, q := range b.Quotas {
		left = min(left, q.Left)
	}
	if b.Reported != nil {
		left = min(left, b.Reported.Left)
	}
	return left
}
