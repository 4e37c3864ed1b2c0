package store

import (
	"context"
	"database/sql"
	"errors"
)

// What a batch or a sync is about is some hundred rows of tables that hold many
// times as many, or were empty a moment ago. PostgreSQL is to find each by its index as
// long as the transaction lasts, whatever its statistics say: while they are old
// it would read whole tables for each batch. Nor is it to compile a plan, each time
// anew, because it seems dear for want of statistics or of an index.
const byIndexOnPostgres = `
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
	set_config('jit', 'off', true)`

func (t *Tx) byIndex() error {
	if t.indexed {
		return nil
	}
	t.indexed = true
	return t.hold(byIndexOnPostgres)
}

// planOnceOnPostgres lets a session keep the plans of its prepared statements, for
// as long as the transaction lasts. They find rows by index, so that a plan that
// was made while a table was small is good when it is large.
const planOnceOnPostgres = `
SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off`

func (t *Tx) planOnce() error {
	t.indexed = true
	return t.hold(planOnceOnPostgres)
}

// collectByIndex is collect for a query about a batch.
func collectByIndex[T any](ctx context.Context, s *Store, scan func(*sql.Rows, *T) error, query string, args ...any) (_ []T, err error) {
	if s.d == onSQLite {
		return collect(ctx, s.read, scan, query, args...)
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, blame(err)
	}
	defer func() { err = errors.Join(err, s.ignoreLost(tx.Rollback())) }()
	if _, err := tx.ExecContext(ctx, byIndexOnPostgres); err != nil {
		return nil, blame(err)
	}
	out, err := collect(ctx, tx, scan, query, args...)
	return out, blame(err)
}
