package provider

import (
	"sync"
	"time"
)

// breakAfter is how many failures in a row open the breaker. A failure is an
// attempt that got no whole response, or one of status 5xx.
const breakAfter = 5

// maxBreakerPause bounds the pause, which doubles with every failed probe.
const maxBreakerPause = 5 * time.Minute

// probeRetry is the wait of a call that meets a running probe.
const probeRetry = time.Second

// breaker stops requests to a provider that keeps failing, and lets one through
// from time to time to see whether it is back. Times are readings of one
// monotonic clock.
type breaker struct {
	base time.Duration // first pause; negative: there is none

	mu       sync.Mutex
	failures int           // in a row
	pause    time.Duration // length of the present pause; 0: closed
	until    time.Duration // when it ends
	probing  bool          // one request is on its way in the half-open state
}

// outcome is what an attempt shows about the provider.
type outcome uint8

const (
	neutral outcome = iota // nothing: for example, the caller cancelled the request
	answered
	failed
)

// acquire lets a request pass, maybe as the probe, or returns after how long to
// try again. An admitted call must report.
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

// report takes the outcome of an admitted request. It reports whether the
// breaker opened or closed by it.
func (b *breaker) report(now time.Duration, probe bool, o outcome) (opened, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
	switch o {
	case answered:
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

// state returns the state and how long the pause still lasts.
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
