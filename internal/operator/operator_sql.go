package operator

import (
	"context"
	"database/sql"

	"assay/internal/db"
	"assay/internal/fault"
)

func insert(t *db.Tx, name string, role Role, hash string) error {
	var operators int
	if err := t.QueryRow(`SELECT count(*) FROM operator_account`).Scan(&operators); err != nil {
		return err
	}
	if operators >= maxOperators {
		return fault.New(fault.Conflict, "too_many_operators", "There are %d operators, which is the limit.", operators)
	}
	n, err := t.Exec(`
		INSERT INTO operator_account (name, role, password, disabled, created_at, changed_at)
		VALUES ($1, $2, $3, 0, $4, $4) ON CONFLICT (name) DO NOTHING`, name, role.String(), hash, db.Micros(t.Now()))
	if err == nil && n == 0 {
		return fault.New(fault.Conflict, "operator_exists", "There is an operator with this name. Set a new password, or use another name.")
	}
	return err
}

func setPassword(t *db.Tx, name, hash string) error {
	n, err := t.Exec(`UPDATE operator_account SET password = $2, changed_at = $3 WHERE name = $1`, name, hash, db.Micros(t.Now()))
	return endSessions(t, name, n, err)
}

func setRole(t *db.Tx, name string, role Role) error {
	n, err := t.Exec(`UPDATE operator_account SET role = $2, changed_at = $3 WHERE name = $1`, name, role.String(), db.Micros(t.Now()))
	return endSessions(t, name, n, err)
}

func setDisabled(t *db.Tx, name string, disabled bool) error {
	flag := 0
	if disabled {
		flag = 1
	}
	n, err := t.Exec(`UPDATE operator_account SET disabled = $2, changed_at = $3 WHERE name = $1`, name, flag, db.Micros(t.Now()))
	return endSessions(t, name, n, err)
}

// endSessions ends the sessions of an operator after an update of n rows that returned err.
func endSessions(t *db.Tx, name string, n int64, err error) error {
	if err != nil {
		return err
	}
	if n == 0 {
		return notFound()
	}
	_, err = t.Exec(`DELETE FROM web_session WHERE operator = $1`, name)
	return err
}

// List returns all operators, ordered by name.
func (s *Service) List(ctx context.Context) ([]Operator, error) {
	return db.Collect(ctx, s.DB.Read, func(r *sql.Rows, o *Operator) error { return scan(r, o, new(string)) }, `
		SELECT name, role, disabled, created_at, changed_at, password FROM operator_account ORDER BY name`)
}

// find returns an operator and the hash of the operator's password. The hash is empty if there is no
// such operator.
func (s *Service) find(ctx context.Context, name string) (Operator, string, error) {
	var hash string
	found, err := db.Collect(ctx, s.DB.Read, func(r *sql.Rows, o *Operator) error { return scan(r, o, &hash) }, `
		SELECT name, role, disabled, created_at, changed_at, password FROM operator_account WHERE name = $1`, name)
	if err != nil || len(found) == 0 {
		return Operator{}, "", db.Transient(err)
	}
	return found[0], hash, nil
}

func scan(r *sql.Rows, o *Operator, password *string) error {
	var role string
	var disabled int
	var created, changed int64
	if err := r.Scan(&o.Name, &role, &disabled, &created, &changed, password); err != nil {
		return err
	}
	o.Disabled, o.CreatedAt, o.ChangedAt = disabled == 1, db.Moment(created), db.Moment(changed)
	var err error
	o.Role, err = ParseRole(role)
	return err
}
