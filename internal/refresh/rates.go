package refresh

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"assay/internal/exchange"
	"assay/internal/money"
	"assay/internal/pricing"
)

// ErrNoRatesYet means that the first exchange rates are still being fetched. The job is
// planned when they have arrived.
var ErrNoRatesYet = errors.New("exchange rates are being fetched")

// converter converts quotes to the base currency with the exchange rates of a job.
type converter struct {
	currency money.Currency
	rates    pricing.Rates
}

// converter returns a converter with a stored set of exchange rates.
func (p *process) converter(ctx context.Context, set int64) (*converter, error) {
	rates, err := exchange.ReadRates(ctx, p.store, set)
	if err != nil {
		return nil, fmt.Errorf("read exchange rates: %w", err)
	}
	return &converter{currency: p.cfg.Policy.Currency, rates: rates}, nil
}

// price returns the price of a quote in the base currency, or 0 without a price or rate.
func (c *converter) price(q *quoteRecord) money.Micro {
	p, _ := pricing.Quoted(q.Ask, q.Sale)
	if q.Currency == c.currency || p == 0 {
		return p
	}
	rate, ok := c.rates.Of(q.Currency)
	if !ok {
		return 0
	}
	converted, _ := money.Convert(p, rate.Value)
	return converted
}

// pricers caches the pricers of live jobs.
type pricers struct {
	mu   sync.Mutex
	jobs map[int64]map[int32]*gamePricer
}

// mostPricers is how many jobs the cache holds. At most two jobs are live at a time.
const mostPricers = 4

// gamePricer computes the prices of one game in one job.
type gamePricer struct {
	*pricing.Pricer
	levelSet int64
	movers   pricing.Movers
}

// pricers returns the pricers of a job's games. They use the job's exchange rates and the
// levels that its validation learned.
func (e *estimator) pricers(ctx context.Context, b *Batch) (map[int32]*gamePricer, error) {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	if m := e.cache.jobs[b.JobID]; m != nil {
		return m, nil
	}
	policy := e.cfg.Policy
	var err error
	if policy.Rates, err = exchange.ReadRates(ctx, e.store, b.RateSet); err != nil {
		return nil, fmt.Errorf("read exchange rates: %w", err)
	}
	levels, err := jobLevels(ctx, e.store, b.JobID)
	if err != nil {
		return nil, fmt.Errorf("read levels: %w", err)
	}
	m := map[int32]*gamePricer{
		noGame: {Pricer: pricing.NewPricer(policy, pricing.NewSet(policy.Rates.Dollar(policy.Currency)))},
	}
	for app, l := range levels {
		m[app] = &gamePricer{pricing.NewPricer(policy, l.Set), l.ID, l.Movers}
	}
	if len(e.cache.jobs) >= mostPricers {
		clear(e.cache.jobs)
	}
	e.cache.jobs[b.JobID] = m
	return m, nil
}

// forgetPricers frees the pricers of a job. Another process may have ended the job's estimate
// stage, so pricers also limits the number of jobs.
func (e *estimator) forgetPricers(job int64) {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	delete(e.cache.jobs, job)
}

// noGame is the key of the pricer for games without learned levels.
const noGame int32 = 0
