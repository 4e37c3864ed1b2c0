package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"
)

// copyTable is a table that is copied.
type copyTable struct {
	name    string
	columns []copyColumn
}

type copyColumn struct {
	name     string
	kind     copyKind
	identity bool // PostgreSQL assigns the values
}

// copyKind is the type of a column.
type copyKind int

const (
	copyInteger copyKind = iota
	copyBoolean          // an integer on SQLite
	copyText
	copyBlob
)

// copyKinds maps the type names of both engines to kinds.
func copyKinds() map[string]copyKind {
	return map[string]copyKind{
		"INTEGER": copyInteger, "TEXT": copyText, "BLOB": copyBlob,
		"integer": copyInteger, "bigint": copyInteger, "boolean": copyBoolean, "text": copyText, "bytea": copyBlob,
	}
}

// Tables that are not copied. The target has its own schema version and its own
// instances.
const (
	versionTable  = "goose_db_version"
	instanceTable = "instance"
	writerTable   = "price_writer"
)

// ownSettings excludes settings that belong to a database and not to its records.
const ownSettings = "name NOT IN ('database_id', '" + fingerprintSetting + "')"

// usedKeys selects ledger keys only if the ledger has accounts. If the ledger is unused,
// the target may start with another key.
const usedKeys = "EXISTS (SELECT 1 FROM wallet_account)"

