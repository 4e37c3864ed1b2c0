package event

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"assay/internal/db"
)

// Batch is an event with the price changes of one transaction. The item with index i has the
// change number Number - len(Items) + 1 + i. Items of which only other figures changed have the
// numbers before them. A reader that does not need these items gets a Batch without them, which
// may have no items.
type Batch struct {
	Number int64
	At     int64 // price_point.at of all its items, in microseconds
	Items  []int64
}

// First returns the change number of the first item.
func (b *Batch) First() int64 { return b.Number - int64(len(b.Items)) + 1 }

// numberedAtOnce limits the events that one transaction numbers.
const numberedAtOnce = 1_000

// assignNumbers assigns numbers to events without one, in the order of their ids, and returns
// the last number. A transaction that commits later gets higher numbers, because the row of
// event_feed is locked before the events are read. Numbers are at least the time in
// microseconds. After a restore of an older backup they therefore differ from the numbers
// that clients saw before.
func assignNumbers(t *db.Tx) (last int64, more bool, err error) {
	err = t.QueryRow(`
		INSERT INTO event_feed (id, last, expired, expired_events) VALUES (1, 0, 0, 0)
		ON CONFLICT (id) DO UPDATE SET last = event_feed.last RETURNING last`).Scan(&last)
	if err != nil {
		return 0, false, err
	}
	type row struct{ id, size int64 }
	events, err := db.Collect(t.Context(), t, func(r *sql.Rows, e *row) error { return r.Scan(&e.id, &e.size) },
		`SELECT id, size FROM event WHERE number = 0 ORDER BY id LIMIT $1`, numberedAtOnce)
	if err != nil || len(events) == 0 {
		return last, false, err
	}
	rows := db.NewTable(numberColumns, len(events))
	last = max(last, db.Micros(t.Now()))
	for _, e := range events {
		last += e.size
		rows.Int(e.id, last)
	}
	if _, err := t.WriteRows(numbersBulk, rows); err != nil {
		return 0, false, err
	}
	_, err = t.Exec(`UPDATE event_feed SET last = $1 WHERE id = 1`, last)
	return last, len(events) == numberedAtOnce, err
}

const numberColumns = "id bigint, number bigint"

var numbersBulk = db.NewBulk(`UPDATE event SET number = v.column2 FROM (`, numberColumns, `) AS v WHERE event.id = v.column1`)

// progress returns the last assigned number, and whether events without a number exist.
func progress(ctx context.Context, q db.Querier) (last int64, pending bool, err error) {
	err = db.Each(ctx, q, func(r *sql.Rows) error { return r.Scan(&last, &pending) }, `
		SELECT coalesce((SELECT last FROM event_feed WHERE id = 1), 0), EXISTS (SELECT 1 FROM event WHERE number = 0)`)
	return last, pending, err
}

// ErrPending means that the database holds price changes without a number.
var ErrPending = errors.New("price changes have no number yet")

// LastChange returns the number of the last price change, or the number of the last deleted
// event if that is greater. It returns 0 if there was no event. After accepts the result as a
// cursor. In a snapshot of the database, the number identifies the state of all prices.
// LastChange returns ErrPending if newer changes have no number yet.
func LastChange(ctx context.Context, q db.Querier) (number int64, err error) {
	var pending bool
	var expired int64
	err = db.Each(ctx, q, func(r *sql.Rows) error { return r.Scan(&number, &expired, &pending) }, `
		SELECT coalesce((SELECT number FROM event WHERE kind = $1 AND number > 0 ORDER BY number DESC LIMIT 1), 0),
			coalesce((SELECT expired_events FROM event_feed WHERE id = 1), 0),
			EXISTS (SELECT 1 FROM event WHERE number = 0 AND kind = $1)`, string(PriceChanged))
	if err == nil && pending {
		err = ErrPending
	}
	return max(number, expired), err
}

// ErrExpired means that events after a cursor have been deleted, or that the cursor is not the
// number of a stored event.
var ErrExpired = errors.New("the cursor has expired")

// checkCursor returns ErrExpired if the number since belongs to no event, or if events after it
// have been deleted. The number of the last deleted event is valid, because no event after it
// is missing. If onlyChanges is true, deleted events of other kinds do not matter.
func checkCursor(ctx context.Context, q db.Querier, since int64, onlyChanges bool) error {
	var expired, expiredEvents int64
	var known bool
	err := db.Each(ctx, q, func(r *sql.Rows) error { return r.Scan(&expired, &expiredEvents, &known) }, `
		SELECT coalesce((SELECT expired FROM event_feed WHERE id = 1), 0), coalesce((SELECT expired_events FROM event_feed WHERE id = 1), 0),
			coalesce((SELECT number - size <= $1 FROM event WHERE number >= $1 AND number > 0 ORDER BY number LIMIT 1), FALSE)`, since)
	if err != nil {
		return err
	}
	oldest := expiredEvents
	if onlyChanges {
		oldest = expired
	}
	if since < oldest || !known && since != expired && since != expiredEvents {
		return ErrExpired
	}
	return nil
}

