package view

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/refresh"
)

// storedPoint is a row of the price history. Its StoredItem has only the fields of the estimate.
type storedPoint struct {
	StoredItem
	used   []int64 // ids of the used markets
	quotes string  // decoded by refresh.DecodeQuotes
}

const pointColumns = `at, updated_at, checked_at, quotes_at, price, status, average, median, consensus, interval_low, interval_high,
	candidate, candidate_at, rate_set, level_set, method_version, method, used`

func scanPoint(r *sql.Rows, p *storedPoint, more ...any) error {
	var at, updated, checked, quotes, candidate int64
	var used string
	err := r.Scan(append([]any{
		&at, &updated, &checked, &quotes, &p.Price, &p.Status, &p.Average, &p.Median, &p.Consensus, &p.Interval.Low, &p.Interval.High, &p.Candidate, &candidate,
		&p.RateSet, &p.LevelSet, &p.MethodVersion, &p.Method, &used,
	}, more...)...)
	p.EstimatedAt, p.UpdatedAt, p.CheckedAt, p.QuotesAt = db.Moment(at), db.Moment(updated), db.Moment(checked), db.Moment(quotes)
	p.CandidateAt, p.used = db.Moment(candidate), idsOf(used)
	return err
}

// pointAt returns the newest point of an item at or before a time, or nil.
func pointAt(ctx context.Context, s *db.DB, item int64, at time.Time) (*storedPoint, error) {
	return db.First(db.Collect(ctx, s.Read, func(r *sql.Rows, p *storedPoint) error {
		p.ID = item
		return scanPoint(r, p, &p.Guard, &p.quotes)
	}, `SELECT `+pointColumns+`, guard, quotes FROM price_point WHERE item_id = $1 AND at <= $2 ORDER BY at DESC LIMIT 1`, item, db.Micros(at)))
}

// errEnough ends a query early.
var errEnough = errors.New("enough rows")

// samples returns up to limit samples of an item without repeats, from the sample that is valid
// at f.From to the last one before f.To. If market is not 0, the samples are the quotes of this
// market. If there are more samples, next is the time of the next one.
func (r *HistoryReader) samples(ctx context.Context, item, market int64, f HistoryFilter, limit int) (out []sample, next time.Time, err error) {
	quotes := "''"
	if market != 0 {
		quotes = "quotes"
	}
	rows := 0
	err = db.Each(ctx, r.o.Store.Read, func(row *sql.Rows) error {
		s, err := scanSample(row, market)
		if err != nil {
			return err
		}
		rows++
		switch repeats := len(out) > 0 && s.sameAs(&out[len(out)-1], market); {
		case rows > maxSamples, len(out) == limit && !repeats:
			next = s.at
			return errEnough
		case !repeats:
			out = append(out, s)
		}
		return nil
	}, `SELECT `+pointColumns+`, `+quotes+` FROM price_point WHERE item_id = $1 AND at < $3
			AND at >= coalesce((SELECT max(at) FROM price_point WHERE item_id = $1 AND at <= $2), $2)
		ORDER BY at LIMIT $4`, item, db.Micros(f.From), db.Micros(f.To), maxSamples+1)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, next, err
}

func scanSample(row *sql.Rows, market int64) (sample, error) {
	s := sample{point: &storedPoint{}}
	var text string
	if err := scanPoint(row, s.point, &text); err != nil {
		return s, err
	}
	s.at, s.price = s.point.EstimatedAt, s.point.Price
	if market == 0 {
		return s, nil
	}
	s.price = 0
	all, err := refresh.DecodeQuotes(text)
	for i := range all {
		if q := &all[i]; q.MarketID == market {
			s.quote, s.price = q, q.Price()
		}
	}
	return s, err
}

// quotedPoint is a point of the history with the quotes of all markets.
type quotedPoint struct {
	at      time.Time
	rateSet int64
	quotes  string // decoded by refresh.DecodeQuotes
}

