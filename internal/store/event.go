package store

import (
	"assay/internal/db"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"assay/internal/event"
)

// Event is one that is kept. Ids grow in the order in which events were written,
// which is not quite that of their commits: whoever follows them by id alone may
// miss one.
type Event struct {
	ID   int64
	Kind event.Kind
	At   time.Time
	Data json.RawMessage
}

const (
	// maxEvents is how many events are kept at most.
	maxEvents = 10_000
	// leastEvents of them stay however old they are.
	leastEvents = 50
)

// AddEvent writes an event, which is there if and only if the transaction is
// committed. Whoever may come to write it twice must first write what tells that
// it was.
func (t *Tx) AddEvent(d event.Data) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if _, err := t.Exec(`INSERT INTO event (kind, at, data) VALUES ($1, $2, $3)`, string(d.Kind()), db.Micros(t.Now()), string(data)); err != nil {
		return fmt.Errorf("event %s: %w", d.Kind(), err)
	}
	t.AfterCommit(func() { db.Local[db.Counts[event.Kind]](t.DB).Add(d.Kind()) })
	return nil
}

// Events returns the newest events, the newest first.
func (s *Store) Events(ctx context.Context, most int) ([]Event, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, e *Event) error {
		var at int64
		var data string
		err := r.Scan(&e.ID, &e.Kind, &at, &data)
		e.At, e.Data = db.Moment(at), json.RawMessage(data)
		return err
	}, `SELECT id, kind, at, data FROM event ORDER BY id DESC LIMIT $1`, most)
}

// RetainEvents removes events that are older than so long, but for the newest, and
// all that are too many.
func (t *Tx) RetainEvents(age time.Duration) error {
	_, err := t.Exec(`
		DELETE FROM event WHERE id <= (SELECT id FROM event ORDER BY id DESC LIMIT 1 OFFSET $1)
		OR at < $2 AND id <= (SELECT id FROM event ORDER BY id DESC LIMIT 1 OFFSET $3)`,
		maxEvents, db.Micros(t.Now().Add(-age)), leastEvents)
	return err
}

// EventCounts tells how many events this process has committed since it opened the
// database, by kind.
func (s *Store) EventCounts() map[event.Kind]int64 {
	return db.Local[db.Counts[event.Kind]](s.DB).Get()
}
