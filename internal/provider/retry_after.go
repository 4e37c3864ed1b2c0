package provider

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// DefaultWait is the wait after a 429 without a valid Retry-After header; see
	// Options.Wait.
	DefaultWait = time.Minute
	// MaxWait is the longest wait. A longer Retry-After is shortened to it.
	MaxWait = 24 * time.Hour
)

// retryWait is the current retry-after of a host. Its times are readings of a monotonic clock,
// so changes of the wall clock have no effect.
type retryWait struct {
	mu        sync.Mutex
	at, until time.Duration
}

// RetryAfter is the demand of a host to stop requests for a while.
type RetryAfter struct {
	Wait time.Duration
	// Most is above Wait only if the host did not report a wait. If the host then refuses
	// again soon after the wait, the next wait doubles, up to Most.
	Most time.Duration
}

// After returns how long to wait. last is the length of the previous wait, and ago is the time
// since its end. A negative ago means that the previous wait is still running, so the refusal
// belongs to an earlier request. The wait doubles only if 0 <= ago < last.
func (r RetryAfter) After(last, ago time.Duration) time.Duration {
	wait := r.Wait
	if ago >= 0 && ago < last {
		wait = max(wait, min(2*last, r.Most))
	}
	return min(wait, MaxWait)
}

// extend prolongs the wait according to r, unless it already lasts longer. It returns the
// remaining wait.
func (w *retryWait) extend(now time.Duration, r RetryAfter) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if until := now + r.After(w.until-w.at, now-w.until); until > w.until {
		w.at, w.until = now, until
	}
	return w.until - now
}

// remaining returns the remaining wait, or 0 if there is none.
func (w *retryWait) remaining(now time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, w.until-now)
}

// parseRetryAfter reads the Retry-After header of a response (RFC 9110, section 10.2.3), which
// holds seconds or a date. It returns a wait from 0 to MaxWait. ok is false if the header is
// missing or invalid. A date is compared with the Date header of the response, because the
// clocks may differ. Without a Date header it is compared with wall. A past date is a wait of
// 0.
func parseRetryAfter(h http.Header, wall time.Time) (wait time.Duration, ok bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if isDigits(value) {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(MaxWait/time.Second) {
			return MaxWait, true // the number overflows or exceeds MaxWait
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
