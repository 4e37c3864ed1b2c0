package provider

import "time"

// ClientState is the state of a Client, from recorded requests. Taking it sends nothing. It
// holds no secret.
type ClientState struct {
	Breaker      BreakerState
	BreakerUntil time.Time // when an open breaker admits a probe; else zero
	BlockedUntil time.Time // end of the retry-after; zero: none
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

// BreakerState is the state of a circuit breaker.
type BreakerState string

// The states of a circuit breaker.
const (
	BreakerClosed   BreakerState = "closed"   // all requests pass
	BreakerOpen     BreakerState = "open"     // no request passes
	BreakerHalfOpen BreakerState = "halfOpen" // one request at a time probes the provider
)

// Budget is what remains of the limit and the quotas.
type Budget struct {
	Limit    Limit
	Used     int            // within the current period
	Left     int            // 0 when there is no limit
	ResetsAt time.Time      // when the oldest counted request stops counting; zero: none counts
	Quotas   []QuotaUsed    // the shorter period first
	Reported *ReportedQuota // the reported quota; nil: none, or its window has ended
	Forecast Forecast       // for a limit whose period exceeds an hour; else zero
}

// QuotaUsed is the use of one quota.
type QuotaUsed struct {
	Period   Period
	Limit    int64
	Used     int64
	Left     int64
	ResetsAt time.Time // when the period ends
	Forecast Forecast
}

// Latency summarises how long recent attempts took, bodies included; zero without any.
type Latency struct {
	P50, P95, P99 time.Duration
}

// Sent is one request that was sent.
type Sent struct {
	Time     time.Time
	Method   string
	Host     string
	Path     string // secrets masked; of the query only its keys
	Status   int    // 0: no response
	Duration time.Duration
	Bytes    int64     // of the response body, before inflating
	Attempt  int       // 1 is the first
	Kind     Kind      // how it failed; empty: it succeeded
	TLS      bool      // sent over https
	Date     time.Time // Date header of the response; zero: missing
}
