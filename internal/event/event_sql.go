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

// A class is a set of kinds with its own limits. Retain keeps the newest least events of a class. Of
// the others, it deletes each event that is older than age or not among the newest most events.
type class struct {
	find    string // the number of the last event to delete, or 0
	step    string // the number of the event with a position, or the given last number
	remove  string // deletes all events up to a number
	age     time.Duration
	most    int
	least   int
	changes bool // the class of price changes
}

// The conditions are literals, because only a query with the literals of a partial index uses it.
const (
	findChanges = `SELECT coalesce(max(number), 0) FROM event WHERE number > 0 AND ` + changesOnly + ` AND (
	number <= (SELECT number FROM event WHERE ` + changesOnly + ` ORDER BY number DESC LIMIT 1 OFFSET $1)
	OR at < $2 AND number <= (SELECT number FROM event WHERE ` + changesOnly + ` ORDER BY number DESC LIMIT 1 OFFSET $3))`
	stepChanges   = `SELECT coalesce((SELECT number FROM event WHERE number > 0 AND number <= $1 AND ` + changesOnly + ` ORDER BY number LIMIT 1 OFFSET $2), $1)`
	deleteChanges = `DELETE FROM event WHERE number > 0 AND number <= $1 AND ` + changesOnly

	findMarket = `SELECT coalesce(max(number), 0) FROM event WHERE number > 0 AND ` + marketOnly + ` AND (
	number <= (SELECT number FROM event WHERE ` + marketOnly + ` ORDER BY number DESC LIMIT 1 OFFSET $1)
	OR at < $2 AND number <= (SELECT number FROM event WHERE ` + marketOnly + ` ORDER BY number DESC LIMIT 1 OFFSET $3))`
	stepMarket   = `SELECT coalesce((SELECT number FROM event WHERE number > 0 AND number <= $1 AND ` + marketOnly + ` ORDER BY number LIMIT 1 OFFSET $2), $1)`
	deleteMarket = `DELETE FROM event WHERE number > 0 AND number <= $1 AND ` + marketOnly

	findRare = `SELECT coalesce(max(number), 0) FROM event WHERE number > 0 AND ` + rare + ` AND (
	number <= (SELECT number FROM event WHERE ` + rare + ` ORDER BY number DESC LIMIT 1 OFFSET $1)
	OR at < $2 AND number <= (SELECT number FROM event WHERE ` + rare + ` ORDER BY number DESC LIMIT 1 OFFSET $3))`
	stepRare   = `SELECT coalesce((SELECT number FROM event WHERE number > 0 AND number <= $1 AND ` + rare + ` ORDER BY number LIMIT 1 OFFSET $2), $1)`
	deleteRare = `DELETE FROM event WHERE number > 0 AND number <= $1 AND ` + rare
)

// deletedAtOnce limits the events that one transaction deletes.
const deletedAtOnce = 1_000

// Retain deletes numbered events that are older than age, except the newest minEvents. It also
// deletes the oldest events beyond maxEvents. Price changes and events of inventories, listings and
// trades have their own limits. Retain stores the numbers of the last deleted events in event_feed,
// so that a reader with an older cursor gets ErrExpired. It deletes in small transactions.
func Retain(ctx context.Context, s *db.DB, age time.Duration) error {
	for _, c := range []class{
		{findChanges, stepChanges, deleteChanges, changesAge, maxChanges, 0, true},
		{findMarket, stepMarket, deleteMarket, changesAge, maxMarket, 0, false},
		{findRare, stepRare, deleteRare, age, maxEvents, minEvents, false},
	} {
		var last int64
		err := s.Read.QueryRowContext(ctx, c.find, c.most, db.Micros(s.Clock().Add(-c.age)), c.least).Scan(&last)
		for done := int64(0); done < last && err == nil; {
			err = s.InTx(ctx, func(t *db.Tx) (err error) {
				done, err = deleteOld(t, &c, last)
				return err
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteOld deletes the oldest events of a class, up to the number last and at most deletedAtOnce. It
// returns the number of the last event that it deleted.
func deleteOld(t *db.Tx, c *class, last int64) (done int64, err error) {
	if err := t.QueryRow(c.step, last, deletedAtOnce-1).Scan(&done); err != nil {
		return 0, err
	}
	if _, err := t.Exec(c.remove, done); err != nil {
		return 0, err
	}
	var changes int64
	if c.changes {
		changes = done
	}
	_, err = t.Exec(`
		UPDATE event_feed SET expired = CASE WHEN expired < $1 THEN $1 ELSE expired END,
			expired_events = CASE WHEN expired_events < $2 THEN $2 ELSE expired_events END
		WHERE id = 1`, changes, done)
	return done, err
}

// Counts returns the number of events that this process has committed, by kind.
func Counts(s *db.DB) map[Kind]int64 {
	return db.Local[db.Counts[Kind]](s).Get()
}
