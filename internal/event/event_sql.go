package event

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"assay/internal/db"
)

// Stored is an event of the database. Ids grow in the order in which events were written,
// which is not quite that of their commits: a reader that follows them by id alone may
// miss one.
type Stored struct {
	ID   int64
	Kind Kind
	At   time.Time
	Data json.RawMessage
}

const (
	// maxEvents is how many events are kept at most.
	maxEvents = 10_000
	// leastEvents of them stay however old they are.
	leastEvents = 50
)

// Add writes an event, which is there if and only if the transaction is
// committed. A caller that may run twice first writes a row that shows whether it did.
func Add(t *db.Tx, d Data) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if _, err := t.Exec(`INSERT INTO event (kind, at, data) VALUES ($1, $2, $3)`, string(d.Kind()), db.Micros(t.Now()), string(data)); err != nil {
		return fmt.Errorf("event %s: %w", d.Kind(), err)
	}
	t.AfterCommit(func() { db.Local[db.Counts[Kind]](t.DB).Add(d.Kind()) })
	return nil
}

// List returns the newest events, the newest first.
func List(ctx context.Context, s *db.DB, most int) ([]Stored, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, e *Stored) error {
		var at int64
		var data string
		err := r.Scan(&e.ID, &e.Kind, &at, &data)
		e.At, e.Data = db.Moment(at), json.RawMessage(data)
		return err
	}, `SELECT id, kind, at, data FROM event ORDER BY id DESC LIMIT $1`, most)
}

// Retain removes events that are older than so long, but for the newest, and
// all that are too many.
func Retain(t *db.Tx, age time.Duration) error {
	_, err := t.Exec(`
		DELETE FROM event WHERE id <= (SELECT id FROM event ORDER BY id DESC LIMIT 1 OFFSET $1)
		OR at < $2 AND id <= (SELECT id FROM event ORDER BY id DESC LIMIT 1 OFFSET $3)`,
		maxEvents, db.Micros(t.Now().Add(-age)), leastEvents)
	return err
}

// Counts returns how many events this process has committed since it opened the
// database, by kind.
func Counts(s *db.DB) map[Kind]int64 {
	return db.Local[db.Counts[Kind]](s).Get()
}
