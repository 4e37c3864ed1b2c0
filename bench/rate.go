package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// paced sends one kind of request at a fixed rate, which does not depend on the responses. At most
// limit requests wait for a response. paced counts and drops the requests beyond the limit, so that
// the client stays bounded.
type paced struct {
	name  string
	rate  int // requests per second
	limit int
	send  func(ctx context.Context, n int) (status int, err error)

	mu      sync.Mutex
	took    []time.Duration // of successful requests, from the scheduled time
	errors  map[string]int  // by status code
	due     int
	dropped int
	failed  error         // example of a failure
	missed  time.Duration // time of the first error or drop since the start; 0 means none
}

// run sends requests until done is closed, and waits for the responses.
func (p *paced) run(ctx context.Context, done <-chan struct{}) {
	slots := make(chan struct{}, p.limit)
	var wg sync.WaitGroup
	defer wg.Wait()
	start := time.Now()
	for n := 0; ; n++ {
		due := start.Add(time.Duration(n) * time.Second / time.Duration(p.rate))
		t := time.NewTimer(time.Until(due))
		select {
		case <-done:
			t.Stop()
			return
		case <-t.C:
		}
		select {
		case slots <- struct{}{}:
			wg.Go(func() {
				status, err := p.send(ctx, n)
				p.record(start, due, status, err)
				<-slots
			})
		default:
			p.drop(start)
		}
	}
}

// record counts a response.
func (p *paced) record(start, due time.Time, status int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due++
	if err == nil && status/100 == 2 {
		p.took = append(p.took, time.Since(due))
		return
	}
	key := fmt.Sprint("status ", status)
	if err != nil {
		key, p.failed = "no response", err
	}
	if p.errors == nil {
		p.errors = map[string]int{}
	}
	p.errors[key]++
	p.miss(start)
}

func (p *paced) drop(start time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due++
	p.dropped++
	p.miss(start)
}

func (p *paced) miss(start time.Time) {
	if p.missed == 0 {
		p.missed = time.Since(start)
	}
}

// summary describes all requests so far, with the latencies of took[from:]. next is the length of
// took.
func (p *paced) summary(from int) (text string, next int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := p.took[from:]
	text = fmt.Sprintf("%s p50 %s, p99 %s, %s due, %s dropped", p.name, short(median(took)), short(quantile(took, 99)), count(p.due), count(p.dropped))
	var faults []string
	for _, key := range slices.Sorted(maps.Keys(p.errors)) {
		faults = append(faults, fmt.Sprintf("%s with %s", count(p.errors[key]), key))
	}
	if faults != nil {
		text += ", " + strings.Join(faults, ", ")
	}
	if p.failed != nil {
		text += fmt.Sprintf(" (%v)", p.failed)
	}
	return text, len(p.took)
}

// post sends a request as administrator and discards the response.
func (s *server) post(ctx context.Context, path string, body []byte) (status int, err error) {
	status, _, err = send(ctx, s.client, http.MethodPost, s.url(path), s.token, body)
	return status, err
}
