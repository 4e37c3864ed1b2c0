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
// differ from the order of commits. A reader that polls by id alone can miss an event.
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
)

// Add writes an event in a transaction. A caller that may run twice must first write a
// row that shows whether it ran before.
func Add(t *db.Tx, d Data) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if _, err := t.Exec(`INSERT INTO event (kind, at, data) VALUES ($1, $2, $3)`, string(d.Kind()), db.Micros(t.Now()), string(data)); err != nil {
		return fmt.Errorf("write event %s: %w", d.Kind(), err)
	}
	t.AfterCommit(func() { db.Local[db.Counts[Kind]](t.DB).Add(d.Kind()) })
	return nil
}

// List returns up to most events, newest first.
func List(ctx context.Context, s *db.DB, most int) ([]Stored, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, e *Stored) error {
		var at int64
		var data string
		err := r.Scan(&e.ID, &e.Kind, &at, &data)
		e.At, e.Data = db.Moment(at), json.RawMessage(data)
		return err
	}, `SELECT id, kind, at, data FROM event ORDER BY id DESC LIMIT $1`, most)
}

// Retain deletes events that are older than age, except the newest minEvents. It also
// deletes the oldest events beyond maxEvents.
func Retain(t *db.Tx, age time.Duration) error {
	_, err := t.Exec(`
		DELETE FROM event WHERE id <= (SELECT id FROM event ORDER BY id DESC LIMIT 1 OFFSET $1)
		OR at < $2 AND id <= (SELECT id FROM event ORDER BY id DESC LIMIT 1 OFFSET $3)`,
		maxEvents, db.Micros(t.Now().Add(-age)), minEvents)
	return err
}

// Counts returns the number of events that this process has committed, by kind.
func Counts(s *db.DB) map[Kind]int64 {
	return db.Local[db.Counts[Kind]](s).Get()
}
