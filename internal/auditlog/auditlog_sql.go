package auditlog

import (
	"context"
	"database/sql"
	"strings"

	"assay/internal/db"
)

// add writes an entry with the time of the transaction.
func add(t *db.Tx, e Entry) error {
	if e.created != "" {
		path, query, _ := strings.Cut(e.Target, "?")
		e.Target = strings.TrimSuffix(path+"/"+e.created+"?"+query, "?")
	}
	if len(e.Target) > maxTarget {
		e.Target = e.Target[:maxTarget]
	}
	_, err := t.Exec(`INSERT INTO audit_entry (at, actor, address, action, target, request_id) VALUES ($1, $2, $3, $4, $5, $6)`,
		db.Micros(t.Now()), e.Actor, e.Address, e.Action, strings.ToValidUTF8(e.Target, "�"), e.RequestID)
	return err
}

// List returns up to limit entries with ids below before, newest first. If before is 0, the list
// begins with the newest entry. If actor is not empty, the list has only entries of this actor.
func List(ctx context.Context, s *db.DB, actor string, before int64, limit int) ([]Entry, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, e *Entry) error {
		var at int64
		err := r.Scan(&e.ID, &at, &e.Actor, &e.Address, &e.Action, &e.Target, &e.RequestID)
		e.At = db.Moment(at)
		return err
	}, `
		SELECT id, at, actor, address, action, target, request_id FROM audit_entry
		WHERE ($1 = 0 OR id < $1) AND ($2 = '' OR actor = $2) ORDER BY id DESC LIMIT $3`, before, actor, limit)
}

// deleteBatch is the number of entries that one transaction deletes.
const deleteBatch = 5_000

// deleteOld examines the oldest entries, up to batch. It deletes an entry if it is older than maxAge,
// or if at least kept entries are newer. It reports whether there may be more to delete.
func deleteOld(t *db.Tx, kept, batch int) (more bool, err error) {
	n, err := t.Exec(`
		DELETE FROM audit_entry WHERE id IN (
			SELECT id FROM audit_entry ORDER BY id LIMIT $3)
			AND (at < $1 OR id <= (SELECT max(id) FROM audit_entry) - $2)`, db.Micros(t.Now().Add(-maxAge)), kept, batch)
	return n == int64(batch), err
}
