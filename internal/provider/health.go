package provider

// Health is the condition of a provider, derived from its most recent fetches.
type Health string

// The health values.
const (
	HealthUnknown  Health = "unknown"  // no fetch yet
	HealthHealthy  Health = "healthy"  // the most recent fetch of each file succeeded
	HealthDegraded Health = "degraded" // some fetches fail, or a market is quarantined
	HealthDown     Health = "down"     // all fetches fail
)

// Healths returns all values.
func Healths() []Health { return []Health{HealthUnknown, HealthHealthy, HealthDegraded, HealthDown} }

// downAfter is the number of consecutive failures after which a provider is down. A provider
// without any success is down after the first failure.
const downAfter = 2

// Record summarises the recent fetches of one file. For a provider without files, it
// summarises the recent requests.
type Record struct {
	Failures  int64 // consecutive failures since the last success
	Succeeded bool  // at least one success so far
}

// Health returns the health of one file.
func (r Record) Health() Health {
	switch {
	case r.Failures == 0 && !r.Succeeded:
		return HealthUnknown
	case r.Failures == 0:
		return HealthHealthy
	case r.Failures >= downAfter || !r.Succeeded:
		return HealthDown
	}
	return HealthDegraded
}

// HealthOf returns the health of a provider. Files without a fetch do not count. The provider
// is down if all records are down or its circuit breaker is open. It is degraded if a record
// is not healthy, a market is quarantined, or the breaker is half-open.
func HealthOf(records []Record, breaker BreakerState, quarantined bool) Health {
	counts := map[Health]int{}
	for _, r := range records {
		counts[r.Health()]++
	}
	fetched := len(records) - counts[HealthUnknown]
	switch {
	case breaker == BreakerOpen, fetched > 0 && counts[HealthDown] == fetched:
		return HealthDown
	case quarantined, breaker == BreakerHalfOpen, counts[HealthDown]+counts[HealthDegraded] > 0:
		return HealthDegraded
	case fetched == 0:
		return HealthUnknown
	}
	return HealthHealthy
}