// copiedTables returns all tables of the current schema that a copy includes. A database
// may have other tables, which are not copied.
func copiedTables(ctx context.Context) (_ []copyTable, err error) {
	db, err := ModelSQLite(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	all, err := tablesSQLite(ctx, db)
	if err != nil {
		return nil, err
	}
	var out []copyTable
	for _, t := range all {
		if t.name != versionTable && t.name != instanceTable && t.name != writerTable {
			out = append(out, t)
		}
	}
	return out, nil
}

// ModelSQLite returns an empty in-memory database with the current schema.
func ModelSQLite(ctx context.Context) (_ *sql.DB, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	db.SetMaxOpenConns(1)
	p, err := (&DB{Dialect: SQLite, write: db}).migrator(goose.DialectSQLite3)
	if err != nil {
		return nil, err
	}
	_, err = p.Up(ctx)
	return db, err
}

// tablesSQLite returns all tables of a database, sorted by name.
func tablesSQLite(ctx context.Context, q Querier) ([]copyTable, error) {
	return readTables(ctx, q, `
		SELECT t.name, c.name, c.type, 0 FROM sqlite_schema t, pragma_table_info(t.name) c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite~_%' ESCAPE '~'
		ORDER BY t.name, c.cid`)
}

// tablesPostgres returns all tables of the current PostgreSQL schema, sorted by name.
func tablesPostgres(ctx context.Context, q Querier) ([]copyTable, error) {
	return readTables(ctx, q, `
		SELECT c.table_name, column_name, data_type, is_identity = 'YES'
		FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' ORDER BY table_name COLLATE "C", ordinal_position`)
}

func readTables(ctx context.Context, q Querier, query string) (tables []copyTable, err error) {
	type found struct {
		table, kind string
		copyColumn
	}
	columns, err := Collect(ctx, q, func(r *sql.Rows, c *found) error {
		return r.Scan(&c.table, &c.name, &c.kind, &c.identity)
	}, query)
	if err != nil {
		return nil, err
	}
	kinds := copyKinds()
	for _, c := range columns {
		if len(tables) == 0 || tables[len(tables)-1].name != c.table {
			tables = append(tables, copyTable{name: c.table})
		}
		kind, ok := kinds[c.kind]
		if !ok {
			kind = -1 // a table of another program
		}
		c.copyColumn.kind = kind
		t := &tables[len(tables)-1]
		t.columns = append(t.columns, c.copyColumn)
	}
	return tables, nil
}

// findTables finds the wanted tables in a database and puts their columns in the wanted
// order.
func findTables(ctx context.Context, q Querier, d Dialect, wanted []copyTable) (found []copyTable, err error) {
	read := tablesSQLite
	if d == PostgreSQL {
		read = tablesPostgres
	}
	all, err := read(ctx, q)
	if err != nil {
		return nil, err
	}
	byName := map[string]copyTable{}
	for _, t := range all {
		byName[t.name] = t
	}
	for _, t := range wanted {
		have := byName[t.name].inOrder(t)
		if have.columns == nil {
			return nil, fmt.Errorf("table %s differs from the schema of this version of assay", t.name)
		}
		found = append(found, have)
	}
	return found, nil
}

// inOrder returns the table with its columns in the order of other. The result has no
// columns if the columns of the two tables differ.
func (t copyTable) inOrder(other copyTable) copyTable {
	byName := map[string]copyColumn{}
	for _, c := range t.columns {
		byName[c.name] = c
	}
	out := copyTable{name: t.name}
	for _, c := range other.columns {
		have, ok := byName[c.name]
		if !ok || have.kind.canonical() != c.kind.canonical() || len(t.columns) != len(other.columns) {
			return copyTable{name: t.name}
		}
		out.columns = append(out.columns, have)
	}
	return out
}

// canonical returns the kind that both engines can store.
func (k copyKind) canonical() copyKind {
	if k == copyBoolean {
		return copyInteger
	}
	return k
}

func (t copyTable) columnNames() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

func tableNames(tables []copyTable) string {
	names := make([]string, len(tables))
	for i := range tables {
		names[i] = tables[i].name
	}
	return strings.Join(names, ", ")
}

// query returns a query that selects what from the rows that are copied.
func (t copyTable) query(what string) string {
	query := "SELECT " + what + " FROM " + t.name
	switch t.name {
	case "setting":
		query += " WHERE " + ownSettings
	case "wallet_key":
		query += " WHERE " + usedKeys
	}
	return query
}

func (t copyTable) count(ctx context.Context, q Querier) (int64, error) {
	n, err := Collect(ctx, q, func(r *sql.Rows, n *int64) error { return r.Scan(n) }, t.query("count(*)"))
	if err != nil {
		return 0, err
	}
	return n[0], nil
}

// copyRows iterates over the rows of a table.
type copyRows struct {
	*sql.Rows
	table  copyTable
	values []any
	into   []any // pointers to values
}

func (t copyTable) read(ctx context.Context, q Querier) (*copyRows, error) {
	rows, err := q.QueryContext(ctx, t.query(strings.Join(t.columnNames(), ", "))) //nolint:rowserrcheck // next checks it
	if err != nil {
		return nil, err
	}
	r := &copyRows{Rows: rows, table: t, values: make([]any, len(t.columns)), into: make([]any, len(t.columns))}
	for i := range r.values {
		r.into[i] = &r.values[i]
	}
	return r, nil
}

// next returns the next row. Each value is an int64, a string, a []byte or nil.
func (r *copyRows) next() ([]any, error) {
	if !r.Next() {
		return nil, r.Err()
	}
	if err := r.Scan(r.into...); err != nil {
		return nil, err
	}
	for i, v := range r.values {
		var ok bool
		if r.values[i], ok = r.table.columns[i].kind.value(v); !ok {
			return nil, fmt.Errorf("column %s holds a %T", r.table.columns[i].name, v)
		}
	}
	return r.values, nil
}

// value converts a value to the form that both engines share. It returns false if a
// column of kind k cannot hold the value.
func (k copyKind) value(v any) (_ any, ok bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case int64:
		return v, k == copyInteger
	case string:
		return v, k == copyText
	case []byte:
		if v == nil {
			v = []byte{} // an empty blob, not NULL
		}
		return v, k == copyBlob
	case bool:
		if v {
			return int64(1), k == copyBoolean
		}
		return int64(0), k == copyBoolean
	}
	return v, false
}
