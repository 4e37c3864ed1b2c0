package db

import (
	"context"
	"database/sql"
	"errors"
)

// What a batch or a sync is about is some hundred rows of tables that hold many
// times as many, or were empty a moment ago. PostgreSQL is to find each by its index as
// long as the transaction lasts, whatever its statistics say: while they are old
// it would read whole tables for each batch. Nor is it to compile a plan for each execution,
// because the plan seems costly without statistics or an index.
const byIndexOnPostgres = `
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
	set_config('jit', 'off', true)`

// ByIndex lets the transaction find rows by index: see byIndexOnPostgres.
func (t *Tx) ByIndex() error {
	if t.indexed {
		return nil
	}
	t.indexed = true
	return t.ExecPostgres(byIndexOnPostgres)
}

// planOnceOnPostgres lets a session keep the plans of its prepared statements, for
// as long as the transaction lasts. They find rows by index, so that a plan that
// was made while a table was small is good when it is large.
const planOnceOnPostgres = `
SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off`

func (t *Tx) planOnce() error {
	t.indexed = true
	return t.ExecPostgres(planOnceOnPostgres)
}

// CollectByIndex is collect for a query about a batch.
func CollectByIndex[T any](ctx context.Context, s *DB, scan func(*sql.Rows, *T) error, query string, args ...any) (_ []T, err error) {
	if s.Dialect == SQLite {
		return Collect(ctx, s.Read, scan, query, args...)
	}
	tx, err := s.Read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, Transient(err)
	}
	defer func() { err = errors.Join(err, s.ignoreLost(tx.Rollback())) }()
	if _, err := tx.ExecContext(ctx, byIndexOnPostgres); err != nil {
		return nil, Transient(err)
	}
	out, err := Collect(ctx, tx, scan, query, args...)
	return out, Transient(err)
}
