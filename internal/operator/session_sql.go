package operator

import (
	"context"
	"database/sql"

	"assay/internal/db"
)

func insertSession(t *db.Tx, s Session) error {
	_, err := t.Exec(`
		INSERT INTO web_session (id, role, operator, bond, created_at, seen_at) VALUES ($1, $2, $3, $4, $5, $5)`,
		s.ID, s.Role.String(), s.Operator, s.Bond, db.Micros(t.Now()))
	return err
}

func deleteExpired(t *db.Tx) error {
	now := t.Now()
	_, err := t.Exec(`
		DELETE FROM web_session WHERE seen_at <= $1 OR role = 'admin' AND created_at <= $2 OR created_at <= $3`,
		db.Micros(now.Add(-IdleTimeout)), db.Micros(now.Add(-AdminTimeout)), db.Micros(now.Add(-ReadTimeout)))
	return err
}

// deleteExcess deletes the least recently used sessions of a role beyond most.
func deleteExcess(t *db.Tx, role Role, most int) error {
	_, err := t.Exec(`
		DELETE FROM web_session WHERE id IN (
			SELECT id FROM web_session WHERE role = $1 ORDER BY seen_at DESC, created_at DESC, id LIMIT 1000 OFFSET $2)`, role.String(), most)
	return err
}

func touch(t *db.Tx, id string) error {
	_, err := t.Exec(`UPDATE web_session SET seen_at = $2 WHERE id = $1`, id, db.Micros(t.Now()))
	return err
}

func deleteSession(t *db.Tx, id string) error {
	_, err := t.Exec(`DELETE FROM web_session WHERE id = $1`, id)
	return err
}

func (s *Service) session(ctx context.Context, id string) (Session, bool, error) {
	found, err := db.Collect(ctx, s.DB.Frequent, func(r *sql.Rows, out *Session) error {
		var role string
		var created, seen int64
		if err := r.Scan(&out.ID, &role, &out.Operator, &out.Bond, &created, &seen); err != nil {
			return err
		}
		out.CreatedAt, out.SeenAt = db.Moment(created), db.Moment(seen)
		var err error
		out.Role, err = ParseRole(role)
		return err
	}, `SELECT id, role, operator, bond, created_at, seen_at FROM web_session WHERE id = $1`, id)
	if err != nil || len(found) == 0 {
		return Session{}, false, db.Transient(err)
	}
	return found[0], true, nil
}
