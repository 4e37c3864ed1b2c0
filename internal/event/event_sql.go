package event

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"assay/internal/db"
)

// Stored is an event in the database. Ids increase in the order of writing, which can
// differ from the order of commits.
type Stored struct {
	ID   int64
	Kind Kind
	At   time.Time
	Data json.RawMessage
}

const (
	// maxEvents limits the stored events of the kinds without a limit of their own below.
	maxEvents = 10_000
	// minEvents is the number of newest events that are kept regardless of their age.
	minEvents = 50

	// maxChanges and changesAge limit the stored price.changed events. Each has at most one
	// batch of a job, about 500 items.
	maxChanges = 20_000
	changesAge = 3 * 24 * time.Hour

	// maxMarket limits the stored events of single inventories, listings and trades. changesAge
	// limits their age too. They take up to about 100 MB.
	maxMarket = 200_000
)

// Add writes an event in a transaction. A caller that may run twice must first write a
// row that shows whether it ran before.
func Add(t *db.Tx, d Data) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	size := 1
	if changed, ok := d.(PricesChanged); ok {
		size = len(changed.Figures) + len(changed.Items)
	}
	if _, err := t.Exec(`INSERT INTO event (kind, at, size, data) VALUES ($1, $2, $3, $4)`, string(d.Kind()), db.Micros(t.Now()), size, string(data)); err != nil {
		return fmt.Errorf("write event %s: %w", d.Kind(), err)
	}
	t.AfterCommit(func() {
		db.Local[db.Counts[Kind]](t.DB).Add(d.Kind())
		db.Local[added](t.DB).note()
	})
	return nil
}

// rare selects all events except price changes and events of single inventories, listings and
// trades. It repeats the condition of the index event_rare, because only a query with the same
// literals uses a partial index.
const rare = `kind NOT IN ('price.changed', 'inventory.priced', 'listing.sold', 'listing.cancelled', 'listing.expired', 'trade.completed', 'trade.reversed', 'trade.settled')`

// List returns up to limit events, newest first, without price changes and events of single
// inventories, listings and trades.
func List(ctx context.Context, s *db.DB, limit int) ([]Stored, error) {
	return listBefore(ctx, s, rareBefore, math.MaxInt64, limit)
}

// ListBefore is like List, for events with an id below before.
func ListBefore(ctx context.Context, s *db.DB, before int64, limit int) ([]Stored, error) {
	return listBefore(ctx, s, rareBefore, before, limit)
}

// ListMarketBefore returns up to limit events of single inventories, listings and trades with an
// id below before, newest first.
func ListMarketBefore(ctx context.Context, s *db.DB, before int64, limit int) ([]Stored, error) {
	return listBefore(ctx, s, marketBefore, before, limit)
}

const (
	rareBefore   = `SELECT id, kind, at, data FROM event WHERE ` + rare + ` AND id < $1 ORDER BY id DESC LIMIT $2`
	marketBefore = `SELECT id, kind, at, data FROM event WHERE ` + marketOnly + ` AND id < $1 ORDER BY id DESC LIMIT $2`
)

func listBefore(ctx context.Context, s *db.DB, query string, before int64, limit int) ([]Stored, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, e *Stored) error {
		var at int64
		var data string
		err := r.Scan(&e.ID, &e.Kind, &at, &data)
		e.At, e.Data = db.Moment(at), json.RawMessage(data)
		return err
	}, query, before, limit)
}

// Conditions of the other classes of events.
const (
	changesOnly = `kind = 'price.changed'`
	marketOnly  = `NOT (` + rare + `) AND kind <> 'price.changed'`
)

// The find statements return the number of the last event to delete. Their parameters come
// from deleteOld. The delete statements delete all events up to that number.
const (
	findChanges = `SELECT coalesce(max(number), 0) FROM event WHERE number > 0 AND ` + changesOnly + ` AND (
	number <= (SELECT number FROM event WHERE ` + changesOnly + ` ORDER BY number DESC LIMIT 1 OFFSET $1)
	OR at < $2 AND number <= (SELECT number FROM event WHERE ` + changesOnly + ` ORDER BY number DESC LIMIT 1 OFFSET $3))`
	deleteChanges = `DELETE FROM event WHERE number > 0 AND number <= $1 AND ` + changesOnly

	findMarket = `SELECT coalesce(max(number), 0) FROM event WHERE number > 0 AND ` + marketOnly + ` AND (
	number <= (SELECT number FROM event WHERE ` + marketOnly + ` ORDER BY number DESC LIMIT 1 OFFSET $1)
	OR at < $2 AND number <= (SELECT number FROM event WHERE ` + marketOnly + ` ORDER BY number DESC LIMIT 1 OFFSET $3))`
	deleteMarket = `DELETE FROM event WHERE number > 0 AND number <= $1 AND ` + marketOnly

	findRare = `SELECT coalesce(max(number), 0) FROM event WHERE number > 0 AND ` + rare + ` AND (
	number <= (SELECT number FROM event WHERE ` + rare + ` ORDER BY number DESC LIMIT 1 OFFSET $1)
	OR at < $2 AND number <= (SELECT number FROM event WHERE ` + rare + ` ORDER BY number DESC LIMIT 1 OFFSET $3))`
	deleteRare = `DELETE FROM event WHERE number > 0 AND number <= $1 AND ` + rare
)

// Retain deletes numbered events that are older than age, except the newest minEvents. It also
// deletes the oldest events beyond maxEvents. Price changes and events of inventories, listings and
// trades have their own limits. Retain stores the numbers of the last deleted events in event_feed,
// so that a reader with an older cursor gets ErrExpired.
func Retain(t *db.Tx, age time.Duration) error {
	changes, err := deleteOld(t, findChanges, deleteChanges, changesAge, maxChanges, 0)
	if err != nil {
		return err
	}
	single, err := deleteOld(t, findMarket, deleteMarket, changesAge, maxMarket, 0)
	if err != nil {
		return err
	}
	others, err := deleteOld(t, findRare, deleteRare, age, maxEvents, minEvents)
	if err != nil {
		return err
	}
	if changes == 0 && single == 0 && others == 0 {
		return nil
	}
	_, err = t.Exec(`
		UPDATE event_feed SET expired = CASE WHEN expired < $1 THEN $1 ELSE expired END,
			expired_events = CASE WHEN expired_events < $2 THEN $2 ELSE expired_events END
		WHERE id = 1`, changes, max(changes, single, others))
	return err
}

// deleteOld deletes old events of a class. It keeps the newest least events. Of the others, it
// deletes each event that is older than age or not among the newest most events. It returns
// the number of the last deleted event.
func deleteOld(t *db.Tx, find, remove string, age time.Duration, most, least int) (last int64, err error) {
	err = t.QueryRow(find, most, db.Micros(t.Now().Add(-age)), least).Scan(&last)
	if err != nil || last == 0 {
		return 0, err
	}
	_, err = t.Exec(remove, last)
	return last, err
}

// Counts returns the number of events that this process has committed, by kind.
func Counts(s *db.DB) map[Kind]int64 {
	return db.Local[db.Counts[Kind]](s).Get()
}
