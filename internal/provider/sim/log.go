package sim

import (
	"maps"
	"net/http"
	"sync"
	"time"

	"assay/internal/provider"
)

// Limits of the request log.
const (
	maxHits  = 10_000 // latest requests
	maxPaths = 1_000  // pairs of method and path with a separate count
)

// Hit is one request that arrived.
type Hit struct {
	Time    time.Time
	Method  string
	Path    string // path and query, as sent by the client
	Refused bool   // whether the response was 429
}

// log counts requests, stores the latest ones and enforces the limit.
type log struct {
	now   func() time.Time
	limit provider.Limit

	mu     sync.Mutex
	byPath map[string]int
	hits   []Hit     // a ring buffer when it has maxHits entries
	next   int       // index of the oldest entry when the buffer is full
	window time.Time // start of the limit's current period
	used   int       // number of requests in the current period
}

func newLog(limit provider.Limit, now func() time.Time) *log {
	return &log{now: now, limit: limit, byPath: make(map[string]int)}
}

// record records a request. It returns how long the client must wait, or 0 if the request
// is within the limit.
func (l *log) record(r *http.Request) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	wait = l.take(now)
	key := r.Method + " " + r.URL.Path
	if _, known := l.byPath[key]; !known && len(l.byPath) >= maxPaths {
		key = "other"
	}
	l.byPath[key]++

	hit := Hit{Time: now, Method: r.Method, Path: r.URL.RequestURI(), Refused: wait > 0}
	if len(l.hits) < maxHits {
		l.hits = append(l.hits, hit)
		return wait
	}
	l.hits[l.next] = hit
	l.next = (l.next + 1) % maxHits
	return wait
}

// take counts one request against the limit. It returns how long the client must wait,
// or 0 if the request is within the limit.
func (l *log) take(now time.Time) (wait time.Duration) {
	if l.limit.Requests <= 0 || l.limit.Per <= 0 {
		return 0
	}
	if age := now.Sub(l.window); age < 0 || age >= l.limit.Per {
		l.window, l.used = now, 0
	}
	if l.used >= l.limit.Requests {
		return l.window.Add(l.limit.Per).Sub(now)
	}
	l.used++
	return 0
}

func (l *log) counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]int, len(l.byPath))
	maps.Copy(all, l.byPath)
	return all
}

func (l *log) recent() []Hit {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Hit, 0, len(l.hits))
	all = append(all, l.hits[l.next:]...)
	return append(all, l.hits[:l.next]...)
}
