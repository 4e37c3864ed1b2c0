package provider

// Health is the condition of a provider, from its most recent fetches.
type Health string

// The health values.
const (
	HealthUnknown  Health = "unknown"  // nothing has been fetched yet
	HealthHealthy  Health = "healthy"  // the most recent fetch of each file succeeded
	HealthDegraded Health = "degraded" // some fetches fail, or a market is quarantined
	HealthDown     Health = "down"     // all fetches fail
)

// Healths returns all values.
func Healths() []Health { return []Health{HealthUnknown, HealthHealthy, HealthDegraded, HealthDown} }

// downAfter is how many consecutive failures make a provider down. One that never succeeded
// is down after the first.
const downAfter = 2

// Record summarises the recent fetches of one file or, for a provider queried by name, its
// recent requests.
type Record struct {
	Failures  int64 // consecutive, most recent
	Succeeded bool  // at least once, ever
}

// Health returns the health that the record shows.
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

// HealthOf returns the health of a provider. It is down if all records are down or its
// circuit breaker is open. It is degraded if some record is not healthy, a market is
// quarantined, or the breaker is half-open. All callers use this one rule.
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
