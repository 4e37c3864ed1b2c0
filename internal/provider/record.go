package provider

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	recordedRequests  = 50
	recordedLatencies = 512
)

// record holds the counts and the recent requests of a Client.
type record struct {
	mu        sync.Mutex
	sent      []Sent // ring buffer once full; next is the oldest entry
	next      int
	latencies []time.Duration // ring buffer once full; slot is the oldest entry
	slot      int
	statuses  map[int]int64
	took      Histogram
	samples   samples // not stored yet

	lastSuccess, lastErrorAt time.Time
	lastError                string
}

// note records a request and its outcome, and logs it.
func (c *Client) note(ctx context.Context, sent Sent, err error) {
	text := ""
	if err != nil {
		text = c.detail(err.Error())
		sent.Kind = KindOf(err)
	}
	c.record.add(sent, text, c.o.Now())
	c.o.Logger.LogAttrs(ctx, slog.LevelDebug, "request sent",
		slog.String("provider", c.o.Provider), slog.String("method", sent.Method),
		slog.String("host", sent.Host), slog.String("path", sent.Path),
		slog.Int("status", sent.Status), slog.Int("attempt", sent.Attempt),
		slog.Duration("duration", sent.Duration), slog.Int64("bytes", sent.Bytes),
		slog.String("kind", string(sent.Kind)))
}

func (r *record) add(sent Sent, failure string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sent) < recordedRequests {
		r.sent = append(r.sent, sent)
	} else {
		r.sent[r.next] = sent
		r.next = (r.next + 1) % recordedRequests
	}
	if len(r.latencies) < recordedLatencies {
		r.latencies = append(r.latencies, sent.Duration)
	} else {
		r.latencies[r.slot] = sent.Duration
		r.slot = (r.slot + 1) % recordedLatencies
	}
	r.statuses[sent.Status]++
	r.took.add(sent.Duration)
	r.samples.add(sent.sample())
	switch {
	case sent.Kind == KindCancelled: // the provider's health is unknown
	case failure != "":
		r.lastError, r.lastErrorAt = failure, now
	case sent.Status == 200:
		r.lastSuccess = now
	}
}

// Snapshot returns the recorded state. It sends no request.
func (c *Client) Snapshot() ClientState {
	now, wall := c.clock(), c.o.Now()
	s := ClientState{BlockedUntil: c.BlockedUntil(), Budget: c.usage(now, wall)}
	var pause time.Duration
	if s.Breaker, pause = c.breaker.state(now); pause > 0 {
		s.BreakerUntil = wall.Add(pause)
	}
	r := &c.record
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Statuses = maps.Clone(r.statuses)
	s.Requests = slices.Concat(r.sent[r.next:], r.sent[:r.next])
	slices.Reverse(s.Requests)
	s.latencies, s.Took = slices.Clone(r.latencies), r.took
	s.Latency = percentiles(slices.Clone(r.latencies))
	s.LastSuccess, s.LastError, s.LastErrorAt = r.lastSuccess, r.lastError, r.lastErrorAt
	return s
}

// percentiles sorts d and returns percentiles by the nearest-rank method.
func percentiles(d []time.Duration) Latency {
	if len(d) == 0 {
		return Latency{}
	}
	slices.SortFunc(d, cmp.Compare[time.Duration])
	at := func(percent int) time.Duration { return d[(len(d)*percent+99)/100-1] }
	return Latency{P50: at(50), P95: at(95), P99: at(99)}
}

// latencyBuckets is the number of buckets in a Histogram.
const latencyBuckets = 10

// LatencyBounds returns the upper bounds of the Histogram buckets.
func LatencyBounds() [latencyBuckets]time.Duration {
	const ms = time.Millisecond
	return [...]time.Duration{50 * ms, 100 * ms, 250 * ms, 500 * ms, time.Second, 2500 * ms, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute}
}

// Histogram counts request durations since the start of the process.
type Histogram struct {
	Count   uint64
	Sum     time.Duration
	Buckets [latencyBuckets]uint64 // cumulative: requests up to each bound
}

func (h *Histogram) add(took time.Duration) {
	h.Count++
	h.Sum += took
	for i, bound := range LatencyBounds() {
		if took <= bound {
			h.Buckets[i]++
		}
	}
}