// FirstCursor returns the lowest number that After accepts: the number of the last deleted event,
// or 0.
func FirstCursor(ctx context.Context, q db.Querier) (number int64, err error) {
	err = db.Each(ctx, q, func(r *sql.Rows) error { return r.Scan(&number) },
		`SELECT coalesce((SELECT expired_events FROM event_feed WHERE id = 1), 0)`)
	return number, err
}

// MaxBatches limits the batches that Changes returns. They may have fewer items than requested.
const MaxBatches = 100

// Changes returns price changes after the number since, up to limit items or a few more, in up to
// MaxBatches batches. If figures is set, they include items of which only other figures changed. It
// returns ErrExpired if changes after since have been deleted, or if since is not the number of
// an event.
func Changes(ctx context.Context, q db.Querier, since int64, limit int, figures bool) ([]Batch, error) {
	if err := checkCursor(ctx, q, since, true); err != nil {
		return nil, err
	}
	var out []Batch
	scan := func(r *sql.Rows, b *Batch) (err error) {
		var data string
		if err := r.Scan(&b.Number, &b.At, &data); err != nil {
			return err
		}
		*b, err = batchOf(b.Number, b.At, data, since, figures)
		return err
	}
	for limit > 0 && len(out) < MaxBatches {
		next, err := db.Collect(ctx, q, scan, `
			SELECT number, at, data FROM event WHERE number > $1 AND kind = $2 ORDER BY number LIMIT 4`, since, string(PriceChanged))
		if err != nil || len(next) == 0 {
			return out, err
		}
		for _, b := range next {
			out, since = append(out, b), b.Number
			if limit -= len(b.Items); limit <= 0 {
				return out, nil
			}
		}
	}
	return out, nil
}

// batchOf decodes the changes of an event after the number since.
func batchOf(number, at int64, data string, since int64, figures bool) (Batch, error) {
	var changed PricesChanged
	if err := json.Unmarshal([]byte(data), &changed); err != nil {
		return Batch{}, fmt.Errorf("event %d: %w", number, err)
	}
	b := Batch{number, at, changed.Items}
	if figures {
		b.Items = append(changed.Figures, changed.Items...)
	}
	if skip := since - b.First() + 1; skip > 0 {
		b.Items = b.Items[skip:]
	}
	return b, nil
}

// Numbered is an event with its number.
type Numbered struct {
	Stored
	Number int64
	Batch  *Batch // of price.changed only
}

// After returns the events after a number, in the order of their commits. It returns up
// to limit events, and fewer if they have more than limit price changes in all. If figures is set, price
// changes include items of which only other figures changed. It returns ErrExpired if events after that
// number have been deleted, or if it is not the number of an event.
func After(ctx context.Context, q db.Querier, after int64, limit int, figures bool) ([]Numbered, error) {
	if err := checkCursor(ctx, q, after, false); err != nil {
		return nil, err
	}
	return readAfter(ctx, q, after, limit, figures)
}

// Resume is After without figures, for a reader that continues when its cursor has expired. In that case, Resume
// returns the stored events after the cursor instead of ErrExpired, and lost is not 0: it is
// the cursor or the number of the last deleted event, whichever is greater.
func Resume(ctx context.Context, q db.Querier, after int64, limit int) (events []Numbered, lost int64, err error) {
	err = checkCursor(ctx, q, after, false)
	if errors.Is(err, ErrExpired) {
		err = db.Each(ctx, q, func(r *sql.Rows) error { return r.Scan(&lost) }, `SELECT expired_events FROM event_feed WHERE id = 1`)
		lost = max(lost, after)
	}
	if err != nil {
		return nil, 0, err
	}
	events, err = readAfter(ctx, q, after, limit, false)
	return events, lost, err
}

func readAfter(ctx context.Context, q db.Querier, after int64, limit int, figures bool) ([]Numbered, error) {
	var out []Numbered
	size := 0
	err := db.Each(ctx, q, func(r *sql.Rows) error {
		var e Numbered
		var at int64
		var data string
		if err := r.Scan(&e.Number, &e.ID, &e.Kind, &at, &data); err != nil {
			return err
		}
		e.At, e.Data = db.Moment(at), json.RawMessage(data)
		n := 1
		if e.Kind == PriceChanged {
			b, err := batchOf(e.Number, at, data, after, figures)
			if err != nil {
				return err
			}
			e.Batch, n = &b, len(b.Items)
		}
		if size += n; size > limit && len(out) > 0 {
			return errFull
		}
		out = append(out, e)
		return nil
	}, `SELECT number, id, kind, at, data FROM event WHERE number > $1 ORDER BY number LIMIT $2`, after, limit)
	if errors.Is(err, errFull) {
		err = nil
	}
	return out, err
}

// errFull ends a query when a page is full.
var errFull = errors.New("page is full")
