package refresh

import (
	"context"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
)

// FreshFor is the age up to which a price counts as fresh.
const FreshFor = 24 * time.Hour

// PriceState counts the items in scope by the age of their price.
type PriceState struct {
	Fresh, Stale, Unknown int64
	QuoteAge              time.Duration // 95th percentile of the age of the quotes behind the prices; negative: no price
}

// priceCounts counts the items in scope by the age of their price, and those with a quote.
const priceCounts = `
SELECT count(*) FILTER (WHERE i.price > 0 AND i.price_checked_at >= $2), count(*) FILTER (WHERE i.price > 0 AND i.price_checked_at < $2),
	count(*) FILTER (WHERE i.price <= 0), count(*) FILTER (WHERE i.price > 0 AND i.quotes_at > 0)
FROM item i WHERE $1 OR ` + InScope

// nthQuote selects the time of a quote behind a published price. It orders quotes by age, the oldest
// first. If the last estimate is held, quotes_at is the time of its quotes, but the published price is
// not newer than its last confirmation. Because of the limit, SQLite holds only the older quotes in
// memory to sort them.
const nthQuote = `
SELECT CASE WHEN i.price_checked_at < i.quotes_at THEN i.price_checked_at ELSE i.quotes_at END AS at
FROM item i WHERE i.price > 0 AND i.quotes_at > 0 AND ($1 OR ` + InScope + `)
ORDER BY at LIMIT 1 OFFSET $2`

// ReadPriceState reads the state of all prices in scope. A twentieth of the quotes is older than
// the 95th percentile.
func ReadPriceState(ctx context.Context, s *db.DB, scopeAll bool, now time.Time) (PriceState, error) {
	p := PriceState{QuoteAge: -time.Microsecond}
	var quotes, at int64
	err := s.Read.QueryRowContext(ctx, priceCounts, scopeAll, db.Micros(now.Add(-FreshFor))).Scan(&p.Fresh, &p.Stale, &p.Unknown, &quotes)
	if err != nil || quotes == 0 {
		return p, err
	}
	err = s.Read.QueryRowContext(ctx, nthQuote, scopeAll, quotes/20).Scan(&at)
	if found, err := db.Found(err); !found { // prices may have changed since they were counted
		return p, err
	}
	p.QuoteAge = max(0, now.Sub(db.Moment(at)))
	return p, nil
}

// SamplePrices stores the state of all prices and budgets for the current half hour, unless
// another instance has stored it.
func (p *process) SamplePrices(ctx context.Context) error {
	now := p.now()
	left, err := p.BudgetLeft(ctx)
	if err != nil {
		return err
	}
	state, err := ReadPriceState(ctx, p.store, p.cfg.ScopeAll, now)
	if err != nil {
		return err
	}
	return p.store.InTx(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(`INSERT INTO price_sample (at, fresh, stale, unknown, quote_age, budget_left) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (at) DO NOTHING`,
			db.Micros(now.UTC().Truncate(provider.SamplePeriod)), state.Fresh, state.Stale, state.Unknown, state.QuoteAge.Microseconds(), int64(left))
		return err
	})
}

// deleteOldSamples deletes price samples. It keeps them as long as request samples.
func deleteOldSamples(t *db.Tx) error {
	_, err := t.Exec(`DELETE FROM price_sample WHERE at < $1`, db.Micros(t.Now().Add(-allowance.SamplesKept)))
	return err
}

// BudgetLeft returns the smallest share of its budget that any host has left, in millionths. It
// returns -1 if no host has a budget.
func (p *process) BudgetLeft(ctx context.Context) (money.Micro, error) {
	least := money.Micro(-1)
	for _, name := range p.order {
		d := p.providers[name].Describe()
		for _, host := range d.Hosts {
			b, _, err := allowance.Of(ctx, p.store, name, host)
			if err != nil {
				return 0, err
			}
			if share := shareLeft(&b); share >= 0 && (least < 0 || share < least) {
				least = share
			}
		}
	}
	return least, nil
}

// shareLeft returns the smallest share that is left among the limit and the quotas of a budget,
// in millionths. It ignores limits of up to an hour, because they only slow requests down. It
// returns -1 if there is no other limit or quota.
func shareLeft(b *provider.Budget) money.Micro {
	least := money.Micro(-1)
	part := func(left, limit int64) {
		share, ok := money.Ratio(money.Micro(max(0, left)), money.Micro(limit))
		if ok && (least < 0 || share < least) {
			least = share
		}
	}
	if !b.Limit.None() && provider.HasForecast(b.Limit.Per) {
		part(int64(b.Left), int64(b.Limit.Requests))
	}
	for _, q := range b.Quotas {
		part(q.Left, q.Limit)
	}
	if t := b.Reported; t != nil && t.Limit > 0 && (t.Period != "" || provider.HasForecast(t.ResetsAt.Sub(t.At))) {
		part(t.Left, t.Limit)
	}
	return least
}
