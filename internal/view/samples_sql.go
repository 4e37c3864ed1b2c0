package view

import (
	"context"
	"database/sql"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/provider"
)

// storedSample counts the requests to a provider in a half hour with the same result and
// about the same duration. upTo is the latency bound, or 0 for a duration above all bounds.
type storedSample struct {
	provider string
	at       time.Time
	result   provider.SentResult
	upTo     time.Duration
	requests int64
	duration time.Duration
	bytes    int64
}

// readSamples returns the samples of a provider ("": all providers) in the half hours from
// begin on, ordered by provider and time.
func readSamples(ctx context.Context, s *db.DB, name string, begin time.Time) ([]storedSample, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, v *storedSample) error {
		var at, upTo, took int64
		err := r.Scan(&v.provider, &at, &v.result, &upTo, &v.requests, &took, &v.bytes)
		v.at, v.upTo, v.duration = db.Moment(at), time.Duration(upTo)*time.Microsecond, time.Duration(took)*time.Microsecond
		return err
	}, `SELECT provider, at, result, up_to, CAST(sum(requests) AS BIGINT), CAST(sum(duration) AS BIGINT), CAST(sum(bytes) AS BIGINT)
		FROM request_sample WHERE at >= $1 AND ($2 = '' OR provider = $2)
		GROUP BY provider, at, result, up_to ORDER BY provider, at, result, up_to`, db.Micros(begin), name)
}

// hostRequests is the number of requests to a host in a half hour.
type hostRequests struct {
	at       time.Time
	requests int64
}

// readHostRequests returns the requests to a provider's host from begin on, oldest first.
func readHostRequests(ctx context.Context, s *db.DB, name, host string, begin time.Time) ([]hostRequests, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, v *hostRequests) error {
		var at int64
		err := r.Scan(&at, &v.requests)
		v.at = db.Moment(at)
		return err
	}, `SELECT at, CAST(sum(requests) AS BIGINT) FROM request_sample WHERE provider = $1 AND host = $2 AND at >= $3 GROUP BY at ORDER BY at`,
		name, host, db.Micros(begin))
}

// PriceSample is a half-hourly sample of all prices in scope and of all budgets.
type PriceSample struct {
	At                    time.Time
	Fresh, Stale, Unknown int64         // items by the age of their price
	QuoteAge              time.Duration // 95th percentile of the age of the quotes behind the prices; negative: no price
	BudgetLeft            money.Micro   // smallest remaining share of any budget, in millionths; negative: no budget
}

// readPriceSamples returns the samples from begin on, oldest first.
func readPriceSamples(ctx context.Context, s *db.DB, begin time.Time) ([]PriceSample, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, p *PriceSample) error {
		var at, age int64
		err := r.Scan(&at, &p.Fresh, &p.Stale, &p.Unknown, &age, &p.BudgetLeft)
		p.At, p.QuoteAge = db.Moment(at), time.Duration(age)*time.Microsecond
		return err
	}, `SELECT at, fresh, stale, unknown, quote_age, budget_left FROM price_sample WHERE at >= $1 ORDER BY at`, db.Micros(begin))
}
