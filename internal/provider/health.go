package provider

// Health is the condition of a provider, by how its last fetches ended.
type Health string

// The healths.
const (
	HealthUnknown  Health = "unknown"  // nothing has been fetched yet
	HealthHealthy  Health = "healthy"  // the last fetch of everything succeeded
	HealthDegraded Health = "degraded" // some of it fails, or is quarantined
	HealthDown     Health = "down"     // all of it fails
)

// Healths returns all of them.
func Healths() []Health { return []Health{HealthUnknown, HealthHealthy, HealthDegraded, HealthDown} }

// downAfter is after how many failed fetches in a row something is down. One that
// never succeeded is down after the first.
const downAfter = 2

// Record is how the last fetches of one file ended or, of a provider that is
// queried by name, the last requests for names.
type Record struct {
	Failures  int64 // in a row, up to now
	Succeeded bool  // at least once, ever
}

// Health returns the health of what the record is of.
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

// HealthOf returns the health of a provider: down if all that was fetched is down, or
// if its circuit breaker is open; degraded if some of it is not healthy, if one of its
// markets is quarantined, or if its breaker lets a probe through. This is the only
// place where that is decided.
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
