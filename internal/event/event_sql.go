package event

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
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
	// maxEvents limits the number of stored events.
	maxEvents = 10_000
	// minEvents is the number of newest events that are kept regardless of their age.
	minEvents = 50

	// maxChanges and changesAge limit the stored price.changed events. Each has at most one
	// batch of a job, about 500 items.
	maxChanges = 20_000
	changesAge = 3 * 24 * time.Hour
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
		size = len(changed.Items)
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

// List returns up to most events other than price changes, newest first.
func List(ctx context.Context, s *db.DB, most int) ([]Stored, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, e *Stored) error {
		var at int64
		var data string
		err := r.Scan(&e.ID, &e.Kind, &at, &data)
		e.At, e.Data = db.Moment(at), json.RawMessage(data)
		return err
	}, `SELECT id, kind, at, data FROM event WHERE kind <> $2 ORDER BY id DESC LIMIT $1`, most, string(PriceChanged))
}

// Retain deletes numbered events that are older than age, except the newest minEvents. It also
// deletes the oldest events beyond maxEvents. Price changes have limits of their own:
// changesAge and maxChanges. The row of event_feed records what was deleted, so that a reader
// with an older cursor gets ErrExpired.
func Retain(t *db.Tx, age time.Duration) error {
	var changes, others int64
	err := t.QueryRow(`
		SELECT coalesce((SELECT max(number) FROM event WHERE kind = $1 AND number > 0 AND (
				at < $2 OR number <= (SELECT number FROM event WHERE kind = $1 ORDER BY number DESC LIMIT 1 OFFSET $3))), 0),
			coalesce((SELECT max(number) FROM event WHERE kind <> $1 AND number > 0 AND (
				number <= (SELECT number FROM event WHERE kind <> $1 ORDER BY number DESC LIMIT 1 OFFSET $4)
				OR at < $5 AND number <= (SELECT number FROM event WHERE kind <> $1 ORDER BY number DESC LIMIT 1 OFFSET $6))), 0)`,
		string(PriceChanged), db.Micros(t.Now().Add(-changesAge)), maxChanges,
		maxEvents, db.Micros(t.Now().Add(-age)), minEvents).Scan(&changes, &others)
	if err != nil || changes == 0 && others == 0 {
		return err
	}
	if _, err := t.Exec(`
		UPDATE event_feed SET expired = CASE WHEN expired < $1 THEN $1 ELSE expired END,
			expired_events = CASE WHEN expired_events < $2 THEN $2 ELSE expired_events END
		WHERE id = 1`, changes, max(changes, others)); err != nil {
		return err
	}
	_, err = t.Exec(`DELETE FROM event WHERE number > 0 AND (kind = $1 AND number <= $2 OR kind <> $1 AND number <= $3)`,
		string(PriceChanged), changes, others)
	return err
}

// Counts returns the number of events that this process has committed, by kind.
func Counts(s *db.DB) map[Kind]int64 {
	return db.Local[db.Counts[Kind]](s).Get()
}
