package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	statusRate      = 200 // requests per second
	targetStatus    = 50 * time.Millisecond
	targetDisturbed = 1.1
)

// measureStatus requests the status at a fixed rate while a refresh runs (T9). For comparison, a
// refresh without status requests precedes each of these refreshes. The latency of a response counts
// from the scheduled time of its request, even if the bench sent the request later.
func (b *bench) measureStatus(ctx context.Context) error {
	w, err := b.fullWorld(ctx)
	if err != nil {
		return err
	}
	var alone, loaded, p99 []time.Duration
	var ratios []float64
	requested := 0
	for range b.runs {
		_, undisturbed, err := w.change(ctx)
		if err != nil {
			return err
		}
		done := make(chan struct{})
		responses := make(chan []time.Duration, 1)
		var failed error
		go func() {
			latencies, err := w.server.requestAtRate(ctx, "/api/market-prices/status", statusRate, done)
			failed = err
			responses <- latencies
		}()
		_, disturbed, err := w.change(ctx)
		close(done)
		latencies := <-responses
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		alone, loaded = append(alone, undisturbed), append(loaded, disturbed)
		ratios = append(ratios, quotient(disturbed, undisturbed))
		p99 = append(p99, quantile(latencies, 99))
		requested += len(latencies)
		b.note("T9: alone %s, loaded %s, p50 %s, p99 %s, worst %s", short(undisturbed), short(disturbed),
			short(median(latencies)), short(quantile(latencies, 99)), short(quantile(latencies, 100)))
	}
	best := quantile(p99, 0)
	ratio := median(ratios)
	b.results = append(b.results,
		result{
			id: "T9", what: fmt.Sprintf("status at %d/s while a refresh runs, best p99 of %d runs (median %s), %s responses",
				statusRate, b.runs, short(median(p99)), count(requested)),
			ours: short(best), target: "<= " + short(targetStatus), good: best <= targetStatus,
		},
		result{
			id: "T9", what: "this refresh, compared with one without status requests", ours: short(median(loaded)),
			floor: short(median(alone)) + " (ours, unloaded)", ratio: times(ratio),
			target: fmt.Sprintf("<= %.1f", targetDisturbed), good: ratio <= targetDisturbed,
		})
	return nil
}

// requestAtRate requests a path at a fixed rate until done is closed. It returns the time from each
// scheduled request to its response.
func (s *server) requestAtRate(ctx context.Context, path string, rate time.Duration, done <-chan struct{}) (latencies []time.Duration, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	defer wg.Wait()
	start := time.Now()
	for n := 0; ; n++ {
		due := start.Add(time.Duration(n) * time.Second / rate)
		t := time.NewTimer(time.Until(due))
		select {
		case <-done:
			t.Stop()
			wg.Wait()
			return latencies, err
		case <-t.C:
		}
		wg.Go(func() {
			failed := s.call(ctx, http.MethodGet, path, nil, nil)
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, took)
			err = errors.Join(err, failed)
		})
	}
}
