package provider

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// DefaultWait is the wait after a 429 without a valid Retry-After; see Options.Wait.
	DefaultWait = time.Minute
	// MaxWait is the longest wait. A longer Retry-After is reduced to it.
	MaxWait = 24 * time.Hour
)

// hold is the wait that a provider demands. It uses a monotonic clock, so that jumps of the
// wall clock neither end nor prolong it.
type hold struct {
	mu        sync.Mutex
	at, until time.Duration
}

// RetryAfter is a demand to stop requests to a host for a while.
type RetryAfter struct {
	Wait time.Duration
	// Most, if above Wait, means that the host did not state the wait. If the host refuses
	// again soon after the wait, the next wait doubles, up to Most.
	Most time.Duration
}

// After returns how long to wait. The previous wait lasted last and ended ago before now. A
// negative ago means that it has not ended, so the refusal belongs to an earlier request. A
// refusal is soon after a wait if ago is shorter than last.
func (o RetryAfter) After(last, ago time.Duration) time.Duration {
	wait := o.Wait
	if ago >= 0 && ago < last {
		wait = max(wait, min(2*last, o.Most))
	}
	return min(wait, MaxWait)
}

// extend prolongs the hold to the wait of o, unless it already lasts longer. It returns the
// remaining wait.
func (h *hold) extend(now time.Duration, o RetryAfter) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := now + o.After(h.until-h.at, now-h.until); until > h.until {
		h.at, h.until = now, until
	}
	return h.until - now
}

// remaining returns how long the hold lasts; 0 if there is none.
func (h *hold) remaining(now time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.until-now)
}

// retryAfter reads the Retry-After field of a response (RFC 9110, 10.2.3): seconds or a
// date. It returns a wait from 0 to MaxWait; ok is false if the field is missing or
// invalid. A date counts from the response's own Date, so that clock differences do not
// matter; without a Date it counts from wall. A past date is a wait of 0.
func retryAfter(h http.Header, wall time.Time) (wait time.Duration, ok bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if isDigits(value) {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(MaxWait/time.Second) {
			return MaxWait, true // a number out of range is a long time
		}
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	from, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		from = wall
	}
	return min(max(0, date.Sub(from)), MaxWait), true
}

func isDigits(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return s != ""
}
