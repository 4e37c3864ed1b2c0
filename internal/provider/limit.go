package provider

import (
	"slices"
	"sync"
	"time"
)

// maxMarks is the maximum number of marks in a window.
const maxMarks = 1024

// window enforces a Limit in every interval of length period. A token bucket would allow up to
// twice as many requests, a full bucket plus its refill, and providers would block the client.
// All times are readings of one monotonic clock.
type window struct {
	limit  Limit
	period time.Duration // a little longer than limit.Per
	grain  time.Duration // requests closer together than grain share a mark

	mu    sync.Mutex
	marks []mark // oldest first
	used  int    // sum of n over all marks
}

// mark counts n requests sent between first and last. All of them count until last leaves the
// period.
type mark struct {
	first, last time.Duration
	n           int
}

func newWindow(limit Limit) *window {
	w := &window{limit: limit}
	if w.unlimited() {
		return w
	}
	w.period = limit.Stretch()
	if limit.Requests > maxMarks {
		w.grain = limit.Per / (maxMarks / 2)
	}
	return w
}

func (w *window) unlimited() bool { return w.limit.None() }

// take counts a request and returns 0. If the window is full, it counts nothing and returns
// how long to wait.
func (w *window) take(now time.Duration) time.Duration {
	if w.unlimited() {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeExpired(now)
	if w.used >= w.limit.Requests {
		return w.marks[0].last + w.period - now
	}
	w.used++
	if i := len(w.marks) - 1; i >= 0 && now-w.marks[i].first < w.grain {
		w.marks[i].last = now
		w.marks[i].n++
		return 0
	}
	w.marks = append(w.marks, mark{first: now, last: now, n: 1})
	return 0
}

// untake removes a request that take counted at that time and that was not sent.
func (w *window) untake(at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.marks) - 1; i >= 0; i-- {
		if m := &w.marks[i]; m.first <= at && at <= m.last {
			w.used--
			if m.n--; m.n == 0 {
				w.marks = slices.Delete(w.marks, i, i+1)
			}
			return
		}
	}
}

// state returns the number of counted requests and the time until the oldest one stops
// counting. The time is 0 if no requests are counted.
func (w *window) state(now time.Duration) (used int, reset time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeExpired(now)
	if w.used == 0 {
		return 0, 0
	}
	return w.used, w.marks[0].last + w.period - now
}

// removeExpired removes marks that have left the period.
func (w *window) removeExpired(now time.Duration) {
	n := 0
	for n < len(w.marks) && now-w.marks[n].last >= w.period {
		w.used -= w.marks[n].n
		n++
	}
	w.marks = append(w.marks[:0], w.marks[n:]...)
}
