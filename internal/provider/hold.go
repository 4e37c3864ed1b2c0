package provider

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// DefaultWait is how long a source is left alone after a 429 that does not
	// say how long, or says something that nobody understands.
	DefaultWait = time.Minute
	// MaxWait is the longest order to wait that is followed: a longer one is
	// cut to it.
	MaxWait = 24 * time.Hour
)

// hold remembers until when a source wants to be left alone. It is kept as a
// reading of a monotonic clock, so that a wall clock that jumps neither ends
// nor prolongs it.
type hold struct {
	mu    sync.Mutex
	until time.Duration
}

// extend makes the hold last until now+wait, unless it lasts longer already.
func (h *hold) extend(now, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = max(h.until, now+min(wait, MaxWait))
}

// remaining tells for how long the hold still lasts; 0: there is none.
func (h *hold) remaining(now time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.until-now)
}

// retryAfter reads the Retry-After field of an answer (RFC 9110, 10.2.3):
// seconds, or a date. ok is false where it is missing or makes no sense;
// otherwise wait is within 0 and MaxWait. A date counts from the answer's own
// Date, so that a clock that differs from ours does not matter; without one it
// counts from wall, our own time. A date in the past is an order to wait 0.
func retryAfter(h http.Header, wall time.Time) (wait time.Duration, ok bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if isDigits(value) {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(MaxWait/time.Second) {
			return MaxWait, true // too many digits are a long time, too
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
