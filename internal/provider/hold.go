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
	// say how long, or says something that nobody understands: see Options.Wait.
	DefaultWait = time.Minute
	// MaxWait is the longest order to wait that is followed: a longer one is
	// cut to it.
	MaxWait = 24 * time.Hour
)

// hold remembers until when a source wants to be left alone. It is kept as a
// reading of a monotonic clock, so that a wall clock that jumps neither ends
// nor prolongs it.
type hold struct {
	mu        sync.Mutex
	at, until time.Duration
}

// Order is an order to leave a host alone.
type Order struct {
	Wait time.Duration
	// Most, above Wait, means that the host did not say for how long: who is refused
	// again soon after such a wait waits twice as long, up to Most.
	Most time.Duration
}

// After returns how long to wait, where the host was last left alone for so long,
// until so long ago; below 0: it still is, and the order of a request that was on
// its way tells nothing new. A refusal is soon after a wait when no more time has
// passed since than it took.
func (o Order) After(last, ago time.Duration) time.Duration {
	wait := o.Wait
	if ago >= 0 && ago < last {
		wait = max(wait, min(2*last, o.Most))
	}
	return min(wait, MaxWait)
}

// extend makes the hold last as long as o orders, unless it lasts longer already,
// and returns how long it lasts now.
func (h *hold) extend(now time.Duration, o Order) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := now + o.After(h.until-h.at, now-h.until); until > h.until {
		h.at, h.until = now, until
	}
	return h.until - now
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