// steppedPoints returns the point of an item that is valid at the start of a period, and the last
// point in each step of the period.
func steppedPoints(ctx context.Context, s *db.DB, item int64, from, to time.Time, step time.Duration) ([]quotedPoint, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, p *quotedPoint) error {
		var at int64
		err := r.Scan(&at, &p.rateSet, &p.quotes)
		p.at = db.Moment(at)
		return err
	}, `SELECT at, rate_set, quotes FROM price_point WHERE item_id = $1 AND at IN (
			SELECT max(at) FROM price_point WHERE item_id = $1 AND at < $3
				AND at >= coalesce((SELECT max(at) FROM price_point WHERE item_id = $1 AND at <= $2), $2)
			GROUP BY CASE WHEN at <= $2 THEN -1 ELSE (at - $2) / $4 END)
		ORDER BY at`, item, db.Micros(from), db.Micros(to), max(1, step.Microseconds()))
}

// storedDay is a row of price_day.
type storedDay struct {
	at                     time.Time
	open, high, low, close money.Micro
	changes                int64
	currency               money.Currency // empty: the base currency
}

// readDays returns the stored days of an item in a period, preceded by the last day that begins at
// or before the start of the period. If market is not 0, they are the days of this market.
func readDays(ctx context.Context, s *db.DB, item, market int64, from, to time.Time) ([]storedDay, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, d *storedDay) error {
		var at int64
		err := r.Scan(&at, &d.open, &d.high, &d.low, &d.close, &d.changes, &d.currency)
		d.at = db.Moment(at)
		return err
	}, `SELECT day, open, high, low, close, changes, currency FROM price_day WHERE item_id = $1 AND market_id = $5 AND day < $3
			AND day >= coalesce((SELECT max(day) FROM price_day WHERE item_id = $1 AND market_id = $5 AND day <= $2), $2)
		ORDER BY day LIMIT $4`, item, db.Micros(from), db.Micros(to), maxSamples, market)
}

// pointsFrom returns the time of the first point of an item. It returns nil if the item has no
// stored day, because all points of its history are then stored.
func pointsFrom(ctx context.Context, s *db.DB, item int64) (*time.Time, error) {
	var at int64
	found, err := db.Found(s.Read.QueryRowContext(ctx, `SELECT at FROM price_point WHERE item_id = $1
			AND EXISTS (SELECT 1 FROM price_day WHERE item_id = $1)
		ORDER BY at LIMIT 1`, item).Scan(&at))
	if !found {
		return nil, err
	}
	return new(db.Moment(at)), nil
}

// hasDay reports whether an item has a stored day that begins at or before a time.
func hasDay(ctx context.Context, s *db.DB, item int64, at time.Time) (bool, error) {
	return db.Found(s.Read.QueryRowContext(ctx, `SELECT 1 FROM price_day WHERE item_id = $1 AND market_id = 0 AND day <= $2 LIMIT 1`, item, db.Micros(at)).Scan(new(int)))
}

// maxFigurePoints is the maximum number of points behind figures: about one per minute for 90 days.
const maxFigurePoints = 130_000

// priceChanges returns the prices of an item, oldest first, starting with the price that is valid
// at a time. Stored days supply the prices before the first point.
func priceChanges(ctx context.Context, s *db.DB, item int64, from time.Time) ([]priceChange, error) {
	points, err := db.Collect(ctx, s.Read, func(r *sql.Rows, c *priceChange) error {
		var at int64
		err := r.Scan(&at, &c.price)
		c.at, c.low, c.high = db.Moment(at), c.price, c.price
		return err
	}, `SELECT at, price FROM price_point WHERE item_id = $1 AND price > 0
			AND at >= coalesce((SELECT max(at) FROM price_point WHERE item_id = $1 AND price > 0 AND at <= $2), $2)
		ORDER BY at DESC LIMIT $3`, item, db.Micros(from), maxFigurePoints)
	if err != nil {
		return nil, err
	}
	slices.Reverse(points)
	if len(points) == maxFigurePoints || len(points) > 0 && !points[0].at.After(from) {
		return points, nil
	}
	to := from.Add(day)
	if len(points) > 0 {
		to = points[0].at
	}
	days, err := readDays(ctx, s, item, 0, from, to)
	changes := make([]priceChange, 0, len(days)+len(points))
	for _, d := range days {
		changes = append(changes, priceChange{d.at, d.close, d.low, d.high})
	}
	return append(changes, points...), err
}
