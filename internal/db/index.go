package db

import (
	"context"
	"database/sql"
	"errors"
)

// byIndexOnPostgres makes PostgreSQL use indexes until the transaction ends. A batch or a
// sync reads a few hundred rows of tables that are much larger, or were empty until
// recently. With outdated statistics, PostgreSQL would scan whole tables for each batch.
// The settings also turn off JIT compilation: with wrong cost estimates, PostgreSQL would
// compile each execution.
const byIndexOnPostgres = `
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
	set_config('jit', 'off', true)`

// ByIndex makes PostgreSQL find rows by index until the transaction ends: see
// byIndexOnPostgres.
func (t *Tx) ByIndex() error {
	if t.indexed {
		return nil
	}
	t.indexed = true
	return t.ExecPostgres(byIndexOnPostgres)
}

// planOnceOnPostgres makes a session keep the plans of its prepared statements until the
// transaction ends. The plans use indexes. Therefore a plan made for a small table is
// also good for a large one.
const planOnceOnPostgres = `
SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
SET LOCAL jit = off`

func (t *Tx) planOnce() error {
	t.indexed = true
	return t.ExecPostgres(planOnceOnPostgres)
}

// CollectByIndex is Collect with the settings of byIndexOnPostgres.
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
