package refresh

import (
	"errors"
	"slices"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/pricing"
)

// StoreEstimates writes the estimates of a batch. It returns false, and writes nothing, if
// the claim is no longer valid. It writes the items last, because syncs that copy their
// prices wait for this transaction from then on. It returns ErrConflict if another job has
// estimated one of the items since it was read.
func StoreEstimates(t *db.Tx, b Batch, s Estimates) (bool, error) {
	if err := t.ByIndex(); err != nil {
		return false, err
	}
	c := s.Counts
	n, err := t.Exec(`
		UPDATE refresh_batch SET state = 'estimated', pending = 0, updated = $4, no_quote = $5, failed = $6, changed = $7,
			skipped_budget = $8, skipped_paused = $9, skipped_backoff = $10
		WHERE job_id = $1 AND batch = $2 AND token = $3 AND state = 'running'`,
		b.JobID, b.Batch, b.Token, c.Updated, c.NoQuote, c.Failed, c.Changed, c.SkippedBudget, c.SkippedPaused, c.SkippedBackoff)
	if err != nil || n != 1 {
		return false, err
	}
	for _, step := range []func() error{
		func() error { return writeQuotes(t, s.Items) },
		func() error { return writePoints(t, s.Items, s.RateSet, s.Method) },
		func() error { return writeJobItems(t, b, s.Items) },
		func() error { return lockItems(t, s.Items) },
		func() error { return writeItems(t, &s) },
		func() error { return writeFailures(t, s.Items) },
		func() error { return endMissing(t, b, s.Items, s.MissingRetry) },
		func() error { return catalog.PricesChanged(t, writtenBuckets(s.Items)) },
	} {
		if err := step(); err != nil {
			return false, err
		}
	}
	return true, nil
}

const estimateColumns = "id bigint, rev bigint, price bigint, status bigint, method_version bigint, " +
	"average bigint, median bigint, consensus bigint, low bigint, high bigint, interval_low bigint, interval_high bigint, " +
	"markets bigint, used_markets bigint, candidate bigint, candidate_at bigint, range_low bigint, range_high bigint, " +
	"price_updated_at bigint, price_checked_at bigint, estimated_at bigint, quotes_at bigint, " +
	"no_sales_since bigint, retry_at bigint, rate_set bigint, level_set bigint, method text, guard text"

const writeItemsSQL = `
UPDATE item SET
	price = v.column3, status = v.column4, method_version = v.column5,
	average = v.column6, median = v.column7, consensus = v.column8, low = v.column9, high = v.column10,
	interval_low = v.column11, interval_high = v.column12,
	markets = v.column13, used_markets = v.column14, candidate = v.column15, candidate_at = v.column16,
	range_low = v.column17, range_high = v.column18,
	price_updated_at = v.column19, price_checked_at = v.column20, estimated_at = v.column21, quotes_at = v.column22,
	no_sales_since = v.column23, retry_at = v.column24, rate_set = v.column25, level_set = v.column26,
	method = v.column27, guard = v.column28, failures = 0, rev = item.rev + 1
FROM (`

const writeItemsWhere = `) AS v WHERE item.id = v.column1 AND item.rev = v.column2`

var itemsBulk = db.NewBulk(writeItemsSQL, estimateColumns, writeItemsWhere)

// writeItems writes the estimates. It returns ErrConflict if another job has estimated an
// item since the item was read.
func writeItems(t *db.Tx, s *Estimates) error {
	rows := db.NewTable(estimateColumns, len(s.Items))
	for k := range s.Items {
		i := &s.Items[k]
		if !i.Responded {
			continue
		}
		e := &i.Estimate
		updated, checked := i.times(t.Now())
		held := &e.State.Held
		f := i.kept()
		rows.Int(i.ID, i.Rev, int64(e.Price), int64(e.Status), pricing.MethodVersion,
			int64(e.Average), int64(e.Median), int64(f.Consensus), int64(e.Min), int64(e.Max),
			int64(f.Interval.Low), int64(f.Interval.High),
			int64(e.Markets), int64(e.UsedMarkets), int64(held.Candidate), db.Micros(held.At),
			int64(i.Bounds.Low), int64(i.Bounds.High),
			db.Micros(updated), db.Micros(checked), db.Micros(t.Now()), db.Micros(i.AsOf),
			db.Micros(i.NoSalesSince), db.Micros(i.RetryAt), s.RateSet, f.LevelSet)
		rows.Text(s.Method, pricing.EncodeGuard(&e.State, &e.Move))
	}
	n, err := t.WriteRows(itemsBulk, rows)
	if err == nil && n != int64(rows.Rows) {
		err = ErrConflict
	}
	return err
}

