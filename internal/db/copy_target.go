package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// copyTarget is the target of a copy, which is written in one transaction.
type copyTarget struct {
	d    Dialect
	conn *sql.Conn
	tx   *sql.Tx
}

// openTarget begins the transaction on an open, empty database. It locks the tables, so
// that a server that starts now waits.
func openTarget(ctx context.Context, s *DB, tables []copyTable) (_ *copyTarget, err error) {
	t := &copyTarget{d: s.Dialect}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.conn, err = s.write.Conn(ctx); err != nil {
		return nil, err
	}
	// A cancelled commit would have an unknown outcome.
	if t.tx, err = t.conn.BeginTx(context.WithoutCancel(ctx), nil); err != nil {
		return nil, err
	}
	all := append([]copyTable{{name: instanceTable}}, tables...)
	if t.d == PostgreSQL {
		if err := disableTimeoutsPostgres(ctx, t.tx); err != nil {
			return nil, err
		}
		if _, err := t.tx.ExecContext(ctx, "LOCK TABLE "+tableNames(all)+" IN EXCLUSIVE MODE"); err != nil {
			return nil, err
		}
	}
	return t, t.checkEmpty(ctx, all)
}

// checkEmpty returns ErrTargetNotEmpty with the tables that have rows.
func (t *copyTarget) checkEmpty(ctx context.Context, tables []copyTable) error {
	var held []string
	for _, table := range tables {
		n, err := table.count(ctx, t.tx)
		if err != nil {
			return err
		}
		if n > 0 {
			held = append(held, fmt.Sprintf("%s %d", table.name, n))
		}
	}
	if held != nil {
		return fmt.Errorf("%w; rows: %s", ErrTargetNotEmpty, strings.Join(held, ", "))
	}
	return nil
}

func (t *copyTarget) write(ctx context.Context, table copyTable, next nextRow) error {
	if t.d == PostgreSQL {
		return t.writePostgres(ctx, table, next)
	}
	return t.writeSQLite(ctx, table, next)
}

// writePostgres writes the rows with COPY.
func (t *copyTarget) writePostgres(ctx context.Context, table copyTable, next nextRow) error {
	var failed error // the error of the source; pgx would return it as its own
	rows := pgx.CopyFromFunc(func() ([]any, error) {
		var row []any
		if row, failed = next(); failed == nil && row != nil {
			failed = table.forPostgres(row)
		}
		if failed != nil {
			return nil, failed
		}
		return row, nil
	})
	err := t.conn.Raw(func(driver any) error {
		_, err := driver.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{table.name}, table.columnNames(), rows)
		return err
	})
	if failed != nil {
		return failed
	}
	return err
}

// forPostgres converts integers to booleans where needed. It returns an error for text
// that PostgreSQL cannot store.
func (t copyTable) forPostgres(row []any) error {
	for i, v := range row {
		switch v := v.(type) {
		case int64:
			if t.columns[i].kind == copyBoolean {
				row[i] = v != 0
			}
		case string:
			if strings.Contains(v, "\x00") || !utf8.ValidString(v) {
				return fmt.Errorf("column %s has text that PostgreSQL cannot store: %.100q", t.columns[i].name, v)
			}
		}
	}
	return nil
}

// copyBytes is the size in bytes at which the buffer for SQLite is written.
const copyBytes = 1 << 20

// copyBuffer collects rows for one SQLite statement.
type copyBuffer struct {
	many, one *sql.Stmt // for bulkRows rows and for one row
	width     int
	args      []any
	bytes     int
}

func (t *copyTarget) writeSQLite(ctx context.Context, table copyTable, next nextRow) (err error) {
	columns := strings.Join(table.columnNames(), ", ")
	insert := "INSERT INTO " + table.name + " (" + columns + ") "
	b := &copyBuffer{width: len(table.columns)}
	if b.many, err = t.tx.PrepareContext(ctx, insert+t.d.values(bulkRows, columns)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.many.Close()) }()
	if b.one, err = t.tx.PrepareContext(ctx, insert+t.d.values(1, columns)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.one.Close()) }()
	for {
		row, err := next()
		if err != nil {
			return err
		}
		if row == nil {
			return b.flush(ctx)
		}
		if err := b.add(ctx, row); err != nil {
			return err
		}
	}
}

