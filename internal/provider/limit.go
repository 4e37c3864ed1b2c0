package provider

import (
	"slices"
	"sync"
	"time"
)

// maxMarks bounds the marks that a window keeps.
const maxMarks = 1024

// window enforces a Limit for every interval of its period. A token bucket would let
// through up to twice as many requests (a full bucket and its refill), which providers
// punish. Times are readings of one monotonic clock.
type window struct {
	limit  Limit
	period time.Duration // a little longer than that of the limit
	grain  time.Duration // requests closer together than this share a mark

	mu    sync.Mutex
	marks []mark // oldest first
	used  int    // sum of the marks
}

// mark stands for n requests sent from first to last. All of them count until the last one
// leaves the period.
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

// take counts a request and returns 0, or returns how long to wait before trying again.
func (w *window) take(now time.Duration) time.Duration {
	if w.unlimited() {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(now)
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

// untake removes a request that was counted at that time and not sent.
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

// state returns how many requests count now, and when the oldest stops counting; 0 if none
// counts.
func (w *window) state(now time.Duration) (used int, reset time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(now)
	if w.used == 0 {
		return 0, 0
	}
	return w.used, w.marks[0].last + w.period - now
}

// forget drops marks that have left the period.
func (w *window) forget(now time.Duration) {
	n := 0
	for n < len(w.marks) && now-w.marks[n].last >= w.period {
		w.used -= w.marks[n].n
		n++
	}
	w.marks = append(w.marks[:0], w.marks[n:]...)
}