// times returns when the price last changed and when it was last confirmed, after an estimate
// that is written at now.
func (s *EstimatedItem) times(now time.Time) (updated, checked time.Time) {
	updated, checked = s.UpdatedAt, s.CheckedAt
	if s.Changed() {
		updated = now
	}
	if e := &s.Estimate; e.Estimated > 0 && e.State.Held.Candidate == 0 {
		checked = s.QuotedAt // a held price does not confirm the current one
	}
	return updated, checked
}

// writtenBuckets returns the name buckets of the items that are written, in order.
func writtenBuckets(items []EstimatedItem) []int64 {
	var buckets []int64
	for i := range items {
		if items[i].Responded {
			buckets = append(buckets, items[i].ID>>32)
		}
	}
	slices.Sort(buckets)
	return slices.Compact(buckets)
}

// writeQuotes writes the quotes of the items whose quotes changed.
func writeQuotes(t *db.Tx, items []EstimatedItem) error {
	var known, added []itemQuotes
	for i := range items {
		switch item := &items[i]; {
		case !item.Responded || item.NewQuotes == nil:
		case len(item.Quotes) > 0:
			known = append(known, itemQuotes{item.ID, item.NewQuotes})
		default:
			added = append(added, itemQuotes{item.ID, item.NewQuotes})
		}
	}
	if err := updateQuoteRows(t, known); err != nil {
		return err
	}
	return writeQuoteRows(t, added)
}

