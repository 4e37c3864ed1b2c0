package refresh

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"assay/internal/money"
	"assay/internal/pricing"
)

// ErrNoRatesYet means that somebody is just fetching the first exchange rates: a
// job is planned once they are there.
var ErrNoRatesYet = errors.New("exchange rates are being fetched")

// maker makes prices with the rates of a job, whoever has planned it.
type maker struct {
	*pricing.Estimator
	currency money.Currency
	rates    pricing.Rates
}

// makers are those of the rates that live jobs have.
type makers struct {
	mu   sync.Mutex
	sets map[int64]*maker
}

// mostMakers is how many sets of rates are remembered: two jobs live at a time.
const mostMakers = 8

// maker returns the maker of a set of rates.
func (e *Engine) maker(ctx context.Context, set int64) (*maker, error) {
	e.makers.mu.Lock()
	defer e.makers.mu.Unlock()
	if m := e.makers.sets[set]; m != nil {
		return m, nil
	}
	rates, err := e.store.Rates(ctx, set)
	if err != nil {
		return nil, fmt.Errorf("exchange rates: %w", err)
	}
	policy := e.cfg.Policy
	policy.Rates = rates
	m := &maker{Estimator: pricing.New(policy), currency: policy.Currency, rates: rates}
	if len(e.makers.sets) >= mostMakers {
		clear(e.makers.sets)
	}
	e.makers.sets[set] = m
	return m, nil
}

// price is a quote's price in the base currency, 0 if it has none.
func (m *maker) price(q *packed) money.Micro {
	p, _ := pricing.Quoted(q.Ask, q.Sale)
	if q.Currency == m.currency || p == 0 {
		return p
	}
	rate, ok := m.rates.Of(q.Currency)
	if !ok {
		return 0
	}
	converted, _ := money.Convert(p, rate.Value)
	return converted
}

// dollar is what one US dollar costs in the base currency; without a rate of it,
// one unit: price bands are then those of the base currency.
func (m *maker) dollar() money.Micro {
	const dollars = "USD"
	if rate, ok := m.rates.Of(dollars); ok && m.currency != dollars {
		if price, ok := money.Convert(money.Scale, rate.Value); ok && price > 0 {
			return price
		}
	}
	return money.Scale
}
