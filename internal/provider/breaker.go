package provider

import (
	"sync"
	"time"
)

// breakAfter is the number of consecutive failures that opens the breaker. A failure is an
// attempt without a complete response, or with status 5xx.
const breakAfter = 5

// maxBreakerPause is the longest pause. Each failed probe doubles the pause.
const maxBreakerPause = 5 * time.Minute

// probeRetry is the wait that acquire returns while another call probes.
const probeRetry = time.Second

// breaker is a circuit breaker. It stops requests to a provider that keeps failing. After each
// pause it lets one request through as a probe. All times are readings of one monotonic clock.
type breaker struct {
	base time.Duration // first pause; negative: the breaker never opens

	mu       sync.Mutex
	failures int           // consecutive failures
	pause    time.Duration // length of the current pause; 0: closed
	until    time.Duration // end of the pause
	probing  bool          // half-open: one request is in flight
}

// outcome is what one attempt shows about the provider's health.
type outcome uint8

const (
	neutral outcome = iota // no evidence, for example because the caller cancelled the request
	responded
	failed
)

// acquire admits a request, possibly as the probe, or returns how long to wait. An admitted
// caller must call report.
func (b *breaker) acquire(now time.Duration) (probe bool, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.pause == 0:
		return false, 0
	case now < b.until:
		return false, b.until - now
	case b.probing:
		return false, probeRetry
	}
	b.probing = true
	return true, 0
}

// report records the outcome of an admitted request. It returns whether the breaker opened or
// closed.
func (b *breaker) report(now time.Duration, probe bool, o outcome) (opened, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
	switch o {
	case responded:
		closed = b.pause > 0
		b.failures, b.pause = 0, 0
	case failed:
		b.failures++
		switch {
		case probe:
			b.open(now, min(2*b.pause, maxBreakerPause))
		case b.pause == 0 && b.failures >= breakAfter && b.base > 0:
			b.open(now, b.base)
			opened = true
		}
	}
	return opened, closed
}

func (b *breaker) open(now, pause time.Duration) {
	b.pause, b.until = pause, now+pause
}

// state returns the state and the remaining pause.
func (b *breaker) state(now time.Duration) (BreakerState, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.pause == 0:
		return BreakerClosed, 0
	case now < b.until:
		return BreakerOpen, b.until - now
	default:
		return BreakerHalfOpen, 0
	}
}