// writeFailures increments the failure count of the failed items. Their other columns are
// unchanged.
func writeFailures(t *db.Tx, items []EstimatedItem) error {
	var ids []int64
	for i := range items {
		if items[i].State == ItemFailed {
			ids = append(ids, items[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := t.Exec(`UPDATE item SET failures = failures + 1 WHERE id `+t.Dialect.OneOf(1), t.Dialect.EncodeIDs(ids))
	return err
}

const (
	pointColumns = "item_id bigint, at bigint, updated_at bigint, checked_at bigint, quotes_at bigint, price bigint, status bigint, " +
		"average bigint, median bigint, consensus bigint, interval_low bigint, interval_high bigint, candidate bigint, candidate_at bigint, " +
		"rate_set bigint, level_set bigint, method_version bigint, used text, method text, guard text, quotes text"
	writePointsSQL = `INSERT INTO price_point (item_id, at, updated_at, checked_at, quotes_at, price, status,
	average, median, consensus, interval_low, interval_high, candidate, candidate_at,
	rate_set, level_set, method_version, used, method, guard, quotes) `
)

var pointsBulk = db.NewBulk(writePointsSQL, pointColumns, "")

// writePoints adds a point to the history of each item whose price, status, figures or
// quotes changed, and an event with the items whose price, status or figures changed.
func writePoints(t *db.Tx, items []EstimatedItem, rates int64, method string) error {
	rows := db.NewTable(pointColumns, len(items))
	var changed event.PricesChanged
	var ahead []int64
	for k := range items {
		i := &items[k]
		if !i.AddsPoint() {
			continue
		}
		e := &i.Estimate
		quotes := i.NewQuotes
		if quotes == nil {
			quotes = i.Quotes
		}
		updated, checked := i.times(t.Now())
		rows.Int(i.ID, db.Micros(t.Now()), db.Micros(updated), db.Micros(checked), db.Micros(i.AsOf), int64(e.Price), int64(e.Status),
			int64(e.Average), int64(e.Median), int64(e.Consensus), int64(e.Interval.Low), int64(e.Interval.High),
			int64(e.State.Held.Candidate), db.Micros(e.State.Held.At), rates, i.LevelSet, pricing.MethodVersion)
		rows.Text(i.Used, method, pricing.EncodeGuard(&e.State, &e.Move), encodeQuotes(quotes))
		late := !i.UpdatedAt.Before(t.Now()) || !i.EstimatedAt.Before(t.Now())
		if late {
			ahead = append(ahead, i.ID)
		}
		switch {
		case i.Published(), late: // this point may replace one with a change that a reader has not read yet
			changed.Items = append(changed.Items, i.ID)
		case i.newFigures(0): // every point has the current interval
			changed.Figures = append(changed.Figures, i.ID)
		}
	}
	if rows.Rows == 0 {
		return nil
	}
	if err := dropPointsAhead(t, ahead); err != nil {
		return err
	}
	_, err := t.WriteRows(pointsBulk, rows)
	switch {
	case db.IsDuplicate(err): // another job has added a point at the same time
		return errors.Join(ErrConflict, err)
	case err != nil || len(changed.Items)+len(changed.Figures) == 0:
		return err
	}
	return event.Add(t, changed)
}

// dropPointsAhead deletes price points of items with a time that is not in the past. They were
// written while the clock was ahead. Otherwise they would count as newer than the next price.
func dropPointsAhead(t *db.Tx, items []int64) error {
	if len(items) == 0 {
		return nil
	}
	_, err := t.Exec(`DELETE FROM price_point WHERE item_id `+t.Dialect.OneOf(1)+` AND at >= $2`, t.Dialect.EncodeIDs(items), db.Micros(t.Now()))
	return err
}

// endMissing updates the missing-price queue. It removes items that have a price now. It
// doubles the retry pause of items without a quote. Items that could not be requested are due
// after the first pause, or soon if the background fetch has stored a quote of them.
func endMissing(t *db.Tx, b Batch, items []EstimatedItem, retry time.Duration) error {
	var priced, unquoted, rest []int64
	for i := range items {
		switch item := &items[i]; {
		case item.PriceAfter() > 0:
			priced = append(priced, item.ID)
		case item.State == ItemNoQuote:
			unquoted = append(unquoted, item.ID)
		default:
			rest = append(rest, item.ID)
		}
	}
	ids := t.Dialect.OneOf(1)
	if len(priced) > 0 {
		if _, err := t.Exec(`DELETE FROM missing_price WHERE item_id `+ids, t.Dialect.EncodeIDs(priced)); err != nil {
			return err
		}
	}
	if b.Kind != Missing {
		return nil
	}
	now := t.Now()
	if len(unquoted) > 0 {
		if _, err := t.Exec(`
			UPDATE missing_price SET job_id = 0, attempts = attempts + 1, soonest_at = CAST($3 AS BIGINT) + CAST($4 AS BIGINT),
				due_at = $3 + CASE WHEN attempts >= $6 OR CAST($4 AS BIGINT) * (1 << attempts) > $5 THEN $5 ELSE $4 * (1 << attempts) END
			WHERE item_id `+ids+` AND job_id = $2`,
			t.Dialect.EncodeIDs(unquoted), b.JobID, db.Micros(now), retry.Microseconds(), MaxMissingRetry.Microseconds(), maxMissingDoublings); err != nil {
			return err
		}
	}
	if len(rest) == 0 {
		return nil
	}
	_, err := t.Exec(`
		UPDATE missing_price SET job_id = 0, soonest_at = CAST($3 AS BIGINT), due_at = CASE WHEN EXISTS (
			SELECT 1 FROM market_snapshot s WHERE s.item_id = missing_price.item_id AND s.reason = `+awaiting+`) THEN CAST($4 AS BIGINT) ELSE CAST($3 AS BIGINT) END
		WHERE item_id `+ids+` AND job_id = $2`,
		t.Dialect.EncodeIDs(rest), b.JobID, db.Micros(now.Add(retry)), db.Micros(now.Add(missingDelay)))
	return err
}

// lockItems prevents other jobs from estimating the items of a batch. It locks nothing if all
// items are written by id next, because that write locks them in the same order.
func lockItems(t *db.Tx, items []EstimatedItem) error {
	unresponded := func(i EstimatedItem) bool { return !i.Responded }
	if t.Dialect == db.SQLite || !slices.ContainsFunc(items, unresponded) {
		return nil
	}
	ids := make([]int64, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	return lockByID(t, ids)
}

// lockByID locks items in the order of their ids on PostgreSQL, as all transactions do.
func lockByID(t *db.Tx, items []int64) error {
	return t.ExecPostgres(`
		SELECT count(*) FROM (
			SELECT id FROM item WHERE id IN (SELECT unnest(CAST($1 AS bigint[]))) ORDER BY id FOR NO KEY UPDATE) held`, items)
}
