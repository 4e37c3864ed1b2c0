package provider

import "time"

// ClientState is the state of a Client, from recorded requests:
// taking it sends nothing. It holds no secret.
type ClientState struct {
	Breaker      BreakerState
	BreakerUntil time.Time // Open: when one request is let through to probe; else zero
	BlockedUntil time.Time // the provider demands a wait until then; zero: it does not
	Budget       Budget
	Latency      Latency
	Took         Histogram
	Answers      map[int]int64 // attempts by status; 0: no response
	Requests     []Sent        // the last 50, newest first
	LastSuccess  time.Time     // zero: none yet
	LastError    string        // empty: none yet
	LastErrorAt  time.Time

	latencies []time.Duration // behind Latency
}

// BreakerState is whether the breaker lets requests through.
type BreakerState string

// The states of the breaker.
const (
	BreakerClosed   BreakerState = "closed"   // all requests pass
	BreakerOpen     BreakerState = "open"     // none does
	BreakerHalfOpen BreakerState = "halfOpen" // one at a time probes whether the provider is back
)

// Budget is what the limit and the quotas leave.
type Budget struct {
	Limit    Limit
	Used     int            // within the period that ends now
	Left     int            // 0 when there is no limit
	ResetsAt time.Time      // when the oldest of the used requests stops counting; zero: none is used
	Quotas   []QuotaUsed    // the shorter period first; empty without a quota
	Reported *ReportedQuota // the reported quota; nil: none, or its window has ended
	Forecast Forecast       // of a limit that lasts longer than an hour; else zero
}

// QuotaUsed is what is used of a quota.
type QuotaUsed struct {
	Period   Period
	Limit    int64
	Used     int64
	Left     int64
	ResetsAt time.Time // when the period ends
	Forecast Forecast
}

// Latency summarises how long the last attempts took, bodies included; zero
// without any.
type Latency struct {
	P50, P95, P99 time.Duration
}

// Sent is one request that went out.
type Sent struct {
	Time     time.Time
	Method   string
	Host     string
	Path     string // secrets masked, the query reduced to its keys
	Status   int    // 0: no response
	Duration time.Duration
	Bytes    int64     // of the response's body, before inflating
	Attempt  int       // 1 is the first
	Kind     Kind      // how it failed; empty: it did not
	TLS      bool      // it was queried over https
	Date     time.Time // of the response, by its own clock; zero: not reported
}
