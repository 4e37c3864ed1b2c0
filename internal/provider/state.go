package provider

import "time"

// ClientState is the state of a Client, computed from recorded requests. It contains no
// secrets.
type ClientState struct {
	Breaker      BreakerState
	BreakerUntil time.Time // end of the breaker's pause; zero unless the breaker is open
	BlockedUntil time.Time // end of the retry-after; zero: none
	Budget       Budget
	Latency      Latency
	Took         Histogram
	Statuses     map[int]int64 // number of attempts by status; 0: no response
	Requests     []Sent        // the last 50, newest first
	LastSuccess  time.Time     // zero: none yet
	LastError    string        // empty: none yet
	LastErrorAt  time.Time

	latencies []time.Duration // source of Latency
}

// BreakerState is the state of a circuit breaker.
type BreakerState string

// The states of a circuit breaker.
const (
	BreakerClosed   BreakerState = "closed"   // all requests are sent
	BreakerOpen     BreakerState = "open"     // no requests are sent
	BreakerHalfOpen BreakerState = "halfOpen" // one request at a time is sent as a probe
)

// Budget is the use of the limit and the quotas of a host.
type Budget struct {
	Limit    Limit
	Used     int            // requests within the current period
	Left     int            // 0 without a limit
	ResetsAt time.Time      // when the oldest counted request stops counting; zero: no request is counted
	Quotas   []QuotaUsed    // shortest period first
	Reported *ReportedQuota // nil: no reported quota, or its window has ended
	Forecast Forecast       // for a limit with a period longer than an hour; else zero
}

// QuotaUsed is the use of one quota.
type QuotaUsed struct {
	Period   Period
	Limit    int64
	Used     int64
	Left     int64
	ResetsAt time.Time // end of the period
	Forecast Forecast
}

// Latency summarises the duration of recent attempts, including bodies. It is zero without
// attempts.
type Latency struct {
	P50, P95, P99 time.Duration
}

// Sent describes one request that was sent.
type Sent struct {
	Time     time.Time
	Method   string
	Host     string
	Path     string // secrets masked; includes the query keys but not their values
	Status   int    // 0: no response
	Duration time.Duration
	Bytes    int64     // size of the response body before decompression
	Attempt  int       // starts at 1
	Kind     Kind      // kind of failure; empty: success
	TLS      bool      // sent over https
	Date     time.Time // Date header of the response; zero: missing
}