// add adds a row, and writes the buffer when it is full.
func (b *copyBuffer) add(ctx context.Context, row []any) error {
	b.args = append(b.args, row...)
	for _, v := range row {
		switch v := v.(type) {
		case string:
			b.bytes += len(v)
		case []byte:
			b.bytes += len(v)
		}
	}
	if len(b.args) < bulkRows*b.width && b.bytes < copyBytes {
		return nil
	}
	return b.flush(ctx)
}

// flush writes the buffered rows.
func (b *copyBuffer) flush(ctx context.Context) error {
	statement, n := b.one, b.width
	if len(b.args) == bulkRows*b.width {
		statement, n = b.many, len(b.args)
	}
	for row := 0; row < len(b.args); row += n {
		if _, err := statement.ExecContext(ctx, b.args[row:row+n]...); err != nil {
			return err
		}
	}
	clear(b.args)
	b.args, b.bytes = b.args[:0], 0
	return nil
}

// continueIDs makes the next assigned id of a table greater than last and than all
// existing ids.
func (t *copyTarget) continueIDs(ctx context.Context, table copyTable, last int64) error {
	if t.d == SQLite {
		return t.continueSQLite(ctx, table, last)
	}
	for _, c := range table.columns {
		if !c.identity {
			continue
		}
		sequence := "CAST(pg_get_serial_sequence('" + table.name + "', '" + c.name + "') AS regclass)"
		if err := t.continuePostgres(ctx, table, sequence, c.name, last); err != nil {
			return err
		}
	}
	if table.name == "item" {
		return t.continuePostgres(ctx, table, "CAST('item_number' AS regclass)", "id & 4294967295", 0)
	}
	return nil
}

func (t *copyTarget) continuePostgres(ctx context.Context, table copyTable, sequence, id string, last int64) error {
	greatest := "greatest(max(" + id + "), $1)"
	_, err := t.tx.ExecContext(ctx, table.query("CASE WHEN "+greatest+" > 0 THEN setval("+sequence+", "+greatest+") END"), last)
	return err
}

// continueSQLite sets the next id of tables with AUTOINCREMENT. Other tables continue
// after their greatest id.
func (t *copyTarget) continueSQLite(ctx context.Context, table copyTable, last int64) error {
	_, err := t.tx.ExecContext(ctx, `DELETE FROM sqlite_sequence WHERE name = $1 AND seq < $2`, table.name, last)
	if err != nil {
		return err
	}
	_, err = t.tx.ExecContext(ctx, `
		INSERT INTO sqlite_sequence (name, seq)
		SELECT name, $2 FROM sqlite_schema
		WHERE type = 'table' AND name = $1 AND instr(sql, ' AUTOINCREMENT') > 0 AND $2 > 0
			AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = $1)`, table.name, last)
	return err
}

// releaseClaims releases the work that processes had claimed on the source.
func (t *copyTarget) releaseClaims(ctx context.Context) error {
	for _, query := range []string{
		`UPDATE fetch_unit SET state = 'pending', token = token + 1 WHERE state = 'running'`,
		`UPDATE refresh_batch SET state = 'pending', token = token + 1 WHERE state = 'running'`,
	} {
		if _, err := t.tx.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// analyze updates the planner statistics of PostgreSQL.
func (t *copyTarget) analyze(ctx context.Context, tables []copyTable) error {
	if t.d == SQLite {
		return nil
	}
	_, err := t.tx.ExecContext(ctx, "ANALYZE "+tableNames(tables))
	return err
}

func (t *copyTarget) commit() error {
	err := t.tx.Commit()
	if err == nil || t.d == PostgreSQL && !outcomeUnknown(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
}

// close rolls back if commit was not called.
func (t *copyTarget) close() {
	if t.tx != nil {
		_ = t.tx.Rollback() // a lost connection ends the transaction too
	}
	if t.conn != nil {
		_ = t.conn.Close()
	}
}
